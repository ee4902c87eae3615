"""Ctrl-C, SIGTERM and SIGUSR1 ask a run to save and leave after the update it is in.

SIGUSR1 is what schedulers send some time before they kill (Slurm: --signal=USR1@60).
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CAUGHT = (signal.SIGINT, signal.SIGTERM, *([signal.SIGUSR1] if hasattr(signal, "SIGUSR1") else []))


class Stop:
    """Whether somebody asked to stop, and with which signal."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """As shells count: 128 and the signal's number."""
        return 128 + (self.signal or 0)

    def follow(self) -> None:
        """Another rank was asked to stop, if not this one."""
        self.signal = self.signal or signal.SIGTERM

    def ask(self, number: int, frame: FrameType | None = None) -> None:
        """The handler. A second Ctrl-C does not wait."""
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Catch the signals for a while; only a program's main thread may."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, stop.ask) for number in CAUGHT}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

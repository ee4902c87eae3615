"""Ctrl-C, SIGTERM and SIGUSR1 stop a run after the current update, saved.

Schedulers send SIGUSR1 some time before they kill a job (Slurm: --signal=USR1@60).
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGUSR1] if hasattr(signal, "SIGUSR1") else []))


class StopRequest:
    """True once a stop signal has arrived."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """128 and the number of the signal, as in shells."""
        return 128 + (self.signal or 0)

    def handle(self, number: int, frame: FrameType | None = None) -> None:
        """Handle a signal; a second Ctrl-C interrupts at once."""
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def catch_signals() -> Iterator[StopRequest]:
    """Catch the stop signals during the block; in other threads than the main thread they cannot be caught."""
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    handlers = {number: signal.signal(number, stop.handle) for number in STOP_SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

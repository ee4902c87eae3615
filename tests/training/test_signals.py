"""Stop signals are recorded; a second Ctrl-C interrupts; the handlers before are restored."""

import os
import signal
import threading

import pytest

from softgaze.training.signals import catch_signals


def handlers():
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 138)])
def test_a_signal_is_recorded(number, code):
    with catch_signals() as stop:
        assert not stop
        os.kill(os.getpid(), number)
        assert stop
    assert stop.exit_code == code


def test_a_second_ctrl_c_interrupts():
    with catch_signals():
        for _ in range(2):  # a scheduler may repeat SIGTERM
            os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_the_handlers_are_restored():
    before = handlers()
    with catch_signals():
        assert handlers() != before
    assert handlers() == before
    with pytest.raises(ZeroDivisionError), catch_signals():
        raise ZeroDivisionError
    assert handlers() == before


def test_a_thread_catches_no_signals():
    before, inside = handlers(), []

    def run():
        with catch_signals() as stop:
            inside.append((bool(stop), handlers()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert inside == [(False, before)]

"""Signals ask; whoever asked twice with Ctrl-C does not wait; afterwards everything is as it was."""

import os
import signal
import threading

import pytest

from softgaze.training.signals import stoppable


def handlers():
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 138)])
def test_a_signal_asks_and_does_not_break_in(number, code):
    with stoppable() as stop:
        assert not stop
        os.kill(os.getpid(), number)
        assert stop
    assert stop.exit_code == code


def test_a_second_ctrl_c_does_not_wait():
    with stoppable():
        for _ in range(2):  # schedulers repeat themselves, and wait all the same
            os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_the_handlers_before_are_put_back_however_it_ends():
    before = handlers()
    with stoppable():
        assert handlers() != before
    assert handlers() == before
    with pytest.raises(ZeroDivisionError), stoppable():
        raise ZeroDivisionError
    assert handlers() == before


def test_a_thread_trains_without_catching_anything():
    before, seen = handlers(), []

    def run():
        with stoppable() as stop:
            seen.append((bool(stop), handlers()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(False, before)]

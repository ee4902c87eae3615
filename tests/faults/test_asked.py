"""Asked to stop at any moment: at most the update under way is lost, and the exit code says which signal asked."""

import random
import signal
import time

import pytest

from corpora import write_corpus
from faults.amounts import times
from faults.children import command, finished, saved_step, started, wait_for_step

SECONDS = 10  # from the signal to the end
ASKED = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]


@pytest.mark.parametrize("number", ASKED)
def test_asked_at_random_it_saves_and_says_so(tmp_path, number):
    write_corpus(tmp_path)
    run = tmp_path / "run"
    arguments = command(tmp_path, run, "--set=validation.save_every=1000", steps=100_000)
    dice, before = random.Random(number), -1
    for _ in range(times(2, 20)):
        process = started(arguments)
        read_until(process, "step" if before < 0 else "resuming")
        time.sleep(dice.uniform(0, 1))
        asked = time.monotonic()
        process.send_signal(number)
        rest = process.communicate(timeout=60)[1]
        took = time.monotonic() - asked
        if process.returncode == -number:  # before the first update: nothing was there to be lost
            continue
        assert process.returncode == 128 + number, rest
        assert took < SECONDS
        assert f"saved at step {saved_step(run):,}" in rest
        assert saved_step(run) > before
        before = saved_step(run)
    assert before > 0


def read_until(process, word):
    """Until a line of the log begins so."""
    for line in process.stderr:
        if word in line:
            return


def test_what_was_asked_to_stop_ends_as_if_it_had_not_been(tmp_path):
    write_corpus(tmp_path)
    assert finished(command(tmp_path, tmp_path / "straight")).returncode == 0
    arguments = command(tmp_path, tmp_path / "run")
    for number, step in zip(ASKED, (5, 20, 35), strict=True):
        process = started(arguments)
        wait_for_step(process, tmp_path / "run", step)
        process.send_signal(number)
        rest = process.communicate(timeout=60)[1]
        assert process.returncode == 128 + number, rest
    done = finished(arguments)
    assert done.returncode == 0, done.stderr
    straight, again = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("straight", "run"))
    assert straight == again

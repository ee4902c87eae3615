"""Asked to stop at any moment: at most the update under way is lost, and the exit code says which signal asked."""

import os
import random
import resource
import signal
import time
from pathlib import Path

import pytest

from corpora import write_corpus
from faults.amounts import times
from faults.children import command, finished, saved_step, started, wait_for_step

SECONDS = 10  # of computing, from the signal to the end; a busy machine takes longer by the clock
ASKED = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]


@pytest.mark.parametrize("number", ASKED)
def test_asked_at_random_it_saves_and_says_so(tmp_path, number):
    write_corpus(tmp_path)
    run = tmp_path / "run"
    arguments = command(
        tmp_path, run, "--set=validation.save_every=1000", "--set=budget.patience=100000", steps=100_000
    )
    dice, before = random.Random(number), -1
    for _ in range(times(2, 20)):
        others = computed()
        process = started(arguments)
        read_until(process, str(run))  # the last line before the first update
        time.sleep(dice.uniform(0, 1))
        asked = computing(process)
        process.send_signal(number)
        rest = process.communicate(timeout=300)[1]
        assert process.returncode == 128 + number, rest
        assert computed() - others - asked < SECONDS
        assert f"saved at step {saved_step(run):,}" in rest
        assert saved_step(run) > before
        before = saved_step(run)
    assert before > 0


def computed():
    """Seconds that all children which have ended took of a processor."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def computing(process):
    """Seconds that one which has not ended took so far."""
    times = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def read_until(process, word):
    """Until a line of the log says so."""
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
        rest = process.communicate(timeout=300)[1]
        assert process.returncode == 128 + number, rest
    done = finished(arguments)
    assert done.returncode == 0, done.stderr
    straight, again = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("straight", "run"))
    assert straight == again

"""Signals and second processes: a training that must stop loses at most one update, and a run has one process."""

import os
import random
import resource
import signal
import time
from pathlib import Path

import pytest

from commands import slow_writes
from corpora import write_corpus
from faults.amounts import times
from faults.children import command, finished, saved_step, started, wait_for_step

SECONDS = 10  # of processor time from the signal to the end; a busy machine takes longer by the clock
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_at_any_moment_saves_a_checkpoint(tmp_path, number):
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
    """Return the processor seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def computing(process):
    """Return the processor seconds of a running process."""
    times = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def read_until(process, word):
    """Read the log until a line contains a word."""
    for line in process.stderr:
        if word in line:
            return


def test_an_interrupted_training_ends_with_the_same_weights(tmp_path):
    write_corpus(tmp_path)
    assert finished(command(tmp_path, tmp_path / "straight")).returncode == 0
    arguments = command(tmp_path, tmp_path / "run")
    for number, step in zip(SIGNALS, (5, 20, 35), strict=True):
        process = started(arguments)
        wait_for_step(process, tmp_path / "run", step)
        process.send_signal(number)
        rest = process.communicate(timeout=300)[1]
        assert process.returncode == 128 + number, rest
    done = finished(arguments)
    assert done.returncode == 0, done.stderr
    straight, again = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("straight", "run"))
    assert straight == again


# --- two processes, one run directory ---------------------------------------------------------------------------


def test_the_second_training_is_rejected_and_the_first_continues(tmp_path):
    write_corpus(tmp_path)
    run = tmp_path / "run"
    arguments = command(tmp_path, run, steps=100_000)
    first = started(arguments)
    wait_for_step(first, run, 2)
    for more in ([], ["--fresh"]):
        second = finished([*arguments, *more])
        assert second.returncode == 2
        assert f"{run}: another process is training here" in second.stderr
        assert second.stderr.count("\n") == 1
    wait_for_step(first, run, saved_step(run) + 2)
    first.terminate()
    said = first.communicate(timeout=300)[1]
    assert first.returncode == 128 + signal.SIGTERM, said
    assert f"saved at step {saved_step(run):,}" in said


def test_a_dead_training_leaves_no_lock(tmp_path):
    write_corpus(tmp_path)
    arguments = command(tmp_path, tmp_path / "run", steps=20)
    first = started(arguments, **slow_writes(0.1))
    wait_for_step(first, tmp_path / "run", 2)
    first.kill()
    first.communicate(timeout=60)
    done = finished(arguments)
    assert done.returncode == 0, done.stderr

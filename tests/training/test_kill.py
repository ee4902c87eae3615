"""Killed at any instant, saves included, and started again: the weights are those of an undisturbed run, bit by bit.

Writes are slowed down, so that some kills strike between write, fsync and rename. After each, what lies there is whole:
the newest checkpoint, and the model of the run. The short form runs here; `make soak` does the same hundreds of times.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from commands import slow_writes
from corpora import SMALL, write_corpus, write_links
from faults.amounts import times
from softgaze.bundle import MANIFEST, Bundle
from softgaze.explain.serialization import read_history
from softgaze.training.checkpoint import newest_checkpoint

KILLS = times(5, 250)
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
SLOW = slow_writes(0.01)

ALSO = {"transformer": [], "rnn-luong": ["--attention-history", "--guided", "train.links"]}  # also guided


def command(directory, arch, out):
    options = [f"--set=model.options.{name}={value}" for name, value in SMALL[arch].items()]
    settings = ["training.batch_tokens=64", "validation.every=10", "validation.save_every=1", "validation.sentences=4"]
    return [
        *(sys.executable, "-m", "softgaze", "train", "--arch", arch, "--out", str(out), "--steps", "60"),
        *("--train", str(directory / "train.en"), str(directory / "train.de"), "--device", "cpu"),
        *options,
        *(f"--set={each}" for each in settings),
        *ALSO[arch],
    ]


@pytest.mark.parametrize("arch", SMALL)
def test_killed_is_not_killed(tmp_path, monkeypatch, arch):
    write_links(write_corpus(tmp_path)[0])
    monkeypatch.chdir(tmp_path)
    straight, again = tmp_path / "straight", tmp_path / "killed"
    subprocess.run(command(tmp_path, arch, straight), env=ENVIRONMENT, check=True, capture_output=True)
    dice, killed, trainings = random.Random(arch), 0, 0
    while killed < KILLS:  # one training ends after some: then another
        shutil.rmtree(again, ignore_errors=True)
        kills = train_and_kill(command(tmp_path, arch, again), again, dice, KILLS - killed)
        assert kills, "the training was too quick to be killed"
        killed, trainings = killed + kills, trainings + 1
        assert (straight / "model.safetensors").read_bytes() == (again / "model.safetensors").read_bytes()
        if "--attention-history" in ALSO[arch]:
            histories = [read_history(each) for each in (straight, again)]
            assert [each.step for each in histories[1]] == [*range(0, 61, 10)]
            assert [each.text for each in histories[0]] == [each.text for each in histories[1]]
    print(f"{arch}: {killed} kills in {trainings} training(s)")


def train_and_kill(training, run, dice, most):
    """How often a training was killed, at most, until it came to its end."""
    for killed in range(most):
        process = subprocess.Popen(training, env={**ENVIRONMENT, **SLOW}, stderr=subprocess.PIPE, text=True)
        wait_for_training(process)
        time.sleep(dice.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        check_whole(run)
        if process.returncode == 0:
            return killed
        assert process.returncode == -signal.SIGKILL
    subprocess.run(training, env=ENVIRONMENT, check=True, capture_output=True)
    return most


def check_whole(run):
    """No checkpoint that took its name is damaged, and neither is the model."""
    assert newest_checkpoint(run / "checkpoints")[1] == []
    if (run / MANIFEST).exists():
        Bundle.open(run)


def wait_for_training(process):
    """Until it says something: then updates and saves follow each other without a pause."""
    assert process.stderr is not None
    process.stderr.readline()

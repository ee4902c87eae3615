"""Killed at any instant, saves included, and started again: the weights are those of an undisturbed run, bit by bit.

Writes are slowed down, so that some kills strike between write, fsync and rename. After each, what lies there is whole:
the newest checkpoint, and the model of the run. The short form runs here; `make soak` does the same hundreds of times.
"""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from corpora import SMALL, write_corpus, write_links
from faults.amounts import times
from softgaze.bundle import MANIFEST, Bundle
from softgaze.gaze.film import read_film
from softgaze.training.checkpoint import newest_checkpoint

KILLS = times(5, 250)
SLOW = {"SOFTGAZE_SLOW_WRITES": "0.01"}

ALSO = {"transformer": [], "rnn-luong": ["--film", "--guided", "train.links"]}  # learning from links, on film


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
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command(tmp_path, arch, tmp_path / "straight"), env=environment, check=True, capture_output=True)
    dice, killed = random.Random(arch), 0
    for _ in range(20 * KILLS):
        process = subprocess.Popen(
            command(tmp_path, arch, tmp_path / "killed"),
            env={**environment, **(SLOW if killed < KILLS else {})},
            stderr=subprocess.PIPE,
            text=True,
        )
        if killed < KILLS:
            wait_for_training(process)
            time.sleep(dice.uniform(0, 0.5))
            process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        check_whole(tmp_path / "killed")
        if process.returncode == 0:
            break
    assert process.returncode == 0
    assert killed >= min(KILLS, 3)
    straight, again = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("straight", "killed"))
    assert straight == again
    if "--film" in ALSO[arch]:
        films = [read_film(tmp_path / name) for name in ("straight", "killed")]
        assert [each.step for each in films[1]] == [*range(0, 61, 10)]
        assert [each.text for each in films[0]] == [each.text for each in films[1]]


def check_whole(run):
    """No checkpoint that took its name is damaged, and neither is the model."""
    assert newest_checkpoint(run / "checkpoints")[1] == []
    if (run / MANIFEST).exists():
        Bundle.open(run)


def wait_for_training(process):
    """Until it says something: then updates and saves follow each other without a pause."""
    assert process.stderr is not None
    process.stderr.readline()

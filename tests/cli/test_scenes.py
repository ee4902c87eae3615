"""The quickstart of pictures with few steps: drawn, learnt, scored, pointed at; its suggestions work."""

import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The directory, and what a run of two updates says."""
    place = tmp_path_factory.mktemp("scenes")
    command = [
        sys.executable,
        "-m",
        "softgaze",
        "quickstart",
        "--images",
        "-o",
        "first",
        "--pairs",
        "60",
        "--steps",
        "2",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, cwd=place)
    assert done.returncode == 0, done.stderr
    assert "done: 2 updates" in done.stderr
    return place, done.stdout


def test_it_draws_trains_scores_and_says_what_next(shown):
    place, said = shown
    for words in ("60 pictures", "3 held-out pictures", "sentences equal their reference", "caption", "Try next"):
        assert words in said
    assert (place / "first" / "model" / "model.safetensors").exists()
    assert len(list((place / "first" / "data" / "images").glob("*.png"))) == 66


def test_the_commands_it_suggests_work(shown):
    place, said = shown
    suggested = [line.split("#")[0].strip() for line in said.split("Try next:")[1].strip().split("\n")]
    ours = [line for line in suggested if "your" not in line]
    assert len(ours) == 3
    for line in ours:
        command = line.replace("softgaze", f"{sys.executable} -m softgaze", 1)
        result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=600, cwd=place)
        assert result.returncode == 0, f"{line}\n{result.stderr}"
    assert (place / "look.html").exists()

"""The quickstart with few steps: every part of it runs, and a second call shows the model without training again."""

import os
import subprocess
import sys

import pytest


def quickstart(place, *arguments):
    command = [sys.executable, "-m", "softgaze", "quickstart", "-o", str(place), "--pairs", "600", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)


def shorten(data, lines=20):
    """Keep the first test sentences only: a model that has learnt nothing writes without an end."""
    for path in data.glob("test.*"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:lines]))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("quickstart") / "first"


def test_it_writes_trains_scores_shows_and_says_what_next(place):
    first = quickstart(place, "--steps", "6")
    assert first.returncode == 0, first.stderr
    for words in ("600 English–Korean", "sentences equal their reference", "cross-attention", "Try next"):
        assert words in first.stdout
    assert "done: 6 updates" in first.stderr
    assert (place / "model" / "model.safetensors").exists()
    shorten(place / "data")
    again = quickstart(place, "--steps", "6")
    assert again.returncode == 0, again.stderr
    assert "ended at step 6" in again.stderr


def test_the_commands_it_suggests_work(place):
    suggested = [
        line.split("#")[0].strip()
        for line in quickstart(place, "--steps", "6").stdout.split("Try next:")[1].strip().split("\n")
        if "your." not in line
    ]
    assert len(suggested) == 5
    for line in suggested:
        command = line.replace("softgaze", f"{sys.executable} -m softgaze", 1)
        result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=600, cwd=place)
        assert result.returncode == 0, f"{line}\n{result.stderr}"

"""`softgaze quickstart` with few steps: every part runs, and a second call shows the model without training."""

import os
import subprocess
import sys
from importlib import import_module

import pytest

from albums import SMALL
from commands import check_error, run
from softgaze.bundle import Bundle

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def quickstart(directory, *arguments):
    command = [sys.executable, "-m", "softgaze", "quickstart", "-o", "first", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=600, cwd=directory)
    assert result.returncode == 0, result.stderr
    return result


def run_suggestions(directory, output):
    """Run the suggested commands, except those on the user's own files; return their number."""
    lines = [line.split("#")[0].strip() for line in output.split("Try next:")[1].strip().split("\n")]
    commands = [line.replace("softgaze", f"{sys.executable} -m softgaze", 1) for line in lines if "your" not in line]
    for command in commands:
        result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=600, cwd=directory)
        assert result.returncode == 0, f"{command}\n{result.stderr}"
    assert (directory / "attention.html").exists()
    return len(commands)


def test_text_is_learnt_scored_and_shown_and_the_suggestions_work(tmp_path):
    options = ("--pairs", "600", "--steps", "40")  # before, it ends its sentences at once
    first = quickstart(tmp_path, *options)
    for word in ("600", "BLEU", "cross-attention"):
        assert word in first.stdout
    assert "40 updates" in first.stderr
    assert (tmp_path / "first" / "model" / "model.safetensors").exists()
    for path in (tmp_path / "first" / "data").glob("test.*"):  # an untrained model translates slowly
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:20]))
    again = quickstart(tmp_path, *options)
    assert "updates" not in again.stderr
    assert run_suggestions(tmp_path, again.stdout) == 5


def test_images_are_learnt_scored_and_shown_and_the_suggestions_work(tmp_path):
    result = quickstart(tmp_path, "--images", "--pairs", "60", "--steps", "2")
    for word in ("60 images", "3 test images", "BLEU", "caption"):
        assert word in result.stdout
    assert "2 updates" in result.stderr
    assert len(list((tmp_path / "first" / "data" / "images").glob("*.png"))) == 66
    assert run_suggestions(tmp_path, result.stdout) == 3


def test_a_second_call_on_images_does_not_train(tmp_path, monkeypatch):
    module = import_module("softgaze.cli.quickstart")
    monkeypatch.setattr(module, "IMAGE_MODEL", {**module.IMAGE_MODEL, **SMALL})
    first, again = (
        run(tmp_path, "quickstart", "--images", "--pairs", "40", "--steps", "3", "-o", "quick") for _ in range(2)
    )
    assert (first.returncode, again.returncode) == (0, 0)
    assert Bundle.open(tmp_path / "quick" / "model").facts["dev"]["loss"] > 0
    assert "updates" in first.stderr
    assert "updates" not in again.stderr


@pytest.mark.parametrize("option", ["--pairs", "--steps"])
def test_none_is_no_number_of_pairs_or_updates(tmp_path, option):
    check_error(run(tmp_path, "quickstart", option, 0), 2, option)

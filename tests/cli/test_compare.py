"""`softgaze compare` as a person runs it: real processes, killed and stopped in the middle, one-line errors."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from commands import run
from corpora import write_corpus
from evaluation.compare.comparisons import QUICK, archs, compared, planned
from softgaze.evaluation.compare.report import write_report
from softgaze.training.run import RunDirectory

STEPS, EVERY = 80, 10
TEXT = ["--train", "text/train.en", "text/train.de", "--test", "text/test.en", "text/test.de"]
SETTINGS = [f"--set={section}.{name}={value}" for section, values in QUICK.items() for name, value in values.items()]
COMMAND = ["compare", *TEXT, "--archs", archs("rnn-luong", "transformer"), "--steps", STEPS, *SETTINGS]
COMMAND += [f"--set=validation.every={EVERY}", "--beam", "1", "--device", "cpu"]


def start(place, out):
    command = [sys.executable, "-m", "softgaze", *map(str, COMMAND), "--out", out]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def training_of(process, path):
    """Wait until a run has begun to learn."""
    while len([*path.glob("checkpoints/step-*")]) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def heard(process, words):
    """Wait until these are said."""
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"never said: {words}")


def left_alone(path):
    """Wait until nobody trains here any more."""
    for _ in range(600):
        try:
            with RunDirectory(path).locked():
                return
        except ValueError:
            time.sleep(0.1)
    raise AssertionError("the process that was left behind did not stop")


def comparable(record):
    """What does not hang on the clock, the machine or the day."""
    for model in record["models"]:
        for turn in ("training", "translating"):
            for name in ("minutes", "tokens_per_second", "sentences_per_second", "seconds", "memory", "memory_before"):
                model[turn].pop(name, None)
        for each in model["learning"]:
            each.pop("minutes")
    record.pop("findings")
    return {**record, "measured_on": None}


def test_killed_and_stopped_equals_undisturbed(tmp_path):
    plan = planned(tmp_path, "rnn-luong", "transformer", steps=STEPS, validation={"every": EVERY})
    compared(plan)
    write_report(plan)
    first, second = (tmp_path / "again" / "models" / variant.directory for variant in plan.variants)

    process = start(tmp_path, "again")
    training_of(process, second)
    process.kill()
    process.communicate()
    left_alone(second)
    done = (first / "model.safetensors").stat().st_mtime_ns

    process = start(tmp_path, "again")
    heard(process, "  rate ")  # an update: from here on it saves before it leaves
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "stopped and saved at step" in said
    assert "Traceback" not in said

    process = start(tmp_path, "again")
    shown, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert said.count("done before") == 2
    assert (first / "model.safetensors").stat().st_mtime_ns == done
    assert str(tmp_path / "again" / "report.html") in shown
    records = [json.loads((tmp_path / out / "report.json").read_text()) for out in ("out", "again")]
    assert comparable(records[0]) == comparable(records[1])
    for variant in plan.variants:
        weights = [tmp_path / out / "models" / variant.directory / "model.safetensors" for out in ("out", "again")]
        assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("compare")
    (directory / "text").mkdir()
    write_corpus(directory / "text")
    write_corpus(directory / "text", name="test", pairs=10)
    (directory / "text" / "empty").touch()
    return directory


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([*TEXT], 2, "give --minutes or --steps"),
        ([*TEXT, "--steps", "5", "--minutes", "1"], 2, "two budgets"),
        (["--steps", "5"], 2, "nothing to train on"),
        ([*TEXT[:3], "--steps", "5"], 2, "nothing to score on"),
        ([*TEXT, "--steps", "5", "--built-in"], 2, "--built-in brings its own text; leave out --train"),
        ([*TEXT, "--steps", "5", "--archs", "rnn-luong:scor=dot"], 2, "did you mean score"),
        ([*TEXT, "--steps", "5", "--archs", "rnn,trasformer"], 2, "did you mean transformer"),
        ([*TEXT, "--steps", "5", "--set", "training.sed=1"], 2, "training.seed"),
        ([*TEXT, "--steps", "5", "--out", "text"], 2, "no comparison of softgaze"),
        ([*TEXT[:3], "--test", "text/test.en", "nowhere.de", "--steps", "5"], 3, "nowhere.de does not exist"),
        ([*TEXT[:3], "--test", "text/empty", "text/empty", "--steps", "5"], 3, "is empty"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(place, arguments, code, said):
    before = sorted(place.rglob("*"))
    done = run(place, "compare", *arguments)
    assert done.returncode == code
    assert said in done.stderr
    assert "\n" not in done.stderr
    assert sorted(place.rglob("*")) == before

"""`softgaze compare` as a person runs it: real processes, killed and stopped in the middle, one-line errors."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import typer

from commands import run
from corpora import write_corpus
from evaluation.compare.comparisons import QUICK, archs, compared, planned, take
from softgaze.cli import compare as cli
from softgaze.evaluation.compare.plan import Plan, absolute
from softgaze.evaluation.compare.report import write_report
from softgaze.training.run import RunDirectory

STEPS, EVERY = 80, 10
TEXT = ["--train", "text/train.en", "text/train.de", "--test", "text/test.en", "text/test.de"]
SETTINGS = [f"--set={section}.{name}={value}" for section, values in QUICK.items() for name, value in values.items()]
COMMAND = ["compare", *TEXT, "--archs", archs("rnn-luong", "transformer"), "--steps", STEPS, *SETTINGS]
TIMED = ("minutes", "tokens_per_second", "spread", "sentences_per_second", "seconds")
MEASURED = (*TIMED, "memory", "memory_before", "measured_on")
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
            for name in MEASURED:
                model[turn].pop(name, None)
        for each in model["learning"]:
            each.pop("minutes")
    record.pop("findings")
    return {**record, "reported_on": None}


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


def test_only_one_process_compares_in_a_place(place):
    command = ["compare", *TEXT, "--archs", archs("conv"), "--steps", "5", "--out", "taken"]
    plan = place / "taken" / "plan.json"
    with RunDirectory(place / "taken").locked():
        replace(planned(place, "rnn"), out=place / "taken").write()
        before = plan.read_text()
        for more in ([], ["--fresh"]):
            done = run(place, *command, *more)
            assert done.returncode == 2
            assert "another process is training here" in done.stderr
            assert plan.read_text() == before


def test_a_refused_command_leaves_the_plan_of_the_one_before(tmp_path):
    plan = absolute(planned(tmp_path, "rnn"))
    compared(plan)
    command = [*COMMAND, "--archs", archs("rnn"), "--out", "out", "--set=data.vocabulary=40"]
    done = run(tmp_path, *command)
    assert done.returncode == 2
    assert "data.vocabulary" in done.stderr
    assert Plan.read(plan.out) == plan


def test_a_model_that_fails_decides_the_exit_code_and_the_others_are_reported(tmp_path, monkeypatch):
    planned(tmp_path, "rnn")
    command = [*COMMAND, "--archs", archs("rnn", "conv"), "--steps", "4", "--out", "out"]
    monkeypatch.setattr(cli, "launch", lambda plan, name, kind: 5 if "rnn" in name else take(plan, name, kind))
    done = run(tmp_path, *command)
    assert done.returncode == 5
    assert "rnn:width=16 is not compared: its training ended in an error (exit code 5)." in done.stdout
    assert str(tmp_path / "out" / "report.html") in done.stdout
    monkeypatch.setattr(cli, "launch", lambda *turn: 6)
    done = run(tmp_path, *command, "--fresh")
    assert done.returncode == 6
    assert "report" not in done.stdout


def test_a_turn_tells_its_exit_code_but_one_that_was_asked_to_stop_stops_all(tmp_path, monkeypatch):
    plan = planned(tmp_path, "rnn")
    plan.write()
    assert cli.launch(plan, "unheard of", "train") == 2

    def killed(number):
        monkeypatch.setattr(cli, "wait", lambda process, stop: process.send_signal(number) or process.wait())
        return cli.launch(plan, "rnn:width=16", "train")

    assert killed(signal.SIGKILL) == 137
    with pytest.raises(typer.Exit) as left:
        killed(signal.SIGTERM)
    assert left.value.exit_code == 143


def test_another_seed_is_refused_also_for_models_that_are_new(tmp_path, monkeypatch):
    plan = absolute(planned(tmp_path, "rnn"))
    compared(plan)
    monkeypatch.setattr(cli, "launch", lambda *turn: 6)
    command = [*COMMAND, "--archs", archs("conv"), "--out", "out", "--seed", "7"]
    done = run(tmp_path, *command)
    assert done.returncode == 2
    assert "this comparison began with seed 1" in done.stderr
    assert "\n" not in done.stderr
    assert Plan.read(plan.out) == plan
    assert run(tmp_path, *command, "--fresh").returncode == 6


def test_a_larger_budget_goes_on_without_another_word(tmp_path, monkeypatch):
    planned(tmp_path, "rnn")
    monkeypatch.setattr(cli, "launch", take)
    command = ["compare", *TEXT, "--archs", archs("rnn"), "--set=training.batch_tokens=64", "--out", "out"]
    for steps in (20, 40):
        done = run(tmp_path, *command, "--beam", "1", "--steps", steps)
        assert done.returncode == 0, done.stderr
        [model] = json.loads((tmp_path / "out" / "report.json").read_text())["models"]
        assert [each["step"] for each in model["learning"]] == [*range(2, steps + 1, 2)]

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

from commands import check_error, run
from corpora import write_corpus
from evaluation.compare.comparisons import QUICK, archs, compared, planned, take
from softgaze.cli import compare as cli
from softgaze.evaluation.compare.experiment import Experiment
from softgaze.evaluation.compare.report import write_report
from softgaze.training.run_directory import RunDirectory

STEPS, EVERY = 80, 10
TEXT = ["--train", "text/train.en", "text/train.de", "--test", "text/test.en", "text/test.de"]
SETTINGS = [f"--set={section}.{name}={value}" for section, values in QUICK.items() for name, value in values.items()]
COMMAND = ["compare", *TEXT, "--archs", archs("rnn-luong", "transformer"), "--steps", STEPS, *SETTINGS]
TIMED = ("minutes", "tokens_per_second", "spread", "sentences_per_second", "seconds")
MEASURED = (*TIMED, "memory", "memory_before", "measured_on")
COMMAND += [f"--set=validation.every={EVERY}", "--beam-size", "1", "--device", "cpu"]


def start(directory, out):
    command = [sys.executable, "-m", "softgaze", *map(str, COMMAND), "--out", out]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def training_of(process, path):
    """Wait until a run has begun to learn."""
    while len([*path.glob("checkpoints/step-*")]) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def heard(process, words):
    """Wait until the process prints `words`."""
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"never printed: {words}")


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
    return {**record, "reported_on": None}


def test_killed_and_stopped_equals_undisturbed(tmp_path):
    plan = planned(tmp_path, "rnn-luong", "transformer", steps=STEPS, validation={"every": EVERY})
    compared(plan)
    write_report(plan)
    first, second = (tmp_path / "again" / "models" / variant.directory for variant in plan.models)

    process = start(tmp_path, "again")
    training_of(process, second)
    process.kill()
    process.communicate()
    left_alone(second)
    result = (first / "model.safetensors").stat().st_mtime_ns

    process = start(tmp_path, "again")
    heard(process, "  lr ")  # an update: from here on it saves before it leaves
    process.send_signal(signal.SIGINT)
    _, fact = process.communicate(timeout=120)
    assert process.returncode == 130, fact
    assert "stopped and saved at step" in fact
    assert "Traceback" not in fact

    process = start(tmp_path, "again")
    shown, fact = process.communicate(timeout=300)
    assert process.returncode == 0, fact
    assert fact.count("already done") == 2
    assert (first / "model.safetensors").stat().st_mtime_ns == result
    assert str(tmp_path / "again" / "report.html") in shown
    records = [json.loads((tmp_path / out / "report.json").read_text()) for out in ("out", "again")]
    assert comparable(records[0]) == comparable(records[1])
    for variant in plan.models:
        weights = [tmp_path / out / "models" / variant.directory / "model.safetensors" for out in ("out", "again")]
        assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("compare")
    (directory / "text").mkdir()
    write_corpus(directory / "text")
    write_corpus(directory / "text", name="test", pairs=10)
    (directory / "text" / "empty").touch()
    return directory


@pytest.mark.parametrize(
    ("arguments", "code", "fact"),
    [
        ([*TEXT], 2, "give --minutes or --steps"),
        ([*TEXT, "--steps", "5", "--minutes", "1"], 2, "two budgets"),
        (["--steps", "5"], 2, "--train SRC TGT"),
        ([*TEXT[:3], "--steps", "5"], 2, "--test SRC TGT"),
        ([*TEXT, "--steps", "5", "--built-in"], 2, "--train has no effect with --built-in"),
        ([*TEXT, "--steps", "5", "--archs", "rnn-luong:scor=dot"], 2, "did you mean score"),
        ([*TEXT, "--steps", "5", "--archs", "rnn,trasformer"], 2, "did you mean transformer"),
        ([*TEXT, "--steps", "5", "--set", "training.sed=1"], 2, "training.seed"),
        ([*TEXT, "--steps", "5", "--out", "text"], 2, "not a comparison of softgaze"),
        ([*TEXT[:3], "--test", "text/test.en", "nowhere.de", "--steps", "5"], 3, "nowhere.de does not exist"),
        ([*TEXT[:3], "--test", "text/empty", "text/empty", "--steps", "5"], 3, "is empty"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(directory, arguments, code, fact):
    before = sorted(directory.rglob("*"))
    check_error(run(directory, "compare", *arguments), code, fact)
    assert sorted(directory.rglob("*")) == before


def test_only_one_process_compares_in_a_directory(directory):
    command = ["compare", *TEXT, "--archs", archs("conv"), "--steps", "5", "--out", "taken"]
    plan = directory / "taken" / "plan.json"
    with RunDirectory(directory / "taken").locked():
        replace(planned(directory, "rnn"), out=directory / "taken").write()
        before = plan.read_text()
        for more in ([], ["--fresh"]):
            result = run(directory, *command, *more)
            assert result.returncode == 2
            assert "another process is training here" in result.stderr
            assert plan.read_text() == before


def test_a_refused_command_leaves_the_plan_of_the_one_before(tmp_path):
    plan = planned(tmp_path, "rnn").with_absolute_paths()
    compared(plan)
    command = [*COMMAND, "--archs", archs("rnn"), "--out", "out", "--set=data.vocabulary=40"]
    check_error(run(tmp_path, *command), 2, "data.vocabulary")
    assert Experiment.read(plan.out) == plan


def test_a_model_that_fails_decides_the_exit_code_and_the_others_are_reported(tmp_path, monkeypatch):
    planned(tmp_path, "rnn")
    command = [*COMMAND, "--archs", archs("rnn", "conv"), "--steps", "4", "--out", "out"]
    monkeypatch.setattr(cli, "launch_job", lambda plan, name, kind: 5 if "rnn" in name else take(plan, name, kind))
    result = run(tmp_path, *command)
    assert result.returncode == 5
    assert "rnn:width=16 is not compared" in result.stdout
    assert str(tmp_path / "out" / "report.html") in result.stdout
    monkeypatch.setattr(cli, "launch_job", lambda *turn: 6)
    result = run(tmp_path, *command, "--fresh")
    assert result.returncode == 6
    assert "report" not in result.stdout


def test_a_job_returns_its_exit_code_but_a_stopped_job_stops_all(tmp_path, monkeypatch):
    plan = planned(tmp_path, "rnn")
    plan.write()
    assert cli.launch_job(plan, "unheard of", "train") == 2
    wait = subprocess.Popen.wait

    def killed(number):
        with monkeypatch.context() as patch:
            patch.setattr(
                subprocess.Popen, "wait", lambda process, timeout=None: process.send_signal(number) or wait(process)
            )
            return cli.launch_job(plan, "rnn:width=16", "train")

    assert killed(signal.SIGKILL) == 137
    with pytest.raises(typer.Exit) as left:
        killed(signal.SIGTERM)
    assert left.value.exit_code == 143


def test_another_seed_is_rejected_for_new_models_too(tmp_path, monkeypatch):
    plan = planned(tmp_path, "rnn").with_absolute_paths()
    compared(plan)
    monkeypatch.setattr(cli, "launch_job", lambda *turn: 6)
    command = [*COMMAND, "--archs", archs("conv"), "--out", "out", "--seed", "7"]
    check_error(run(tmp_path, *command), 2, "this comparison was started with seed 1")
    assert Experiment.read(plan.out) == plan
    assert run(tmp_path, *command, "--fresh").returncode == 6


def test_a_larger_budget_resumes(tmp_path, monkeypatch):
    planned(tmp_path, "rnn")
    monkeypatch.setattr(cli, "launch_job", take)
    command = ["compare", *TEXT, "--archs", archs("rnn"), "--set=training.batch_tokens=64", "--out", "out"]
    for steps in (20, 40):
        result = run(tmp_path, *command, "--beam-size", "1", "--steps", steps)
        assert result.returncode == 0, result.stderr
        [model] = json.loads((tmp_path / "out" / "report.json").read_text())["models"]
        assert [each["step"] for each in model["learning"]] == [*range(2, steps + 1, 2)]

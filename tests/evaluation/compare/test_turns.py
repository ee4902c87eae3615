import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from evaluation.compare.comparisons import compared, planned
from softgaze.bundle import Bundle
from softgaze.evaluation.compare import turns
from softgaze.evaluation.compare.record import collect
from softgaze.evaluation.compare.turns import TRAINED, Pace, Turn, read_record, write_record
from softgaze.files import sha256_of
from softgaze.training.listeners import Listener, Update, Validation


def update(step, elapsed, tokens=100):
    return Update(step, 0, 1.0, tokens, 1e-3, elapsed)


def test_pace_leaves_out_validations_and_counts_all_processes(tmp_path):
    path = tmp_path / "pace.json"
    first = Pace(path)
    for step, elapsed in enumerate([1.0, 2.0, 3.0], start=1):
        first.updated(update(step, elapsed), None)
    first.validated(Validation(3, 0, 50.0, 1.0, 0.0, 0.0, (), True))
    first.updated(update(4, 51.0), None)
    first.updated(update(5, 52.0), None)
    first.keep(1000, 10)
    assert first.facts() == {"tokens_per_second": 100.0, "memory": 1000, "device_memory": 10}
    second = Pace(path)
    second.updated(update(6, 60.0), None)
    second.updated(update(7, 60.5), None)
    second.keep(500, 20)
    assert second.facts() == {"tokens_per_second": round(400 / 3.5, 1), "memory": 1000, "device_memory": 20}
    assert json.loads(path.read_text())["tokens"] == 400


def test_too_few_updates_have_no_speed(tmp_path):
    pace = Pace(tmp_path / "pace.json")
    pace.updated(update(1, 1.0), None)
    pace.keep()
    assert pace.facts() == {"tokens_per_second": None, "memory": None, "device_memory": None}


@pytest.mark.skipif(os.name != "posix", reason="signals as on Unix")
def test_a_process_stops_when_the_one_that_started_it_is_gone():
    code = (
        "import time; from softgaze.evaluation.compare.turns import stop_with_parent; stop_with_parent(); "
        "print('there', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"there\n"
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(timeout=60) == -signal.SIGTERM
    process.stdout.close()


def test_speed_is_the_median_of_some_passes_with_the_slowest_and_the_fastest(monkeypatch):
    clock = iter([0.0, 8.0, 10.0, 11.0, 20.0, 22.0, 30.0, 34.0, 40.0, 41.0])  # five passes of 8, 1, 2, 4 and 1 seconds
    monkeypatch.setattr(turns, "perf_counter", lambda: next(clock))
    found = [SimpleNamespace(parts=[SimpleNamespace(length=4)])] * 2
    assert turns.timed(lambda sources: found, ["a", "b"]) == {
        "seconds": 2.0,
        "sentences_per_second": 1.0,
        "tokens_per_second": 4.0,
        "spread": [1.0, 8.0],
        "rounds": 5,
        "sentences": 2,
    }


def test_lines_that_are_timed_are_few_and_evenly_spaced(tmp_path, monkeypatch):
    turn = Turn(planned(tmp_path, "rnn"), "rnn:width=16")
    assert len(turn.timed_sources()) == 40
    monkeypatch.setattr(turns, "TIMED", 15)
    assert turn.timed_sources() == turn.sources("test")[::3]
    assert turn.amount() == 40 + 5 * 14


class Leaving(Listener):
    """Ends a training in the middle, as a crash would."""

    def __init__(self, step):
        self.step = step

    def updated(self, update, share):
        if update.step == self.step:
            raise KeyboardInterrupt


def test_a_training_that_went_on_and_was_stopped_is_not_taken_for_the_one_that_ended(tmp_path):
    short, long = (planned(tmp_path, "rnn", steps=steps) for steps in (8, 400))
    compared(short)
    turn = Turn(short, "rnn:width=16")
    assert turn.is_trained()
    with pytest.raises(KeyboardInterrupt):
        Turn(long, turn.name).train(Leaving(50))
    assert not turn.is_trained()
    assert not Turn(long, turn.name).is_trained()
    compared(short)
    record = collect(short)
    [model] = record["models"]
    step = model["training"]["step"]
    assert record["findings"][0] == f"{turn.name} was trained for {step} updates, more than the budget of 8."
    assert model["training"]["step"] == model["learning"][-1]["step"] >= 48
    assert model["training"]["step"] >= Bundle.open(turn.path).facts["step"]


def test_weights_that_no_training_ended_with_are_not_taken_for_trained(tmp_path):
    plan = planned(tmp_path, "rnn")
    compared(plan)
    turn = Turn(plan, "rnn:width=16")
    found = read_record(turn.path / TRAINED)
    assert found["weights"] == sha256_of(turn.path / "model.safetensors")
    write_record(turn.path / TRAINED, {**found, "weights": "others"})
    assert not turn.is_trained()

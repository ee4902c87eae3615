"""Jobs: speed without validations, skipped when up to date, and never mistaken for finished."""

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.compare.comparisons import compared, planned
from softgaze.atomic_io import sha256_of
from softgaze.bundle import Bundle
from softgaze.evaluation.compare import jobs
from softgaze.evaluation.compare.jobs import (
    MAX_SHOWN_WORDS,
    TRAINED,
    ModelJob,
    TrainingSpeed,
    read_record,
    select_sentences,
    write_record,
)
from softgaze.evaluation.compare.results import collect_results
from softgaze.training.callbacks import Callback, Update, Validation

TEXTS = st.lists(st.integers(0, 30).map(lambda length: " ".join(["word"] * length)), max_size=60)


def update(step, elapsed, tokens=100):
    return Update(step, 0, 1.0, tokens, 1e-3, elapsed)


def test_speed_leaves_out_validations_and_counts_all_processes(tmp_path):
    path = tmp_path / "speed.json"
    first = TrainingSpeed(path)
    for step, elapsed in enumerate([1.0, 2.0, 3.0], start=1):
        first.on_update(update(step, elapsed), None)
    first.on_validation(Validation(3, 0, 50.0, 1.0, 0.0, 0.0, (), True))
    first.on_update(update(4, 51.0), None)
    first.on_update(update(5, 52.0), None)
    first.save(1000, 10)
    assert first.summary() == {"tokens_per_second": 100.0, "memory": 1000, "device_memory": 10}
    second = TrainingSpeed(path)
    second.on_update(update(6, 60.0), None)
    second.on_update(update(7, 60.5), None)
    second.save(500, 20)
    assert second.summary() == {"tokens_per_second": round(400 / 3.5, 1), "memory": 1000, "device_memory": 20}
    assert json.loads(path.read_text())["tokens"] == 400


def test_too_few_updates_have_no_speed(tmp_path):
    meter = TrainingSpeed(tmp_path / "speed.json")
    meter.on_update(update(1, 1.0), None)
    meter.save()
    assert meter.summary() == {"tokens_per_second": None, "memory": None, "device_memory": None}


@pytest.mark.skipif(os.name != "posix", reason="signals as on Unix")
def test_a_job_stops_when_its_parent_ends():
    code = (
        "import time; from softgaze.evaluation.compare.jobs import stop_with_parent; stop_with_parent(); "
        "print('there', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"there\n"
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(timeout=60) == -signal.SIGTERM
    process.stdout.close()


def test_speed_is_the_median_with_slowest_and_fastest_round(monkeypatch):
    clock = iter([0.0, 8.0, 10.0, 11.0, 20.0, 22.0, 30.0, 34.0, 40.0, 41.0])  # five passes of 8, 1, 2, 4 and 1 seconds
    monkeypatch.setattr(jobs, "perf_counter", lambda: next(clock))
    found = [SimpleNamespace(parts=[SimpleNamespace(length=4)])] * 2
    assert jobs.measure_speed(lambda sources: found, ["a", "b"]) == {
        "seconds": 2.0,
        "sentences_per_second": 1.0,
        "tokens_per_second": 4.0,
        "spread": [1.0, 8.0],
        "rounds": 5,
        "sentences": 2,
    }


def test_timed_sentences_are_few_and_evenly_spaced(tmp_path, monkeypatch):
    job = ModelJob(planned(tmp_path, "rnn"), "rnn:width=16")
    assert len(job.timed_sources()) == 40
    monkeypatch.setattr(jobs, "TIMED_SENTENCES", 15)
    assert job.timed_sources() == job.sources("test")[::3]
    assert job.sentence_count() == 40 + 5 * 14


class Leaving(Callback):
    """Ends a training in the middle, as a crash would."""

    def __init__(self, step):
        self.step = step

    def on_update(self, update, share):
        if update.step == self.step:
            raise KeyboardInterrupt


def test_a_resumed_and_stopped_training_is_not_finished(tmp_path):
    short, long = (planned(tmp_path, "rnn", steps=steps) for steps in (8, 400))
    compared(short)
    job = ModelJob(short, "rnn:width=16")
    assert job.is_trained()
    with pytest.raises(KeyboardInterrupt):
        ModelJob(long, job.name).train(Leaving(50))
    assert not job.is_trained()
    assert not ModelJob(long, job.name).is_trained()
    compared(short)
    record = collect_results(short)
    [model] = record["models"]
    step = model["training"]["step"]
    assert any(job.name in warning and f"{step} updates" in warning for warning in record["warnings"])
    assert model["training"]["step"] == model["learning"][-1]["step"] >= 48
    assert model["training"]["step"] >= Bundle.open(job.path).facts["step"]


def test_replaced_weights_are_not_a_finished_training(tmp_path):
    plan = planned(tmp_path, "rnn")
    compared(plan)
    job = ModelJob(plan, "rnn:width=16")
    found = read_record(job.path / TRAINED)
    assert found["weights"] == sha256_of(job.path / "model.safetensors")
    write_record(job.path / TRAINED, {**found, "weights": "others"})
    assert not job.is_trained()


@given(TEXTS)
def test_sentences_are_distinct_readable_and_grow(texts):
    chosen = select_sentences(texts)
    lengths = [len(texts[number].split()) for number in chosen]
    readable = [text for text in texts if 0 < len(text.split()) <= MAX_SHOWN_WORDS]
    candidates = readable or [text for text in texts if text]
    assert len(set(chosen)) == len(chosen) == min(5, len(candidates))
    assert lengths == sorted(lengths)
    assert not readable or all(0 < length <= MAX_SHOWN_WORDS for length in lengths)


def test_lengths_are_spread_over_the_whole_range():
    texts = [" ".join(["word"] * length) for length in range(1, 16)]
    assert [len(texts[number].split()) for number in select_sentences(texts)] == [2, 5, 8, 11, 14]

"""Callbacks: every event reaches each of them; metrics.jsonl and TensorBoard hold every step exactly once."""

import json
import sys
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.errors import ResourceError
from softgaze.training.callbacks import (
    LOG_SECONDS,
    Callback,
    CallbackList,
    MetricsLog,
    TensorBoardCallback,
    Update,
    Validation,
    read_metrics,
)
from softgaze.training.run_directory import RunDirectory


def update(step, elapsed=0.5, loss=1.0, tokens=10):
    return Update(step, 0, loss, tokens, 0.1, elapsed)


def validation(step, elapsed=0.5):
    return Validation(step, 0, elapsed, 2.0, 3.0, 4.0, (("a dog.", "개예요.", "고양이"),), True)


EVENTS = {
    "on_start": ({"arch": "transformer"},),
    "on_update": (update(1), 0.5),
    "on_validation": (validation(1),),
    "on_message": ("resuming",),
    "on_end": ({"step": 1},),
    "close": (),
}


def test_events_are_all_methods_of_a_callback():
    assert {*EVENTS} == {name for name in vars(Callback) if not name.startswith("_")}


@pytest.mark.parametrize("event", EVENTS)
def test_a_list_calls_its_callbacks_in_order(event):
    calls = []

    def callback(name):
        result = Callback()
        setattr(result, event, lambda *arguments: calls.append((name, arguments)))
        return result

    callbacks = CallbackList(callback("first"), CallbackList(callback("second")), callback("third"))
    getattr(callbacks, event)(*EVENTS[event])
    assert calls == [(name, EVENTS[event]) for name in ("first", "second", "third")]


@pytest.mark.parametrize("event", [update(1), validation(1)])
def test_events_are_immutable(event):
    with pytest.raises(FrozenInstanceError):
        event.step = 2


# --- metrics.jsonl ------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def write(path, first, last):
    """Log updates slow enough for one line each, and a validation after every third."""
    log = MetricsLog(path)
    log.truncate(first - 1, 10.0 * (first - 1))
    for step in range(first, last + 1):
        log.on_update(update(step, 10.0 * step), None)
        if step % 3 == 0:
            log.on_validation(validation(step, 10.0 * step))
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("checkpoint", [0, 1, 3, 4, 6])
def test_truncate_drops_the_lines_that_a_resume_repeats(tmp_path, path, checkpoint):
    straight = write(tmp_path / "straight.jsonl", 1, 9)
    write(path, 1, 7)
    assert write(path, checkpoint + 1, 9) == straight


def test_a_line_holds_the_mean_since_the_last_line(path):
    log = MetricsLog(path)
    for step, (loss, tokens) in enumerate([(4.0, 10), (2.0, 20), (1.0, 70)], 1):
        log.on_update(update(step, LOG_SECONDS * step / 3, loss, tokens), None)
    (line,) = read_metrics(path)
    assert line["step"] == 3
    assert line["loss"] == pytest.approx((4 * 10 + 2 * 20 + 1 * 70) / 100)
    assert line["tokens_per_second"] == pytest.approx(100 / LOG_SECONDS)


def test_alignment_loss_is_the_mean_of_the_updates_that_have_one(path):
    log = MetricsLog(path)
    for step, (loss, tokens) in enumerate([(None, 50), (4.0, 20), (1.0, 60)], 1):
        log.on_update(Update(step, 0, 1.0, tokens, 0.1, LOG_SECONDS * step / 3, loss), None)
    log.on_update(update(4, 2 * LOG_SECONDS), None)
    first, second = read_metrics(path)
    assert first["alignment_loss"] == pytest.approx((4 * 20 + 1 * 60) / 80)
    assert "alignment_loss" not in second


def test_validation_time_does_not_lower_the_speed(path):
    log = MetricsLog(path)
    log.on_update(update(1, 1.0, tokens=999), None)
    log.on_validation(validation(1, 100.0))
    log.on_update(update(2, 100.0 + LOG_SECONDS, tokens=50), None)
    assert read_metrics(path)[-1]["tokens_per_second"] == pytest.approx(50 / LOG_SECONDS)


def test_a_validation_is_stored_completely(path):
    MetricsLog(path).on_validation(validation(3, 30.0))
    (line,) = read_metrics(path)
    assert line.pop("kind") == "validation"
    samples = tuple(map(tuple, line.pop("samples")))
    assert Validation(**line, samples=samples) == validation(3, 30.0)


LINES = [json.dumps({"step": step, "samples": "개예요"}, ensure_ascii=False).encode() for step in (1, 2, 3)]


@given(length=st.integers(0, len(LINES[2])))
def test_a_line_cut_anywhere_is_skipped(tmp_path_factory, length):
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    path.write_bytes(b"\n".join([*LINES[:2], LINES[2][:length]]))
    steps = [line["step"] for line in read_metrics(path)]
    assert steps == ([1, 2, 3] if length == len(LINES[2]) else [1, 2])


def test_a_missing_file_has_no_lines(path):
    assert read_metrics(path) == []


# --- TensorBoard --------------------------------------------------------------------------------------------------


@pytest.fixture
def read_events():
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

    def read(directory):
        events = accumulator.EventAccumulator(str(directory)).Reload()
        return {
            tag: [(event.step, pytest.approx(event.value, rel=1e-6)) for event in events.Scalars(tag)]
            for tag in events.Tags()["scalars"]
        }

    return read


def write_events(directory, first, last):
    callback = TensorBoardCallback(directory)
    for step in range(first, last + 1):
        callback.on_update(Update(step, 0, 5.0 / step, 10, 1e-3 * step, 1.0 * step), None)
    callback.on_validation(validation(last))
    callback.close()


def test_tensorboard_reads_the_events(tmp_path, read_events):
    write_events(tmp_path, 1, 3)
    assert read_events(tmp_path) == {
        "train/loss": [(1, 5.0), (2, 2.5), (3, 5 / 3)],
        "train/learning_rate": [(1, 1e-3), (2, 2e-3), (3, 3e-3)],
        "dev/loss": [(3, 2.0)],
        "dev/bleu": [(3, 3.0)],
        "dev/chrf": [(3, 4.0)],
    }


def test_tensorboard_shows_repeated_steps_once(tmp_path, read_events):
    write_events(tmp_path, 1, 4)
    write_events(tmp_path, 3, 6)
    events = read_events(tmp_path)
    assert [step for step, _ in events["train/loss"]] == [1, 2, 3, 4, 5, 6]
    assert events["dev/bleu"] == [(6, 3.0)]


def test_tensorboard_writes_nothing_before_the_first_event(tmp_path):
    pytest.importorskip("tensorboard")
    callback = TensorBoardCallback(tmp_path / "run" / "tensorboard")
    RunDirectory(tmp_path / "run").check()
    callback.close()
    assert not (tmp_path / "run").exists()


def test_without_tensorboard_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ResourceError, match=r"softgaze\[tensorboard\]"):
        TensorBoardCallback(tmp_path)

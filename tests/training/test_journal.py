"""The journal: what happened once stands in it once, and a line cut by a crash costs that line alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.training.journal import SECONDS, Journal, read_journal
from softgaze.training.listeners import Update, Validation


def update(step, elapsed, loss=1.0, tokens=10):
    return Update(step, 0, loss, tokens, 0.1, elapsed)


def validation(step, elapsed):
    return Validation(step, 0, elapsed, 2.0, 3.0, 4.0, (("a dog.", "개예요.", "고양이"),), True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def write(path, first, last):
    """Updates slow enough for a line each, and a validation after every third."""
    journal = Journal(path)
    journal.rewind(first - 1, 10.0 * (first - 1))
    for step in range(first, last + 1):
        journal.updated(update(step, 10.0 * step), None)
        if step % 3 == 0:
            journal.validated(validation(step, 10.0 * step))
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("checkpoint", [0, 1, 3, 4, 6])
def test_rewind_drops_what_a_resume_repeats(tmp_path, path, checkpoint):
    straight = write(tmp_path / "straight.jsonl", 1, 9)
    write(path, 1, 7)
    assert write(path, checkpoint + 1, 9) == straight


def test_a_line_tells_the_mean_of_all_updates_since_the_last(path):
    journal = Journal(path)
    losses, tokens = [4.0, 2.0, 1.0], [10, 20, 70]
    for step, (loss, count) in enumerate(zip(losses, tokens, strict=True), 1):
        journal.updated(update(step, SECONDS * step / 3, loss, count), None)
    (line,) = read_journal(path)
    assert line["step"] == 3
    assert line["loss"] == pytest.approx((4 * 10 + 2 * 20 + 1 * 70) / 100)
    assert line["tokens_per_second"] == pytest.approx(100 / SECONDS)


def test_the_loss_of_links_stands_in_it_only_where_there_are_links(path):
    journal = Journal(path)
    guided, tokens = [None, 4.0, 1.0], [50, 20, 60]
    for step, (loss, count) in enumerate(zip(guided, tokens, strict=True), 1):
        journal.updated(Update(step, 0, 1.0, count, 0.1, SECONDS * step / 3, loss), None)
    journal.updated(update(4, 2 * SECONDS), None)
    first, second = read_journal(path)
    assert first["guided"] == pytest.approx((4 * 20 + 1 * 60) / 80)
    assert "guided" not in second


def test_validation_is_not_training_speed(path):
    journal = Journal(path)
    journal.updated(update(1, 1.0, tokens=999), None)
    journal.validated(validation(1, 100.0))
    journal.updated(update(2, 100.0 + SECONDS, tokens=50), None)
    assert read_journal(path)[-1]["tokens_per_second"] == pytest.approx(50 / SECONDS)


def test_everything_of_a_validation_is_kept(path):
    Journal(path).validated(validation(3, 30.0))
    (line,) = read_journal(path)
    assert Validation(**{key: value for key, value in line.items() if key not in ("kind", "samples")}, samples=()) == (
        Validation(3, 0, 30.0, 2.0, 3.0, 4.0, (), True)
    )
    assert line["samples"] == [["a dog.", "개예요.", "고양이"]]


LINES = [
    json.dumps({"kind": "validation", "step": step, "samples": "개예요"}, ensure_ascii=False) for step in (1, 2, 3)
]


@given(kept=st.integers(0, len(LINES[2].encode())))
def test_a_line_cut_anywhere_is_passed_over(tmp_path_factory, kept):
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    whole = "".join(f"{line}\n" for line in LINES[:2]).encode()
    path.write_bytes(whole + LINES[2].encode()[:kept])
    found = [line["step"] for line in read_journal(path)]
    assert found == ([1, 2, 3] if kept == len(LINES[2].encode()) else [1, 2])


def test_no_journal_is_an_empty_one(path):
    assert read_journal(path) == []

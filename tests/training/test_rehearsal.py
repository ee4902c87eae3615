"""A rehearsal tells what a run would take and leaves nothing; its worst batch is the worst there is."""

import tempfile

import numpy
import pytest

from corpora import corpus, small
from runs import prepared, trainer
from softgaze.training.rehearsal import budget, largest_batch, minutes, rehearse


def test_it_tells_of_this_model_and_text_and_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    told = rehearse(small(), corpus(tmp_path), None, "cpu")
    assert not [*(tmp_path / "temporary").glob("softgaze-*")]  # torch may leave a cache of its own there
    made = trainer(tmp_path / "run")  # on the same text
    assert f"{sum(value.numel() for value in made.model.parameters()):,} parameters" in told
    assert f"{len(prepared().train):,} pairs" in told
    assert f"{made.updates_in_an_epoch():,.0f} updates" in told
    names = [line.split("  ")[0] for line in told.split("\n")]
    assert names == ["model", "data", "speed", "an epoch", "the budget", "peak memory", "disk"]


@pytest.mark.parametrize("tokens", [1, 64, 10**6])
def test_no_batch_of_the_run_is_larger(tmp_path, tokens):
    made = trainer(tmp_path / "run", small(training={"batch_tokens": tokens}))
    lengths = prepared().train.lengths(numpy.arange(len(prepared().train))).max(axis=1)
    worst = largest_batch(made).pairs
    assert sorted(lengths[worst]) == sorted(lengths)[-len(worst) :]
    assert len(worst) == 1 or len(worst) * lengths.max() <= tokens
    batches = [pairs for pool in range(made.batches.pools()) for pairs in made.batches.cut(0, pool)]
    assert all(len(pairs) <= len(worst) for pairs in batches if lengths[pairs].max() == lengths.max())


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"steps": 30}, "60 s, about 30 updates"),
        ({"steps": 30, "minutes": 0.5}, "30 s, about 15 updates"),
        ({"steps": 3, "minutes": 0.5}, "6 s, about 3 updates"),
        ({"steps": None, "patience": 7}, "open: ends after 7 validations"),
    ],
)
def test_whichever_limit_comes_first_ends_it(tmp_path, limits, words):
    assert budget(trainer(tmp_path / "run", small(budget=limits)), seconds_an_update=2.0).startswith(words)


def test_epochs_are_a_budget_too(tmp_path):
    made = trainer(tmp_path / "run", small(budget={"steps": None, "epochs": 3}))
    assert f"about {3 * made.updates_in_an_epoch():,.0f} updates" in budget(made, seconds_an_update=2.0)


@pytest.mark.parametrize(
    ("seconds", "words"), [(5, "5 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (9000, "2.5 h")]
)
def test_durations_are_for_people(seconds, words):
    assert minutes(seconds) == words

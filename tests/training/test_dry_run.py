"""A dry run estimates a run and leaves nothing behind; its longest batch is the largest there is."""

import tempfile

import numpy as np
import pytest

from corpora import corpus, small
from runs import preprocessed, trainer
from softgaze.training.dry_run import describe_budget, duration, estimate, longest_batch


def test_the_report_describes_model_and_text_and_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    report = estimate(small(), corpus(tmp_path), None, "cpu")
    assert not [*(tmp_path / "temporary").glob("softgaze-*")]  # torch may leave a cache of its own there
    run = trainer(tmp_path / "run")  # on the same text
    assert f"{sum(parameter.numel() for parameter in run.model.parameters()):,} parameters" in report
    assert f"{len(preprocessed().train):,} pairs" in report
    assert f"{run.updates_per_epoch:,.0f} updates" in report
    names = [line.split("  ")[0] for line in report.split("\n")]
    assert names == ["model", "data", "speed", "epoch", "budget", "peak memory", "disk"]


@pytest.mark.parametrize("tokens", [1, 64, 10**6])
def test_no_batch_of_the_run_is_larger_than_the_longest(tmp_path, tokens):
    run = trainer(tmp_path / "run", small(training={"batch_tokens": tokens}))
    lengths = preprocessed().train.lengths(np.arange(len(preprocessed().train))).max(axis=1)
    longest = longest_batch(run).pairs
    assert sorted(lengths[longest]) == sorted(lengths)[-len(longest) :]
    assert len(longest) == 1 or len(longest) * lengths.max() <= tokens
    batches = [pairs for pool in range(run.batches.num_pools()) for pairs in run.batches.pool_batches(0, pool)]
    assert all(len(pairs) <= len(longest) for pairs in batches if lengths[pairs].max() == lengths.max())


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"steps": 30}, "60 s, about 30 updates"),
        ({"steps": 30, "minutes": 0.5}, "30 s, about 15 updates"),
        ({"steps": 3, "minutes": 0.5}, "6 s, about 3 updates"),
        ({"steps": None, "patience": 7}, "no limit; ends after 7 validations"),
    ],
)
def test_the_first_limit_ends_the_run(tmp_path, limits, text):
    assert describe_budget(trainer(tmp_path / "run", small(budget=limits)), 2.0).startswith(text)


def test_epochs_limit_the_run(tmp_path):
    run = trainer(tmp_path / "run", small(budget={"steps": None, "epochs": 3}))
    assert f"about {3 * run.updates_per_epoch:,.0f} updates" in describe_budget(run, 2.0)


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (9000, "2.5 h")]
)
def test_durations_have_a_readable_unit(seconds, text):
    assert duration(seconds) == text

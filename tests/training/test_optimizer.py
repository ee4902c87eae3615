"""The learning rate rises to its peak, then follows the schedule; only matrices decay."""

from itertools import pairwise

import pytest

from corpora import small
from softgaze.config import parse_config, resolve
from softgaze.models import build_model
from softgaze.training.optimizer import learning_rate, make_optimizer

SCHEDULES = ["inverse-sqrt", "cosine", "constant"]


def config(schedule, steps=100):
    training = {"schedule": schedule, "learning_rate": 2.0, "warmup": 10}
    return resolve(parse_config({"training": training, "budget": {"steps": steps}}))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warmup_is_linear(schedule):
    rates = [learning_rate(config(schedule), step) for step in range(1, 11)]
    assert rates == pytest.approx([0.2 * step for step in range(1, 11)])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_after_warmup_the_rate_neither_rises_nor_jumps(schedule):
    rates = [learning_rate(config(schedule), step) for step in range(10, 101)]
    assert all(0 <= after <= before for before, after in pairwise(rates))
    assert max(before - after for before, after in pairwise(rates)) < 0.11


def test_values_of_the_schedules():
    assert learning_rate(config("inverse-sqrt"), 40) == pytest.approx(1.0)  # √(10 / 40) of 2
    assert learning_rate(config("cosine"), 55) == pytest.approx(1.0)  # halfway
    assert learning_rate(config("cosine"), 100) == pytest.approx(0.0)
    assert learning_rate(config("constant"), 1000) == 2.0


def test_without_warmup_the_first_rate_is_the_peak():
    given = resolve(parse_config({"training": {"learning_rate": 2.0, "warmup": 0}}))
    assert learning_rate(given, 1) == pytest.approx(2.0)


def test_only_matrices_decay():
    model = build_model("transformer", source_vocabulary=20)
    decaying, others = make_optimizer(model, small(training={"weight_decay": 0.1}).training).param_groups
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.1, 0.0)
    assert {parameter.ndim for parameter in others["params"]} == {1}
    assert 1 not in {parameter.ndim for parameter in decaying["params"]}
    assert len(decaying["params"]) + len(others["params"]) == len(list(model.parameters()))

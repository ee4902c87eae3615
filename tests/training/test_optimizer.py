"""The learning rate rises to its peak, then follows the schedule; only matrices decay."""

from itertools import pairwise

import pytest

from corpora import small
from softgaze.config import parse_config, resolve
from softgaze.models import build_model
from softgaze.training.gradients import learning_rate, make_optimizer

SCHEDULES = ["inverse-sqrt", "cosine", "constant"]


def config(schedule, steps=100):
    training = {"schedule": schedule, "learning_rate": 2.0, "warmup": 10}
    return resolve(parse_config({"training": training, "budget": {"steps": steps}}))


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "constant"])
def test_the_rate_falls_to_zero_in_the_last_part_of_the_budget(schedule):
    given = config(schedule)
    rates = [learning_rate(given, step, used=(step - 1) / 100) for step in range(11, 101)]
    plain = [learning_rate(given, step) for step in range(11, 101)]
    assert rates[:60] == plain[:60]
    left = [1 - (step - 1) / 100 for step in range(71, 101)]
    assert rates[60:] == pytest.approx([rate * share / 0.3 for rate, share in zip(plain[60:], left, strict=True)])
    assert learning_rate(given, 101, used=1.0) == 0.0
    assert learning_rate(given, 50, used=0.4, remaining=0.25) == pytest.approx(learning_rate(given, 50) / 4)


def test_without_decay_the_budget_changes_nothing():
    given = resolve(parse_config({"training": {"decay": 0, "learning_rate": 2.0}, "budget": {"steps": 1000}}))
    assert learning_rate(given, 999, used=0.999) == 2.0


@pytest.mark.parametrize(
    ("budget", "schedule"), [({}, "inverse-sqrt"), ({"minutes": 5}, "constant"), ({"steps": 5}, "constant")]
)
def test_the_default_schedule_depends_on_the_budget(budget, schedule):
    training = resolve(parse_config({"budget": budget})).training
    assert (training.schedule, training.decay) == (schedule, 0.3)


@pytest.mark.parametrize(
    ("sections", "average"),
    [
        ({}, 5),
        ({"budget": {"minutes": 5}}, 0),
        ({"budget": {"steps": 5}, "training": {"schedule": "cosine"}}, 0),
        ({"budget": {"steps": 5}, "training": {"decay": 0}}, 5),
        ({"budget": {"steps": 5}, "training": {"average": 3}}, 3),
    ],
    ids=str,
)
def test_weights_are_averaged_unless_the_learning_rate_falls_to_zero(sections, average):
    assert resolve(parse_config(sections)).training.average == average


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

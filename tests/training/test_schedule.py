"""Rates rise to the peak, then follow their course; they depend on the step alone."""

from itertools import pairwise

import pytest

from softgaze.config import resolve, validated
from softgaze.training.schedule import COURSES, learning_rate


def config(schedule, steps=100):
    training = {"schedule": schedule, "learning_rate": 2.0, "warmup": 10}
    return resolve(validated({"training": training, "budget": {"steps": steps}}))


@pytest.mark.parametrize("schedule", COURSES)
def test_warm_up_rises_evenly_to_the_peak(schedule):
    rates = [learning_rate(config(schedule), step) for step in range(1, 11)]
    assert rates == pytest.approx([0.2 * step for step in range(1, 11)])


@pytest.mark.parametrize("schedule", COURSES)
def test_the_rate_never_rises_after_warm_up_nor_jumps(schedule):
    rates = [learning_rate(config(schedule), step) for step in range(10, 101)]
    assert all(0 <= after <= before for before, after in pairwise(rates))
    assert max(before - after for before, after in pairwise(rates)) < 0.11


def test_courses_end_where_they_should():
    assert learning_rate(config("inverse-sqrt"), 40) == pytest.approx(1.0)  # √(10 / 40) of 2
    assert learning_rate(config("cosine"), 55) == pytest.approx(1.0)  # halfway
    assert learning_rate(config("cosine"), 100) == pytest.approx(0.0)
    assert learning_rate(config("constant"), 1000) == 2.0


def test_no_warm_up_is_no_division_by_zero():
    given = resolve(validated({"training": {"learning_rate": 2.0, "warmup": 0}}))
    assert learning_rate(given, 1) == pytest.approx(2.0)

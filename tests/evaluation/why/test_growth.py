"""The fit finds the power it was given, and crossings are where two curves meet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.evaluation.why.growth import crossing, exponent


@given(power=st.floats(-2, 3), factor=st.floats(0.01, 100))
def test_the_exponent_of_a_power_is_that_power(power, factor):
    sizes = [64, 128, 256, 700]
    assert exponent(sizes, [factor * size**power for size in sizes]) == pytest.approx(power, abs=1e-6)


def test_only_the_largest_points_are_fitted():
    assert exponent([1, 2, 4, 8], [9, 2, 4, 8]) == pytest.approx(1)


@given(place=st.floats(70, 900))
def test_two_powers_cross_where_they_are_equal(place):
    sizes = [64, 128, 256, 512, 1024]
    found = crossing(sizes, [size**2 / place for size in sizes], sizes)
    assert found == pytest.approx(place)


def test_curves_that_never_change_places_do_not_cross():
    assert crossing([1, 2, 4], [1, 2, 3], [2, 3, 4]) is None
    assert crossing([1, 2, 4], [5, 6, 7], [2, 3, 4]) is None


def test_a_curve_that_comes_down_again_is_above_from_no_size_on():
    assert crossing([1, 2, 4], [1, 3, 1], [2, 2, 2]) is None
    assert crossing([1, 2, 4], [3, 1, 3], [2, 2, 2]) is None
    assert crossing([1, 2, 4], [3, 1, 1], [2, 2, 2]) is None

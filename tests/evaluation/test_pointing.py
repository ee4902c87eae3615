"""Pointing is the mass in the box, chance the share of the picture."""

import numpy
import pytest

from softgaze.data.boxes import Box
from softgaze.evaluation.pointing import Pointed, average, pointed
from softgaze.gaze.attention import Attention

LEFT = Box(0.0, 0.0, 0.5, 1.0)


def test_the_mass_of_the_words_own_row_counts():
    weights = numpy.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.25, 0.25], [0.25] * 4])
    attention = Attention.of(None, ["a", "circle", "⏎"], weights, grid=(2, 2))
    assert pointed(attention, 0, [LEFT]) == Pointed(1.0, 0.5)
    assert pointed(attention, 1, [LEFT]) == Pointed(0.25, 0.5)
    assert pointed(attention.subwords(), 1, [LEFT, Box(0.5, 0.0, 1.0, 1.0)]) == Pointed(1.0, 1.0)


def test_the_mean_of_many_words():
    found = average([Pointed(1.0, 0.5), Pointed(0.5, 0.1)])
    assert (found.mass, found.chance, found.nouns) == pytest.approx((0.75, 0.3, 2))
    assert "75.0%" in str(found)
    assert "chance 30.0%" in str(found)
    assert average([]) is None

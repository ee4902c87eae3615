"""Spearman's correlation as everybody defines it, by row, with what is not known left out."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.gaze import Attention
from softgaze.gaze.honesty import honesty, mean_known, ranks, row_honesty

rows = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=7)


def as_matrix(row):
    return numpy.array([row])


def by_the_book(first, second):
    """Pearson's correlation of mean ranks."""
    order = [[sorted(row).index(x) + (row.count(x) - 1) / 2 for x in row] for row in (first, second)]
    return numpy.corrcoef(*order)[0, 1]


@given(
    st.integers(2, 7).flatmap(lambda size: st.tuples(*[st.lists(st.integers(-3, 3), min_size=size, max_size=size)] * 2))
)
def test_it_is_the_correlation_of_mean_ranks(pair):
    first, second = pair
    found = row_honesty(as_matrix(first).astype(float), as_matrix(second).astype(float))[0]
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert numpy.isnan(found)
    else:
        assert found == pytest.approx(by_the_book(first, second))


@given(rows)
def test_any_rising_curve_of_the_same_values_agrees_fully_and_a_falling_one_not_at_all(row):
    values = as_matrix(row)
    if len(set(row)) > 1:
        assert row_honesty(values, numpy.exp(values))[0] == pytest.approx(1)
        assert row_honesty(values, -values)[0] == pytest.approx(-1)


def test_equals_share_their_rank():
    everything = numpy.ones((1, 4), dtype=bool)
    assert ranks(numpy.array([[5.0, 1.0, 5.0, 9.0]]), everything).tolist() == [[1.5, 0, 1.5, 3]]


def test_what_is_not_known_is_as_if_it_were_not_there():
    weights, influence = numpy.array([[0.1, 0.9, 0.3, 0.2]]), numpy.array([[1.0, numpy.nan, 3.0, 2.0]])
    assert row_honesty(weights, influence)[0] == pytest.approx(1)


def test_a_sentence_is_the_mean_of_its_words_and_marks_do_not_count():
    attention = Attention.of(["a", "b", "⏎"], ["x", "y", "⏎"], [[0.1, 0.2, 0.7], [0.3, 0.2, 0.5], [0, 0, 1]])
    assert honesty(attention, numpy.array([[1.0, 2.0], [1.0, 2.0]])) == pytest.approx(0)
    assert honesty(attention, numpy.array([[1.0, 2.0], [2.0, 1.0]])) == pytest.approx(1)


def test_nothing_to_rank_is_no_number():
    assert numpy.isnan(honesty(Attention.of(["a"], ["x"], [[1.0]]), numpy.array([[2.0]])))
    assert numpy.isnan(mean_known(numpy.array([numpy.nan])))


def test_influences_of_another_sentence_are_refused():
    with pytest.raises(ValueError, match="different sentences"):
        row_honesty(numpy.ones((1, 2)), numpy.ones((1, 3)))

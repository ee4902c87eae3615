"""Maps keep their meaning when subwords become words: rows still sum to 1."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.gaze.attention import END_MARK, Attention, group_words, join_pieces

pieces = st.lists(st.sampled_from(["▁a", "b", "▁학", "교", "<0xEA>"]), min_size=1, max_size=8)


def some_map(source, target, seed=0):
    weights = numpy.random.default_rng(seed).dirichlet(numpy.ones(len(source)), len(target))
    return Attention(tuple(source), tuple(target), weights, "a test")


@given(source=pieces, target=pieces)
def test_words_keep_rows_summing_to_one(source, target):
    words = some_map([*source, END_MARK], [*target, END_MARK]).words()
    assert numpy.allclose(words.weights.sum(axis=1), 1)
    assert words.weights.shape == (len(words.target), len(words.source))


@given(source=pieces)
def test_every_piece_belongs_to_exactly_one_word(source):
    groups = group_words([*source, END_MARK])
    assert [place for group in groups for place in group] == list(range(len(source) + 1))
    assert groups[-1] == [len(source)]


def test_words_sum_over_source_pieces_and_average_over_target_pieces():
    weights = numpy.array([[0.1, 0.2, 0.7], [0.3, 0.4, 0.3]])
    words = Attention(("▁do", "g", "▁runs"), ("▁hu", "nd"), weights, "a test").words()
    assert words.source == ("dog", "runs")
    assert words.target == ("hund",)
    assert numpy.allclose(words.weights, [[0.5, 0.5]])


def test_bytes_spell_their_character():
    assert join_pieces(["▁", "<0xED>", "<0x95>", "<0x99>"]) == "학"


def test_entropy_is_zero_on_one_thing_and_log_of_all_when_spread():
    sharp = Attention(("▁a", "▁b"), ("▁x",), numpy.array([[1.0, 0.0]]), "a test")
    flat = Attention(("▁a", "▁b"), ("▁x",), numpy.array([[0.5, 0.5]]), "a test")
    assert sharp.entropy() == 0
    assert flat.entropy() == pytest.approx(numpy.log(2))


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        Attention(("▁a",), ("▁x",), numpy.ones((2, 2)), "a test")

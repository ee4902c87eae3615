"""ROUGE-L against scores worked out by hand, and the longest common subsequence against every subsequence there is."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.evaluation.rouge import RECALL, common_length, rouge_l

TEXT = st.lists(st.sampled_from("abc"), max_size=7)


def subsequences(words):
    return {kept for size in range(len(words) + 1) for kept in combinations(words, size)}


@given(TEXT, TEXT)
def test_the_longest_common_subsequence_is_the_longest_of_all_common_ones(one, other):
    assert common_length(one, other) == max(map(len, subsequences(one) & subsequences(other)))


def f(precision, recall):
    return (1 + RECALL**2) * precision * recall / (recall + RECALL**2 * precision)


@pytest.mark.parametrize(
    ("caption", "references", "wanted"),
    [
        ("police killed the gunman", ["police killed the gunman"], 1.0),
        ("police kill the gunman", ["police killed the gunman"], f(3 / 4, 3 / 4)),
        ("the gunman kill police", ["police killed the gunman"], f(2 / 4, 2 / 4)),
        ("a dog", ["a big dog runs"], f(2 / 2, 2 / 4)),
        ("a dog", ["a big dog runs", "dog"], f(2 / 2, 1 / 1)),  # the best of each, of different references
        ("", ["a"], 0.0),
        ("x", ["a"], 0.0),
    ],
)
def test_by_hand(caption, references, wanted):
    assert rouge_l(caption.split(), [each.split() for each in references]) == pytest.approx(wanted)


@given(TEXT, st.lists(TEXT, min_size=1, max_size=3), TEXT)
def test_another_reference_never_lowers_the_score(caption, references, more):
    assert rouge_l(caption, [*references, more]) >= rouge_l(caption, references) - 1e-12


@given(TEXT.filter(bool))
def test_only_a_text_of_the_same_words_is_perfect(words):
    assert rouge_l(words, [words]) == pytest.approx(1)
    assert rouge_l([*words, "d"], [words]) < 1

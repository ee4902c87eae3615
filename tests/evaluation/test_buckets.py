"""Every sentence is in one bucket, and in the right one; buckets that were not asked for are big enough to score."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.errors import UsageError
from softgaze.evaluation.buckets import LEAST, MOST, make_buckets, source_lengths

some_lengths = st.lists(st.integers(0, 200), min_size=1, max_size=400)
some_edges = st.none() | st.sets(st.integers(1, 250), min_size=1).map(sorted)


@given(lengths=some_lengths, edges=some_edges)
def test_every_sentence_is_in_one_bucket_that_its_length_fits(lengths, edges):
    buckets = make_buckets(lengths, edges)
    assert sorted(each for bucket in buckets for each in bucket.members) == list(range(len(lengths)))
    for bucket in buckets:
        inside = [lengths[each] for each in bucket.members]
        assert bucket.low <= min(inside) <= bucket.length <= max(inside) <= bucket.high
    assert all(one.high < other.low for one, other in pairwise(buckets))


@given(lengths=some_lengths)
def test_automatic_buckets_are_big_enough_and_not_too_many(lengths):
    sizes = [len(bucket.members) for bucket in make_buckets(lengths)]
    assert min(sizes) >= min(LEAST, len(lengths) // 3)
    assert len(sizes) <= MOST + max(1, len(lengths) // (20 * LEAST) + 1)


def test_round_numbers_end_them():
    lengths = [length for length in range(1, 38) for _ in range(20)]
    assert [bucket.label for bucket in make_buckets(lengths)] == [
        "1–5", "6–10", "11–15", "16–20", "21–25", "26–30", "31–35", "36–37",
    ]  # fmt: skip


def test_very_short_sentences_are_not_alone_since_bleu_has_nothing_to_count_in_them():
    lengths = [length for length in range(1, 9) for _ in range(50)]
    assert [bucket.label for bucket in make_buckets(lengths)] == ["1–5", "6", "7", "8"]


def test_given_edges_end_them_and_the_rest_is_one_more():
    buckets = make_buckets([3, 10, 11, 90], [10, 20, 30])
    assert [(bucket.label, bucket.members) for bucket in buckets] == [
        ("3–10", (0, 1)),
        ("11–20", (2,)),
        ("31–90", (3,)),
    ]


def test_a_few_very_long_sentences_do_not_make_the_others_one_bucket():
    assert len(make_buckets([*range(1, 21)] * 50 + [5000])) == 4


def test_no_sentences_are_no_buckets():
    assert make_buckets([]) == []


@pytest.mark.parametrize("edges", [[], [0, 5], [5, 5], [9, 3]])
def test_edges_that_do_not_grow_are_refused(edges):
    with pytest.raises(UsageError, match="lengths that grow"):
        make_buckets([1, 2, 3], edges)


def test_length_is_in_words_and_where_there_are_none_in_characters():
    assert source_lengths(["A small  dog.", "나는 학교에 가요.", "今天我去学校", ""]) == [3, 3, 6, 0]

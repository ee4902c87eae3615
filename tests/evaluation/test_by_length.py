"""Quality by length: every sentence is in one bucket, a point is the score of its bucket, and the chart shows it."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.systems import noisy, sentences
from softgaze.errors import UsageError
from softgaze.evaluation.by_length import (
    BEYOND,
    MAX_BUCKETS,
    BucketScore,
    LengthCurve,
    length_chart,
    length_curve,
    length_differences,
    make_buckets,
    source_lengths,
)
from softgaze.evaluation.significance import MIN_SENTENCES, Estimate, count_ngrams
from softgaze.explain.render.svg import SERIES
from softgaze.metrics import score

SVG = "{http://www.w3.org/2000/svg}"
REFERENCES = sentences()
HYPOTHESES, OTHERS = noisy(REFERENCES, 0.2), noisy(REFERENCES, 0.5)
BUCKETS = make_buckets(source_lengths(REFERENCES))
ONE, OTHER = (count_ngrams(texts, REFERENCES) for texts in (HYPOTHESES, OTHERS))

some_lengths = st.lists(st.integers(0, 200), min_size=1, max_size=400)
some_edges = st.none() | st.sets(st.integers(1, 250), min_size=1).map(sorted)


@given(lengths=some_lengths, edges=some_edges)
def test_every_sentence_is_in_one_bucket_that_its_length_fits(lengths, edges):
    buckets = make_buckets(lengths, edges)
    assert sorted(index for bucket in buckets for index in bucket.members) == list(range(len(lengths)))
    for bucket in buckets:
        inside = [lengths[index] for index in bucket.members]
        assert bucket.low <= min(inside) <= bucket.length <= max(inside) <= bucket.high
    assert all(one.high < other.low for one, other in pairwise(buckets))


@given(lengths=some_lengths)
def test_automatic_buckets_are_big_enough_and_not_too_many(lengths):
    sizes = [len(bucket.members) for bucket in make_buckets(lengths)]
    assert min(sizes) >= min(MIN_SENTENCES, len(lengths) // 3)
    assert len(sizes) <= MAX_BUCKETS + max(1, len(lengths) // (20 * MIN_SENTENCES) + 1)


def test_automatic_buckets_end_at_round_numbers():
    lengths = [length for length in range(1, 38) for _ in range(20)]
    assert [bucket.label for bucket in make_buckets(lengths)] == [
        "1–5", "6–10", "11–15", "16–20", "21–25", "26–30", "31–35", "36–37",
    ]  # fmt: skip


def test_very_short_sentences_share_a_bucket_because_they_have_no_4_grams():
    lengths = [length for length in range(1, 9) for _ in range(50)]
    assert [bucket.label for bucket in make_buckets(lengths)] == ["1–5", "6", "7", "8"]


def test_given_edges_end_buckets_and_longer_sentences_are_one_more():
    buckets = make_buckets([3, 10, 11, 90], [10, 20, 30])
    assert [(bucket.label, bucket.members) for bucket in buckets] == [
        ("3–10", (0, 1)),
        ("11–20", (2,)),
        ("31–90", (3,)),
    ]


def test_a_few_very_long_sentences_do_not_make_the_others_one_bucket():
    assert len(make_buckets([*range(1, 21)] * 50 + [5000])) == 4


@pytest.mark.parametrize("edges", [[], [0, 5], [5, 5], [9, 3]])
def test_edges_that_do_not_increase_are_rejected(edges):
    assert make_buckets([], edges) == []
    with pytest.raises(UsageError, match="increasing lengths"):
        make_buckets([1, 2, 3], edges)


def test_length_counts_words_or_in_unspaced_scripts_characters():
    assert source_lengths(["A small  dog.", "나는 학교에 가요.", "今天我去学校", ""]) == [3, 3, 6, 0]


@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_each_point_is_the_score_of_its_sentences(name):
    curve = length_curve("a", ONE, BUCKETS, name)
    assert sum(point.sentences for point in curve.points) == len(REFERENCES)
    assert len(curve.points) == len(BUCKETS) > 2
    for bucket, point in zip(BUCKETS, curve.points, strict=True):
        chosen = [HYPOTHESES[index] for index in bucket.members], [REFERENCES[index] for index in bucket.members]
        assert point.estimate.score == pytest.approx(getattr(score(*chosen, ter=False), name), abs=1e-9)
        assert point.estimate.low <= point.estimate.score <= point.estimate.high


def test_differences_are_between_the_points_of_two_curves():
    curves = [length_curve("a", each, BUCKETS, "chrf").points for each in (ONE, OTHER)]
    for one, other, apart in zip(*curves, length_differences(ONE, OTHER, BUCKETS, "chrf"), strict=True):
        assert apart.score == pytest.approx(one.estimate.score - other.estimate.score)
        assert apart.is_significant


# --- chart


def curve(name, scores, start=1, is_beyond=False):
    """Buckets of five lengths each."""
    lows = [start + 5 * number for number in range(len(scores))]
    points = [
        BucketScore(low, low + 4, low + 2.0, 100 + low, Estimate(score, score * 0.9, min(100, score * 1.1)))
        for low, score in zip(lows, scores, strict=True)
    ]
    return LengthCurve(name, tuple(points), is_beyond)


def drawn(*curves, **more):
    return ElementTree.fromstring(length_chart({"bleu": curves, **more}))


def of(tree, tag, **wanted):
    return [each for each in tree.iter(SVG + tag) if all(each.get(key) == value for key, value in wanted.items())]


def words(tree):
    return [each.text for each in tree.iter(SVG + "text")]


def test_every_system_has_a_line_an_interval_markers_and_its_name():
    tree = drawn(curve("rnn", [50, 40, 10]), curve("transformer", [52, 51, 50]))
    for number, name in enumerate(["rnn", "transformer"]):
        assert len(of(tree, "polyline", stroke=SERIES[number])) == 1
        assert len(of(tree, "polygon", fill=SERIES[number])) == 1 + 3 + 1  # band, markers, marker of the name
        assert name in words(tree)
    assert {"BLEU", "101", "106", "111"} <= set(words(tree))
    assert BEYOND not in words(tree)


def places(line):
    return [tuple(map(float, place.split(","))) for place in line.get("points").split()]


def test_a_bucket_of_one_length_has_that_length_in_its_middle():
    points = tuple(BucketScore(length, length, length, 40, Estimate(50, 40, 60)) for length in range(1, 9))
    tree = drawn(LengthCurve("a", points))
    rulers = [(float(each.get("x1")), float(each.get("x2"))) for each in of(tree, "line", **{"class": "ruler"})]
    middles = [(start + end) / 2 for start, end in rulers]
    assert middles == pytest.approx([across for across, _ in places(of(tree, "polyline")[0])], abs=0.1)


def test_a_line_runs_inside_its_confidence_interval():
    tree = drawn(curve("a", [10, 60, 30, 90]))
    line = places(of(tree, "polyline")[0])
    band = places(of(tree, "polygon", **{"fill-opacity": "0.14"})[0])
    for (across, down), lower, upper in zip(line, band[:4], reversed(band[4:]), strict=True):
        assert across == lower[0] == upper[0]
        assert upper[1] <= down <= lower[1]


def test_scores_beyond_the_trained_lengths_are_dashed_and_labelled():
    tree = drawn(curve("a", [50, 40]), curve("a", [30, 20], start=41, is_beyond=True))
    lines = of(tree, "polyline", stroke=SERIES[0])
    assert [each.get("stroke-dasharray") is not None for each in lines] == [False, True]
    (area,) = of(tree, "rect", **{"class": "beyond"})
    left = float(area.get("x"))
    assert max(across for across, _ in places(lines[0])) < left < min(across for across, _ in places(lines[1]))
    assert BEYOND in words(tree)
    assert words(tree).count("a") == 1


def test_a_system_has_its_colour_in_every_panel():
    tree = drawn(curve("a", [50]), curve("b", [40]), chrf=[curve("b", [70]), curve("a", [60])])
    assert [each.get("stroke") for each in of(tree, "polyline")] == [SERIES[0], SERIES[1], SERIES[1], SERIES[0]]
    assert {"BLEU", "chrF"} <= set(words(tree))


def test_one_very_long_sentence_does_not_squeeze_the_chart():
    long = LengthCurve("a", (*curve("a", [50, 40]).points, BucketScore(11, 5000, 12.0, 30, Estimate(30, 20, 40))))
    assert max(across for across, _ in places(of(drawn(long), "polyline")[0])) > 300


def test_a_chart_shows_its_signatures_last_and_needs_a_point():
    with pytest.raises(ValueError, match="nothing to draw"):
        length_chart({"bleu": [LengthCurve("a", ())]})
    curves = {"bleu": [curve("rnn", [50, 40])]}
    plain, signed = (
        ElementTree.fromstring(length_chart(curves, signatures=own)) for own in (None, {"bleu": "nrefs:1|tok:13a"})
    )
    assert words(signed) == [*words(plain), "BLEU nrefs:1|tok:13a"]

"""A corpus in numbers: what is dropped, what is repeated, and the worst first, however many sentences there are."""

import base64
import json
import math
from dataclasses import replace

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maps import random_attention
from softgaze.gaze import Alignment, Attention
from softgaze.gaze.corpus import (
    HISTOGRAMS,
    HONEST,
    LEVELS,
    PRIOR,
    RANKINGS,
    Look,
    Survey,
    Usual,
    different,
    look,
    loops,
    repeated,
    survey,
)

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=9)


def diagonal(source, output):
    """A map in which word n looks at word n; the last column is END."""
    weights = numpy.eye(len(output), len(source))
    return Attention.of([*source, "⏎"], output, numpy.hstack([weights, 1 - weights.sum(1, keepdims=True)]))


def make(line=1, source=("the", "dog", "runs"), output=("개가", "달려요"), **changes):
    """A sentence without a fault, unless asked for."""
    influence = numpy.ones((len(output) + 1, len(source)))
    return replace(look(line, diagonal(source, output), influence), **changes)


# --- one sentence


def test_the_numbers_are_those_of_the_map():
    attention = random_attention()
    words = attention.word_weights()
    influence = numpy.random.default_rng(1).normal(size=(words.shape[0] + 1, words.shape[1]))
    found = look(7, attention, influence, reference="개가 자요", scores={"chrf": 50.0})
    assert (found.line, found.source, found.output) == (7, attention.recording.source.words, ("개가", "자요", "school"))
    assert found.covered == pytest.approx(words.sum(axis=0), abs=1e-4)
    assert found.needed == pytest.approx(influence.sum(axis=0), abs=1e-4)
    assert found.entropy == pytest.approx(attention.entropy().mean(), abs=1e-4)
    assert found.sink == pytest.approx(attention.sink, abs=1e-4)
    assert found.different == (2,)
    levels = numpy.frombuffer(base64.b64decode(found.weights), numpy.uint8).reshape(3, words.shape[1] + 1)
    assert abs(levels[:, :-1] / LEVELS - words).max() <= 0.5 / LEVELS + 1e-9
    assert levels.sum(axis=1) == pytest.approx(LEVELS, abs=words.shape[1] / 2)


def test_subwords_are_counted_as_words():
    influence = numpy.ones((4, 4))
    assert look(1, random_attention(unit="subwords"), influence) == look(1, random_attention(), influence)


def test_a_word_without_which_the_translation_is_likelier_is_unsaid():
    found = make(needed=(0.2, -0.7, -0.4))
    assert found.unsaid == (1,)
    assert found.misfit == 0.7
    assert RANKINGS["unsaid"].badness(found) == 0.7
    assert RANKINGS["unsaid"].badness(make(needed=(0.2, 0.0, -0.4))) is None


def test_what_is_not_known_about_a_word_counts_for_nothing():
    influence = numpy.full((3, 3), numpy.nan)
    found = look(1, diagonal(["a", "b", "c"], ["x", "y"]), influence)
    assert found.needed == (0, 0, 0)
    assert found.honesty is None


def test_links_are_compared_with_the_right_ones():
    links = Alignment.parse("0-0 1-1"), Alignment.parse("0-0 2-1")
    found = look(1, diagonal(["a", "b", "c"], ["x", "y"]), numpy.ones((3, 3)), links=links)
    assert found.aer == 0.5
    assert make().aer is None


# --- again


def eye(words):
    return numpy.eye(len(words), 9)


@pytest.mark.parametrize(
    ("output", "source", "reference", "expected"),
    [
        ("a b c", "x y z", None, ()),
        ("a a b", "x y z", None, (1,)),
        ("a b a b", "x y z", None, (2, 3)),
        ("a B A b", "x y z", None, (2, 3)),
        ("a b a", "x y z", None, ()),  # not at once, and each looks at another word
        ("a a", "very very", None, ()),  # the source does so too
        ("a a b", "x y z", "a a c", ()),  # and so does the reference
        ("a a a b", "x y z", "a a c", (1, 2)),
        ("", "x", None, ()),
    ],
)
def test_words_in_a_row_that_come_again(output, source, reference, expected):
    words = output.split()
    wanted = reference.split() if reference else None
    assert repeated(words, eye(words), source.split(), wanted) == expected


def test_a_word_that_comes_again_at_the_same_sight():
    words = ["dog", "and", "dog"]
    same, other, unsure = numpy.eye(3), numpy.eye(3), numpy.full((3, 3), 1 / 3)
    same[2] = same[0]
    assert repeated(words, same, ["개", "와", "개"]) == (2,)
    assert repeated(words, other, ["개", "와", "개"]) == ()
    assert repeated(words, unsure, ["개", "와", "개"]) == ()


@given(WORDS, st.integers(1, 4))
def test_writing_the_end_again_is_always_seen(words, size):
    again = words[-size:]
    found = set(loops([*words, *again]))
    assert found >= set(range(len(words), len(words) + len(again)))
    assert found <= set(range(1, len(words) + len(again)))


@given(WORDS, WORDS)
def test_what_is_not_different_is_in_the_reference_in_order(output, reference):
    kept = [word for place, word in enumerate(output) if place not in different(output, reference)]
    rest = iter(reference)
    assert all(word in rest for word in kept)
    assert different(output, output) == ()


# --- dropped


def test_only_a_word_that_usually_gets_looks_is_uncovered():
    usual, covered = Usual(), make(covered=(0.05, 1.0, 1.0))
    for _ in range(20):
        usual.add(covered)
    dropped = make(covered=(0.0, 0.1, 0.9))
    usual.add(dropped)
    found = usual.judged(dropped)
    assert found.uncovered == (1,)
    assert found.shortfall == pytest.approx(0.9, abs=0.1)
    assert usual.judged(covered).uncovered == ()


def test_a_sentence_is_not_its_own_measure():
    """A word that was never looked at anywhere else has no usual to fall short of, only the average."""
    usual, alone = Usual(), make(source=("rare",), covered=(0.0,), needed=(0.0,))
    usual.add(alone)
    assert usual.judged(alone).uncovered == ()
    usual.add(make(source=("Rare",), covered=(0.9,), needed=(0.0,)))
    assert usual.elsewhere("rare", 0.0, mean=0.0) == pytest.approx(0.9 / (1 + PRIOR))
    assert usual.elsewhere("rare", 0.9, mean=0.0) == 0


# --- many


def test_a_look_waits_on_disk_unchanged():
    links = Alignment.parse("0-0"), Alignment.parse("0-0 1-1")
    influence = numpy.ones((3, 2))
    found = look(
        3, diagonal(["a\u2028", "</b>"], ["x", "y"]), influence, reference="x", scores={"chrf": 1.0}, links=links
    )
    assert Look.from_line(found.to_line()) == found
    assert "\n" not in found.to_line()
    assert Look.from_line(make().to_line()) == make()
    json.dumps(found.to_dict(), allow_nan=False)


def many(count=60):
    dice = numpy.random.default_rng(0)
    return [
        make(
            line,
            honesty=round(float(dice.uniform(-0.2, 0.9)), 3),
            needed=tuple(dice.uniform(-1, 3, 3)),
            repeated=(1,) if line % 7 == 0 else (),
            scores={"chrf": float(dice.uniform(0, 120)).__round__(2)},
        )
        for line in range(1, count + 1)
    ]


@pytest.mark.parametrize("kept", [3, 1000])
def test_the_worst_are_kept_and_everything_is_counted(kept):
    looks = many()
    found = survey([*looks, None, None], kept)
    summary = found.summary()
    assert (summary["sentences"], summary["empty"]) == (60, 2)
    assert found.is_whole == (kept == 1000)
    for name, ranking in RANKINGS.items():
        bad = [each for each in looks if ranking.badness(each) is not None]
        assert summary["rankings"][name] == len(bad)
        expected = sorted(bad, key=lambda each: (-ranking.badness(each), each.line))[:kept]
        assert [each.line for each in found.worst(name)] == [each.line for each in expected]
    lines = [each.line for each in found.kept()]
    assert lines == sorted(set(lines))
    assert (len(lines) == 60) == (kept == 1000)
    for histogram in summary["histograms"].values():
        assert sum(histogram["counts"]) == 60
    json.dumps(summary, allow_nan=False)


def test_the_worst_honesty_is_the_lowest():
    looks = [make(line, honesty=value) for line, value in enumerate([0.2, HONEST, -0.1, None, 0.9], 1)]
    assert [each.line for each in survey(looks).worst("honesty")] == [3, 1]


def test_the_error_rate_is_that_of_all_links_together():
    right = Alignment.parse("0-0 1-1")
    pairs = [Alignment.parse("0-0 1-1"), Alignment.parse("2-0"), Alignment.parse("")]
    looks = [
        look(line, diagonal(["a", "b", "c"], ["x", "y"]), numpy.ones((3, 3)), links=(own, right))
        for line, own in enumerate(pairs, 1)
    ]
    from softgaze.gaze import aer

    assert survey(looks).summary()["aer"] == pytest.approx(aer(pairs, [right] * 3, gold_base=0), abs=1e-4)


def test_nothing_at_all():
    found = survey([])
    assert found.kept() == []
    assert found.summary()["aer"] is None
    assert Survey().is_whole


def test_every_number_has_its_bar():
    for value, edges in HISTOGRAMS.values():
        assert edges == sorted(edges)
        assert value(make(honesty=1.0)) is not None
    long = make(source=tuple("x" * 400), covered=(0.0,) * 400, needed=(0.0,) * 400, honesty=-1.0)
    counts = survey([long]).summary()["histograms"]
    assert [histogram["counts"].index(1) for histogram in counts.values()] == [0, 0, 9]
    assert math.isclose(make(covered=(1, 1, 1)).coverage, 1)

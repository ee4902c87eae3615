"""Corpus reports: dropped and repeated words are report, and the worst sentences are ranked within a limit."""

import base64
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundles import SMALL, make_bundle
from maps import random_attention
from softgaze.explain import Alignment, Attention, aer
from softgaze.explain.corpus_report import (
    HISTOGRAMS,
    LEVELS,
    MIN_FAITHFULNESS,
    RANKINGS,
    ExpectedCoverage,
    SentenceReport,
    different_words,
    omitted_words,
    repeated_words,
    report_corpus,
    report_sentence,
)
from softgaze.explain.explanation import linked_words
from softgaze.translator import load

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=9)


def diagonal(source, output):
    """A map in which output word n attends to source word n; the last column is EOS."""
    weights = np.eye(len(output), len(source))
    return Attention.of([*source, "⏎"], output, np.hstack([weights, 1 - weights.sum(1, keepdims=True)]))


def make(line=1, source=("the", "dog", "runs"), output=("개가", "달려요"), **changes):
    """A report without a fault, apart from `changes`."""
    occlusion = np.ones((len(output) + 1, len(source)))
    return replace(report_sentence(line, diagonal(source, output), occlusion), **changes)


# --- one sentence


def test_the_numbers_are_those_of_the_map():
    attention = random_attention()
    words = attention.word_weights()
    occlusion = np.random.default_rng(1).normal(size=(words.shape[0] + 1, words.shape[1]))
    report = report_sentence(7, attention, occlusion, reference="개가 자요", scores={"chrf": 50.0})
    assert (report.line, report.source, report.output) == (
        7,
        attention.recording.source.words,
        ("개가", "자요", "school"),
    )
    assert report.covered == pytest.approx(words.sum(axis=0), abs=1e-4)
    assert report.needed == pytest.approx(occlusion.sum(axis=0), abs=1e-4)
    assert report.entropy == pytest.approx(attention.entropy().mean(), abs=1e-4)
    assert report.sink == pytest.approx(attention.sink, abs=1e-4)
    assert report.different == (2,)
    levels = np.frombuffer(base64.b64decode(report.weights), np.uint8).reshape(3, words.shape[1] + 1)
    assert abs(levels[:, :-1] / LEVELS - words).max() <= 0.5 / LEVELS + 1e-9
    assert levels.sum(axis=1) == pytest.approx(LEVELS, abs=words.shape[1] / 2)


def test_a_subword_view_gives_the_same_report():
    occlusion = np.ones((4, 4))
    assert report_sentence(1, random_attention(unit="subwords"), occlusion) == report_sentence(
        1, random_attention(), occlusion
    )


def test_a_word_without_which_the_translation_is_more_likely_is_omitted():
    occlusion = np.array([[1.0, -0.4, -1.0], [0.0, -0.3, 0.7], [0.0, 0.0, 0.0]])
    assert omitted_words(occlusion) == (1,)  # an output word depends on the third
    assert omitted_words(occlusion, linked={1}) == (2,)
    attention = diagonal(["a", "b", "c"], ["x", "y"])
    report = report_sentence(1, attention, occlusion)
    assert (report.omitted, report.misfit) == ((1,), 0.7)
    assert RANKINGS["omitted"].badness(report) == 0.7
    report = report_sentence(1, attention, occlusion, linked={1, 2})
    assert (report.omitted, report.misfit) == ((), 0.0)
    assert RANKINGS["omitted"].badness(report) is None


def test_unknown_occlusion_counts_as_zero():
    occlusion = np.full((3, 3), np.nan)
    report = report_sentence(1, diagonal(["a", "b", "c"], ["x", "y"]), occlusion)
    assert report.needed == (0, 0, 0)
    assert report.faithfulness is None


def test_links_are_compared_with_gold():
    links = Alignment.parse("0-0 1-1"), Alignment.parse("0-0 2-1")
    report = report_sentence(1, diagonal(["a", "b", "c"], ["x", "y"]), np.ones((3, 3)), links=links)
    assert report.aer == 0.5
    assert make().aer is None


# --- repeated words


def eye(words):
    return np.eye(len(words), 9)


@pytest.mark.parametrize(
    ("output", "source", "reference", "expected"),
    [
        ("a b c", "x y z", None, ()),
        ("a a b", "x y z", None, (1,)),
        ("a b a b", "x y z", None, (2, 3)),
        ("a B A b", "x y z", None, (2, 3)),
        ("a b a", "x y z", None, ()),  # not adjacent, and with attention to another word
        ("a a", "very very", None, ()),  # the source repeats, too
        ("a a b", "x y z", "a a c", ()),  # and so does the reference
        ("a a a b", "x y z", "a a c", (1, 2)),
        ("", "x", None, ()),
    ],
)
def test_repeated_phrases(output, source, reference, expected):
    words = output.split()
    assert repeated_words(words, eye(words), source.split(), reference and reference.split()) == expected


def test_a_word_repeated_with_attention_to_the_same_source_word():
    words = ["dog", "and", "dog"]
    same, other, unsure = np.eye(3), np.eye(3), np.full((3, 3), 1 / 3)
    same[2] = same[0]
    assert repeated_words(words, same, ["개", "와", "개"]) == (2,)
    assert repeated_words(words, other, ["개", "와", "개"]) == ()
    assert repeated_words(words, unsure, ["개", "와", "개"]) == ()


@given(WORDS, st.integers(1, 4))
def test_a_repeated_end_is_always_found(words, size):
    again = words[-size:]
    output = [*words, *again]
    repeated = set(repeated_words(output, np.zeros((len(output), 1)), ["x"]))
    assert set(range(len(words), len(output))) <= repeated <= set(range(1, len(output)))


@given(WORDS, WORDS)
def test_matching_words_are_a_subsequence_of_the_reference(output, reference):
    different = different_words(output, reference)
    matching = [word for index, word in enumerate(output) if index not in different]
    rest = iter(reference)
    assert all(word in rest for word in matching)
    assert different_words(output, output) == ()


# --- uncovered words


def test_only_a_word_with_a_high_expected_coverage_is_uncovered():
    expected, covered = ExpectedCoverage(), make(covered=(0.05, 1.0, 1.0))
    for _ in range(20):
        expected.add(covered)
    dropped = make(covered=(0.0, 0.1, 0.9))
    expected.add(dropped)
    report = expected.with_uncovered(dropped)
    assert report.uncovered == (1,)
    assert report.shortfall == pytest.approx(0.9, abs=0.1)
    assert expected.with_uncovered(covered).uncovered == ()


def test_expected_coverage_comes_from_the_other_sentences():
    expected, uncovered = ExpectedCoverage(), make(source=("rare",), covered=(0.0,), needed=(0.0,))
    expected.add(uncovered)
    assert expected.with_uncovered(uncovered).uncovered == ()
    for _ in range(20):
        expected.add(make(source=("Rare",), covered=(0.9,), needed=(0.0,)))
    assert expected.with_uncovered(uncovered).uncovered == (0,)


# --- many sentences


def test_a_report_survives_its_line():
    links = Alignment.parse("0-0"), Alignment.parse("0-0 1-1")
    occlusion = np.ones((3, 2))
    report = report_sentence(
        3, diagonal(["a\u2028", "</b>"], ["x", "y"]), occlusion, reference="x", scores={"chrf": 1.0}, links=links
    )
    assert SentenceReport.from_line(report.to_line()) == report
    assert "\n" not in report.to_line()
    assert SentenceReport.from_line(make().to_line()) == make()
    json.dumps(report.to_dict(), allow_nan=False)


def many_reports(count=60):
    dice = np.random.default_rng(0)
    return [
        make(
            line,
            faithfulness=round(float(dice.uniform(-0.2, 0.9)), 3),
            needed=tuple(dice.uniform(-1, 3, 3)),
            omitted=(0,) if line % 5 == 0 else (),
            repeated=(1,) if line % 7 == 0 else (),
            scores={"chrf": float(dice.uniform(0, 120)).__round__(2)},
        )
        for line in range(1, count + 1)
    ]


@pytest.mark.parametrize("limit", [3, 1000])
def test_the_worst_are_kept_and_everything_is_counted(limit):
    reports = many_reports()
    corpus = report_corpus([*reports, None, None], limit)
    summary = corpus.summary()
    assert (summary["sentences"], summary["empty"]) == (60, 2)
    assert corpus.is_complete == (limit == 1000)
    for name, ranking in RANKINGS.items():
        bad = [each for each in reports if ranking.badness(each) is not None]
        assert summary["rankings"][name] == len(bad)
        expected = sorted(bad, key=lambda each: (-ranking.badness(each), each.line))[:limit]
        assert [each.line for each in corpus.worst(name)] == [each.line for each in expected]
    lines = [each.line for each in corpus.kept()]
    assert lines == sorted(set(lines))
    assert (len(lines) == 60) == (limit == 1000)
    for histogram in summary["histograms"].values():
        assert sum(histogram["counts"]) == 60
    json.dumps(summary, allow_nan=False)


def test_an_empty_corpus_has_no_sentences():
    corpus = report_corpus([])
    assert (corpus.kept(), corpus.summary()["aer"], corpus.is_complete) == ([], None, True)


def test_the_worst_faithfulness_is_the_lowest():
    reports = [make(line, faithfulness=value) for line, value in enumerate([0.2, MIN_FAITHFULNESS, -0.1, None, 0.9], 1)]
    assert [each.line for each in report_corpus(reports).worst("faithfulness")] == [3, 1]


def test_the_error_rate_is_that_of_all_links_together():
    gold = Alignment.parse("0-0 1-1")
    pairs = [Alignment.parse("0-0 1-1"), Alignment.parse("2-0"), Alignment.parse("")]
    reports = [
        report_sentence(line, diagonal(["a", "b", "c"], ["x", "y"]), np.ones((3, 3)), links=(predicted, gold))
        for line, predicted in enumerate(pairs, 1)
    ]
    assert report_corpus(reports).summary()["aer"] == pytest.approx(aer(pairs, [gold] * 3, gold_base=0), abs=1e-4)


def test_every_number_is_in_a_histogram():
    for value, edges in HISTOGRAMS.values():
        assert edges == sorted(edges)
        assert value(make(faithfulness=1.0)) is not None
    long = make(source=tuple("x" * 400), covered=(0.0,) * 400, needed=(0.0,) * 400, faithfulness=-1.0)
    counts = report_corpus([long]).summary()["histograms"]
    assert [histogram["counts"].index(1) for histogram in counts.values()] == [0, 0, 9]
    assert math.isclose(make(covered=(1, 1, 1)).coverage, 1)


class FixedAligner:
    """Links the first two words of each side in their order."""

    def align(self, pairs):
        return [Alignment.parse("0-0 1-1")] * len(pairs)


def test_words_that_the_aligner_of_a_bundle_links_are_not_omitted(tmp_path, monkeypatch):
    translator = load(make_bundle(tmp_path / "model", options=SMALL), "cpu", engine="torch")
    translation = translator.score("the old dog sleeps.", "개가 자요.")
    assert linked_words(translator, [translation], None) == [None]
    assert linked_words(translator, [translation] * 2, FixedAligner()) == [frozenset({0, 1})] * 2
    for linked, expected in ((None, (0, 1, 2, 3)), (FixedAligner(), (2, 3))):
        explanation = translator.score("the old dog sleeps.", "개가 자요.").explanation
        explanation.occlusion_with_eos = -np.ones((3, 4))
        monkeypatch.setattr(type(translator), "statistical_aligner", linked)
        assert explanation.omitted == expected

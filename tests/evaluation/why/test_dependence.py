"""Distance and strength of what is planted are found; every model is asked about the same words."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundles import lines, make_bundle
from softgaze.data.corpus import Pair
from softgaze.evaluation.why.chart import dependence_chart
from softgaze.evaluation.why.dependence import Dependence, Need, common_edges, dependences, needs_of, spread
from softgaze.evaluation.why.text import dependence_text, ranges
from softgaze.translator import load

PAIRS = [Pair(*pair) for pair in zip(lines("en", 40), lines("ko", 40), strict=True)]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    directory = tmp_path_factory.mktemp("why")
    models = {
        "rnn": load(make_bundle(directory / "rnn", arch="rnn", options={"width": 16})),
        "other": load(make_bundle(directory / "other")),
    }
    return dependences(models, PAIRS)


def test_a_source_word_is_seen_where_it_matters_most_and_its_steps_are_counted():
    """Three source words, two output words; on one line they stand at 0 1 2 3 4."""
    matrix = numpy.array([[5.0, 1.0, 2.0], [1.0, 7.0, numpy.nan]])
    assert list(needs_of([matrix])) == [Need(0, 3, 5.0), Need(0, 3, 7.0), Need(0, 1, 2.0)]


def test_a_word_without_a_piece_is_not_needed():
    assert list(needs_of([numpy.array([[numpy.nan, 1.0]])])) == [Need(0, 1, 1.0)]


def test_every_word_of_every_model_and_measure_is_there(found):
    assert [(each.model, each.measure) for each in found] == [
        (name, measure) for name in ("rnn", "other") for measure in ("gradient", "influence")
    ]
    words = sum(len(pair.source.split()) for pair in PAIRS)
    assert all(len(each.needs) == words == sum(stretch.words for stretch in each.stretches) for each in found)
    assert len({each.edges for each in found}) == 1


def planted(decay, sentences=60, length=20):
    """Words at distances 1 to `length` whose strength falls by a factor with each step."""
    needs = [Need(sentence, step, 8 * decay**step) for sentence in range(sentences) for step in range(1, length + 1)]
    return Dependence("m", "rnn", "gradient", tuple(needs), (5, 10, 15))


def test_what_does_not_fall_with_distance_is_kept_whole():
    share = planted(1.0).far_to_near
    assert (share.score, share.low, share.high) == pytest.approx((1, 1, 1))


def test_what_falls_is_found_to_fall_by_as_much():
    assert planted(0.9).far_to_near.score == pytest.approx(0.9**15)
    means = [stretch.strength.score for stretch in planted(0.9).stretches]
    assert means == sorted(means, reverse=True)


def test_a_single_stretch_is_not_compared_with_itself():
    alone = Dependence("m", "rnn", "gradient", (Need(0, 1, 2.0),), (1,))
    assert alone.far_to_near is None
    assert alone.to_dict()["far_to_near"] is None
    assert "—" in dependence_text([alone, replace(alone, measure="influence")], 1)
    assert ElementTree.fromstring(dependence_chart([alone, replace(alone, measure="influence")], 1)) is not None


def test_bands_hold_what_was_found(found):
    for each in found:
        for stretch in each.stretches:
            assert stretch.strength.low <= stretch.strength.score <= stretch.strength.high


@given(st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=80), min_size=1, max_size=4))
def test_stretches_grow_and_everything_is_in_one(distances):
    edges = common_edges(distances)
    assert list(edges) == sorted(set(edges))
    needs = tuple(Need(0, distance, 1.0) for distance in distances[0])
    stretches = Dependence("m", "rnn", "gradient", needs, edges).stretches
    assert sum(stretch.words for stretch in stretches) == len(needs)
    assert len(stretches) <= len(ranges(edges)) == len(edges) + 1


@given(st.lists(st.integers(0, 30), max_size=80), st.integers(1, 30))
def test_pairs_are_spread_over_lengths_and_none_is_empty(counts, most):
    pairs = [Pair(" ".join(["a"] * count), "b") for count in counts]
    chosen = spread(pairs, most)
    assert len(chosen) == min(most, sum(count > 0 for count in counts))
    assert all(pair.source for pair in chosen)


def test_long_sentences_are_as_many_as_short_ones():
    pairs = [Pair("a b c", "d")] * 500 + [Pair("a " * 30, "d")] * 50
    chosen = spread(pairs, 60)
    assert sum(len(pair.source.split()) == 30 for pair in chosen) == 30


def test_text_json_and_picture(found):
    text = dependence_text(found, len(PAIRS))
    assert text.count("rnn  ") == 2
    assert text.count("other (transformer)") == 2
    assert json.loads(json.dumps([each.to_dict() for each in found], allow_nan=False))[0]["arch"] == "rnn"
    root = ElementTree.fromstring(dependence_chart(found, len(PAIRS)))
    assert len(root.findall(".//{*}polyline")) == 4

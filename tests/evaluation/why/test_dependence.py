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
from softgaze.evaluation.why.dependence import (
    Dependence,
    Link,
    Need,
    common_edges,
    compared,
    dependences,
    links_of,
    matrices_of,
    needs_of,
    shared,
    spread,
)
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


def test_words_are_linked_that_are_each_others_most_and_their_steps_are_counted():
    """Three source words, two output words; on one line they stand at 0 1 2 3 4."""
    matrix = numpy.array([[5.0, 1.0, 2.0], [1.0, 7.0, numpy.nan]])
    links = list(links_of([[matrix]]))
    assert links == [Link(0, 0, 0), Link(0, 1, 1)]
    assert list(needs_of([matrix], links)) == [Need(0, 3, 5.0), Need(0, 3, 7.0)]


def test_a_word_without_a_piece_in_one_model_is_linked_for_none():
    whole, part = numpy.array([[9.0, 1.0]]), numpy.array([[numpy.nan, 1.0]])
    assert list(links_of([[whole], [part]])) == [Link(0, 1, 0)]


def test_no_model_is_heard_more_than_another_when_words_are_linked():
    quiet, loud = numpy.diag([2.0, 2.0]), numpy.array([[900.0, 1000.0], [1000.0, 900.0]])
    assert list(links_of([[quiet], [loud]])) == [Link(0, 0, 0), Link(0, 1, 1)]


def test_both_measures_know_of_the_same_words(tmp_path):
    """So that a link of the one is never a gap of the other."""
    pairs = [Pair("the dog , runs .", "개 , 달려요 !"), Pair("“ a small ” cat.", "작은 ‘ 고양이 ’ .")]
    found = matrices_of(load(make_bundle(tmp_path / "model")), pairs)
    for one, other in zip(found["gradient"], found["influence"], strict=True):
        assert (numpy.isnan(one) == numpy.isnan(other)).all()


def test_pairs_that_models_have_in_different_words_are_not_shared(tmp_path, monkeypatch):
    model = load(make_bundle(tmp_path / "model"))
    assert shared({"one": model, "other": model}, PAIRS) == PAIRS
    cut = {id(pair): number for number, pair in enumerate(PAIRS)}
    monkeypatch.setattr(
        "softgaze.evaluation.why.dependence.words_of",
        lambda pair, each: ((pair.source,), (each if cut[id(pair)] < 3 else "",)),
    )
    assert shared({"one": "one", "other": "other"}, PAIRS) == PAIRS[3:]


def test_every_word_of_every_model_and_measure_is_there(found):
    assert [(each.model, each.measure) for each in found] == [
        (name, measure) for name in ("rnn", "other") for measure in ("gradient", "influence")
    ]
    assert all(len(each.needs) == sum(stretch.words for stretch in each.stretches) for each in found)
    assert len({each.edges for each in found}) == 1


def test_every_model_is_seen_at_the_same_words(found):
    for measure in ("gradient", "influence"):
        one, other = ([need[:2] for need in each.needs] for each in found if each.measure == measure)
        assert one == other
        assert {place for place, _ in one} == set(range(len(PAIRS)))


# --- what distance does, from matrices on --------------------------------------------------------------------------


def drawn_matrices(dice, lengths, spread_of, decay=1.0):
    """Links along the diagonal, as strong as each word happens to be, and less by a factor with each step."""
    strengths = [dice.lognormal(0, spread_of, size=length) * decay**length for length in lengths]
    return [numpy.diag(each) + 0.05 * dice.lognormal(size=(len(each), len(each))) for each in strengths]


def both(make):
    """The same for either measure, drawn anew."""
    return {measure: make() for measure in ("gradient", "influence")}


def against_first(models):
    return [each.to_first for each in compared(models, dict.fromkeys(models, "rnn")) if each.first]


@pytest.mark.parametrize("seed", range(3))
def test_models_to_whom_distance_does_not_matter_differ_by_no_more_than_luck(seed):
    """Where all is noise, a word's most grows with the length of a sentence; where links are, weak words stray."""
    dice = numpy.random.default_rng(seed)
    lengths = dice.integers(4, 30, size=80)
    noise = {name: both(lambda: [dice.lognormal(0, 0.5, size=(n, n)) for n in lengths]) for name in "ab"}
    linked = {name: both(lambda: drawn_matrices(dice, lengths, 0.5)) for name in "ab"}
    for share in [*against_first(noise), *against_first(linked)]:
        assert share.low <= 1 <= share.high


def test_where_all_is_noise_the_share_itself_is_about_one():
    """Not so if the number that is shown chose its place: the most of many is more than the most of few."""
    dice = numpy.random.default_rng(0)
    lengths = dice.integers(4, 30, size=300)
    [found, _] = compared({"a": both(lambda: [dice.lognormal(0, 0.5, size=(n, n)) for n in lengths])}, {"a": "rnn"})
    assert found.far_to_near.low <= 1 <= found.far_to_near.high


@pytest.mark.parametrize("seed", range(3))
def test_a_model_that_forgets_with_distance_is_told_from_one_that_does_not(seed):
    dice = numpy.random.default_rng(seed)
    lengths = dice.integers(4, 30, size=80)
    models = {
        "a": both(lambda: drawn_matrices(dice, lengths, 0.5)),
        "b": both(lambda: drawn_matrices(dice, lengths, 0.5, decay=0.97)),
    }
    assert all(share.high < 1 for share in against_first(models))
    turned = dict(reversed(models.items()))
    assert all(share.low > 1 for share in against_first(turned))


def test_a_model_beside_itself_is_as_the_first_in_every_resampled_set(found):
    first = found[0]
    share = replace(first, first=first).to_first
    assert (share.score, share.low, share.high) == pytest.approx((1, 1, 1))


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
    assert "– (one stretch only)" in dependence_text([alone, replace(alone, measure="influence")], 1)
    assert ElementTree.fromstring(dependence_chart([alone, replace(alone, measure="influence")], 1)) is not None


def ends(near, far):
    """Sentences with one near and one far word each, of given strengths."""
    needs = [
        Need(n, step, s)
        for n, both_ends in enumerate(zip(near, far, strict=True))
        for step, s in zip((1, 9), both_ends, strict=True)
    ]
    return Dependence("m", "rnn", "gradient", tuple(needs), (5,))


@pytest.mark.parametrize(
    "near",
    [[0.0] * 20, [-1.0] * 20, [1.0, -1.0] * 10, [3.0] * 6 + [-1.0] * 14],
    ids=["nothing", "less than nothing", "about nothing", "perhaps nothing"],
)
def test_there_is_no_share_of_what_may_be_nothing(near):
    found = ends(near, [-0.6] * 20)
    assert (found.far_to_near, found.lacking) == (None, "near not above 0")
    beside = replace(ends([1.0] * 20, [0.5] * 20), first=found)
    assert (beside.to_first, beside.lacking_to_first) == (None, "first: near not above 0")
    assert (found.to_dict()["lacking"], beside.to_dict()["lacking"]) == ("near not above 0", "first: near not above 0")
    shown = [found, beside, *(replace(each, measure="influence") for each in (found, beside))]
    assert "– (near not above 0)" in dependence_text(shown, 20)
    assert "– (first: near not above 0)" in dependence_text(shown, 20)
    assert "– (near not above 0)" in dependence_chart(shown, 20)
    assert "of the first's – (first: near not above 0)" in dependence_chart(shown, 20)


def test_nothing_is_held_against_a_first_model_whose_far_words_may_not_matter():
    first = ends([1.0] * 20, [1.0, -1.0] * 10)
    assert first.far_to_near.score == pytest.approx(0)
    beside = replace(ends([1.0] * 20, [0.5] * 20), first=first)
    assert (beside.to_first, beside.lacking_to_first) == (None, "first: far not above 0")


@pytest.mark.parametrize(("near", "far"), [(2.0, -3.0), (-2.0, -0.5), (0.0, 0.0), (0.7, 0.2)])
def test_what_words_lose_less_than_nothing_is_drawn_inside_its_panel(near, far):
    found = ends([near] * 20, [far] * 20)
    root = ElementTree.fromstring(dependence_chart([found, replace(found, measure="influence")], 20))
    for line in root.findall(".//{*}polyline"):
        heights = [float(place.split(",")[1]) for place in line.attrib["points"].split()]
        assert all(44 - 0.1 <= down <= 244.1 for down in heights)
    assert "-0.00" not in dependence_text([ends([-0.001] * 9, [1.0] * 9), replace(found, measure="influence")], 20)


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


def test_a_further_model_is_held_against_the_first_everywhere(found):
    records = [each.to_dict() for each in found]
    assert [each["first"] for each in records] == [None, None, "rnn", "rnn"]
    text, picture = dependence_text(found, 37, left_out=3), dependence_chart(found, 37, left_out=3)
    for each in found[2:]:
        assert each.to_first is not None or each.lacking_to_first in text
        if each.to_first:
            assert f"{each.to_first.score:.2f} ({each.to_first.low:.2f}–" in text
            assert f"; of the first's {each.to_first.score:.2f} (" in picture
    assert "÷ the first's" in text
    assert "1 is not expected" in text
    assert "37 sentence pairs; 3 left out, which the models have in different words" in " ".join(text.split())
    assert "37 sentence pairs; 3 left out" in picture
    assert "÷ the first's" not in dependence_text(found[:2], 37)
    assert max(map(len, text.splitlines())) <= 110

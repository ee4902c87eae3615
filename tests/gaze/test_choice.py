"""The map that is shown is found by measurement: the planted head, its row meaning, and agreement of two directions."""

import numpy
import pytest
import torch
from PIL import Image

from bundles import tokenizer
from maps import random_recording
from pictures import picture_bundle
from planted import Planted
from softgaze.bundle import Bundle, Tokenizers
from softgaze.gaze import Attention, Passage
from softgaze.gaze.choice import (
    AGREEMENT,
    HARDLY,
    INFLUENCE,
    SENTENCES,
    Looker,
    by_agreement,
    by_influence,
    candidates,
    fitting,
    links,
    maps,
    pointed,
)
from softgaze.gaze.influence import influences
from softgaze.models import build

TOKENIZERS = Tokenizers(tokenizer(), tokenizer())
PAIR = ("a small red cat sees the old tree", "작은 고양이 나무 봐요")


def planted(pair=PAIR, **options):
    return Looker(Planted(Passage.of(*pair, TOKENIZERS), len(tokenizer()), **options), TOKENIZERS)


@pytest.mark.parametrize("honest", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("late", [False, True])
def test_the_planted_head_is_chosen_with_its_row_meaning(honest, late):
    choice = by_influence(planted(honest=honest, late=late), [PAIR])
    assert (choice.view.layer, choice.view.head) == honest
    assert choice.view.rows == ("reading" if late else "predicting")
    assert (choice.by, choice.sentences) == (INFLUENCE, 1)
    assert choice.score > 0.95


def test_all_layers_heads_means_meanings_and_measures_are_candidates():
    views = candidates(random_recording())
    assert len(views) == len(set(views)) == (3 * 3 + 1) * 2 * 2
    assert {view.layer for view in views} == {None, 0, 1, 2}
    assert {view.head for view in views} == {None, 0, 1}
    assert {view.head for view in views if view.layer is None} == {None}


def test_the_only_layer_is_no_mean_of_layers():
    assert {view.layer for view in candidates(Attention.of("ab", "x", [[0.5, 0.5]]).recording)} == {0}


def test_many_maps_at_once_are_those_of_each_view():
    recording = random_recording()
    views = candidates(recording)
    for view, found in zip(views, maps(recording, views), strict=True):
        assert numpy.allclose(found, Attention(recording, view).word_weights())


def test_pointing_counts_what_the_words_looked_at_most_have_of_what_could_be_had():
    weights = numpy.array([[[0.9, 0.1], [0.2, 0.8]], [[0.1, 0.9], [0.2, 0.8]]])  # (C, T, S)
    reached, reachable = pointed(weights, numpy.array([[3.0, 1.0], [-1.0, numpy.nan]]))
    assert reached.tolist() == [3 / (3 + HARDLY), 1 / (1 + HARDLY)]
    assert reachable.tolist() == [3 / (3 + HARDLY)] * 2


def test_of_a_look_over_a_picture_all_of_it_counts():
    """Both maps have their highest point where it mattered; the second is nearly everywhere."""
    weights = numpy.array([[[0.9, 0.1, 0.0]], [[0.4, 0.3, 0.3]]])  # (C, T, S)
    influence = numpy.array([[3.0, 0.0, 0.0]])
    assert pointed(weights, influence)[0].tolist() == [3 / (3 + HARDLY)] * 2
    reached, reachable = pointed(weights, influence, wholly=True)
    assert numpy.allclose(reached / reachable, [0.9, 0.4])


def test_the_map_of_a_picture_is_chosen_by_the_whole_look(tmp_path):
    Image.fromarray(numpy.random.default_rng(0).integers(0, 256, (32, 32, 3), numpy.uint8)).save(tmp_path / "any.png")
    bundle, pair = Bundle.open(picture_bundle()), (str(tmp_path / "any.png"), "a small red cat")
    looker = Looker(bundle.model("cpu"), bundle.tokenizers)
    [recording], [influence] = (
        looker.recordings([pair]),
        influences(looker.model, looker.tokenizers, looker.passages([pair])),
    )
    weights = maps(recording, candidates(recording))
    best = [
        max(reached / all_of_it)
        for reached, all_of_it in (pointed(weights, influence, wholly=wholly) for wholly in (True, False))
    ]
    assert by_influence(looker, [pair]).score == pytest.approx(best[0], abs=1e-4)
    assert best[0] != pytest.approx(best[1], abs=1e-3)


def test_a_word_that_moves_the_whole_sentence_says_little_about_one_word_of_it():
    """The first source word does more to every output word; the second does all it does to the last."""
    influence = numpy.array([[90.0, 0.0], [90.0, 0.0], [90.0, 60.0]])
    looks_at = numpy.eye(2)[[[0, 0, 0], [0, 0, 1]]]  # (C, T, S)
    reached, reachable = pointed(looks_at, influence)
    assert reached[0] < reached[1] == reachable[1]


def test_links_of_many_maps_are_those_of_each_alignment():
    recording = random_recording()
    views = candidates(recording)
    for view, linked in zip(views, links(maps(recording, views)), strict=True):
        found = {(int(one), int(other)) for other, one in numpy.argwhere(linked)}
        assert found == Attention(recording, view).alignment().links


def test_a_model_without_attention_has_no_choice():
    torch.manual_seed(0)
    plain = Looker(build("rnn", source_vocabulary=len(tokenizer()), width=16).eval(), TOKENIZERS)
    assert by_influence(plain, [PAIR]) is None
    assert by_agreement(plain, plain, [PAIR]) is None


@pytest.mark.parametrize("pairs", [[], [("", "")], [("a", "")]])
def test_without_a_sentence_there_is_no_choice(pairs):
    assert by_influence(planted(), pairs) is None


def test_the_sample_is_bounded_and_of_a_good_length():
    good, short, long = ("a b c", "x y"), ("a", "x"), ("a " * 30, "x")
    assert fitting([short, good, long, good]) == [good, good]
    assert fitting([short, ("", "x"), long]) == [short, long]
    assert len(fitting(good for _ in range(10_000))) == SENTENCES
    stream = iter([good] * (SENTENCES + 5))
    fitting(stream)
    assert len(list(stream)) == 5  # no more was read than was needed


class Scripted(Looker):
    """A looker whose recordings are given."""

    def recordings(self, pairs):
        return self.model


def crossed(order, layers):
    """A recording whose layer `layers[0]` of two links word k to `order[k]`, and whose other layer says word 0."""
    size = len(order)
    right, wrong = numpy.eye(size)[order], numpy.eye(size)[[0] * size]
    stack = numpy.stack([[right] if layer == layers[0] else [wrong] for layer in range(2)])
    ended = numpy.zeros((2, 1, size + 1, size + 1))
    ended[:, :, :size, :size], ended[:, :, size, size] = stack, 1
    words = [f"w{number}" for number in range(size)]
    return Attention.of([*words, "⏎"], [*words, "⏎"], ended).recording


def test_two_directions_choose_the_maps_that_agree():
    order = [2, 0, 1, 3]
    back = [order.index(place) for place in range(len(order))]
    forward, reverse = Scripted([crossed(order, [1])], TOKENIZERS), Scripted([crossed(back, [0])], TOKENIZERS)
    one, other = by_agreement(forward, reverse, [("a b c d", "a b c d")])
    assert (one.view.layer, other.view.layer) == (1, 0)
    assert one.score == other.score == 1
    assert one.by == AGREEMENT


def test_models_that_see_different_words_are_not_compared():
    forward, reverse = Scripted([crossed([0, 1], [0])], TOKENIZERS), Scripted([crossed([0, 1, 2], [0])], TOKENIZERS)
    assert by_agreement(forward, reverse, [("a b c", "a b c")]) is None


def test_every_row_has_exactly_one_link():
    found = links(numpy.array([[[0.5, 0.5], [0.0, 1.0]]]))
    assert found.tolist() == [[[True, False], [False, True]]]

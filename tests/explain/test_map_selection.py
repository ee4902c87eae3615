"""Map selection finds a planted head and the maps of two directions that agree; alignments combine directions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from bundles import tokenizer
from maps import random_recording
from pictures import image_bundle
from planted import Planted
from softgaze.bundle import Bundle, Tokenizers
from softgaze.data.tokenizer import train_tokenizer
from softgaze.errors import UsageError
from softgaze.explain import Alignment, Attention, SelectedMap, TokenizedPair, View, map_selection
from softgaze.explain.map_selection import (
    BY_AGREEMENT,
    BY_CONFIRMED,
    BY_GUIDING,
    BY_OCCLUSION,
    MAX_SENTENCES,
    MIN_EFFECT,
    Aligner,
    AttentionReader,
    candidate_views,
    link_matrix,
    occlusion_agreement,
    sample_pairs,
    select_by_agreement,
    select_by_occlusion,
    word_maps,
)
from softgaze.explain.occlusion import occlusion_scores
from softgaze.explain.recording import AttentionStack, PartAttention, Recording
from softgaze.explain.word_spans import EOS_MARK, TokenizedText
from softgaze.models import build_model

TOKENIZERS = Tokenizers(tokenizer(), tokenizer())
PAIR = ("a small red cat sees the old tree", "작은 고양이 나무 봐요")


def planted(pair=PAIR, **options):
    return AttentionReader(Planted(TokenizedPair.of(*pair, TOKENIZERS), len(tokenizer()), **options), TOKENIZERS)


@pytest.mark.parametrize("faithful", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("late", [False, True])
def test_the_planted_head_is_selected_with_its_row_meaning(faithful, late):
    selected = select_by_occlusion(planted(faithful=faithful, late=late), [PAIR])
    assert (selected.view.layer, selected.view.head) == faithful
    assert selected.view.rows == ("reading" if late else "predicting")
    assert (selected.by, selected.sentences) == (BY_OCCLUSION, 1)
    assert selected.score > 0.95


@pytest.mark.parametrize(
    "guided", [View(layer=0, head=0), View(layer=1, head=1), View(layer=1, head=0, rows="reading")]
)
def test_a_guided_head_is_selected_as_it_was_trained(guided):
    selected = select_by_occlusion(planted(faithful=(1, 0)), [PAIR], guided=guided)
    assert (selected.view, selected.by) == (guided, BY_GUIDING)
    reader = replace(planted(), selected_map=selected)
    assert Aligner(reader).with_selected_maps([PAIR]).forward.selected_map == selected


def test_a_map_that_is_right_on_short_sentences_only_is_not_selected(monkeypatch):
    """One map is a little better on sentences, another much better on texts of three sentences."""
    pairs, views, seen = [PAIR] * 6, [], []

    def scores(reader, sample, recordings, candidates):
        views[:] = candidates
        seen.append([source.split() for source, _ in sample])
        is_long = len(seen[-1][0]) > len(PAIR[0].split())
        return np.array([*((0.2, 0.8) if is_long else (0.9, 0.8)), *[0.0] * (len(candidates) - 2)])

    monkeypatch.setattr(map_selection, "agreement_scores", scores)
    selected = select_by_occlusion(reader(), pairs)
    assert [len(words) for words in seen[1]] == [3 * len(PAIR[0].split())] * 2
    assert (selected.view, selected.score) == (views[1], 0.8)


def test_longer_texts_than_the_model_has_positions_for_are_left_out():
    tokens = len(TOKENIZERS.source.encode([PAIR[0]])[0])
    limited = replace(reader(), max_positions=tokens + 1)
    assert limited.fitting([PAIR, (PAIR[0] * 2, PAIR[1])]) == [PAIR]
    assert select_by_occlusion(limited, [PAIR] * 6) is not None


def test_an_alignment_head_is_preferred_to_its_equals():
    reader = planted(faithful=(0, 1), twin=(1, 0))
    free, guided = (select_by_occlusion(replace(reader, alignment_head=head), [PAIR]) for head in (None, (1, 0)))
    assert (free.view.layer, free.view.head, free.by) == (0, 1, BY_OCCLUSION)
    assert (guided.view.layer, guided.view.head, guided.by) == (1, 0, BY_CONFIRMED)
    assert guided.score == free.score


def test_an_alignment_head_that_learned_none_is_not_selected():
    selected = select_by_occlusion(replace(planted(faithful=(0, 1)), alignment_head=(1, 0)), [PAIR])
    assert (selected.view.layer, selected.view.head, selected.by) == (0, 1, BY_OCCLUSION)


def test_tags_eos_and_punctuation_that_take_most_of_the_attention_get_no_link():
    """NLLB: most of the attention is on a language token, EOS and a full stop; the rest is an alignment."""
    source = TokenizedText.of("red cat .", [["▁red", "▁cat", "▁."]], ["eng_Latn"])
    target = TokenizedText.of("rote Katze.", [["▁rote", "▁Katze", "."]])
    weights = np.array(
        [
            [0.50, 0.08, 0.01, 0.01, 0.40],
            [0.40, 0.01, 0.08, 0.01, 0.50],
            [0.05, 0.00, 0.00, 0.90, 0.05],  # the full stop attached to "Katze"
            [0.50, 0.00, 0.00, 0.00, 0.50],
        ],
        np.float32,
    )[None, None]
    part = PartAttention(AttentionStack(weights, np.ones((1, 1, 5), np.float32)))
    attention = Attention(Recording(source, target, (part,)), View(layer=0))
    assert attention.alignment().links == {(0, 0), (1, 1)}
    assert [label.text for label in source.token_labels() if label.word is None] == ["eng_Latn", EOS_MARK]
    assert attention.sink > 0.8


def test_all_layers_heads_means_meanings_and_measures_are_candidates():
    views = candidate_views(random_recording())
    assert len(views) == len(set(views)) == (3 * 3 + 1) * 2 * 2
    assert {view.layer for view in views} == {None, 0, 1, 2}
    assert {view.head for view in views} == {None, 0, 1}
    assert {view.head for view in views if view.layer is None} == {None}
    assert {view.layer for view in candidate_views(Attention.of("ab", "x", [[0.5, 0.5]]).recording)} == {0}


def test_word_maps_are_those_of_each_view():
    recording = random_recording()
    views = candidate_views(recording)
    for view, weights in zip(views, word_maps(recording, views), strict=True):
        assert np.allclose(weights, Attention(recording, view).word_weights())


def test_agreement_counts_the_effect_of_the_largest_weights():
    weights = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.1, 0.9], [0.2, 0.8]]])  # (C, T, S)
    reached, reachable = occlusion_agreement(weights, np.array([[3.0, 1.0], [-1.0, np.nan]]))
    assert reached.tolist() == [3 / (3 + MIN_EFFECT), 1 / (1 + MIN_EFFECT)]
    assert reachable.tolist() == [3 / (3 + MIN_EFFECT)] * 2


def test_over_an_image_all_weights_count():
    """Both maps have their maximum at the word that mattered; the second is nearly flat."""
    weights = np.array([[[0.9, 0.1, 0.0]], [[0.4, 0.3, 0.3]]])  # (C, T, S)
    occlusion = np.array([[3.0, 0.0, 0.0]])
    assert occlusion_agreement(weights, occlusion)[0].tolist() == [3 / (3 + MIN_EFFECT)] * 2
    reached, reachable = occlusion_agreement(weights, occlusion, whole_map=True)
    assert np.allclose(reached / reachable, [0.9, 0.4])


def test_the_map_of_an_image_is_selected_by_all_weights(tmp_path):
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)).save(tmp_path / "any.png")
    bundle, pair = Bundle.open(image_bundle()), (str(tmp_path / "any.png"), "a small red cat")
    images = AttentionReader(bundle.model("cpu"), bundle.tokenizers)
    [recording] = images.recordings([pair])
    [occlusion] = occlusion_scores(images.model, images.tokenizers, images.tokenize([pair]))
    weights = word_maps(recording, candidate_views(recording))
    agreements = [occlusion_agreement(weights, occlusion, whole_map=whole_map) for whole_map in (True, False)]
    best = [max(reached / reachable) for reached, reachable in agreements]
    assert select_by_occlusion(images, [pair]).score == pytest.approx(best[0], abs=1e-4)
    assert best[0] != pytest.approx(best[1], abs=1e-3)


def test_a_word_that_changes_the_whole_sentence_counts_little_for_one_word():
    """The first source word does more to every output word; the second does all it does to the last."""
    occlusion = np.array([[90.0, 0.0], [90.0, 0.0], [90.0, 60.0]])
    weights = np.eye(2)[[[0, 0, 0], [0, 0, 1]]]  # (C, T, S)
    reached, reachable = occlusion_agreement(weights, occlusion)
    assert reached[0] < reached[1] == reachable[1]


def test_link_matrices_are_those_of_each_alignment():
    recording = random_recording()
    views = candidate_views(recording)
    for view, linked in zip(views, link_matrix(word_maps(recording, views)), strict=True):
        links = {(int(source), int(target)) for target, source in np.argwhere(linked)}
        assert links == Attention(recording, view).alignment().links


def test_nothing_is_selected_without_attention():
    torch.manual_seed(0)
    plain = AttentionReader(build_model("rnn", source_vocabulary=len(tokenizer()), width=16).eval(), TOKENIZERS)
    assert select_by_occlusion(plain, [PAIR]) is None
    assert select_by_agreement(plain, plain, [PAIR]) is None


@pytest.mark.parametrize("pairs", [[], [("", "")], [("a", "")]])
def test_nothing_is_selected_without_a_sentence(pairs):
    assert select_by_occlusion(planted(), pairs) is None


def test_the_sample_is_bounded_and_of_suitable_length():
    good, short, long = ("a b c", "x y"), ("a", "x"), ("a " * 30, "x")
    assert sample_pairs([short, good, long, good]) == [good, good]
    assert sample_pairs([short, ("", "x"), long]) == [short, long]
    assert len(sample_pairs(good for _ in range(10_000))) == MAX_SENTENCES
    stream = iter([good] * (MAX_SENTENCES + 5))
    sample_pairs(stream)
    assert len(list(stream)) == 5  # the stream is read no further than needed


class Scripted(AttentionReader):
    def recordings(self, pairs):
        return self.model


def crossed(order, layers):
    """A recording of two layers: `layers[0]` links word k to `order[k]`, the other links all words to word 0."""
    size = len(order)
    planted_map, other_map = np.eye(size)[order], np.eye(size)[[0] * size]
    stack = np.stack([[planted_map] if layer == layers[0] else [other_map] for layer in range(2)])
    with_eos = np.zeros((2, 1, size + 1, size + 1))
    with_eos[:, :, :size, :size], with_eos[:, :, size, size] = stack, 1
    words = [f"w{number}" for number in range(size)]
    return Attention.of([*words, "⏎"], [*words, "⏎"], with_eos).recording


def test_two_directions_select_the_maps_that_agree():
    order = [2, 0, 1, 3]
    inverse = [order.index(word) for word in range(len(order))]
    forward, reverse = Scripted([crossed(order, [1])], TOKENIZERS), Scripted([crossed(inverse, [0])], TOKENIZERS)
    one, other = select_by_agreement(forward, reverse, [("a b c d", "a b c d")])
    assert (one.view.layer, other.view.layer) == (1, 0)
    assert one.score == other.score == 1
    assert one.by == BY_AGREEMENT


def test_models_with_different_words_are_not_compared():
    forward, reverse = Scripted([crossed([0, 1], [0])], TOKENIZERS), Scripted([crossed([0, 1, 2], [0])], TOKENIZERS)
    assert select_by_agreement(forward, reverse, [("a b c", "a b c")]) is None


# --- alignment

PAIRS = [("the dog runs.", "개 달려요."), ("", "개"), ("a cat", ""), ("a small red cat", "작은 고양이")]


def reader(arch="transformer", selected_map=None, seed=0, tokenizers=TOKENIZERS):
    torch.manual_seed(seed)
    model = build_model(arch, source_vocabulary=len(tokenizers.source), width=16).eval()
    return AttentionReader(model, tokenizers, selected_map)


def test_every_pair_has_an_alignment_and_every_word_one_link():
    alignments = Aligner(reader()).align(PAIRS)
    assert len(alignments) == len(PAIRS)
    assert alignments[1] == alignments[2] == Alignment()
    for (source, target), alignment in zip(PAIRS, alignments, strict=True):
        if source and target:
            assert [link[1] for link in sorted(alignment, key=lambda link: link[1])] == [*range(len(target.split()))]
            assert all(one < len(source.split()) for one, _ in alignment)


def test_links_of_a_reverse_model_are_inverted_and_combined():
    one, other = reader(seed=0), reader(seed=1)
    forward = Aligner(one).align(PAIRS)
    reverse = Aligner(other).align([(target, source) for source, target in PAIRS])
    for method, combine in {"intersection": Alignment.__and__, "union": Alignment.__or__}.items():
        expected = [combine(first, second.inverted()) for first, second in zip(forward, reverse, strict=True)]
        assert Aligner(one, other, method).align(PAIRS) == expected


def test_a_stored_map_is_kept_and_a_missing_one_is_selected():
    stored = SelectedMap(View(layer=1, head=1), 0.5, "test", 3)
    assert Aligner(reader(selected_map=stored)).with_selected_maps(PAIRS).forward.selected_map is stored
    selected = Aligner(planted(faithful=(0, 1))).with_selected_maps([PAIR]).forward.selected_map
    assert (selected.view.layer, selected.view.head) == (0, 1)


def test_with_a_reverse_model_both_maps_are_selected_by_agreement():
    stored = SelectedMap(View(layer=1, head=1), 0.5, "test", 3)
    aligner = Aligner(reader(selected_map=stored), reader(seed=1)).with_selected_maps(PAIRS)
    assert "agreement" in aligner.forward.selected_map.by
    assert aligner.forward.selected_map.score == aligner.reverse.selected_map.score


def test_without_a_sample_no_map_is_selected():
    assert Aligner(reader()).with_selected_maps([("", "")]).forward.selected_map is None
    assert Aligner(reader(), reader()).with_selected_maps([("", "")]).forward.selected_map is None


@pytest.mark.parametrize("wrong", [{"method": "join"}, {"threshold": 0.0}, {"threshold": 2.0}])
def test_invalid_options_are_rejected(wrong):
    with pytest.raises(UsageError):
        Aligner(reader(), **wrong)


def test_models_that_segment_unspaced_text_differently_cannot_be_combined():
    other = train_tokenizer(["我爱北京", "北京天安门", "爱天安门"] * 20)
    pairs = [("the dog", "我爱北京天安门")]
    with pytest.raises(UsageError, match="pair 1: the two models segment"):
        Aligner(reader(), reader(tokenizers=Tokenizers(other, other))).align(pairs)

"""Attention metrics: summaries add up, the alignment error rate is that of `align`, and nouns point at objects."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundles import copier, lines, tiny_bundle
from pictures import scene_attention, uniform_inside
from softgaze.data.captions import LabelledBox
from softgaze.data.corpora import scenes
from softgaze.data.corpora.scenes import chance, draw
from softgaze.data.images import Box, ImageSize, Photo, pointing, share
from softgaze.evaluation import attention_metrics
from softgaze.evaluation.attention_metrics import (
    AttentionMetrics,
    Mention,
    PointingScore,
    SentenceAttention,
    label_mentions,
    mean_pointing,
    mean_region_score,
    measure_attention,
    noun_maps,
    pointing_game,
    pointing_score,
    region_scores,
    scene_mentions,
)
from softgaze.explain import Alignment, Attention, aer
from softgaze.explain.alignment import AlignmentCounts
from softgaze.explain.corpus_report import share_covered
from softgaze.explain.recording import AttentionStack
from softgaze.translator import load

SOURCES, REFERENCES = lines("en", 9), lines("ko", 9)
PAIRS = list(zip(SOURCES, REFERENCES, strict=True))
GOLD = [Alignment(frozenset({(0, 0), (1, 1)})) for _ in SOURCES]


@pytest.fixture(scope="module")
def model():
    return load(tiny_bundle())


@pytest.fixture(scope="module")
def translations(model):
    return model.translate(SOURCES, beam_size=1)


def test_a_summary_averages_sentences_and_sums_links():
    sentences = (
        SentenceAttention(1.0, 0.5, AlignmentCounts(2, 2, 1, 1)),
        SentenceAttention(None, None, AlignmentCounts(0, 2, 0, 0)),
        SentenceAttention(3.0, 0.0, None),
    )
    metrics = AttentionMetrics("", sentences)
    whole = metrics.summary()
    assert (whole.sentences, whole.entropy, whole.coverage, whole.links) == (2, 2.0, 0.25, AlignmentCounts(2, 4, 1, 1))
    assert whole.aer == pytest.approx(1 - 2 / 6)
    empty = metrics.summary([])
    assert (empty.sentences, empty.entropy, empty.coverage, empty.aer) == (0, None, None, None)


def test_every_sentence_is_measured_on_the_selected_map(model, translations, monkeypatch):
    monkeypatch.setattr(attention_metrics, "BLOCK", 4)
    metrics = measure_attention(model, translations, REFERENCES, GOLD)
    assert "cross-attention" in metrics.attention_map
    selected = model.with_selected_map(PAIRS)
    assert metrics.summary().aer == pytest.approx(aer(selected.aligner().align(PAIRS), GOLD, gold_base=0))
    maps = [attention.words() for attention in selected.attentions(translations)]
    entropies = [words.entropy().mean() for words in maps]
    assert [sentence.entropy for sentence in metrics.sentences] == pytest.approx(entropies, abs=1e-4)
    coverages = [share_covered(words.word_weights().sum(axis=0)) for words in maps]
    assert [sentence.coverage for sentence in metrics.sentences] == pytest.approx(coverages)


def test_progress_adds_up_and_without_gold_there_is_no_error_rate(model, translations, monkeypatch):
    monkeypatch.setattr(attention_metrics, "BLOCK", 4)
    done = []
    metrics = measure_attention(model, translations, REFERENCES, progress=done.append)
    assert done == [4, 4, 1]
    assert metrics.summary().aer is None


def test_a_model_without_attention_has_no_metrics(tmp_path):
    translator = copier(tmp_path)
    assert measure_attention(translator, translator.translate(["the dog."]), ["the dog."]) is None


# --- pointing game

NUMBERS = st.integers(0, 40)
DOG, CAT, MAN = Box(0, 0, 0.5, 0.5), Box(0.5, 0.5, 1, 1), Box(0.5, 0, 1, 0.5)


@given(NUMBERS, st.sampled_from(["en", "ko"]))
def test_the_correct_caption_mentions_every_object_with_its_box(number, language):
    picture = scenes.load("test")[number]
    boxes = draw(picture).boxes
    expected = [Mention(word, (box,)) for word, box in zip(picture.nouns(language), boxes, strict=True)]
    assert scene_mentions(picture, picture.captions[language], language) == expected


def test_a_wrong_noun_is_left_out_and_the_others_are_kept():
    picture = next(scene for scene in scenes.load("test") if len(scene.objects) == 2)
    first, second = (item.shape for item in picture.objects)
    wrong = next(word for word in ("circle", "star", "moon") if word not in (first, second))
    assert len(scene_mentions(picture, f"a {first} above a {wrong}")) == 1
    assert [each.word for each in scene_mentions(picture, f"a {wrong} above a big red {second}")] == [6]
    assert scene_mentions(picture, "nothing at all") == []
    assert len(scene_mentions(picture, f"a {first} above a {second} above a {first}")) == 2


@settings(max_examples=10)
@given(NUMBERS)
def test_attention_inside_the_box_scores_one_and_uniform_attention_scores_chance(number):
    picture = scenes.load("test")[number]
    text, boxes = picture.captions["en"], draw(picture).boxes
    words = text.split()
    even = Attention.of(None, words, np.full((len(words), 64), 1 / 64), grid=(8, 8))
    weights = np.full((len(words), 64 * 64), 1 / 64**2)
    for noun, box in zip(picture.nouns(), boxes, strict=True):
        weights[noun] = uniform_inside(box, (64, 64))  # a scene's boxes end at its pixels
    sharp = Attention.of(None, words, weights, grid=(64, 64))
    for mention in scene_mentions(picture, text):
        blind = pointing_score(even, *mention)
        assert blind.mass == pytest.approx(blind.chance)
        assert pointing_score(sharp, *mention).mass == pytest.approx(1)


def test_the_mean_chance_over_scenes_is_that_of_the_scenes():
    pictures = scenes.load("test")[:20]
    result = []
    for number, picture in enumerate(pictures):
        attention = scene_attention(number)
        result += [pointing_score(attention, *each) for each in scene_mentions(picture, picture.captions["en"])]
    mean = mean_pointing(result)
    assert mean.chance == pytest.approx(chance(pictures))
    assert mean.nouns == sum(len(each.objects) for each in pictures)
    assert mean.mass > 3 * mean.chance
    assert str(mean).startswith(f"{mean.mass:.1%} of the attention of {mean.nouns} nouns")


def test_the_mean_of_no_scores_is_none():
    assert mean_pointing([]) is None
    assert mean_pointing([PointingScore(0.2, 0.1), PointingScore(0.6, 0.3)])[:3] == pytest.approx((0.4, 0.2, 2))


LABELS = [LabelledBox(DOG, "dog"), LabelledBox(CAT, "dog"), LabelledBox(MAN, "person"), LabelledBox(CAT, "hot dog")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A dog.", {1: (DOG, CAT)}),
        ("Two dogs, and a man", {1: (DOG, CAT), 4: (MAN,)}),
        ("a hotdog stand", {}),
        ("people eat a hot dog", {0: (MAN,), 4: (DOG, CAT)}),  # the first kind that the word names
        ("a cat", {}),
        ("", {}),
    ],
)
def test_words_that_name_a_category_of_the_image(text, expected):
    assert {each.word: each.boxes for each in label_mentions(text, LABELS)} == expected


def test_boxes_are_cut_to_the_crop_that_the_model_saw():
    photo = Photo(b"", "image/png", ImageSize(200, 100), Box(0.25, 0, 0.75, 1))
    weights = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    attention = Attention.of(None, ["dog", "cat"], weights, grid=(2, 2), photo=photo)
    left, unseen = Box(0.25, 0.0, 0.5, 1.0), Box(0.0, 0.0, 0.2, 1.0)
    maps = noun_maps(attention, photo, [Mention(0, (left,)), Mention(1, (left,)), Mention(1, (unseen,))])
    assert [(pointing(tile, boxes), share(boxes)) for tile, boxes in maps] == [(1.0, 0.5), (0.0, 0.5)]


def test_a_map_that_follows_the_objects_beats_the_mean_map():
    left, right = Box(0.0, 0.0, 0.5, 1.0), Box(0.5, 0.0, 1.0, 1.0)
    first, second = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1.0]])
    result = pointing_game([(first, [left]), (second, [right])])
    assert result == (1.0, 0.5, 2, 0.5, 1.0, 0.5)
    fixed = pointing_game([(first, [left]), (first, [right])])  # one place for every noun
    assert fixed.mass == fixed.mean_map == fixed.hits == fixed.mean_map_hits == 0.5
    assert pointing_game([]) is None


def test_self_attention_within_an_object_counts():
    photo = Photo(b"", "image/png", ImageSize(100, 100))
    weights = np.array([[[[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.25] * 4, [0.25] * 4]]])
    stack = AttentionStack(weights, np.ones((1, 1, 4)))
    plain = Attention.of(None, ["dog"], [[1.0, 0.0, 0.0, 0.0]], grid=(2, 2), photo=photo)
    parts = tuple(replace(part, encoder=stack) for part in plain.recording.parts)
    attention = replace(plain, recording=replace(plain.recording, parts=parts))
    top = LabelledBox(Box(0.0, 0.0, 1.0, 0.5), "dog")
    assert mean_region_score(region_scores(attention, photo, [top])) == (1.0, 0.5, 2)
    assert region_scores(plain, photo, [top]) == []


def test_the_mass_of_the_words_own_row_counts():
    left, right = Box(0.0, 0.0, 0.5, 1.0), Box(0.5, 0.0, 1.0, 1.0)
    weights = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.25, 0.25], [0.25] * 4]
    attention = Attention.of(None, ["a", "circle", "⏎"], weights, grid=(2, 2))
    assert pointing_score(attention, 0, [left]) == PointingScore(1.0, 0.5)
    assert pointing_score(attention, 1, [left]) == PointingScore(0.25, 0.5)
    assert pointing_score(attention.subwords(), 1, [left, right]) == PointingScore(1.0, 1.0)

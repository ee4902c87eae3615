"""Pointing: what a noun names, where that is, and how much of the look lies there."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pictures import inside, looking_at_scene
from softgaze.data.boxes import Box
from softgaze.data.coco import Labelled
from softgaze.data.images import Size
from softgaze.data.photo import Photo
from softgaze.data.scenes import caption, chance, draw, scene
from softgaze.evaluation.pointing import (
    Mention,
    Pointed,
    average,
    label_mentions,
    pointed,
    scene_mentions,
    seen_mentions,
)
from softgaze.gaze import Attention

NUMBERS = st.integers(0, 40)
DOG, CAT, MAN = Box(0, 0, 0.5, 0.5), Box(0.5, 0.5, 1, 1), Box(0.5, 0, 1, 0.5)


@given(NUMBERS, st.sampled_from(["en", "ko"]))
def test_the_right_caption_names_every_thing_of_a_scene_at_its_place(number, language):
    picture = scene("test", number)
    right, boxes = caption(picture, language), draw(picture).boxes
    wanted = [Mention(word, (box,)) for word, box in zip(right.nouns, boxes, strict=True)]
    assert scene_mentions(picture, right.text, language) == wanted


def test_a_wrong_noun_points_at_nothing_and_others_still_do():
    picture = next(each for each in (scene("test", number) for number in range(50)) if len(each.things) == 2)
    first, second = (thing.shape.english for thing in picture.things)
    wrong = next(word for word in ("circle", "star", "moon") if word not in (first, second))
    assert len(scene_mentions(picture, f"a {first} above a {wrong}")) == 1
    assert [each.word for each in scene_mentions(picture, f"a {wrong} above a big red {second}")] == [6]
    assert scene_mentions(picture, "nothing at all") == []
    assert len(scene_mentions(picture, f"a {first} above a {second} above a {first}")) == 2


@settings(max_examples=10)
@given(NUMBERS)
def test_a_look_at_the_right_box_points_and_an_even_one_is_chance(number):
    picture = scene("test", number)
    text, boxes = caption(picture), draw(picture).boxes
    words = text.text.split()
    even = Attention.of(None, words, numpy.full((len(words), 64), 1 / 64), grid=(8, 8))
    weights = numpy.full((len(words), 64 * 64), 1 / 64**2)
    for noun, box in zip(text.nouns, boxes, strict=True):
        weights[noun] = inside(box, (64, 64))  # a scene's boxes end at its pixels
    sharp = Attention.of(None, words, weights, grid=(64, 64))
    for mention in scene_mentions(picture, text.text):
        blind = pointed(even, *mention)
        assert blind.mass == pytest.approx(blind.chance)
        assert pointed(sharp, *mention).mass == pytest.approx(1)


def test_the_mean_chance_over_scenes_is_that_of_the_scenes():
    pictures = [scene("test", number) for number in range(20)]
    found = []
    for number, picture in enumerate(pictures):
        attention = looking_at_scene(number)
        found += [pointed(attention, *each) for each in scene_mentions(picture, caption(picture).text)]
    mean = average(found)
    assert mean.chance == pytest.approx(chance(pictures))
    assert mean.nouns == sum(len(each.things) for each in pictures)
    assert mean.mass > 3 * mean.chance
    assert str(mean).startswith(f"{mean.mass:.1%} of the look of {mean.nouns} nouns")


def test_nothing_has_no_mean():
    assert average([]) is None
    assert average([Pointed(0.2, 0.1), Pointed(0.6, 0.3)]) == pytest.approx((0.4, 0.2, 2))


LABELS = [Labelled(DOG, "dog"), Labelled(CAT, "dog"), Labelled(MAN, "person"), Labelled(CAT, "hot dog")]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A dog.", {1: (DOG, CAT)}),
        ("Two dogs, and a man", {1: (DOG, CAT), 4: (MAN,)}),
        ("a hotdog stand", {}),
        ("people eat a hot dog", {0: (MAN,), 4: (DOG, CAT)}),  # the first kind that the word names
        ("a cat", {}),
        ("", {}),
    ],
)
def test_words_that_name_a_kind_of_thing_in_the_picture(text, wanted):
    assert {each.word: each.boxes for each in label_mentions(text, LABELS)} == wanted


def test_boxes_are_those_of_the_photo_and_the_look_is_at_what_was_seen_of_it():
    photo = Photo(b"", "image/png", Size(200, 100), Box(0.25, 0, 0.75, 1))
    weights = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    attention = Attention.of(None, ["dog", "cat"], weights, grid=(2, 2), photo=photo)
    left, unseen = Box(0.25, 0.0, 0.5, 1.0), Box(0.0, 0.0, 0.2, 1.0)
    found = seen_mentions(attention, photo, [Mention(0, (left,)), Mention(1, (left,)), Mention(1, (unseen,))])
    assert found == [(1.0, 0.5, 1), (0.0, 0.5, 1)]


def test_the_mass_of_the_words_own_row_counts():
    left, right = Box(0.0, 0.0, 0.5, 1.0), Box(0.5, 0.0, 1.0, 1.0)
    weights = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.25, 0.25], [0.25] * 4]
    attention = Attention.of(None, ["a", "circle", "⏎"], weights, grid=(2, 2))
    assert pointed(attention, 0, [left]) == Pointed(1.0, 0.5)
    assert pointed(attention, 1, [left]) == Pointed(0.25, 0.5)
    assert pointed(attention.subwords(), 1, [left, right]) == Pointed(1.0, 1.0)

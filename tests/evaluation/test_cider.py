"""CIDEr-D against scores worked out by hand, and what holds for any captions."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.evaluation.cider import SPREAD, cider

WORD = st.sampled_from(["a", "dog", "cat", "runs", "red", "big"])
TEXT = st.lists(WORD, min_size=1, max_size=7)
SET = st.lists(TEXT, min_size=1, max_size=4)
IMAGES = st.lists(st.tuples(TEXT, SET), min_size=1, max_size=5)


def scored(*images):
    """Captions and references as text."""
    captions, references = zip(*images, strict=True)
    return cider([each.split() for each in captions], [[each.split() for each in own] for own in references])


def test_a_caption_that_is_its_only_reference_gets_ten():
    assert scored(("a b c d", ["a b c d"]), ("e f g h", ["e f g h"])) == [pytest.approx(10)] * 2


def test_sizes_of_ngrams_that_a_caption_is_too_short_for_count_as_nothing():
    assert scored(("a b", ["a b"]), ("c d", ["c d"]))[0] == pytest.approx(10 * 2 / 4)


def test_by_hand_one_word_of_two():
    # idf of every word is ln 2; words (1, 1) against (1, 1) with one shared: 1 / 2; no pair is shared.
    assert scored(("a x", ["a b"]), ("c d", ["c d"]))[0] == pytest.approx(10 * (1 / 2) / 4)


def test_by_hand_a_word_of_every_image_says_nothing():
    # "the" has idf 0; so words are (0, ln 2) against (0, ln 2): 1; the pair "the a" is that of the reference: 1.
    assert scored(("the a", ["the a"]), ("the b", ["the b"]))[0] == pytest.approx(10 * 2 / 4)
    assert scored(("the the", ["the a"]), ("the b", ["the b"]))[0] == 0


def test_by_hand_repeating_a_word_earns_no_more():
    # words: (3,) against (1,): min(3, 1) · 1 / (3 · 1) = 1 / 3, damped by two words more: exp(-4 / 72).
    assert scored(("a a a", ["a"]), ("b", ["b"]))[0] == pytest.approx(10 / 3 * math.exp(-4 / (2 * SPREAD**2)) / 4)


def test_by_hand_the_mean_over_references():
    # One of two references is the caption itself, the other shares nothing with it.
    assert scored(("a b c d", ["a b c d", "x y z w"]), ("e", ["e"]))[0] == pytest.approx(5)


def test_by_hand_how_rare_a_word_is():
    # Of four images "a" is in two: idf ln 2; "b" is in one: idf ln 4. Caption "a", reference "a b".
    found = scored(("a", ["a b"]), ("c", ["a"]), ("d", ["d"]), ("e", ["e"]))[0]
    cosine = math.log(2) ** 2 / (math.log(2) * math.hypot(math.log(2), math.log(4)))
    assert found == pytest.approx(10 * cosine * math.exp(-1 / (2 * SPREAD**2)) / 4)


def test_of_a_single_image_nothing_is_rare():
    assert scored(("a dog runs fast", ["a dog runs fast"])) == [0]


@given(IMAGES)
def test_scores_lie_between_nothing_and_ten(images):
    captions, references = zip(*images, strict=True)
    assert all(0 <= each <= 10 + 1e-9 for each in cider(captions, references))


@given(IMAGES, st.randoms())
def test_neither_the_order_of_images_nor_of_references_matters(images, dice: random.Random):
    order = dice.sample(range(len(images)), len(images))
    captions, references = zip(*images, strict=True)
    turned = [dice.sample(references[place], len(references[place])) for place in order]
    wanted = cider(captions, references)
    assert cider([captions[place] for place in order], turned) == pytest.approx([wanted[place] for place in order])


@given(IMAGES)
def test_other_names_of_words_give_the_same_scores(images):
    captions, references = zip(*images, strict=True)
    renamed = [[f"<{word}>" for word in words] for words in captions]
    others = [[[f"<{word}>" for word in words] for words in own] for own in references]
    assert cider(renamed, others) == pytest.approx(cider(captions, references))


def test_nothing_written_scores_nothing():
    assert scored(("", ["a dog"]), ("b", ["b"]))[0] == 0

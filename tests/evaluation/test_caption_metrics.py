"""Caption metrics: BLEU is sacreBLEU's; CIDEr-D and ROUGE-L equal scores worked out by hand."""

import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from softgaze.evaluation.caption_metrics import (
    CIDER_SIGMA,
    ROUGE_BETA,
    TITLES,
    cider,
    common_length,
    rouge_l,
    score_captions,
)
from softgaze.metrics import score

CAPTIONS = ["A dog runs across the grass.", "two cats sleep on a red sofa", "개 한 마리가 달린다"]
REFERENCES = [
    ["a dog runs across the green grass", "A brown dog is running.", "dog on grass"],
    ["Two cats are asleep on a sofa."],
    ["개 한 마리가 달린다", "달리는 개"],
]


def test_bleu_is_that_of_sacrebleu():
    sets = [[own[index] if index < len(own) else None for own in REFERENCES] for index in range(3)]
    result = score_captions(CAPTIONS, REFERENCES)
    for size in (1, 2, 3, 4):
        bleu = BLEU(lowercase=True, max_ngram_order=size)
        assert result.values[f"bleu_{size}"] == pytest.approx(bleu.corpus_score(CAPTIONS, sets).score)
        assert result.signatures[f"bleu_{size}"] == str(bleu.get_signature())
    assert "nrefs:var" in result.signatures["bleu_4"]


def test_with_one_reference_bleu_4_and_exact_are_those_of_translations():
    written, expected = ["a dog runs home now", "two cats"], ["a dog runs home today", "two cats"]
    result, other = score_captions(written, [[each] for each in expected]), score(written, expected, ter=False)
    assert (result.values["bleu_4"], result.exact) == (pytest.approx(other.bleu), other.exact)


def test_right_captions_have_the_highest_scores():
    result = score_captions([own[0] for own in REFERENCES[:2]], [own[:1] for own in REFERENCES[:2]])
    expected = {name: 1000 if name == "cider" else 100 for name in TITLES}
    assert result.values == pytest.approx(expected)
    assert result.exact == 100


def test_case_and_punctuation_change_neither_cider_nor_rouge():
    plain = score_captions(["a dog runs", "two cats"], [["a dog runs"], ["two cats sleep"]])
    fancy = score_captions(["A dog, runs!", "Two cats."], [["a dog runs."], ["TWO “cats” sleep"]])
    for name in ("cider", "rouge_l"):
        assert plain.values[name] == pytest.approx(fancy.values[name])


def test_a_script_without_spaces_is_cut_into_characters():
    result = score_captions(["一只狗在跑", "两只猫"], [["一只狗在跑步"], ["两只猫"]], language="zh")
    assert 50 < result.values["rouge_l"] < 100
    assert "tok:zh" in result.signatures["cider"]


def test_every_score_has_a_line_with_its_signature():
    result = score_captions(CAPTIONS, REFERENCES)
    lines = result.lines()
    assert [line.split()[0] for line in lines] == [*TITLES.values(), "exact"]
    assert all(result.signatures[name] in line for name, line in zip(TITLES, lines, strict=False))
    assert lines[-1].endswith("1 of 3 captions equal a reference")
    assert result.to_dict()["references"] == 6


def test_nothing_written_is_scored_as_nothing():
    result = score_captions(["", ""], [["a dog"], ["a cat"]])
    assert set(result.values.values()) == {0.0}


@pytest.mark.parametrize(("captions", "references"), [([], []), (["a"], []), (["a"], [[]])])
def test_captions_without_references_are_refused(captions, references):
    with pytest.raises(ValueError, match="set of references"):
        score_captions(captions, references)


# --- CIDEr-D

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
    assert scored(("a a a", ["a"]), ("b", ["b"]))[0] == pytest.approx(10 / 3 * math.exp(-4 / (2 * CIDER_SIGMA**2)) / 4)


def test_by_hand_the_mean_over_references():
    # One of two references is the caption itself, the other shares nothing with it.
    assert scored(("a b c d", ["a b c d", "x y z w"]), ("e", ["e"]))[0] == pytest.approx(5)


def test_by_hand_how_rare_a_word_is():
    # Of four images "a" is in two: idf ln 2; "b" is in one: idf ln 4. Caption "a", reference "a b".
    result = scored(("a", ["a b"]), ("c", ["a"]), ("d", ["d"]), ("e", ["e"]))[0]
    cosine = math.log(2) ** 2 / (math.log(2) * math.hypot(math.log(2), math.log(4)))
    assert result == pytest.approx(10 * cosine * math.exp(-1 / (2 * CIDER_SIGMA**2)) / 4)


def test_of_a_single_image_nothing_is_rare():
    assert scored(("a dog runs fast", ["a dog runs fast"])) == [0]


@given(IMAGES)
def test_scores_lie_between_nothing_and_ten(images):
    captions, references = zip(*images, strict=True)
    assert all(0 <= each <= 10 + 1e-9 for each in cider(captions, references))


@given(IMAGES, st.randoms())
def test_neither_the_order_of_images_nor_of_references_matters(images, rng: random.Random):
    order = rng.sample(range(len(images)), len(images))
    captions, references = zip(*images, strict=True)
    turned = [rng.sample(references[index], len(references[index])) for index in order]
    expected = cider(captions, references)
    assert cider([captions[index] for index in order], turned) == pytest.approx([expected[index] for index in order])


@given(IMAGES)
def test_other_names_of_words_give_the_same_scores(images):
    captions, references = zip(*images, strict=True)
    renamed = [[f"<{word}>" for word in words] for words in captions]
    others = [[[f"<{word}>" for word in words] for words in own] for own in references]
    assert cider(renamed, others) == pytest.approx(cider(captions, references))


def test_nothing_written_scores_nothing():
    assert scored(("", ["a dog"]), ("b", ["b"]))[0] == 0


# --- ROUGE-L

LETTERS = st.lists(st.sampled_from("abc"), max_size=7)


def subsequences(words):
    return {kept for size in range(len(words) + 1) for kept in combinations(words, size)}


@given(LETTERS, LETTERS)
def test_the_longest_common_subsequence_is_the_longest_of_all_common_ones(one, other):
    assert common_length(one, other) == max(map(len, subsequences(one) & subsequences(other)))


def f(precision, recall):
    return (1 + ROUGE_BETA**2) * precision * recall / (recall + ROUGE_BETA**2 * precision)


@pytest.mark.parametrize(
    ("caption", "references", "expected"),
    [
        ("police killed the gunman", ["police killed the gunman"], 1.0),
        ("police kill the gunman", ["police killed the gunman"], f(3 / 4, 3 / 4)),
        ("the gunman kill police", ["police killed the gunman"], f(2 / 4, 2 / 4)),
        ("a dog", ["a big dog runs"], f(2 / 2, 2 / 4)),
        ("a dog", ["a big dog runs", "dog"], f(2 / 2, 1 / 1)),  # the best of each, of different references
        ("", ["a"], 0.0),
        ("x", ["a"], 0.0),
    ],
)
def test_by_hand(caption, references, expected):
    assert rouge_l(caption.split(), [each.split() for each in references]) == pytest.approx(expected)


@given(LETTERS, st.lists(LETTERS, min_size=1, max_size=3), LETTERS)
def test_another_reference_never_lowers_the_score(caption, references, more):
    assert rouge_l(caption, [*references, more]) >= rouge_l(caption, references) - 1e-12


@given(LETTERS.filter(bool))
def test_only_a_text_of_the_same_words_is_perfect(words):
    assert rouge_l(words, [words]) == pytest.approx(1)
    assert rouge_l([*words, "d"], [words]) < 1

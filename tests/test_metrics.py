import json
import unicodedata

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from softgaze.metrics import Scores, bleu_tokenizer, score, sentence_scores

RIGHT = ["The cat sat on the mat.", "A dog runs in the park today.", "나는 오늘 학교에 가요.", "He sees it."]
WRONG = ["The dog sat on the mat.", "A dog sleeps in the park today.", "나는 어제 학교에 갔어요.", "He sees it."]


def test_equal_text_has_the_best_scores():
    scores = score(RIGHT, RIGHT)
    assert (round(scores.bleu, 6), round(scores.chrf, 6), scores.ter, scores.exact) == (100, 100, 0, 100)


def test_scores_equal_those_of_sacrebleu():
    scores = score(WRONG, RIGHT)
    assert scores.bleu == pytest.approx(sacrebleu.corpus_bleu(WRONG, [RIGHT]).score)
    assert scores.chrf == pytest.approx(sacrebleu.corpus_chrf(WRONG, [RIGHT]).score)
    assert scores.ter == pytest.approx(sacrebleu.corpus_ter(WRONG, [RIGHT]).score)
    assert scores.exact == 25
    assert 0 < scores.bleu < 100
    assert 0 < scores.ter < 100


def test_every_score_has_its_signature():
    scores = score(WRONG, RIGHT)
    assert set(scores.signatures) == {"bleu", "chrf", "ter"}
    assert all(f"version:{sacrebleu.__version__}" in each for each in scores.signatures.values())
    assert "tok:13a" in scores.signatures["bleu"]
    for line, name in zip(scores.lines(), scores.signatures, strict=False):
        assert scores.signatures[name] in line


def test_ter_is_optional():
    scores = score(WRONG, RIGHT, ter=False)
    assert scores.ter is None
    assert "ter" not in scores.signatures
    assert not any(line.startswith("TER") for line in scores.lines())


def test_hangul_and_spaces_are_normalised():
    typed = [unicodedata.normalize("NFD", text).replace(" ", "  ") + " " for text in RIGHT]
    assert typed != RIGHT
    assert score(RIGHT, typed) == score(RIGHT, RIGHT)


@pytest.mark.parametrize(
    ("language", "expected"),
    [("", "13a"), ("de", "13a"), ("ko", "13a"), ("zh", "zh"), ("zh-Hant", "zh"), ("zh_CN", "zh"), ("th", "char")],
)
def test_the_tokenizer_fits_the_language(language, expected):
    assert bleu_tokenizer(language) == expected


def test_japanese_uses_mecab_if_it_is_installed(monkeypatch):
    monkeypatch.setattr("softgaze.metrics.find_spec", lambda name: None)
    assert bleu_tokenizer("ja") == "char"
    monkeypatch.setattr("softgaze.metrics.find_spec", lambda name: object())
    assert bleu_tokenizer("ja") == "ja-mecab"


def test_chinese_is_compared_by_characters():
    """One wrong character of ten must not count as a whole wrong sentence."""
    near, right = ["今天我要去学校看书学习吧"], ["今天我要去学校看书学习了"]
    assert score(near, right, language="zh").bleu > 50
    assert score(near, right, language="de").bleu < 1
    assert score(near, right, language="zh").ter < 20


def test_to_dict_is_json():
    scores = score(WRONG, RIGHT)
    assert Scores(**json.loads(json.dumps(scores.to_dict()))) == scores


@pytest.mark.parametrize(("text", "language"), [("개", "ko"), ("the small dog runs.", "en"), ("犬が走る", "ja")])
def test_a_short_sentence_has_scores(text, language):
    assert sentence_scores(text, text, language=language) == {"bleu": 100.0, "chrf": 100.0}
    assert max(sentence_scores("x", text, language=language).values()) < 10
    assert sentence_scores("", text, language=language)["chrf"] == 0


@pytest.mark.parametrize(("hypotheses", "references"), [([], []), (["a"], []), (["a"], ["a", "b"])])
def test_unequal_or_empty_lists_are_an_error(hypotheses, references):
    with pytest.raises(ValueError, match="as many translations as references"):
        score(hypotheses, references)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), min_size=1, max_size=4), st.sampled_from(["", "zh"])
)
def test_any_text_can_be_scored(pairs, language):
    hypotheses, references = zip(*pairs, strict=True)
    scores = score(hypotheses, references, language=language)
    assert 0 <= scores.bleu <= 100.001
    assert 0 <= scores.exact <= 100
    assert scores.sentences == len(pairs)

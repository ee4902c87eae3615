"""Captions against several references each: what sacreBLEU says itself, and what must hold of all scores together."""

import pytest
from sacrebleu.metrics.bleu import BLEU

from softgaze.evaluation.captioning import TITLES, score_captions
from softgaze.metrics import score

CAPTIONS = ["A dog runs across the grass.", "two cats sleep on a red sofa", "개 한 마리가 달린다"]
REFERENCES = [
    ["a dog runs across the green grass", "A brown dog is running.", "dog on grass"],
    ["Two cats are asleep on a sofa."],
    ["개 한 마리가 달린다", "달리는 개"],
]


def test_bleu_is_that_of_sacrebleu():
    sets = [[own[place] if place < len(own) else None for own in REFERENCES] for place in range(3)]
    found = score_captions(CAPTIONS, REFERENCES)
    for size in (1, 2, 3, 4):
        bleu = BLEU(lowercase=True, max_ngram_order=size)
        assert found.values[f"bleu_{size}"] == pytest.approx(bleu.corpus_score(CAPTIONS, sets).score)
        assert found.signatures[f"bleu_{size}"] == str(bleu.get_signature())
    assert "nrefs:var" in found.signatures["bleu_4"]


def test_with_one_reference_bleu_4_and_exact_are_those_of_translations():
    written, wanted = ["a dog runs home now", "two cats"], ["a dog runs home today", "two cats"]
    found, other = score_captions(written, [[each] for each in wanted]), score(written, wanted, ter=False)
    assert (found.values["bleu_4"], found.exact) == (pytest.approx(other.bleu), other.exact)


def test_right_captions_have_the_highest_scores():
    found = score_captions([own[0] for own in REFERENCES[:2]], [own[:1] for own in REFERENCES[:2]])
    wanted = {name: 1000 if name == "cider" else 100 for name in TITLES}
    assert found.values == pytest.approx(wanted)
    assert found.exact == 100


def test_case_and_punctuation_change_neither_cider_nor_rouge():
    plain = score_captions(["a dog runs", "two cats"], [["a dog runs"], ["two cats sleep"]])
    fancy = score_captions(["A dog, runs!", "Two cats."], [["a dog runs."], ["TWO “cats” sleep"]])
    for name in ("cider", "rouge_l"):
        assert plain.values[name] == pytest.approx(fancy.values[name])


def test_a_script_without_spaces_is_cut_into_characters():
    found = score_captions(["一只狗在跑", "两只猫"], [["一只狗在跑步"], ["两只猫"]], language="zh")
    assert 50 < found.values["rouge_l"] < 100
    assert "tok:zh" in found.signatures["cider"]


def test_every_score_has_a_line_with_its_signature():
    found = score_captions(CAPTIONS, REFERENCES)
    lines = found.lines()
    assert [line.split()[0] for line in lines] == [*TITLES.values(), "exact"]
    assert all(found.signatures[name] in line for name, line in zip(TITLES, lines, strict=False))
    assert lines[-1].endswith("1 of 3 captions equal a reference")
    assert found.to_dict()["references"] == 6


def test_nothing_written_is_scored_as_nothing():
    found = score_captions(["", ""], [["a dog"], ["a cat"]])
    assert set(found.values.values()) == {0.0}


@pytest.mark.parametrize(("captions", "references"), [([], []), (["a"], []), (["a"], [[]])])
def test_captions_without_references_are_refused(captions, references):
    with pytest.raises(ValueError, match="as many sets of references"):
        score_captions(captions, references)

"""Alignments of pairs: one line each, from one model or two, with the map that was stored or measured."""

import pytest
import torch

from bundles import tokenizer
from planted import Planted
from softgaze.bundle import Tokenizers
from softgaze.errors import UsageError
from softgaze.gaze import Alignment, Choice, Passage, View
from softgaze.gaze.aligner import Aligner
from softgaze.gaze.choice import Looker
from softgaze.models import build

TOKENIZERS = Tokenizers(tokenizer(), tokenizer())
PAIRS = [("the dog runs.", "개 달려요."), ("", "개"), ("a cat", ""), ("a small red cat", "작은 고양이")]


def looker(arch="transformer", choice=None, seed=0, tokenizers=TOKENIZERS):
    torch.manual_seed(seed)
    return Looker(build(arch, source_vocabulary=len(tokenizers.source), width=16).eval(), tokenizers, choice)


def test_every_pair_has_its_alignment_and_every_word_one_link():
    found = Aligner(looker()).align(PAIRS)
    assert len(found) == len(PAIRS)
    assert found[1] == found[2] == Alignment()
    for (source, target), alignment in zip(PAIRS, found, strict=True):
        if source and target:
            assert [link[1] for link in sorted(alignment, key=lambda link: link[1])] == [*range(len(target.split()))]
            assert all(one < len(source.split()) for one, _ in alignment)


def test_links_with_a_reverse_model_are_joined_in_this_order_of_languages():
    one, other = looker(seed=0), looker(seed=1)
    own = Aligner(one).align(PAIRS)
    theirs = Aligner(other).align([(target, source) for source, target in PAIRS])
    for method, join in {"intersection": Alignment.__and__, "union": Alignment.__or__}.items():
        joined = Aligner(one, other, method).align(PAIRS)
        assert joined == [join(first, second.turned()) for first, second in zip(own, theirs, strict=True)]


def test_a_stored_choice_is_kept_and_a_missing_one_is_measured():
    stored = Choice(View(layer=1, head=1), 0.5, "test", 3)
    assert Aligner(looker(choice=stored)).measured(PAIRS).forward.choice is stored
    long = ("a small red cat sees the old tree", "작은 고양이 나무 봐요")
    planted = Looker(Planted(Passage.of(*long, TOKENIZERS), len(tokenizer()), honest=(0, 1)), TOKENIZERS)
    found = Aligner(planted).measured([long]).forward.choice
    assert (found.view.layer, found.view.head) == (0, 1)


def test_with_a_reverse_model_both_maps_are_chosen_by_agreement_whatever_was_stored():
    stored = Choice(View(layer=1, head=1), 0.5, "test", 3)
    aligner = Aligner(looker(choice=stored), looker(seed=1)).measured(PAIRS)
    assert "agreement" in aligner.forward.choice.by
    assert aligner.forward.choice.score == aligner.reverse.choice.score


def test_nothing_to_measure_on_leaves_everything_as_it_was():
    assert Aligner(looker()).measured([("", "")]).forward.choice is None
    assert Aligner(looker(), looker()).measured([("", "")]).forward.choice is None


@pytest.mark.parametrize("wrong", [{"method": "join"}, {"threshold": 0.0}, {"threshold": 2.0}])
def test_what_cannot_work_is_refused_at_once(wrong):
    with pytest.raises(UsageError):
        Aligner(looker(), **wrong)


def test_models_that_cut_unspaced_text_differently_cannot_be_joined():
    from softgaze.data.tokens import train_tokenizer

    other = train_tokenizer(["我爱北京", "北京天安门", "爱天安门"] * 20)
    pairs = [("the dog", "我爱北京天安门")]
    with pytest.raises(UsageError, match="pair 1: the two models cut"):
        Aligner(looker(), looker(tokenizers=Tokenizers(other, other))).align(pairs)

"""Counts add up to the scores of sacreBLEU itself, whatever is added."""

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from evaluation.systems import noisy, sentences
from softgaze.evaluation.significance import bleu, chrf, count_ngrams
from softgaze.metrics import score

REFERENCES = sentences()
HYPOTHESES = noisy(REFERENCES, 0.3)
STATS = count_ngrams(HYPOTHESES, REFERENCES)


def test_summed_counts_score_as_sacrebleu_does():
    assert STATS.score("bleu") == pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score, abs=1e-9)
    assert STATS.score("chrf") == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score, abs=1e-9)
    assert 20 < STATS.score("bleu") < 80


def test_scores_and_signatures_are_those_of_metrics():
    written, expected = ["今天我要去学校  看书"], ["今天我要去学校看书吧"]
    stats, scored = count_ngrams(written, expected, language="zh"), score(written, expected, language="zh", ter=False)
    assert (stats.score("bleu"), stats.score("chrf")) == pytest.approx((scored.bleu, scored.chrf))
    assert stats.signatures == scored.signatures


@given(members=st.lists(st.integers(0, len(REFERENCES) - 1), min_size=1, max_size=20))
@settings(deadline=None, max_examples=10)
def test_any_subset_scores_as_its_own_test_set(members):
    part = STATS.subset(members)
    chosen = [HYPOTHESES[each] for each in members], [REFERENCES[each] for each in members]
    assert part.sentences == len(members)
    alone = score(*chosen, ter=False)
    assert (part.score("bleu"), part.score("chrf")) == pytest.approx((alone.bleu, alone.chrf), abs=1e-9)


small, some = st.integers(0, 6), st.integers(1, 6)


@given(lengths=st.tuples(some, some), pairs=st.lists(st.tuples(small, small), min_size=4, max_size=4))
def test_bleu_is_that_of_sacrebleu_however_few_ngrams_match(lengths, pairs):
    right, every = [min(pair) for pair in pairs], [max(pair) for pair in pairs]
    expected = BLEU.compute_bleu(list(right), list(every), *lengths, smooth_method="exp").score
    assert bleu(np.array([*lengths, *right, *every], float)) == pytest.approx(expected, abs=1e-9)


@given(orders=st.lists(st.tuples(small, small, small), min_size=6, max_size=6))
def test_chrf_is_that_of_sacrebleu_however_few_ngrams_match(orders):
    flat = [
        number for written, expected, both in orders for number in (written, expected, min(written, expected, both))
    ]
    assert chrf(np.array(flat, float)) == pytest.approx(CHRF()._compute_f_score(flat), abs=1e-9)


@pytest.mark.parametrize(("hypotheses", "references"), [([], []), (["a"], ["a", "b"])])
def test_texts_without_matching_references_are_rejected(hypotheses, references):
    with pytest.raises(ValueError, match="cannot be scored"):
        count_ngrams(hypotheses, references)

"""Our tests draw what sacreBLEU's draw; systems that are equally good are seldom found to differ, equal ones never."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.significance import PairedTest

from evaluation.systems import noisy, sentences
from softgaze.evaluation import significance
from softgaze.evaluation.significance import (
    NgramStats,
    blocks,
    confidence_interval,
    count_ngrams,
    difference,
    estimate,
    p_value,
    resample,
    signature,
    swapped_differences,
)
from softgaze.metrics import bleu_and_chrf

REFERENCES = sentences()
GOOD, WORSE, LIKE_WORSE = noisy(REFERENCES, 0.2), noisy(REFERENCES, 0.4), noisy(REFERENCES, 0.4, seed=8)
STATS = {name: count_ngrams(texts, REFERENCES) for name, texts in (("good", GOOD), ("worse", WORSE))}
STATS["like worse"] = count_ngrams(LIKE_WORSE, REFERENCES)
NAMES = ("bleu", "chrf")


@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_draws_p_values_and_signatures_are_those_of_sacrebleu(kind, monkeypatch):
    """Not only within noise: with the same seed the same sets are drawn, and its p-values follow from ours."""
    monkeypatch.setattr(significance, "TRIALS", 1000)
    pair = STATS["worse"], STATS["like worse"]
    systems = [("worse", WORSE), ("like worse", LIKE_WORSE)]
    signatures, result = PairedTest(systems, bleu_and_chrf(), [REFERENCES], test_type=kind, n_samples=1000)()
    for name, theirs in zip(NAMES, ("BLEU", "chrF2"), strict=True):
        ours = difference(*pair, name)
        mine = as_sacrebleu(*pair, name) if kind == "bs" else ours.randomisation_p
        assert mine == pytest.approx(result[theirs][1].p_value, abs=0.003)  # it sums in half our precision
        assert 0.05 < mine < 1
        assert ours.score == pytest.approx(result[theirs][0].score - result[theirs][1].score)
        for part in str(signatures[theirs]).split("|"):
            assert part in signature(pair[0], name, paired=True).split("|")


def as_sacrebleu(one, other, name):
    """Its p-value of the paired bootstrap, from the sets we draw."""
    sizes = np.abs(resample(one, name) - resample(other, name))
    return p_value(sizes - sizes.mean(), one.score(name) - other.score(name))


def null_pairs(count, size=100):
    """Two systems by turns of luck: of a few sentences each, every translation is one's or the other's at random."""
    references = sentences(500, seed=3)
    both = [count_ngrams(noisy(references, 0.4, seed=seed), references).stats["bleu"] for seed in (4, 5)]
    rng = np.random.default_rng(6)
    for _ in range(count):
        chosen = rng.choice(len(references), size, replace=False)
        turned = rng.integers(2, size=(size, 1), dtype=bool)
        parts = both[0][chosen], both[1][chosen]
        yield [NgramStats({"bleu": np.where(turned ^ end, *parts)}, {}) for end in (False, True)]


def test_p_values_of_equally_good_systems_are_calibrated(monkeypatch):
    """By sacreBLEU's form of the bootstrap it is more than twice as many, which is why ours is another."""
    monkeypatch.setattr(significance, "TRIALS", 1000)
    pairs = list(null_pairs(300))
    result = [difference(*pair, "bleu") for pair in pairs]
    for kind in ("bootstrap_p", "randomisation_p"):
        assert 0.03 < np.mean([getattr(each, kind) < 0.05 for each in result]) < 0.075, kind
    assert np.mean([as_sacrebleu(*pair, "bleu") < 0.05 for pair in pairs]) > 0.09


@pytest.mark.parametrize("name", NAMES)
def test_a_clear_difference_survives_a_correction_for_many_pairs(name):
    result = difference(STATS["good"], STATS["worse"], name)
    models = 20
    assert max(result.bootstrap_p, result.randomisation_p) * models * (models - 1) / 2 < 0.05


def test_more_draws_begin_with_the_same():
    whole = resample(STATS["good"], "bleu", draws=3000)
    assert whole[: significance.RESAMPLES] == pytest.approx(resample(STATS["good"], "bleu"), abs=1e-9)


def test_too_few_sentences_are_never_significant():
    enough, few = (
        [STATS[each].subset(range(count)) for each in TURNED[0]]
        for count in (significance.MIN_SENTENCES, significance.MIN_SENTENCES - 1)
    )
    assert difference(*enough, "chrf").is_significant
    result = difference(*few, "chrf")
    assert max(result.bootstrap_p, result.randomisation_p) < 0.05
    assert not result.is_tested
    assert not result.is_significant


@pytest.mark.parametrize("name", NAMES)
def test_confidence_intervals_are_those_of_sacrebleu(name):
    metric = bleu_and_chrf()[name]
    theirs = metric.corpus_score(GOOD, [REFERENCES], n_bootstrap=1000)
    ours = estimate(STATS["good"], name)
    assert (ours.high - ours.low) / 2 == pytest.approx(theirs._ci, rel=0.03)
    assert ours.low < ours.score < ours.high


@pytest.mark.parametrize("name", NAMES)
def test_a_system_does_not_differ_from_itself(name):
    result = difference(STATS["good"], STATS["good"], name)
    assert (result.score, result.low, result.high) == (0, 0, 0)
    assert (result.bootstrap_p, result.randomisation_p) == (1, 1)
    assert not result.is_significant


@pytest.mark.parametrize("name", NAMES)
def test_a_clear_difference_is_significant_and_antisymmetric(name):
    result, turned = (difference(STATS[one], STATS[other], name) for one, other in TURNED)
    assert result.is_significant
    assert result.low > 0
    assert (turned.score, turned.low, turned.high) == pytest.approx((-result.score, -result.high, -result.low))
    assert (turned.bootstrap_p, turned.randomisation_p) == (result.bootstrap_p, result.randomisation_p)


TURNED = [("good", "worse"), ("worse", "good")]


@given(members=st.lists(st.integers(0, len(REFERENCES) - 1), min_size=1, max_size=12))
@settings(deadline=None, max_examples=8)
def test_a_confidence_interval_holds_its_score_however_few_the_sentences(members):
    for name in NAMES:
        one, other = (STATS[each].subset(members) for each in TURNED[0])
        result = estimate(one, name)
        assert 0 <= result.low <= result.score <= result.high <= 100.001
        apart = difference(one, other, name)
        assert apart.low <= apart.score <= apart.high
        assert 0 < min(apart.bootstrap_p, apart.randomisation_p) <= 1


@pytest.mark.parametrize(("result", "expected"), [(5.0, (5.0, 5.0)), (3.0, (3.0, 5.0)), (8.0, (5.0, 8.0))])
def test_the_confidence_interval_always_contains_the_score(result, expected):
    assert confidence_interval(np.full(100, 5.0), result) == expected


def test_the_block_size_changes_no_number(monkeypatch):
    pair = STATS["good"], STATS["worse"]
    whole = resample(pair[0], "bleu"), swapped_differences(*pair, "bleu")
    monkeypatch.setattr(significance, "blocks", lambda total, width: blocks(total, width, 64 * width + 5))
    for all_at_once, in_parts in zip(
        whole, (resample(pair[0], "bleu"), swapped_differences(*pair, "bleu")), strict=True
    ):
        assert in_parts == pytest.approx(all_at_once, abs=1e-9)


@given(total=st.integers(0, 5000), width=st.integers(1, 10**7))
def test_blocks_are_bounded_and_add_up(total, width):
    sizes = list(blocks(total, width))
    assert sum(sizes) == total
    assert all(size <= 32 or size * width <= significance.BLOCK for size in sizes)


def test_another_seed_draws_other_sets():
    assert estimate(STATS["good"], "bleu", seed=1) != estimate(STATS["good"], "bleu")
    assert estimate(STATS["good"], "bleu", seed=1) == estimate(STATS["good"], "bleu", seed=1)


def test_different_test_sets_are_rejected():
    with pytest.raises(ValueError, match="cannot be compared"):
        difference(STATS["good"], STATS["good"].subset([0]), "bleu")

"""Our tests of significance say what sacreBLEU's say, and equal systems are never found to differ."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.significance import PairedTest

from evaluation.systems import noisy, sentences
from softgaze.evaluation import significance
from softgaze.evaluation.counts import count_system
from softgaze.evaluation.significance import band, blocks, difference, estimate, resampled, signature, swapped
from softgaze.metrics import bleu_and_chrf

REFERENCES = sentences()
GOOD, WORSE, LIKE_WORSE = noisy(REFERENCES, 0.2), noisy(REFERENCES, 0.4), noisy(REFERENCES, 0.4, seed=8)
COUNTED = {name: count_system(texts, REFERENCES) for name, texts in (("good", GOOD), ("worse", WORSE))}
COUNTED["like worse"] = count_system(LIKE_WORSE, REFERENCES)
NAMES = ("bleu", "chrf")


@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_p_values_and_signatures_are_those_of_sacrebleu(kind, monkeypatch):
    """Not only within noise: with the same seed the same sets are drawn."""
    monkeypatch.setattr(significance, "TRIALS", 1000)
    pair = COUNTED["worse"], COUNTED["like worse"]
    systems = [("worse", WORSE), ("like worse", LIKE_WORSE)]
    signatures, found = PairedTest(systems, bleu_and_chrf(), [REFERENCES], test_type=kind, n_samples=1000)()
    for name, theirs in zip(NAMES, ("BLEU", "chrF2"), strict=True):
        ours = difference(*pair, name)
        mine = ours.bootstrap_p if kind == "bs" else ours.randomisation_p
        assert mine == pytest.approx(found[theirs][1].p_value, abs=0.003)  # it sums in half our precision
        assert 0.05 < mine < 1
        assert ours.score == pytest.approx(found[theirs][0].score - found[theirs][1].score)
        for part in str(signatures[theirs]).split("|"):
            assert part in signature(pair[0], name, paired=True).split("|")


@pytest.mark.parametrize("name", NAMES)
def test_bands_are_those_of_sacrebleu(name):
    metric = bleu_and_chrf()[name]
    theirs = metric.corpus_score(GOOD, [REFERENCES], n_bootstrap=1000)
    ours = estimate(COUNTED["good"], name)
    assert (ours.high - ours.low) / 2 == pytest.approx(theirs._ci, rel=0.03)
    assert ours.low < ours.score < ours.high


@pytest.mark.parametrize("name", NAMES)
def test_a_system_does_not_differ_from_itself(name):
    found = difference(COUNTED["good"], COUNTED["good"], name)
    assert (found.score, found.low, found.high) == (0, 0, 0)
    assert (found.bootstrap_p, found.randomisation_p) == (1, 1)
    assert not found.is_significant


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_difference_is_found_and_has_two_sides(name):
    found, turned = (difference(COUNTED[one], COUNTED[other], name) for one, other in TURNED)
    assert found.is_significant
    assert found.low > 0
    assert (turned.score, turned.low, turned.high) == pytest.approx((-found.score, -found.high, -found.low))
    assert (turned.bootstrap_p, turned.randomisation_p) == (found.bootstrap_p, found.randomisation_p)


TURNED = [("good", "worse"), ("worse", "good")]


@given(members=st.lists(st.integers(0, len(REFERENCES) - 1), min_size=1, max_size=12))
@settings(deadline=None, max_examples=8)
def test_a_band_holds_its_score_however_few_the_sentences(members):
    for name in NAMES:
        one, other = (COUNTED[each].part(members) for each in TURNED[0])
        found = estimate(one, name)
        assert 0 <= found.low <= found.score <= found.high <= 100.001
        apart = difference(one, other, name)
        assert apart.low <= apart.score <= apart.high
        assert 0 < min(apart.bootstrap_p, apart.randomisation_p) <= 1


@pytest.mark.parametrize(("found", "wanted"), [(5.0, (5.0, 5.0)), (3.0, (3.0, 5.0)), (8.0, (5.0, 8.0))])
def test_a_score_that_luck_never_reaches_is_inside_its_band_too(found, wanted):
    assert band(numpy.full(100, 5.0), found) == wanted


def test_how_much_is_drawn_at_once_changes_nothing(monkeypatch):
    pair = COUNTED["good"], COUNTED["worse"]
    whole = resampled(pair[0], "bleu"), swapped(*pair, "bleu")
    monkeypatch.setattr(significance, "blocks", lambda total, width: blocks(total, width, 64 * width + 5))
    for all_at_once, in_parts in zip(whole, (resampled(pair[0], "bleu"), swapped(*pair, "bleu")), strict=True):
        assert in_parts == pytest.approx(all_at_once, abs=1e-9)


@given(total=st.integers(0, 5000), width=st.integers(1, 10**7))
def test_blocks_are_bounded_and_together_all(total, width):
    sizes = list(blocks(total, width))
    assert sum(sizes) == total
    assert all(size <= 32 or size * width <= significance.BLOCK for size in sizes)


def test_another_seed_draws_other_sets():
    assert estimate(COUNTED["good"], "bleu", seed=1) != estimate(COUNTED["good"], "bleu")
    assert estimate(COUNTED["good"], "bleu", seed=1) == estimate(COUNTED["good"], "bleu", seed=1)


def test_different_test_sets_are_not_compared():
    with pytest.raises(ValueError, match="cannot be compared"):
        difference(COUNTED["good"], COUNTED["good"].part([0]), "bleu")

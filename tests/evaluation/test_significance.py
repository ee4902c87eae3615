"""Our tests draw what sacreBLEU's draw; systems that are equally good are seldom found to differ, equal ones never."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.significance import PairedTest

from evaluation.systems import noisy, sentences
from softgaze.evaluation import significance
from softgaze.evaluation.buckets import LEAST
from softgaze.evaluation.counts import SystemCounts, count_system
from softgaze.evaluation.significance import band, blocks, difference, estimate, p_value, resampled, signature, swapped
from softgaze.metrics import bleu_and_chrf

REFERENCES = sentences()
GOOD, WORSE, LIKE_WORSE = noisy(REFERENCES, 0.2), noisy(REFERENCES, 0.4), noisy(REFERENCES, 0.4, seed=8)
COUNTED = {name: count_system(texts, REFERENCES) for name, texts in (("good", GOOD), ("worse", WORSE))}
COUNTED["like worse"] = count_system(LIKE_WORSE, REFERENCES)
NAMES = ("bleu", "chrf")


@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_what_is_drawn_and_signed_is_what_sacrebleu_draws_and_signs(kind, monkeypatch):
    """Not only within noise: with the same seed the same sets are drawn, and its p-values follow from ours."""
    monkeypatch.setattr(significance, "TRIALS", 1000)
    pair = COUNTED["worse"], COUNTED["like worse"]
    systems = [("worse", WORSE), ("like worse", LIKE_WORSE)]
    signatures, found = PairedTest(systems, bleu_and_chrf(), [REFERENCES], test_type=kind, n_samples=1000)()
    for name, theirs in zip(NAMES, ("BLEU", "chrF2"), strict=True):
        ours = difference(*pair, name)
        mine = as_sacrebleu(*pair, name) if kind == "bs" else ours.randomisation_p
        assert mine == pytest.approx(found[theirs][1].p_value, abs=0.003)  # it sums in half our precision
        assert 0.05 < mine < 1
        assert ours.score == pytest.approx(found[theirs][0].score - found[theirs][1].score)
        for part in str(signatures[theirs]).split("|"):
            assert part in signature(pair[0], name, paired=True).split("|")


def as_sacrebleu(one, other, name):
    """Its p-value of the paired bootstrap, from the sets we draw."""
    sizes = numpy.abs(resampled(one, name) - resampled(other, name))
    return p_value(sizes - sizes.mean(), one.score(name) - other.score(name))


def null_pairs(count, size=100):
    """Two systems by turns of luck: of a few sentences each, every translation is one's or the other's at random."""
    references = sentences(500, seed=3)
    both = [count_system(noisy(references, 0.4, seed=seed), references).counts["bleu"] for seed in (4, 5)]
    dice = numpy.random.default_rng(6)
    for _ in range(count):
        chosen = dice.choice(len(references), size, replace=False)
        turned = dice.integers(2, size=(size, 1), dtype=bool)
        parts = both[0][chosen], both[1][chosen]
        yield [SystemCounts({"bleu": numpy.where(turned ^ end, *parts)}, {}) for end in (False, True)]


def test_of_equally_good_systems_one_pair_in_twenty_seems_to_differ(monkeypatch):
    """By sacreBLEU's form of the bootstrap it is more than twice as many, which is why ours is another."""
    monkeypatch.setattr(significance, "TRIALS", 1000)
    pairs = list(null_pairs(300))
    found = [difference(*pair, "bleu") for pair in pairs]
    for kind in ("bootstrap_p", "randomisation_p"):
        assert 0.03 < numpy.mean([getattr(each, kind) < 0.05 for each in found]) < 0.075, kind
    assert numpy.mean([as_sacrebleu(*pair, "bleu") < 0.05 for pair in pairs]) > 0.09


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_difference_stays_plain_when_corrected_for_many_pairs(name):
    found = difference(COUNTED["good"], COUNTED["worse"], name)
    models = 20
    assert max(found.bootstrap_p, found.randomisation_p) * models * (models - 1) / 2 < 0.05


def test_more_draws_begin_with_the_same():
    whole = resampled(COUNTED["good"], "bleu", draws=3000)
    assert whole[: significance.RESAMPLES] == pytest.approx(resampled(COUNTED["good"], "bleu"), abs=1e-9)


def test_of_too_few_sentences_nothing_is_claimed():
    enough, few = ([COUNTED[each].part(range(count)) for each in TURNED[0]] for count in (LEAST, LEAST - 1))
    assert difference(*enough, "chrf").is_significant
    found = difference(*few, "chrf")
    assert max(found.bootstrap_p, found.randomisation_p) < 0.05
    assert not found.is_tested
    assert not found.is_significant


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

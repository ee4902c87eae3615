"""Whether a score, or a difference of two, is more than the luck of the sentences that happened to be in the test set.

Bands and the first test resample the sentences (bootstrap; Koehn 2004), the second swaps the two systems' translations
at random (approximate randomisation; Riezler & Maxwell 2005). Random numbers are drawn as sacreBLEU draws them, so with
its seed the resampled sets are its own. Two things differ. What is as large as the difference that was found counts
against it, too, so that two equal systems have p = 1 and not the least p there is. And sacreBLEU's bootstrap asks for
|luck| − mean |luck| where ours asks for |luck − mean luck|: taking away the mean of sizes makes every size smaller, so
that of systems which are equally good far more than 5 in 100 pairs get p < 0.05 (a test measures it), and its p-values
are smaller than ours.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from softgaze.evaluation.buckets import LEAST
from softgaze.evaluation.counts import SCORES, Counts, SystemCounts, Values

SEED = 12345  # sacreBLEU's
RESAMPLES, TRIALS = 1000, 10_000  # of the bootstrap and of the randomisation
FINER = 10_000  # resamples where luck is never so large in 1,000: the least p, times 55 pairs, must not be 0.05
BAND = 95  # per cent of resampled scores that are inside
BLOCK = 1 << 22  # random numbers drawn at once: memory does not grow with the test set
SAME = 1e-9  # scores that differ by less do so through rounding


@dataclass(frozen=True)
class Estimate:
    """A score and the band that holds it in 95 of 100 resampled test sets."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """How much better the first system is than the other, on the same sentences."""

    score: float
    low: float
    high: float
    bootstrap_p: float
    randomisation_p: float
    is_tested: bool = True  # whether there were sentences enough to claim anything

    @property
    def is_significant(self) -> bool:
        """Whether both tests say so, at 0.05."""
        return self.is_tested and max(self.bootstrap_p, self.randomisation_p) < 0.05


def signature(counted: SystemCounts, name: str, *, paired: bool = False) -> str:
    """sacreBLEU's, with how often was resampled at least and from which seed; the version stays last."""
    front, _, version = counted.signatures[name].rpartition("|")
    first, _, rest = front.partition("|")
    trials = f"|ar:{TRIALS}" if paired else ""
    return f"{first}|bs:{RESAMPLES}{trials}|seed:{SEED}|{rest}|{version}"


def estimate(counted: SystemCounts, name: str, seed: int = SEED) -> Estimate:
    """One system's score, with its band."""
    return Estimate(counted.score(name), *band(resampled(counted, name, seed), counted.score(name)))


def difference(one: SystemCounts, other: SystemCounts, name: str, seed: int = SEED) -> Difference:
    """One system's score less the other's, with its band and how likely luck alone would make it so large."""
    if one.sentences != other.sentences:
        raise ValueError(f"{one.sentences} translations cannot be compared with {other.sentences}")
    found = one.score(name) - other.score(name)
    luck = resampled_differences(one, other, name, seed)
    low, high = band(luck, found)
    bootstrap_p = p_value(centred(luck), found)
    if bootstrap_p < 1 / RESAMPLES:  # not once: how seldom it is, more draws can tell
        bootstrap_p = p_value(centred(resampled_differences(one, other, name, seed, FINER)), found)
    randomisation_p = p_value(swapped(one, other, name, seed), found)
    return Difference(found, low, high, bootstrap_p, randomisation_p, one.sentences >= LEAST)


def resampled_differences(
    one: SystemCounts, other: SystemCounts, name: str, seed: int, draws: int = RESAMPLES
) -> Values:
    """Of two systems on the same resampled sets, since the seed is the same; (draws,)."""
    return resampled(one, name, seed, draws) - resampled(other, name, seed, draws)


def centred(luck: Values) -> Values:
    """How far each resampled difference is from the usual one: what luck does where there is no difference."""
    sizes: Values = numpy.abs(luck - luck.mean())
    return sizes


def band(luck: Values, found: float) -> tuple[float, float]:
    """Between these are 95 % of the resampled values; the value itself is always inside, however few the sentences."""
    rest = (100 - BAND) / 2
    low, high = numpy.percentile(luck, [rest, 100 - rest])
    return float(min(low, found)), float(max(high, found))


def p_value(luck: Values, found: float) -> float:
    """The share of lucky values that are at least as large, the one that was found among them."""
    return (int((luck >= abs(found) - SAME).sum()) + 1) / (len(luck) + 1)


def resampled(counted: SystemCounts, name: str, seed: int = SEED, draws: int = RESAMPLES) -> Values:
    """The scores of test sets drawn from these sentences with replacement; (draws,)."""
    counts = counted.counts[name]
    dice = numpy.random.default_rng(seed)

    def draw(rows: int) -> NDArray[numpy.float64]:
        """How often each sentence is in each set, (rows, N)."""
        chosen = dice.integers(0, len(counts), size=(rows, len(counts)))
        shifted = chosen + len(counts) * numpy.arange(rows)[:, None]
        times = numpy.bincount(shifted.ravel(), minlength=rows * len(counts))
        return times.reshape(rows, len(counts)).astype(numpy.float64)

    sums = [draw(rows) @ counts for rows in blocks(draws, len(counts))]
    return SCORES[name](numpy.concatenate(sums))


def swapped(one: SystemCounts, other: SystemCounts, name: str, seed: int = SEED) -> Values:
    """Sizes of the difference where each sentence's translations are swapped or not at random; (TRIALS,)."""
    mine, theirs = one.counts[name], other.counts[name]
    dice = numpy.random.default_rng(seed)
    both = mine.sum(axis=0) + theirs.sum(axis=0)
    kept: list[Counts] = []
    for rows in blocks(TRIALS, len(mine)):
        keep = dice.integers(2, size=(rows, len(mine)), dtype=bool).astype(numpy.float64)
        kept.append(theirs.sum(axis=0) + keep @ (mine - theirs))
    sums = numpy.concatenate(kept)
    sizes: Values = numpy.abs(SCORES[name](sums) - SCORES[name](both - sums))
    return sizes


def blocks(total: int, width: int, most: int = BLOCK) -> Iterator[int]:
    """Rows to draw at once; a multiple of 32, the bits that are drawn together, so that blocks change no number."""
    rows = max(32, most // width // 32 * 32)
    yield from (min(rows, total - start) for start in range(0, total, rows))

"""Confidence intervals of scores, and two paired significance tests.

Confidence intervals and the first test resample sentences (bootstrap; Koehn 2004); the second test swaps the
translations of the two systems at random (approximate randomisation; Riezler & Maxwell 2005). Random numbers are drawn
as in sacreBLEU, so the same seed gives the same resampled sets. Two details differ:

- Ties with the observed difference count as extreme, so identical systems get p = 1 rather than the smallest p.
- sacreBLEU's bootstrap counts |d| − mean |d| over the resampled differences d; this one counts |d − mean d|.
  Subtracting the mean of absolute values makes every value smaller: of equally good systems, far more than 5 % of pairs
  then get p < 0.05 (a test measures it).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from softgaze.evaluation.ngram_stats import SCORES, Array, NgramStats

SEED = 12345  # sacreBLEU's default
RESAMPLES, TRIALS = 1000, 10_000  # of the bootstrap and of the randomisation
MORE_RESAMPLES = 10_000  # where 1,000 resamples give the smallest p: it must survive a correction for 55 pairs
CONFIDENCE = 95  # %
MIN_SENTENCES = 20  # fewer are not tested
BLOCK = 1 << 22  # random numbers drawn at once, so that memory does not grow with the test set
ROUNDING = 1e-9  # scores that differ by less are equal


@dataclass(frozen=True)
class Estimate:
    """A score with its 95 % confidence interval."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """The score of one system minus that of another on the same sentences."""

    score: float
    low: float
    high: float
    bootstrap_p: float
    randomisation_p: float
    is_tested: bool = True  # whether there are at least MIN_SENTENCES sentences

    @property
    def p(self) -> float:
        """The larger p-value of both tests."""
        return max(self.bootstrap_p, self.randomisation_p)

    @property
    def is_significant(self) -> bool:
        return self.is_tested and self.p < 0.05


def signature(system: NgramStats, metric: str, *, paired: bool = False) -> str:
    """Return sacreBLEU's signature with the number of resamples and the seed; the version stays last."""
    front, _, version = system.signatures[metric].rpartition("|")
    first, _, rest = front.partition("|")
    trials = f"|ar:{TRIALS}" if paired else ""
    return f"{first}|bs:{RESAMPLES}{trials}|seed:{SEED}|{rest}|{version}"


def estimate(system: NgramStats, metric: str, seed: int = SEED) -> Estimate:
    """Score a system, with a confidence interval."""
    score = system.score(metric)
    return Estimate(score, *confidence_interval(resample(system, metric, seed), score))


def difference(one: NgramStats, other: NgramStats, metric: str, seed: int = SEED) -> Difference:
    """Compare two systems on the same sentences."""
    if one.sentences != other.sentences:
        raise ValueError(f"{one.sentences} translations cannot be compared with {other.sentences}")
    observed = one.score(metric) - other.score(metric)

    def resampled_differences(draws: int = RESAMPLES) -> Array:
        return resample(one, metric, seed, draws) - resample(other, metric, seed, draws)

    differences = resampled_differences()
    low, high = confidence_interval(differences, observed)
    bootstrap_p = p_value(np.abs(differences - differences.mean()), observed)
    if bootstrap_p < 1 / RESAMPLES:  # never reached: more draws give a finer p
        differences = resampled_differences(MORE_RESAMPLES)
        bootstrap_p = p_value(np.abs(differences - differences.mean()), observed)
    randomisation_p = p_value(swapped_differences(one, other, metric, seed), observed)
    return Difference(observed, low, high, bootstrap_p, randomisation_p, one.sentences >= MIN_SENTENCES)


def confidence_interval(samples: Array, observed: float) -> tuple[float, float]:
    """Return the percentiles that hold 95 % of the samples, widened to contain the observed value."""
    tail = (100 - CONFIDENCE) / 2
    low, high = np.percentile(samples, [tail, 100 - tail])
    return float(min(low, observed)), float(max(high, observed))


def p_value(samples: Array, observed: float) -> float:
    """Return the share of samples at least as large as |observed|, which itself counts as one."""
    return (int((samples >= abs(observed) - ROUNDING).sum()) + 1) / (len(samples) + 1)


def resample(system: NgramStats, metric: str, seed: int = SEED, draws: int = RESAMPLES) -> Array:
    """Return the scores, (draws,), of test sets drawn from the sentences with replacement."""
    stats = system.stats[metric]
    rng = np.random.default_rng(seed)
    sums = []
    for rows in blocks(draws, len(stats)):
        indices = rng.integers(0, len(stats), size=(rows, len(stats)))
        shifted = indices + len(stats) * np.arange(rows)[:, None]
        counts = np.bincount(shifted.ravel(), minlength=rows * len(stats)).reshape(rows, len(stats))
        sums.append(counts.astype(np.float64) @ stats)
    return SCORES[metric](np.concatenate(sums))


def swapped_differences(one: NgramStats, other: NgramStats, metric: str, seed: int = SEED) -> Array:
    """Return absolute differences, (TRIALS,), where the translations of each sentence are swapped at random."""
    ours, theirs = one.stats[metric], other.stats[metric]
    rng = np.random.default_rng(seed)
    sums = []
    for rows in blocks(TRIALS, len(ours)):
        keep = rng.integers(2, size=(rows, len(ours)), dtype=bool).astype(np.float64)
        sums.append(theirs.sum(axis=0) + keep @ (ours - theirs))
    first = np.concatenate(sums)
    second = ours.sum(axis=0) + theirs.sum(axis=0) - first
    differences: Array = np.abs(SCORES[metric](first) - SCORES[metric](second))
    return differences


def blocks(total: int, width: int, max_numbers: int = BLOCK) -> Iterator[int]:
    """Split `total` rows into blocks; multiples of 32, the bits drawn together, so that blocks change no number."""
    rows = max(32, max_numbers // width // 32 * 32)
    yield from (min(rows, total - start) for start in range(0, total, rows))

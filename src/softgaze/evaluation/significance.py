"""Scores from n-gram statistics of each sentence, their confidence intervals, and two paired significance tests.

sacreBLEU counts the n-grams of a sentence once; scoring a thousand resampled test sets then costs a thousand sums. The
formulas are sacreBLEU's, vectorised over arrays of sums; tests hold them equal.

Confidence intervals and the first test resample sentences (bootstrap; Koehn 2004); the second test swaps the
translations of the two systems at random (approximate randomisation; Riezler & Maxwell 2005). Random numbers are drawn
as in sacreBLEU, so the same seed gives the same resampled sets. Two details differ:

- Ties with the observed difference count as extreme, so identical systems get p = 1 rather than the smallest p.
- sacreBLEU's bootstrap counts |d| − mean |d| over the resampled differences d; this one counts |d − mean d|.
  Subtracting the mean of absolute values makes every value smaller: of equally good systems, far more than 5 % of pairs
  then get p < 0.05 (a test measures it).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgaze.data.tokenizer import normalise
from softgaze.metrics import bleu_and_chrf

Array = NDArray[np.float64]

ORDERS = 4  # of BLEU's n-grams
BETA = 2  # weight of recall against precision in chrF
TITLES = {"bleu": "BLEU", "chrf": "chrF"}


@dataclass(frozen=True, eq=False)
class NgramStats:
    """Statistics of one system's translations of a test set."""

    stats: dict[str, Array]  # by metric: (sentences, statistics)
    signatures: dict[str, str]

    @property
    def sentences(self) -> int:
        return len(self.stats["bleu"])

    def score(self, metric: str) -> float:
        """Score all sentences, 0 to 100, as sacreBLEU does."""
        return float(SCORES[metric](self.stats[metric].sum(axis=0)))

    def subset(self, members: Sequence[int]) -> "NgramStats":
        """Select sentences by their index."""
        indices = np.array(members, dtype=int)
        return NgramStats({metric: stats[indices] for metric, stats in self.stats.items()}, self.signatures)


def count_ngrams(hypotheses: Sequence[str], references: Sequence[str], *, language: str = "") -> NgramStats:
    """Compare translations with one reference each; both are normalised first, as in `metrics.score`."""
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} translations cannot be scored against {len(references)} references")
    hypotheses, references = ([normalise(text) for text in texts] for texts in (hypotheses, references))
    metrics = bleu_and_chrf(language)
    stats = {
        # sacreBLEU has no public access to the statistics of single sentences; its own `PairedTest` calls this too.
        name: np.array(metric._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)
        for name, metric in metrics.items()
    }
    return NgramStats(stats, {name: str(metric.get_signature()) for name, metric in metrics.items()})


def bleu(sums: Array) -> Array:
    """Compute BLEU, (…, 10) -> (…), from hypothesis and reference length, then matches and totals of each order.

    Orders without a match count as 1/2, 1/4, … of a match (sacreBLEU's exponential smoothing).
    """
    hypothesis_length, reference_length = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2 : 2 + ORDERS], sums[..., 2 + ORDERS :]
    unmatched = matches == 0
    smoothed = np.where(unmatched, 0.5 ** unmatched.cumsum(axis=-1), matches)
    is_scored = matches.any(axis=-1) & totals.all(axis=-1)  # else 0, and no division by zero below
    log_precision = np.log(smoothed / np.where(totals == 0, 1, totals)).mean(axis=-1)
    log_brevity = np.minimum(0, 1 - reference_length / np.where(hypothesis_length == 0, 1, hypothesis_length))
    scores: Array = np.where(is_scored, 100 * np.exp(log_precision + log_brevity), 0.0)
    return scores


def chrf(sums: Array) -> Array:
    """Compute chrF, (…, 3 × orders) -> (…), from n-grams of hypothesis, reference and both, for each order."""
    hypothesis, reference, matches = (sums[..., kind::3] for kind in range(3))
    is_counted = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(is_counted.sum(axis=-1), 1)
    precision, recall = (
        np.where(is_counted, matches / np.where(is_counted, totals, 1), 0).sum(axis=-1) / orders
        for totals in (hypothesis, reference)
    )
    denominator = BETA**2 * precision + recall
    scores: Array = 100 * (1 + BETA**2) * precision * recall / np.where(denominator == 0, 1, denominator)
    return scores


SCORES: dict[str, Callable[[Array], Array]] = {"bleu": bleu, "chrf": chrf}


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

"""Per-sentence n-gram statistics of BLEU and chrF, which sum to the score of any set of sentences.

sacreBLEU counts the n-grams once; scoring a thousand resampled test sets then costs a thousand sums. The formulas are
sacreBLEU's, vectorised over arrays of sums; tests hold them equal.
"""

from collections.abc import Callable, Sequence
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

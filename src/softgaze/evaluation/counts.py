"""What BLEU and chrF are made of: counts of each sentence, which add up to the score of any set of sentences.

sacreBLEU counts n-grams, once; after that a thousand resampled test sets cost a thousand sums, not a thousand scorings.
The formulas here are sacreBLEU's own for whole arrays of sums at once (a test holds them equal). Knows no models.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from softgaze.data.tokens import normalise
from softgaze.metrics import bleu_and_chrf

Counts = NDArray[numpy.float64]
Values = NDArray[numpy.float64]

ORDERS = 4  # of BLEU's n-grams
BETA = 2  # how much more recall weighs than precision, in chrF
TITLES = {"bleu": "BLEU", "chrf": "chrF"}


@dataclass(frozen=True, eq=False)
class SystemCounts:
    """A system's translations of a test set, counted against the references."""

    counts: dict[str, Counts]  # by name of the score: (N sentences, what it is made of)
    signatures: dict[str, str]

    @property
    def sentences(self) -> int:
        """How many there are."""
        return len(self.counts["bleu"])

    def score(self, name: str) -> float:
        """Of all sentences, from 0 to 100; equal to sacreBLEU's."""
        return float(SCORES[name](self.counts[name].sum(axis=0)))

    def part(self, members: Sequence[int]) -> "SystemCounts":
        """Of some sentences only."""
        chosen = numpy.array(members, dtype=int)
        return SystemCounts({name: counts[chosen] for name, counts in self.counts.items()}, self.signatures)


def count_system(hypotheses: Sequence[str], references: Sequence[str], *, language: str = "") -> SystemCounts:
    """Compare translations with one reference each, both normalised first, as `metrics.score` does."""
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} translations cannot be scored against {len(references)} references")
    written, wanted = [normalise(text) for text in hypotheses], [normalise(text) for text in references]
    metrics = bleu_and_chrf(language)
    counts = {
        name: numpy.array(metric._extract_corpus_statistics(written, [wanted]), dtype=numpy.float64)
        for name, metric in metrics.items()
    }
    return SystemCounts(counts, {name: str(metric.get_signature()) for name, metric in metrics.items()})


def bleu(sums: Counts) -> Values:
    """(…, 10) -> (…); lengths of translation and reference, then right and all n-grams of each order.

    Orders without a match count as half of one, then a quarter, … (sacreBLEU's exponential smoothing).
    """
    written, wanted = sums[..., 0], sums[..., 1]
    right, every = sums[..., 2 : 2 + ORDERS], sums[..., 2 + ORDERS :]
    none = right == 0
    smoothed = numpy.where(none, 0.5 ** none.cumsum(axis=-1), right)
    scored = right.any(axis=-1) & every.all(axis=-1)  # else 0, and nothing below may divide by it
    logarithms = numpy.log(smoothed / numpy.where(every == 0, 1, every)).mean(axis=-1)
    brevity = numpy.minimum(0, 1 - wanted / numpy.where(written == 0, 1, written))
    values: Values = numpy.where(scored, 100 * numpy.exp(logarithms + brevity), 0.0)
    return values


def chrf(sums: Counts) -> Values:
    """(…, 3 × orders) -> (…); for each order n-grams of the translation, of the reference, and of both."""
    written, wanted, both = (sums[..., kind::3] for kind in range(3))
    there = (written > 0) & (wanted > 0)
    orders = numpy.maximum(there.sum(axis=-1), 1)
    precision, recall = (
        numpy.where(there, both / numpy.where(there, every, 1), 0).sum(axis=-1) / orders for every in (written, wanted)
    )
    weighted = BETA**2 * precision + recall
    values: Values = 100 * (1 + BETA**2) * precision * recall / numpy.where(weighted == 0, 1, weighted)
    return values


SCORES: dict[str, Callable[[Counts], Values]] = {"bleu": bleu, "chrf": chrf}

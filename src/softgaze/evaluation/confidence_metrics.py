"""Is a confidence of 80 % right 80 times of 100? Reliability of word confidence on a test set with references."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softgaze.explain.confidence import Calibration, label_words
from softgaze.explain.recording import Flags, Matrix
from softgaze.explain.render.charts import Axis, ChartPoint, Panel, Series, line_chart
from softgaze.translation import Translation
from softgaze.translator import Translator

BINS = 10
MIN_DRAWN = 20  # words in a bin of the chart
Z_95 = 1.96
UNKNOWN = (0.0, 1.0)  # the interval of a bin that is too small for one


class ReliabilityBin(NamedTuple):
    """The words of one tenth of the confidence scale."""

    words: int
    confidence: float  # mean
    right: float  # share of right words
    bootstrapped: Sequence[float] = ()  # the 95 % confidence interval of the share, if it is not Wilson's

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the share."""
        if self.bootstrapped:
            return self.bootstrapped[0], self.bootstrapped[1]
        n, z = self.words, Z_95
        centre = (self.right + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * np.sqrt(self.right * (1 - self.right) / n + z * z / (4 * n * n))
        return float(centre - half), float(centre + half)


@dataclass(frozen=True)
class Reliability:
    """Word confidence compared with the references of a test set."""

    bins: tuple[ReliabilityBin, ...]  # without empty ones
    auc: float  # probability that a right word has a higher confidence than a wrong one
    brier: float  # mean squared error
    calibration: Calibration | None

    @classmethod
    def of(cls, confidence: Matrix, is_right: Flags, calibration: Calibration | None = None) -> "Reliability":
        """Compare (N,) probabilities with (N,) outcomes in bins of equal width."""
        bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
        masks = [bins == index for index in range(BINS) if (bins == index).any()]
        rows = [ReliabilityBin(int(m.sum()), float(confidence[m].mean()), float(is_right[m].mean())) for m in masks]
        brier = float(((confidence - is_right) ** 2).mean())
        return cls(tuple(rows), area_under_curve(confidence, is_right), brier, calibration)

    @property
    def words(self) -> int:
        return sum(row.words for row in self.bins)

    @property
    def right(self) -> float:
        """Share of right words."""
        return sum(row.words * row.right for row in self.bins) / self.words

    @property
    def ece(self) -> float:
        """Expected calibration error: the mean distance of confidence and share of right words in the bins."""
        return sum(row.words * abs(row.confidence - row.right) for row in self.bins) / self.words

    def to_dict(self) -> dict[str, Any]:
        values = {"ece": self.ece, "brier": self.brier, "auc": self.auc, "right": self.right}
        return {
            "calibrated": self.calibration is not None,
            "words": self.words,
            **{name: round(value, 4) for name, value in values.items()},
            "bins": [[row.words, round(row.confidence, 4), round(row.right, 4)] for row in self.bins],
        }


def measure_confidence(
    translator: Translator, translations: Sequence[Translation], references: Sequence[str]
) -> Reliability | None:
    """Return the reliability of the confidences of translations; None if they have no words."""
    features, is_right = label_words(translator, translations, references)
    calibration = Calibration.of_facts(translator.bundle.facts)
    confidence = np.exp(features[:, 0]) if calibration is None else calibration.probs(features)
    return Reliability.of(confidence, is_right, calibration) if len(is_right) else None


def area_under_curve(scores: Matrix, is_right: Flags) -> float:
    """Return the ROC AUC, ties counted half; NaN if all are right or all wrong."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]  # from 1, the mean of ties
    right = int(is_right.sum())
    wrong = len(is_right) - right
    return float((ranks[is_right].sum() - right * (right + 1) / 2) / (right * wrong)) if right and wrong else np.nan


def reliability_chart(
    systems: Mapping[str, Reliability], title: str = "Reliability of word confidence", noun: str = "words"
) -> str:
    """Return an SVG: the share of right words against confidence, and the diagonal of perfect calibration.

    `noun` names links instead of words.
    """
    is_words = noun == "words"
    axis = Axis(0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0])
    series = [
        Series(
            name,
            [
                ChartPoint(row.confidence, row.right, *row.interval, f"{row.words:,} {noun}, {row.right:.0%} right")
                for row in reliability.bins
                if row.words >= min(MIN_DRAWN, reliability.words // BINS) and row.interval != UNKNOWN
            ],
            style,
            guide=[(0.0, 0.0), (1.0, 1.0)],
        )
        for style, (name, reliability) in enumerate(systems.items())
    ]
    notes = [
        f"{name}: expected calibration error {100 * each.ece:.1f} %, {each.words:,} {noun}, {100 * each.right:.1f} % "
        f"right{'' if each.calibration or not is_words else ', not calibrated'}"
        for name, each in systems.items()
    ]
    method = "Wilson" if is_words else "bootstrap over sentences"
    notes.append(f"Dashed: perfect calibration. Areas: 95 % confidence intervals ({method}).")
    titles = (
        ("share of words that the reference has too", "confidence") if is_words else ("share of right links", "stated")
    )
    panel = Panel(titles[0], series, axis, axis, titles[1], width=420, height=420)
    return line_chart([panel], title=title, description="; ".join(notes), heading=title, notes=notes)

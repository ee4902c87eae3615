"""One test set, several systems: what is to be said about them, as numbers for JSON and as tables for people.

The first system is the one that is evaluated; the others are what it is compared with. Knows no models and no files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from softgaze.evaluation.buckets import LEAST, Bucket
from softgaze.evaluation.counts import TITLES, SystemCounts
from softgaze.evaluation.lengths import Curve, length_curve, length_differences
from softgaze.evaluation.looks import Looks, Quality
from softgaze.evaluation.significance import Difference, Estimate, difference, estimate, signature
from softgaze.evaluation.tables import Table

DIGITS = 4
NONE = "–"
STAR = "* both tests below 0.05"
MANY = f"{STAR} (of many buckets, one in twenty is so by luck)"
FEW = f"{NONE} not tested: fewer than {LEAST} sentences"


@dataclass(frozen=True)
class System:
    """Somebody's translations of the test set, counted."""

    name: str
    counted: SystemCounts
    looks: Looks | None = None  # where it looked, if that was asked and can be known


@dataclass(frozen=True)
class Comparison:
    """One system against another: over all sentences, and in each bucket."""

    other: System
    overall: dict[str, Difference]  # by name of the score
    by_length: dict[str, list[Difference]]


@dataclass(frozen=True)
class Evaluation:
    """Everything that can be said is computed once, when it is first asked for."""

    systems: tuple[System, ...]
    buckets: tuple[Bucket, ...] = ()  # none: lengths were not asked for

    @cached_property
    def overall(self) -> dict[str, list[Estimate]]:
        """Of each system over all sentences, by name of the score."""
        return {score: [estimate(each.counted, score) for each in self.systems] for score in TITLES}

    @cached_property
    def curves(self) -> dict[str, list[Curve]]:
        """Of each system against length, by name of the score."""
        return {
            score: [length_curve(each.name, each.counted, self.buckets, score) for each in self.systems]
            for score in TITLES
        }

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The first system against each of the others."""
        first, *others = self.systems
        return [
            Comparison(
                other,
                {score: difference(first.counted, other.counted, score) for score in TITLES},
                {score: length_differences(first.counted, other.counted, self.buckets, score) for score in TITLES},
            )
            for other in others
        ]

    @property
    def signatures(self) -> dict[str, str]:
        """Without which the numbers cannot be compared, by name of the score."""
        paired = len(self.systems) > 1
        return {score: signature(self.systems[0].counted, score, paired=paired) for score in TITLES}


# --- for JSON ---------------------------------------------------------------------------------------------------


def record(evaluation: Evaluation) -> dict[str, Any]:
    """What there is beyond plain scores; only what was asked for."""
    told: dict[str, Any] = {"bands": {"signatures": evaluation.signatures, "scores": bands(evaluation)}}
    if evaluation.buckets:
        told["by_length"] = [bucket_record(evaluation, number) for number in range(len(evaluation.buckets))]
    if evaluation.comparisons:
        told["against"] = [comparison_record(evaluation, each) for each in evaluation.comparisons]
    looked = {each.name: looks_record(each.looks, evaluation.buckets) for each in evaluation.systems if each.looks}
    return {**told, "attention": looked} if looked else told


def bands(evaluation: Evaluation) -> dict[str, Any]:
    """The scores of all systems with their bands."""
    named = zip(evaluation.systems, *(evaluation.overall[score] for score in TITLES), strict=True)
    return {system.name: dict(zip(TITLES, map(rounded, own), strict=True)) for system, *own in named}


def bucket_record(evaluation: Evaluation, number: int) -> dict[str, Any]:
    """One bucket, with the scores of all systems in it."""
    bucket = evaluation.buckets[number]
    systems = {
        system.name: {score: rounded(evaluation.curves[score][place].points[number].estimate) for score in TITLES}
        for place, system in enumerate(evaluation.systems)
    }
    return {**range_record(bucket), "sentences": len(bucket.members), "median_length": bucket.length, "scores": systems}


def range_record(bucket: Bucket) -> dict[str, int]:
    """The lengths of a bucket."""
    return {"low": bucket.low, "high": bucket.high}


def comparison_record(evaluation: Evaluation, comparison: Comparison) -> dict[str, Any]:
    """One other system: how much better the first is."""
    told: dict[str, Any] = {
        "name": comparison.other.name,
        "difference": {score: rounded(each) for score, each in comparison.overall.items()},
    }
    if evaluation.buckets:
        told["by_length"] = [
            {**range_record(bucket), **{score: rounded(comparison.by_length[score][number]) for score in TITLES}}
            for number, bucket in enumerate(evaluation.buckets)
        ]
    return told


def looks_record(looks: Looks, buckets: Sequence[Bucket]) -> dict[str, Any]:
    """Where a model looked."""
    told = {"map": looks.shows, **quality_record(looks.quality())}
    if not buckets:
        return told
    parts = [{**range_record(each), **quality_record(looks.quality(each.members))} for each in buckets]
    return {**told, "by_length": parts}


def quality_record(quality: Quality) -> dict[str, Any]:
    """Entropy in nats, the rest from 0 to 1; rates of links only where there was gold."""
    told: dict[str, Any] = {"sentences": quality.sentences, "entropy": quality.entropy, "coverage": quality.coverage}
    if quality.links:
        told |= {name: getattr(quality.links, name) for name in ("aer", "precision", "recall")}
    return {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in told.items()}


def rounded(found: Estimate | Difference) -> dict[str, float | None]:
    """As many digits as anybody reads; p-values are none where there were too few sentences to test."""
    told = asdict(found)
    is_tested = told.pop("is_tested", True)
    numbers: dict[str, float | None] = {name: round(value, DIGITS) for name, value in told.items()}
    return numbers if is_tested else {**numbers, "bootstrap_p": None, "randomisation_p": None, "is_tested": False}


# --- for people -------------------------------------------------------------------------------------------------


def tables(evaluation: Evaluation) -> Iterator[Table]:
    """Scores with bands, then by length, then against each other system, then where the models looked."""
    yield overall_table(evaluation)
    if evaluation.buckets:
        yield from (length_table(evaluation, score) for score in TITLES)
    for comparison in evaluation.comparisons:
        yield from (comparison_table(evaluation, comparison, score) for score in TITLES)
    for system in evaluation.systems:
        if system.looks:
            yield looks_table(system.name, system.looks, evaluation.buckets)


def overall_table(evaluation: Evaluation) -> Table:
    """A row for each system."""
    rows = [
        [system.name, *(with_band(evaluation.overall[score][place]) for score in TITLES)]
        for place, system in enumerate(evaluation.systems)
    ]
    sentences = f"{evaluation.systems[0].counted.sentences:,} sentences"
    return Table(f"Scores with 95 % bands, {sentences}", ["", *TITLES.values()], rows)


def length_table(evaluation: Evaluation, score: str) -> Table:
    """A row for each bucket, a column for each system."""
    columns = [[with_band(point.estimate) for point in curve.points] for curve in evaluation.curves[score]]
    counts = [f"{len(bucket.members):,}" for bucket in evaluation.buckets]
    names = [bucket.label for bucket in evaluation.buckets]
    header = ["words", "sentences", *(system.name for system in evaluation.systems)]
    return Table(f"{TITLES[score]} by source length", header, list(zip(names, counts, *columns, strict=True)))


def comparison_table(evaluation: Evaluation, comparison: Comparison, score: str) -> Table:
    """All sentences first, then bucket by bucket."""
    found = [comparison.overall[score], *comparison.by_length[score]]
    names = ["all", *(bucket.label for bucket in evaluation.buckets)]
    rows = [[name, *cells(each)] for name, each in zip(names, found, strict=True)]
    title = f"{TITLES[score]}, {evaluation.systems[0].name} minus {comparison.other.name}"
    header = ["words", "difference", "95 % band", "bootstrap p", "randomisation p"]
    notes = [MANY if evaluation.buckets else STAR, *([] if all(each.is_tested for each in found) else [FEW])]
    return Table(title, header, rows, "; ".join(notes))


def cells(found: Difference) -> list[str]:
    """A difference, its band, and both p-values if it was tested."""
    star = "*" if found.is_significant else " "
    chances = [chance(found.bootstrap_p), chance(found.randomisation_p)] if found.is_tested else [NONE, NONE]
    return [f"{found.score:+.2f}{star}", f"{found.low:+.2f} to {found.high:+.2f}", *chances]


def chance(p: float) -> str:
    """A p-value."""
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


def with_band(found: Estimate) -> str:
    """A score and its band."""
    return f"{found.score:.2f} ({found.low:.1f}–{found.high:.1f})"


def looks_table(name: str, looks: Looks, buckets: Sequence[Bucket]) -> Table:
    """Where one model looked: over all sentences, and in each bucket."""
    qualities = [looks.quality(), *(looks.quality(each.members) for each in buckets)]
    names = ["all", *(bucket.label for bucket in buckets)]
    rows = [[label, *looks_cells(each)] for label, each in zip(names, qualities, strict=True)]
    header = [
        "words",
        "sentences",
        "entropy",
        "coverage",
        *(["AER", "precision", "recall"] if qualities[0].links else []),
    ]
    return Table(f"Attention of {name}", header, rows, looks.shows)


def looks_cells(quality: Quality) -> list[str]:
    """Entropy in nats, the rest in per cent."""
    entropy = f"{quality.entropy:.2f}" if quality.entropy is not None else NONE
    links = [quality.links.aer, quality.links.precision, quality.links.recall] if quality.links else []
    return [f"{quality.sentences:,}", entropy, *map(per_cent, [quality.coverage, *links])]


def per_cent(share: float | None) -> str:
    """Of a share from 0 to 1."""
    return f"{100 * share:.1f} %" if share is not None else NONE

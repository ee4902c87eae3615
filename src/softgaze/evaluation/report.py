"""The evaluation of one or more systems on a test set: as JSON, as tables and as an offline HTML page.

The first system is evaluated; the others are compared with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from softgaze.evaluation.attention_metrics import AttentionMetrics, AttentionSummary
from softgaze.evaluation.by_length import Bucket, LengthCurve, length_chart, length_curve, length_differences
from softgaze.evaluation.confidence_metrics import Reliability, reliability_chart
from softgaze.evaluation.significance import (
    MIN_SENTENCES,
    TITLES,
    Difference,
    Estimate,
    NgramStats,
    difference,
    estimate,
    signature,
)
from softgaze.evaluation.tables import Table, escape
from softgaze.explain.erasure import ErasureScores
from softgaze.explain.render.pages import document

DIGITS = 4
NONE = "–"
INTERVAL = "95 % confidence interval"
MEANINGS = {
    INTERVAL: "holds the score in 95 of 100 test sets drawn from these sentences with replacement (bootstrap, 1,000 "
    "draws).",
    "bootstrap p": "how often resampling sentences alone gives a difference at least as large (two-sided paired "
    "bootstrap, Koehn 2004, centred on the mean; 10,000 draws where 1,000 never reach it). sacreBLEU's p-values are "
    "smaller: of equally good systems, more than one pair in ten gets p < 0.05.",
    "randomisation p": "how often swapping translations at random gives a difference at least as large (approximate "
    "randomisation, Riezler & Maxwell 2005; 10,000 trials).",
    "words": "source words between spaces; characters in scripts without spaces.",
    "entropy": "of the attention of an output word, in nats: 0 is attention to one word.",
    "coverage": "share of source words that the translation attends to.",
    "comprehensiveness": "drop of a word's probability without the source words that the map names; higher is better "
    "(mean over 10, 20 and 50 % of the words, AOPC).",
    "sufficiency": "drop of a word's probability without all other source words; lower is better.",
    "right": "share of the words that the reference has in the same position of a minimal edit distance.",
    "calibration error": "mean distance of confidence and share of right words, over ten bins of confidence.",
    "AUC": "probability that a right word has a higher confidence than a wrong one; 0.5 is chance.",
    "AER": "alignment error rate of the references against the gold alignment; 0 is best.",
}


@dataclass(frozen=True)
class System:
    name: str
    stats: NgramStats
    attention: AttentionMetrics | None = None
    confidence: Reliability | None = None


@dataclass(frozen=True)
class Comparison:
    """The first system minus another: over all sentences, and in each bucket."""

    other: System
    overall: dict[str, Difference]  # by metric
    by_length: dict[str, list[Difference]]


@dataclass(frozen=True)
class Evaluation:
    """All results of some systems; each is computed on first use."""

    systems: tuple[System, ...]
    buckets: tuple[Bucket, ...] = ()  # empty: no results by length

    @property
    def confidences(self) -> dict[str, Reliability]:
        """{name: word confidence} of the systems that have it."""
        return {system.name: system.confidence for system in self.systems if system.confidence}

    @cached_property
    def overall(self) -> dict[str, list[Estimate]]:
        return {metric: [estimate(system.stats, metric) for system in self.systems] for metric in TITLES}

    @cached_property
    def curves(self) -> dict[str, list[LengthCurve]]:
        return {
            metric: [length_curve(system.name, system.stats, self.buckets, metric) for system in self.systems]
            for metric in TITLES
        }

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The first system against each other one."""
        first, *others = self.systems
        return [
            Comparison(
                other,
                {metric: difference(first.stats, other.stats, metric) for metric in TITLES},
                {metric: length_differences(first.stats, other.stats, self.buckets, metric) for metric in TITLES},
            )
            for other in others
        ]

    @property
    def signatures(self) -> dict[str, str]:
        paired = len(self.systems) > 1
        return {metric: signature(self.systems[0].stats, metric, paired=paired) for metric in TITLES}


# --- JSON -------------------------------------------------------------------------------------------------------


def evaluation_record(evaluation: Evaluation) -> dict[str, Any]:
    overall = {
        system.name: {metric: _rounded(evaluation.overall[metric][index]) for metric in TITLES}
        for index, system in enumerate(evaluation.systems)
    }
    record: dict[str, Any] = {"confidence_intervals": {"signatures": evaluation.signatures, "scores": overall}}
    ranges = [{"low": bucket.low, "high": bucket.high} for bucket in evaluation.buckets]
    if evaluation.buckets:
        record["by_length"] = [
            {
                **ranges[index],
                "sentences": len(bucket.members),
                "median_length": bucket.length,
                "scores": {
                    system.name: {
                        metric: _rounded(evaluation.curves[metric][column].points[index].estimate) for metric in TITLES
                    }
                    for column, system in enumerate(evaluation.systems)
                },
            }
            for index, bucket in enumerate(evaluation.buckets)
        ]
    if evaluation.comparisons:
        record["against"] = [_comparison_record(comparison, ranges) for comparison in evaluation.comparisons]
    attention = {
        system.name: _attention_record(system.attention, evaluation.buckets, ranges)
        for system in evaluation.systems
        if system.attention
    }
    if attention:
        record["attention"] = attention
    if evaluation.confidences:
        record["confidence"] = {name: each.to_dict() for name, each in evaluation.confidences.items()}
    return record


def _comparison_record(comparison: Comparison, ranges: Sequence[dict[str, int]]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": comparison.other.name,
        "difference": {metric: _rounded(result) for metric, result in comparison.overall.items()},
    }
    if ranges:
        record["by_length"] = [
            {**edges, **{metric: _rounded(comparison.by_length[metric][index]) for metric in TITLES}}
            for index, edges in enumerate(ranges)
        ]
    return record


def _attention_record(
    metrics: AttentionMetrics, buckets: Sequence[Bucket], ranges: Sequence[dict[str, int]]
) -> dict[str, Any]:
    def summary_record(summary: AttentionSummary) -> dict[str, Any]:
        values: dict[str, Any] = {
            "sentences": summary.sentences,
            "entropy": summary.entropy,
            "coverage": summary.coverage,
        }
        if summary.links:
            values |= {name: getattr(summary.links, name) for name in ("aer", "precision", "recall")}
        return {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in values.items()}

    record = {"map": metrics.attention_map, **summary_record(metrics.summary())}
    if metrics.erasure:
        record["erasure"] = {name: scores.to_dict() for name, scores in metrics.erasure.items()}
    if buckets:
        record["by_length"] = [
            {**edges, **summary_record(metrics.summary(bucket.members))}
            for edges, bucket in zip(ranges, buckets, strict=True)
        ]
    return record


def _rounded(result: Estimate | Difference) -> dict[str, float | None]:
    """Round all numbers; p-values are null if there were too few sentences to test."""
    values = asdict(result)
    is_tested = values.pop("is_tested", True)
    numbers: dict[str, float | None] = {name: round(value, DIGITS) for name, value in values.items()}
    return numbers if is_tested else {**numbers, "bootstrap_p": None, "randomisation_p": None, "is_tested": False}


# --- tables -----------------------------------------------------------------------------------------------------


def evaluation_tables(evaluation: Evaluation) -> Iterator[Table]:
    """Yield tables of the scores, by length, of comparisons, and of attention."""
    systems, labels = evaluation.systems, [bucket.label for bucket in evaluation.buckets]
    scores = [
        [system.name, *(score_cell(evaluation.overall[metric][index]) for metric in TITLES)]
        for index, system in enumerate(systems)
    ]
    title = f"Scores with 95 % confidence intervals, {systems[0].stats.sentences:,} sentences"
    yield Table(title, ["", *TITLES.values()], scores)
    if evaluation.buckets:
        counts = [f"{len(bucket.members):,}" for bucket in evaluation.buckets]
        for metric, title in TITLES.items():
            columns = [[score_cell(point.estimate) for point in curve.points] for curve in evaluation.curves[metric]]
            header = ["words", "sentences", *(system.name for system in systems)]
            yield Table(f"{title} by source length", header, list(zip(labels, counts, *columns, strict=True)))
    for comparison in evaluation.comparisons:
        for metric, title in TITLES.items():
            results = [comparison.overall[metric], *comparison.by_length[metric]]
            rows = [[label, *difference_cells(result)] for label, result in zip(["all", *labels], results, strict=True)]
            header = ["words", "difference", INTERVAL, "bootstrap p", "randomisation p"]
            note = "* both tests below 0.05" + (" (in 1 of 20 buckets by chance)" if labels else "")
            if not all(result.is_tested for result in results):
                note += f"; {NONE} not tested: fewer than {MIN_SENTENCES} sentences"
            yield Table(f"{title}, {systems[0].name} minus {comparison.other.name}", header, rows, note)
    for system in systems:
        if system.attention:
            yield _attention_table(system.name, system.attention, evaluation.buckets)
            if system.attention.erasure:
                yield _erasure_table(system.name, system.attention.erasure)
    if evaluation.confidences:
        yield _confidence_table(evaluation.confidences)


def score_cell(result: Estimate) -> str:
    """Return `31.20 (29.0–33.5)`."""
    return f"{result.score:.2f} ({result.low:.1f}–{result.high:.1f})"


def difference_cells(result: Difference) -> list[str]:
    """Return the difference, its confidence interval, and both p-values if it was tested."""
    star = "*" if result.is_significant else " "
    p_values = [p_cell(result.bootstrap_p), p_cell(result.randomisation_p)] if result.is_tested else [NONE, NONE]
    return [f"{result.score:+.2f}{star}", f"{result.low:+.2f} to {result.high:+.2f}", *p_values]


def p_cell(p: float) -> str:
    """Return a p-value with three digits; never zero."""
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


def _attention_table(name: str, metrics: AttentionMetrics, buckets: Sequence[Bucket]) -> Table:
    def percent(share: float | None) -> str:
        return f"{100 * share:.1f} %" if share is not None else NONE

    def cells(summary: AttentionSummary) -> list[str]:
        entropy = f"{summary.entropy:.2f}" if summary.entropy is not None else NONE
        rates = [summary.links.aer, summary.links.precision, summary.links.recall] if summary.links else []
        return [f"{summary.sentences:,}", entropy, *map(percent, [summary.coverage, *rates])]

    rows = [["all", *cells(metrics.summary())]]
    rows += [[bucket.label, *cells(metrics.summary(bucket.members))] for bucket in buckets]
    has_gold = metrics.summary().links is not None
    header = ["words", "sentences", "entropy", "coverage", *(["AER", "precision", "recall"] if has_gold else [])]
    return Table(f"Attention of {name}", header, rows, metrics.attention_map)


def _erasure_table(name: str, erasure: Mapping[str, ErasureScores]) -> Table:
    rows = [
        [title, f"{each.comprehensiveness:.3f}", f"{each.sufficiency:.3f}", f"{each.words:,}"]
        for title, each in erasure.items()
    ]
    header = ["map", "comprehensiveness", "sufficiency", "output words"]
    return Table(f"Faithfulness of maps of {name}", header, rows)


def _confidence_table(systems: Mapping[str, Reliability]) -> Table:
    rows = [
        [name, f"{each.words:,}", *(f"{100 * value:.1f} %" for value in (each.right, each.ece)), f"{each.auc:.3f}"]
        for name, each in systems.items()
    ]
    uncalibrated = [name for name, each in systems.items() if each.calibration is None]
    note = f"not calibrated: {', '.join(uncalibrated)}; evaluate --calibrate fits it" if uncalibrated else ""
    return Table("Confidence of words", ["", "output words", "right", "calibration error", "AUC"], rows, note)


# --- HTML -------------------------------------------------------------------------------------------------------


def evaluation_page(evaluation: Evaluation, facts: Mapping[str, str]) -> str:
    """Return the page; `facts` (model, test set, beam size, …) are shown at its head."""
    title = f"Evaluation of {evaluation.systems[0].name}"
    tables = list(evaluation_tables(evaluation))
    scores, *others = (table.html() for table in tables)
    shown_facts = " · ".join(f"{escape(name)} <code>{escape(value)}</code>" for name, value in facts.items())
    signatures = (f"{TITLES[metric]} <code>{escape(value)}</code>" for metric, value in evaluation.signatures.items())
    chart = ""
    if evaluation.buckets:
        figure = length_chart(evaluation.curves)
        chart = f'<h2>Quality against source length</h2>\n<figure class="chart">{figure}</figure>'
    if evaluation.confidences:
        others.append(f'<figure class="chart">{reliability_chart(evaluation.confidences)}</figure>')
    terms = {INTERVAL, *(column for table in tables for column in table.header)}
    glossary = "".join(
        f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in MEANINGS.items() if term in terms
    )
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="faint">{shown_facts}</p>',
        scores,
        f'<p class="faint">{"<br>".join(signatures)}</p>',
        chart,
        *others,
        f'<footer><h2>How to read this</h2><dl class="meanings">{glossary}</dl></footer>',
    ]
    return document(title, "\n".join(body), styles=("evaluation.css",))

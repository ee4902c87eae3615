"""Quality by source length: buckets of sentences, a curve of scores over them, and its chart.

Buckets are wide enough to be scored and narrow enough to show a slope.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from statistics import median

from softgaze.errors import UsageError
from softgaze.evaluation.significance import (
    MIN_SENTENCES,
    TITLES,
    Difference,
    Estimate,
    NgramStats,
    difference,
    estimate,
)
from softgaze.explain.render.charts import Axis, ChartPoint, Interval, Panel, Series, line_chart
from softgaze.explain.render.text_layout import truncate
from softgaze.explain.word_spans import max_word_count

MIN_BUCKETS = 3  # of a small test set, whose buckets then have fewer than MIN_SENTENCES sentences
MIN_FIRST_EDGE = 5  # words: BLEU needs 4-grams
MAX_BUCKETS = 8  # that most sentences fall into
QUANTILE = 0.95  # of the lengths that sets the width of buckets; a few very long sentences do not
MAX_NAME = 22  # em, in the chart
BEYOND = "beyond the trained lengths"


@dataclass(frozen=True)
class Bucket:
    low: int
    high: int
    members: tuple[int, ...]  # indices of sentences in the test set
    length: float  # median

    @property
    def label(self) -> str:
        return range_label(self.low, self.high)


@dataclass(frozen=True)
class BucketScore:
    low: int
    high: int
    length: float  # median
    sentences: int
    estimate: Estimate


@dataclass(frozen=True)
class LengthCurve:
    """The scores of one system by one metric, from short to long sentences."""

    name: str
    points: tuple[BucketScore, ...]
    is_beyond: bool = False  # whether the sentences are longer than the training data


def range_label(low: int, high: int) -> str:
    """Return `6–10`, or `7` for a single length."""
    return f"{low}–{high}" if high > low else f"{low}"


def source_lengths(sources: Sequence[str]) -> list[int]:
    """Count words; in scripts without spaces, characters."""
    return [max_word_count(source) for source in sources]


def make_buckets(lengths: Sequence[int], edges: Sequence[int] | None = None) -> list[Bucket]:
    """Put each sentence into one bucket, shortest first; empty buckets are left out.

    `edges` are the longest lengths of each bucket; longer sentences go into one more bucket. By default edges are round
    numbers, such that there are few buckets of at least MIN_SENTENCES sentences.
    """
    if not lengths:
        return []
    ends = check_edges(edges) if edges is not None else automatic_edges(lengths)
    longest = max(lengths)
    ends = [*ends, longest] if longest > ends[-1] else ends
    members: list[list[int]] = [[] for _ in ends]
    for index, length in enumerate(lengths):
        members[bisect_left(ends, length)].append(index)
    starts = [min(lengths), *(end + 1 for end in ends)]
    return [
        Bucket(start, min(end, longest), tuple(indices), median(lengths[index] for index in indices))
        for start, end, indices in zip(starts, ends, members, strict=False)
        if indices
    ]


def check_edges(edges: Sequence[int]) -> list[int]:
    if not edges or edges[0] < 1 or any(one >= other for one, other in pairwise(edges)):
        raise UsageError(
            f"edges must be increasing lengths such as 10,20,30; got {','.join(map(str, edges)) or 'none'}"
        )
    return list(edges)


def automatic_edges(lengths: Sequence[int]) -> list[int]:
    """Choose multiples of a round number that end buckets with enough and long enough sentences."""
    ordered = sorted(lengths)
    usual = ordered[int(QUANTILE * (len(ordered) - 1))]
    widths: Iterator[int] = (factor * 10**power for power in count() for factor in (1, 2, 5))
    width = next(width for width in widths if usual <= MAX_BUCKETS * width)
    least = max(1, min(MIN_SENTENCES, len(lengths) // MIN_BUCKETS))
    cells = Counter(-(-length // width) * width for length in lengths)  # by upper edge
    edges: list[int] = []
    pending, remaining = 0, len(lengths)
    for edge in sorted(cells):
        pending, remaining = pending + cells[edge], remaining - cells[edge]
        if not remaining or (edge >= MIN_FIRST_EDGE and pending >= least <= remaining):
            edges.append(edge)
            pending = 0
    return edges


def length_curve(name: str, system: NgramStats, buckets: Sequence[Bucket], metric: str) -> LengthCurve:
    """Score each bucket by one metric: bleu or chrf."""
    points = [
        BucketScore(
            bucket.low, bucket.high, bucket.length, len(bucket.members), estimate(system.subset(bucket.members), metric)
        )
        for bucket in buckets
    ]
    return LengthCurve(name, tuple(points))


def length_differences(one: NgramStats, other: NgramStats, buckets: Sequence[Bucket], metric: str) -> list[Difference]:
    return [difference(one.subset(bucket.members), other.subset(bucket.members), metric) for bucket in buckets]


def length_chart(
    scores: Mapping[str, Sequence[LengthCurve]],
    title: str = "Quality against source length",
    signatures: Mapping[str, str] | None = None,
) -> str:
    """Return an SVG with a panel per metric (bleu, chrf); curves of one name are one system.

    A chart outside of a page should show the signatures of its scores.
    """
    shown = {metric: [curve for curve in curves if curve.points] for metric, curves in scores.items()}
    shown = {metric: curves for metric, curves in shown.items() if curves}
    points = [point for curves in shown.values() for curve in curves for point in curve.points]
    if not points:
        raise ValueError("there is nothing to draw: no curve has a point")
    # One very long sentence must not squeeze all others.
    end = min(max(point.high for point in points), 1.5 * max(point.length for point in points))
    x_axis = Axis.from_zero_to(max(1.04 * end, end + 0.5), min_step=1.0)
    systems = list(dict.fromkeys(curve.name for curves in shown.values() for curve in curves))
    panels = [_length_panel(TITLES.get(metric, metric), curves, systems, x_axis) for metric, curves in shown.items()]
    description = "; ".join(
        f"{TITLES.get(metric, metric)} of {curve.name}{', ' + BEYOND if curve.is_beyond else ''}: "
        + ", ".join(f"{point.low}–{point.high} words {point.estimate.score:.1f}" for point in curve.points)
        for metric, curves in shown.items()
        for curve in curves
    )
    notes = [f"{TITLES.get(metric, metric)} {signature}" for metric, signature in (signatures or {}).items()]
    return line_chart(panels, title=title, description=description, notes=notes)


def _length_panel(title: str, curves: Sequence[LengthCurve], systems: Sequence[str], x_axis: Axis) -> Panel:
    points = [point for curve in curves for point in curve.points]
    bounds = [bound for point in points for bound in (point.estimate.low, point.estimate.high)]
    beyond = [point.low for curve in curves if curve.is_beyond for point in curve.points]

    def chart_point(curve: LengthCurve, point: BucketScore) -> ChartPoint:
        score, low, high = point.estimate.score, point.estimate.low, point.estimate.high
        tooltip = f"{curve.name}, {point.low}–{point.high} words: {score:.1f} ({low:.1f}–{high:.1f})"
        return ChartPoint(point.length, score, low, high, tooltip)

    return Panel(
        title,
        [
            Series(
                truncate(curve.name, MAX_NAME),
                [chart_point(curve, point) for point in curve.points],
                style=systems.index(curve.name),
                dashed=curve.is_beyond,
            )
            for curve in curves
        ],
        x_axis,
        Axis.linear(bounds, min_span=1.0, from_zero=False),
        "words of the source sentence",
        shaded_from=min(beyond) - 0.5 if beyond else None,
        shaded_label=BEYOND,
        ruler=sorted({Interval(point.low - 0.5, point.high + 0.5, point.sentences) for point in points}),
    )

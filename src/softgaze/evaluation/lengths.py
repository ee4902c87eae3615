"""Quality against source length: one curve for each system and score, and how two systems differ along it."""

from collections.abc import Sequence
from dataclasses import dataclass

from softgaze.evaluation.buckets import Bucket
from softgaze.evaluation.counts import SystemCounts
from softgaze.evaluation.significance import Difference, Estimate, difference, estimate


@dataclass(frozen=True)
class Point:
    """A bucket of sentences, scored."""

    low: int
    high: int
    length: float  # the median of its sentences
    sentences: int
    estimate: Estimate


@dataclass(frozen=True)
class Curve:
    """One system's quality by one score, from short sentences to long ones."""

    name: str
    points: tuple[Point, ...]
    is_beyond: bool = False  # whether its sentences are longer than those that were trained on


def length_curve(
    name: str, counted: SystemCounts, buckets: Sequence[Bucket], score: str, *, is_beyond: bool = False
) -> Curve:
    """Of the system called `name`, by one score: bleu or chrf."""
    points = [
        Point(each.low, each.high, each.length, len(each.members), estimate(counted.part(each.members), score))
        for each in buckets
    ]
    return Curve(name, tuple(points), is_beyond)


def length_differences(
    one: SystemCounts, other: SystemCounts, buckets: Sequence[Bucket], score: str
) -> list[Difference]:
    """How much better the first system is in each bucket."""
    return [difference(one.part(each.members), other.part(each.members), score) for each in buckets]

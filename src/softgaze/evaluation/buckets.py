"""Sentences by their length: buckets wide enough to be scored, narrow enough to show a slope. Knows no scores."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from statistics import median

from softgaze.errors import UsageError
from softgaze.gaze.words import most_words

LEAST = 20  # sentences of a bucket: with fewer, a band says little
FEWEST = 3  # buckets that a small test set is still cut into; each is then less than `LEAST`
SHORTEST = 5  # words at which the first bucket may end: BLEU counts four in a row, and has nothing to count in fewer
MOST = 8  # buckets that most sentences fall into
USUAL = 0.95  # the share of sentences that decides how wide buckets are; a few very long ones do not


@dataclass(frozen=True)
class Bucket:
    """The sentences of a range of lengths."""

    low: int  # words of the shortest that would be in it
    high: int  # and of the longest
    members: tuple[int, ...]  # numbers of the sentences in the test set, from 0
    length: float  # the median of its sentences

    @property
    def label(self) -> str:
        """6–10, or 7 if there is but one length."""
        return f"{self.low}–{self.high}" if self.high > self.low else f"{self.low}"


def source_lengths(sources: Sequence[str]) -> list[int]:
    """In words; of a script without spaces, in characters."""
    return [most_words(source) for source in sources]


def make_buckets(lengths: Sequence[int], edges: Sequence[int] | None = None) -> list[Bucket]:
    """Each sentence in one bucket, the shortest first; what would be empty is left out.

    `edges` are the longest lengths of each bucket; what is longer than the last is in one more. Without them they are
    round numbers, chosen so that each bucket has at least `LEAST` sentences and there are few enough to read.
    """
    if not lengths:
        return []
    ends = check_edges(edges) if edges is not None else automatic_edges(lengths)
    ends = [*ends, max(lengths)] if max(lengths) > ends[-1] else ends
    members: list[list[int]] = [[] for _ in ends]
    for number, length in enumerate(lengths):
        members[bisect_left(ends, length)].append(number)
    starts = [min(lengths), *(end + 1 for end in ends)]
    return [
        Bucket(start, min(end, max(lengths)), tuple(inside), median(lengths[each] for each in inside))
        for start, end, inside in zip(starts, ends, members, strict=False)
        if inside
    ]


def check_edges(edges: Sequence[int]) -> list[int]:
    """Edges a user gave."""
    if not edges or edges[0] < 1 or any(one >= other for one, other in pairwise(edges)):
        raise UsageError(f"edges are lengths that grow, such as 10,20,30; not {','.join(map(str, edges)) or 'none'}")
    return list(edges)


def automatic_edges(lengths: Sequence[int]) -> list[int]:
    """Multiples of a round number, those left out that would end a bucket of too few or too short sentences."""
    width, least = round_width(lengths), max(1, min(LEAST, len(lengths) // FEWEST))
    cells = Counter(-(-length // width) * width for length in lengths)  # by the longest length of each cell
    edges: list[int] = []
    held, left = 0, len(lengths)
    for edge in sorted(cells):
        held, left = held + cells[edge], left - cells[edge]
        if not left or (edge >= SHORTEST and held >= least <= left):
            edges.append(edge)
            held = 0
    return edges


def round_width(lengths: Sequence[int]) -> int:
    """The least of 1, 2, 5, 10, 20, 50, … with which most sentences need few buckets."""
    ordered = sorted(lengths)
    usual = ordered[int(USUAL * (len(ordered) - 1))]
    widths: Iterator[int] = (factor * 10**power for power in count() for factor in (1, 2, 5))
    return next(width for width in widths if usual <= MOST * width)

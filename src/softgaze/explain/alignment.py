"""Word alignments: links between the words of two sentences, symmetrization, and the alignment error rate.

Words are counted from 0; the `base` of a file is the index of its first word.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from softgaze.errors import DataError, UsageError, pick

Link = tuple[int, int]  # (source word, target word), from 0
Links = frozenset[Link]

LINK = re.compile(r"(\d+)([-p])(\d+)(?::?([SP]))?", re.ASCII)
BASES = (0, 1)


@dataclass(frozen=True)
class Alignment:
    """Links of one sentence pair: sure `links`, and `possible` ones, where an annotator was not sure."""

    links: Links = frozenset()
    possible: Links = frozenset()  # not in `links`

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", frozenset(self.links))
        object.__setattr__(self, "possible", frozenset(self.possible) - self.links)

    @classmethod
    def parse(cls, line: str, base: int = 0) -> "Alignment":
        """Parse a line in Pharaoh format (`0-0 1-2`) or in talp format, where `1p2` (or `1-2:P`) is possible."""
        check_base(base)
        sure: set[Link] = set()
        possible: set[Link] = set()
        for text in line.split():
            match = LINK.fullmatch(text)
            if match is None:
                raise DataError(f"{text!r} is not a link; expected 1-2 (sure) or 1p2 (possible)")
            source, separator, target, label = match.groups()
            link = int(source) - base, int(target) - base
            if min(link) < 0:
                raise DataError(f"the link {text} contains a 0, so its words are not counted from {base}")
            (sure if separator == "-" and label != "P" else possible).add(link)
        return cls(frozenset(sure), frozenset(possible))

    @property
    def all(self) -> Links:
        """Sure and possible links."""
        return self.links | self.possible

    def __str__(self) -> str:
        """Format as Pharaoh, counted from 0; a possible link is `1p2`."""
        return " ".join(f"{one}{'-' if (one, other) in self.links else 'p'}{other}" for one, other in sorted(self.all))

    def __iter__(self) -> Iterator[Link]:
        return iter(sorted(self.all))

    def __len__(self) -> int:
        return len(self.all)

    def __and__(self, other: "Alignment") -> "Alignment":
        return Alignment(self.all & other.all)

    def __or__(self, other: "Alignment") -> "Alignment":
        return Alignment(self.all | other.all)

    def inverted(self) -> "Alignment":
        """Swap source and target, as for the links of a reverse model."""
        kinds = self.links, self.possible
        return Alignment(*(frozenset((target, source) for source, target in links) for links in kinds))

    def symmetrized(self, reverse: "Alignment", method: str = "grow-diag-final") -> "Alignment":
        """Combine with the `inverted` links of a reverse model by one of `METHODS`."""
        return Alignment(pick("method", method, METHODS)(self.all, reverse.all))


def check_base(base: int) -> None:
    if base not in BASES:
        raise UsageError(f"words are counted from 0 or from 1, got {base!r}")


def check_bounds(alignment: Alignment, sizes: tuple[int, int], where: str, hint: str) -> None:
    """Raise if a link is past the last word of its sentence."""
    for link in alignment:
        for side, word, size in zip(("source", "target"), link, sizes, strict=True):
            if word >= size:
                words = f"{size} word{'' if size == 1 else 's'}, counted from 0"
                raise DataError(
                    f"{where}: the link {link[0]}-{link[1]} is past the end: its {side} has {words}; {hint}"
                )


# --- symmetrization ---------------------------------------------------------------------------------------------

NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def grow_diag(forward: Links, reverse: Links) -> Links:
    """Grow the intersection by links of the union next to it, diagonally too, that have a free word (Koehn 2003)."""
    union, grown = forward | reverse, set(forward & reverse)
    queue = sorted(grown)
    for one, other in queue:  # grows during the iteration
        for down, right in NEIGHBOURS:
            near = one + down, other + right
            if near in union and near not in grown and _has_free_word(near, grown, any):
                grown.add(near)
                queue.append(near)
    return frozenset(grown)


def _grow_diag_final(forward: Links, reverse: Links, needed: Callable[[Iterable[bool]], bool]) -> Links:
    """Add to grow-diag the links of either direction with any, or all, words free; forward first, in word order."""
    links = set(grow_diag(forward, reverse))
    for direction in (forward, reverse):
        for link in sorted(direction):
            if _has_free_word(link, links, needed):
                links.add(link)
    return frozenset(links)


def _has_free_word(link: Link, links: set[Link], needed: Callable[[Iterable[bool]], bool]) -> bool:
    """Whether any, or all, of the two words have no link yet."""
    return needed([all(link[0] != one for one, _ in links), all(link[1] != other for _, other in links)])


METHODS: dict[str, Callable[[Links, Links], Links]] = {
    "intersection": lambda forward, reverse: forward & reverse,
    "union": lambda forward, reverse: forward | reverse,
    "grow-diag": grow_diag,
    "grow-diag-final": lambda forward, reverse: _grow_diag_final(forward, reverse, any),
    "grow-diag-final-and": lambda forward, reverse: _grow_diag_final(forward, reverse, all),
}


# --- alignment error rate ---------------------------------------------------------------------------------------


class AlignmentCounts(NamedTuple):
    """The counts of the alignment error rate; those of several sentences add up."""

    links: int  # |A| predicted
    sure: int  # |S| in gold
    sure_found: int  # |A ∩ S|
    allowed: int  # |A ∩ P|, where P contains S

    @property
    def aer(self) -> float:
        """1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|) (Och & Ney 2003); 0 without any link."""
        total = self.links + self.sure
        return 1 - (self.sure_found + self.allowed) / total if total else 0.0

    @property
    def precision(self) -> float:
        """|A ∩ P| / |A|."""
        return self.allowed / self.links if self.links else 1.0

    @property
    def recall(self) -> float:
        """|A ∩ S| / |S|."""
        return self.sure_found / self.sure if self.sure else 1.0


def aer(
    hypothesis: Sequence["Alignment | str"],
    gold: Sequence["Alignment | str"],
    *,
    gold_base: int,
    hypothesis_base: int = 0,
) -> float:
    """Return the alignment error rate of a corpus, from 0 (correct) to 1.

    Both are `Alignment`s or lines. `gold_base`, the number of the first word in the gold lines, has no default: with
    the wrong one a good alignment scores as a bad one, without any other sign.
    """
    return count_corpus(
        parse_lines(hypothesis, hypothesis_base, "hypothesis"), parse_lines(gold, gold_base, "gold")
    ).aer


def count_links(predicted: Links, gold: Alignment) -> AlignmentCounts:
    return AlignmentCounts(len(predicted), len(gold.links), len(predicted & gold.links), len(predicted & gold.all))


def count_corpus(hypothesis: Sequence[Alignment], gold: Sequence[Alignment]) -> AlignmentCounts:
    if len(hypothesis) != len(gold):
        raise DataError(f"expected as many gold alignments as hypotheses, {len(hypothesis):,}, got {len(gold):,}")
    return sum_counts(count_links(predicted.all, correct) for predicted, correct in zip(hypothesis, gold, strict=True))


def sum_counts(counts: Iterable[AlignmentCounts]) -> AlignmentCounts:
    return AlignmentCounts(*map(sum, zip(AlignmentCounts(0, 0, 0, 0), *counts, strict=True)))


def parse_lines(lines: Sequence["Alignment | str"], base: int, name: str) -> list[Alignment]:
    """Parse alignment lines; an `Alignment` counts from 0 and is kept as it is."""
    check_base(base)
    if isinstance(lines, str):
        raise UsageError(f"{name} must be a sequence of lines, one for each sentence, got a single string")
    alignments = []
    for number, line in enumerate(lines, 1):
        if not isinstance(line, Alignment | str):
            raise UsageError(f"{name}, line {number:,}: expected an Alignment or a line such as 0-0 1-2, got {line!r}")
        try:
            alignments.append(line if isinstance(line, Alignment) else Alignment.parse(line, base))
        except DataError as error:
            raise DataError(f"{name}, line {number:,}: {error}") from None
    return alignments

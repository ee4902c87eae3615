"""Which word means which: links between the words of two sentences, joining two sets of them, and how wrong they are.

Words are counted from 0 within softgaze; a file may count from 1, and says so through its `base`. Knows no models.
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
    """Links of one sentence pair; those that are only `possible` come from a person who was not sure."""

    links: Links = frozenset()
    possible: Links = frozenset()  # beyond `links`

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", frozenset(self.links))
        object.__setattr__(self, "possible", frozenset(self.possible) - self.links)

    @classmethod
    def parse(cls, line: str, base: int = 0) -> "Alignment":
        """A line of a Pharaoh file (`0-0 1-2`) or of a talp file, where `1p2` (or `1-2:P`) is possible."""
        check_base(base)
        sure: set[Link] = set()
        possible: set[Link] = set()
        for text in line.split():
            link, is_sure = parse_link(text, base)
            (sure if is_sure else possible).add(link)
        return cls(frozenset(sure), frozenset(possible))

    @property
    def all(self) -> Links:
        """Sure and possible links together."""
        return self.links | self.possible

    def __str__(self) -> str:
        """Pharaoh, counted from 0; a possible link is written `1p2`."""
        return " ".join(f"{one}{'-' if (one, other) in self.links else 'p'}{other}" for one, other in sorted(self.all))

    def __iter__(self) -> Iterator[Link]:
        return iter(sorted(self.all))

    def __len__(self) -> int:
        return len(self.all)

    def __and__(self, other: "Alignment") -> "Alignment":
        return Alignment(self.all & other.all)

    def __or__(self, other: "Alignment") -> "Alignment":
        return Alignment(self.all | other.all)

    def turned(self) -> "Alignment":
        """The same links seen from the other language: what a reverse model says, in this one's order."""
        return Alignment(turn(self.links), turn(self.possible))

    def joined(self, reverse: "Alignment", method: str = "grow-diag-final") -> "Alignment":
        """With the links of a reverse model, already `turned`; the methods are those of `METHODS`."""
        return Alignment(pick("method", method, METHODS)(self.all, reverse.all))


def parse_link(text: str, base: int) -> tuple[Link, bool]:
    """(source, target) from 0, and whether it is sure."""
    found = LINK.fullmatch(text)
    if found is None:
        raise DataError(f"{text!r} is no link; they are written 1-2 (sure) or 1p2 (possible)")
    source, mark, target, label = found.groups()
    link = int(source) - base, int(target) - base
    if min(link) < 0:
        raise DataError(f"the link {text} has a 0, so its words are not counted from {base}")
    return link, mark == "-" and label != "P"


def check_base(base: int) -> None:
    """Files count words from 0 or from 1."""
    if base not in BASES:
        raise UsageError(f"words are counted from 0 or from 1, not from {base!r}")


def check_inside(found: Alignment, sizes: tuple[int, int], where: str, hint: str) -> None:
    """Links past the last word of a sentence come from another pair, or were counted from another number."""
    for link in found:
        for side, word, size in zip(("source", "target"), link, sizes, strict=True):
            if word >= size:
                words = f"{size} word{'' if size == 1 else 's'}, counted from 0"
                raise DataError(
                    f"{where}: the link {link[0]}-{link[1]} is past the end: its {side} has {words}; {hint}"
                )


def turn(links: Links) -> Links:
    """(target, source) of each."""
    return frozenset((other, one) for one, other in links)


# --- joining two directions -------------------------------------------------------------------------------------

NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def intersection(forward: Links, reverse: Links) -> Links:
    """What both say."""
    return forward & reverse


def union(forward: Links, reverse: Links) -> Links:
    """What either says."""
    return forward | reverse


def grow_diag(forward: Links, reverse: Links) -> Links:
    """From the intersection to neighbours, diagonal ones too, that one side says, while a word is free (Koehn 2003)."""
    either, grown = forward | reverse, set(forward & reverse)
    waiting = sorted(grown)
    for one, other in waiting:  # grows while it is walked
        for down, right in NEIGHBOURS:
            near = one + down, other + right
            if near in either and near not in grown and has_free_word(near, grown, any):
                grown.add(near)
                waiting.append(near)
    return frozenset(grown)


def grow_diag_final(forward: Links, reverse: Links) -> Links:
    """Then also the links of either side for which a word is still free."""
    return finish(grow_diag(forward, reverse), (forward, reverse), any)


def grow_diag_final_and(forward: Links, reverse: Links) -> Links:
    """Then only the links of either side for which both words are still free."""
    return finish(grow_diag(forward, reverse), (forward, reverse), all)


def finish(grown: Links, sides: Sequence[Links], enough: Callable[[Iterable[bool]], bool]) -> Links:
    """Add links side by side, in the order of the words."""
    links = set(grown)
    for side in sides:
        for link in sorted(side):
            if has_free_word(link, links, enough):
                links.add(link)
    return frozenset(links)


def has_free_word(link: Link, links: set[Link], enough: Callable[[Iterable[bool]], bool]) -> bool:
    """Whether any, or all, of the two words has no link yet."""
    return enough([all(link[0] != one for one, _ in links), all(link[1] != other for _, other in links)])


METHODS: dict[str, Callable[[Links, Links], Links]] = {
    "intersection": intersection,
    "union": union,
    "grow-diag": grow_diag,
    "grow-diag-final": grow_diag_final,
    "grow-diag-final-and": grow_diag_final_and,
}


# --- how wrong --------------------------------------------------------------------------------------------------


class Counts(NamedTuple):
    """What the error rate is made of; counts of several sentences add up."""

    links: int  # |A| that were found
    sure: int  # |S| that should be
    sure_found: int  # |A ∩ S|
    allowed: int  # |A ∩ P|, where P holds S

    @property
    def aer(self) -> float:
        """1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|) (Och & Ney 2003); 0 where there is nothing to find."""
        asked = self.links + self.sure
        return 1 - (self.sure_found + self.allowed) / asked if asked else 0.0

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
    """Alignment error rate of a corpus, from 0 (right) to 1 (nothing is).

    Both are `Alignment`s or lines. `gold_base` says where the words of the gold lines are counted from and has no
    default: read from the wrong number, a good alignment looks like a bad one and nothing else is seen.
    """
    return agreement(read_all(hypothesis, hypothesis_base, "hypothesis"), read_all(gold, gold_base, "gold")).aer


def agreement(hypothesis: Sequence[Alignment], gold: Sequence[Alignment]) -> Counts:
    """Counts over all sentences."""
    if len(hypothesis) != len(gold):
        raise DataError(f"{len(hypothesis):,} alignments cannot be scored against {len(gold):,} lines of gold")
    rows = [compared(found.all, right) for found, right in zip(hypothesis, gold, strict=True)]
    return Counts(*(sum(column) for column in zip(*rows, strict=True))) if rows else Counts(0, 0, 0, 0)


def compared(found: Links, right: Alignment) -> Counts:
    """Counts of one sentence."""
    return Counts(len(found), len(right.links), len(found & right.links), len(found & right.all))


def read_all(lines: Sequence["Alignment | str"], base: int, name: str) -> list[Alignment]:
    """Lines parsed; what is an `Alignment` already counts from 0, whatever the base."""
    check_base(base)
    if isinstance(lines, str):
        raise UsageError(f"the {name} is a sequence of lines, one for each sentence, not a single text")
    read = []
    for number, line in enumerate(lines, 1):
        if not isinstance(line, Alignment | str):
            raise UsageError(f"{name}, line {number:,}: links are an Alignment or a line such as 0-0 1-2, not {line!r}")
        try:
            read.append(line if isinstance(line, Alignment) else Alignment.parse(line, base))
        except DataError as error:
            raise DataError(f"{name}, line {number:,}: {error}") from None
    return read

"""Encoded pairs on disk, memory-mapped: encoded once, read at random, never held in memory.

A shard is four raw little-endian files: tokens and offsets of each side; two more if the pairs have links. This file
knows nothing of text or batches.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import numpy.typing

from softgaze.errors import DataError

Array = numpy.typing.NDArray[Any]
Ids = tuple[list[int], list[int]]  # source, target
LinkedIds = tuple[list[int], list[int], list[int]]  # and the links between them: three numbers each
Row = Ids | LinkedIds

PAIRS = 1 << 20  # pairs in a shard: small enough to copy about, large enough that nobody counts files
BUFFER = 1 << 14  # pairs written at once
SIDES, LINKS = ("source", "target"), "links"


def write_shards(directory: Path, pairs: Iterable[Row], vocabulary: int, largest_link: int | None = None) -> int:
    """Write encoded pairs; returns how many. `directory` must be new: the caller renames it when all is there.

    The pairs have links if `largest_link` is given: the largest number that may stand in one.
    """
    directory.mkdir(parents=True)
    kinds = dict.fromkeys(SIDES, kind_for(vocabulary - 1))
    if largest_link is not None:
        kinds[LINKS] = kind_for(largest_link)
    stream, number, total = iter(pairs), 0, 0
    while count := write_shard(directory / f"shard-{number:05d}", islice(stream, PAIRS), kinds):
        number, total = number + 1, total + count
    facts = {"kind": kinds["source"], "links": kinds.get(LINKS), "shards": number, "pairs": total}
    (directory / "shards.json").write_text(json.dumps(facts))
    return total


def kind_for(largest: int) -> str:
    """The smaller kind of number that holds it."""
    return "<u2" if largest < 1 << 16 else "<u4"


def write_shard(stem: Path, pairs: Iterator[Row], kinds: dict[str, str]) -> int:
    """One shard's files, of so many sides; returns its number of pairs, 0 when there was nothing left to write."""
    total, ends = 0, dict.fromkeys(kinds, 0)
    while block := list(islice(pairs, BUFFER)):
        for place, (side, kind) in enumerate(kinds.items()):
            rows = [pair[place] for pair in block]
            lengths = numpy.array([len(row) for row in rows], dtype="<i8")
            offsets = ends[side] + lengths.cumsum()
            append(stem, f"{side}.tokens", numpy.array([token for row in rows for token in row], dtype=kind))
            append(stem, f"{side}.offsets", offsets if total else numpy.concatenate([[0], offsets]))
            ends[side] = int(offsets[-1])
        total += len(block)
    return total


def append(stem: Path, ending: str, values: Array) -> None:
    """Add to one of the files."""
    with open(f"{stem}.{ending}", "ab") as file:
        file.write(values.astype(values.dtype.newbyteorder("<")).tobytes())


@dataclass(frozen=True)
class Side:
    """One side of one shard."""

    tokens: Array
    offsets: Array  # one more than there are rows

    @classmethod
    def open(cls, stem: Path, side: str, kind: str) -> "Side":
        """Map it; a file without a byte, as of pairs that have no links, cannot be mapped."""
        path = Path(f"{stem}.{side}.tokens")
        tokens = numpy.memmap(path, dtype=kind, mode="r") if path.stat().st_size else numpy.empty(0, dtype=kind)
        return cls(tokens, numpy.memmap(f"{stem}.{side}.offsets", dtype="<i8", mode="r"))

    def __getitem__(self, row: int) -> Array:
        return numpy.asarray(self.tokens[self.offsets[row] : self.offsets[row + 1]])

    def lengths(self, rows: Array) -> Array:
        """Tokens in each of `rows`."""
        return numpy.asarray(self.offsets[rows + 1] - self.offsets[rows])


class Rows(NamedTuple):
    """Rows of ids, one after the other: each id, and which row and column it belongs to."""

    tokens: Array
    row: Array
    column: Array
    lengths: Array  # of each row


class Shards:
    """All encoded pairs of a corpus, by number."""

    def __init__(self, directory: Path) -> None:
        try:
            facts = json.loads((directory / "shards.json").read_text())
        except (OSError, ValueError) as error:
            raise DataError(f"{directory}: holds no encoded text; remove it and run the command again") from error
        self.count: int = facts["pairs"]
        stems = [directory / f"shard-{number:05d}" for number in range(facts["shards"])]
        self.parts = [tuple(Side.open(stem, side, facts["kind"]) for side in SIDES) for stem in stems]
        kind = facts.get("links")
        self.link_parts = [Side.open(stem, LINKS, kind) for stem in stems] if kind else None

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> tuple[Array, Array]:
        """Ids of pair `number`: source, target."""
        source, target = self.parts[number // PAIRS]
        return source[number % PAIRS], target[number % PAIRS]

    @property
    def has_links(self) -> bool:
        """Whether pairs may have links."""
        return self.link_parts is not None

    def links(self, number: int) -> Array:
        """Links (N, 3) of pair `number`."""
        if self.link_parts is None:
            raise ValueError("these pairs were written without links")
        return self.link_parts[number // PAIRS][number % PAIRS].reshape(-1, 3)

    def lengths(self, numbers: Array) -> Array:
        """Lengths (N, 2) of the pairs `numbers` (N,)."""
        result = numpy.empty((len(numbers), 2), dtype=numpy.int64)
        shard, row = numbers // PAIRS, numbers % PAIRS
        for part in numpy.unique(shard):
            here = shard == part
            for place, side in enumerate(self.parts[part]):
                result[here, place] = side.lengths(row[here])
        return result

    def gather(self, numbers: Array) -> tuple["Rows", "Rows"]:
        """Ids of many pairs at once: source, target."""
        shard, row = numbers // PAIRS, numbers % PAIRS
        lengths = self.lengths(numbers)
        rows = []
        for place, own in enumerate(lengths.T):
            column = numpy.arange(own.sum()) - (own.cumsum() - own).repeat(own)
            tokens = numpy.empty(len(column), dtype=numpy.int64)
            for part in numpy.unique(shard):
                side, here = self.parts[part][place], shard == part
                inside = here.repeat(own)
                tokens[inside] = side.tokens[side.offsets[row[here]].repeat(own[here]) + column[inside]]
            rows.append(Rows(tokens, numpy.arange(len(own)).repeat(own), column, own))
        return rows[0], rows[1]

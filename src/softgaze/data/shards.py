"""Encoded pairs on disk, memory-mapped: encoded once, read at random, never held in memory.

A shard is four raw little-endian files: tokens and offsets of each side. This file knows nothing of text or batches.
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

PAIRS = 1 << 20  # pairs in a shard: small enough to copy about, large enough that nobody counts files
BUFFER = 1 << 14  # pairs written at once
SIDES = ("source", "target")


def write_shards(directory: Path, pairs: Iterable[Ids], vocabulary: int) -> int:
    """Write encoded pairs; returns how many. `directory` must be new: the caller renames it when all is there."""
    directory.mkdir(parents=True)
    kind = "<u2" if vocabulary <= 1 << 16 else "<u4"
    stream, number, total = iter(pairs), 0, 0
    while count := write_shard(directory / f"shard-{number:05d}", islice(stream, PAIRS), kind):
        number, total = number + 1, total + count
    (directory / "shards.json").write_text(json.dumps({"kind": kind, "shards": number, "pairs": total}))
    return total


def write_shard(stem: Path, pairs: Iterator[Ids], kind: str) -> int:
    """One shard's four files; returns its number of pairs, 0 when there was nothing left to write."""
    total, ends = 0, dict.fromkeys(SIDES, 0)
    while block := list(islice(pairs, BUFFER)):
        for place, side in enumerate(SIDES):
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
        self.parts = [self.open_shard(directory, number, facts["kind"]) for number in range(facts["shards"])]

    @staticmethod
    def open_shard(directory: Path, number: int, kind: str) -> tuple[Side, Side]:
        """Map both sides of one shard."""
        sides = []
        for side in SIDES:
            stem = f"{directory / f'shard-{number:05d}'}.{side}"
            tokens = numpy.memmap(f"{stem}.tokens", dtype=kind, mode="r")
            sides.append(Side(tokens, numpy.memmap(f"{stem}.offsets", dtype="<i8", mode="r")))
        return sides[0], sides[1]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> tuple[Array, Array]:
        """Ids of pair `number`: source, target."""
        source, target = self.parts[number // PAIRS]
        return source[number % PAIRS], target[number % PAIRS]

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

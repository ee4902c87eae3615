"""Encoded pairs on disk, memory-mapped: encoded once, read at random, never held in memory.

A shard is four raw little-endian files: tokens and offsets of each side; two more if the pairs have links. A source may
be of vectors instead of tokens; pairs that follow each other may then share one, and another file says which source is
whose. This file knows nothing of text or batches.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import numpy.typing

from softgaze.errors import DataError

Array = numpy.typing.NDArray[Any]
Source = Sequence[Any]  # ids, or vectors
Ids = tuple[Source, list[int]]  # source, target
LinkedIds = tuple[Source, list[int], list[int]]  # and the links between them: three numbers each
Row = Ids | LinkedIds

PAIRS = 1 << 20  # pairs in a shard: small enough to copy about, large enough that nobody counts files
BUFFER = 1 << 14  # pairs written at once
SIDES, LINKS = ("source", "target"), "links"


class Vectors(NamedTuple):
    """What a source is made of, if not of ids."""

    kind: str  # of its numbers
    width: int  # how many an item has


def write_shards(
    directory: Path,
    pairs: Iterable[Row],
    vocabulary: int,
    largest_link: int | None = None,
    vectors: Vectors | None = None,
) -> int:
    """Write encoded pairs; returns how many. `directory` must be new: the caller renames it when all is there.

    The pairs have links if `largest_link` is given: the largest number that may stand in one. Sources are of ids unless
    `vectors` says otherwise.
    """
    directory.mkdir(parents=True)
    kinds = dict.fromkeys(SIDES, kind_for(vocabulary - 1))
    if largest_link is not None:
        kinds[LINKS] = kind_for(largest_link)
    stream, number, total = iter(pairs), 0, 0
    while count := write_shard(directory / f"shard-{number:05d}", islice(stream, PAIRS), kinds, vectors):
        number, total = number + 1, total + count
    facts = {"kind": kinds["target"], "links": kinds.get(LINKS), "shards": number, "pairs": total, "vectors": vectors}
    (directory / "shards.json").write_text(json.dumps(facts))
    return total


def kind_for(largest: int) -> str:
    """The smaller kind of number that holds it."""
    return "<u2" if largest < 1 << 16 else "<u4"


def write_shard(stem: Path, pairs: Iterator[Row], kinds: dict[str, str], vectors: Vectors | None) -> int:
    """One shard's files, of so many sides; returns its number of pairs, 0 when there was nothing left to write."""
    writers: list[IdWriter] = [IdWriter(stem, side, kind) for side, kind in kinds.items()]
    if vectors is not None:
        writers[0] = VectorWriter(stem, SIDES[0], vectors.kind)
    total = 0
    while block := list(islice(pairs, max(1, BUFFER // (vectors.width if vectors else 1)))):
        for place, writer in enumerate(writers):
            writer.add([pair[place] for pair in block])
        total += len(block)
    return total


class IdWriter:
    """Writes one side of a shard."""

    def __init__(self, stem: Path, side: str, kind: str) -> None:
        self.stem, self.side, self.kind = stem, side, kind
        self.end = self.rows = 0  # items and rows so far

    def add(self, rows: Sequence[Any]) -> None:
        """Some more rows."""
        offsets = self.end + numpy.array([len(row) for row in rows], dtype="<i8").cumsum()
        append(self.stem, f"{self.side}.tokens", self.flat(rows))
        append(self.stem, f"{self.side}.offsets", offsets if self.rows else numpy.concatenate([[0], offsets]))
        self.end, self.rows = int(offsets[-1]), self.rows + len(rows)

    def flat(self, rows: Sequence[Any]) -> Array:
        """All ids, one after the other."""
        return numpy.array([token for row in rows for token in row], dtype=self.kind)


class VectorWriter(IdWriter):
    """Writes sources of vectors, each once while it is the same object as the one before."""

    last: Any = None

    def add(self, rows: Sequence[Any]) -> None:
        """Those that are new, and which each pair has."""
        new = [row is not before for before, row in pairwise([self.last, *rows])]
        append(self.stem, f"{self.side}.rows", self.rows - 1 + numpy.array(new, dtype="<i8").cumsum())
        self.last = rows[-1]
        if any(new):
            super().add([row for row, is_new in zip(rows, new, strict=True) if is_new])

    def flat(self, rows: Sequence[Any]) -> Array:
        """All vectors, one after the other."""
        return numpy.concatenate([numpy.asarray(row, dtype=self.kind) for row in rows])


def append(stem: Path, ending: str, values: Array) -> None:
    """Add to one of the files."""
    with open(f"{stem}.{ending}", "ab") as file:
        file.write(values.astype(values.dtype.newbyteorder("<")).tobytes())


@dataclass(frozen=True)
class Side:
    """One side of one shard."""

    tokens: Array
    offsets: Array  # one more than there are rows
    rows: Array | None = None  # which of them each pair has; else they are in the order of the pairs

    @classmethod
    def open(cls, stem: Path, side: str, kind: str) -> "Side":
        """Map it; a file without a byte, as of pairs that have no links, cannot be mapped."""
        path = Path(f"{stem}.{side}.tokens")
        tokens = numpy.memmap(path, dtype=kind, mode="r") if path.stat().st_size else numpy.empty(0, dtype=kind)
        return cls(tokens, numpy.memmap(f"{stem}.{side}.offsets", dtype="<i8", mode="r"))

    @classmethod
    def open_vectors(cls, stem: Path, vectors: Vectors) -> "Side":
        """Map sources of vectors."""
        side = cls.open(stem, SIDES[0], vectors.kind)
        rows = numpy.memmap(f"{stem}.{SIDES[0]}.rows", dtype="<i8", mode="r")
        return cls(side.tokens.reshape(-1, vectors.width), side.offsets, rows)

    def __getitem__(self, row: int) -> Array:
        start, end = self.edges(numpy.array([row]))
        return numpy.asarray(self.tokens[int(start[0]) : int(end[0])])

    def edges(self, rows: Array) -> tuple[Array, Array]:
        """Where each of `rows` begins and ends."""
        own = rows if self.rows is None else self.rows[rows]
        return numpy.asarray(self.offsets[own]), numpy.asarray(self.offsets[own + 1])

    def lengths(self, rows: Array) -> Array:
        """Tokens in each of `rows`."""
        starts, ends = self.edges(rows)
        return ends - starts


class Rows(NamedTuple):
    """Rows of ids, one after the other: each id (or vector), and which row and column it belongs to."""

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
        vectors = facts.get("vectors")
        self.vectors = Vectors(*vectors) if vectors else None
        self.parts = [
            (self.open_source(stem, facts["kind"]), Side.open(stem, "target", facts["kind"])) for stem in stems
        ]
        kind = facts.get("links")
        self.link_parts = [Side.open(stem, LINKS, kind) for stem in stems] if kind else None

    def open_source(self, stem: Path, kind: str) -> Side:
        """Of ids or vectors."""
        return Side.open(stem, "source", kind) if self.vectors is None else Side.open_vectors(stem, self.vectors)

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
            vectors = self.vectors if place == 0 else None
            size = (len(column), vectors.width) if vectors else len(column)
            tokens = numpy.empty(size, dtype=vectors.kind if vectors else numpy.int64)
            for part in numpy.unique(shard):
                side, here = self.parts[part][place], shard == part
                inside = here.repeat(own)
                tokens[inside] = side.tokens[side.edges(row[here])[0].repeat(own[here]) + column[inside]]
            rows.append(Rows(tokens, numpy.arange(len(own)).repeat(own), column, own))
        return rows[0], rows[1]

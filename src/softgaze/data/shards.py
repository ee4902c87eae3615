"""Encoded pairs on disk, memory-mapped: written once, read at random, never held in memory.

A shard is a set of raw little-endian files: tokens and row offsets of source and target, and of the alignment links if
there are any. A source may be a sequence of vectors instead of ids; consecutive pairs may then share one source, and a
further file maps pairs to sources.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softgaze.errors import DataError

Array = npt.NDArray[Any]
EncodedPair = tuple[Sequence[Any], list[int]]  # source ids or vectors, target ids
EncodedAlignedPair = tuple[Sequence[Any], list[int], list[int]]  # with links, three numbers each

PAIRS = 1 << 20  # pairs per shard
BUFFER = 1 << 14  # pairs written at once
SIDES, LINKS = ("source", "target"), "links"


class VectorSpec(NamedTuple):
    """Data type and width of sources that are vectors."""

    dtype: str
    width: int


def write_shards(
    directory: Path,
    pairs: Iterable[EncodedPair | EncodedAlignedPair],
    vocabulary: int,
    largest_link: int | None = None,
    vectors: VectorSpec | None = None,
) -> int:
    """Write encoded pairs to a new directory and return how many there were.

    The pairs have links if `largest_link`, the largest number in a link, is given. Sources are ids unless `vectors` is
    given.
    """
    directory.mkdir(parents=True)
    dtypes = dict.fromkeys(SIDES, _uint_dtype(vocabulary - 1))
    if largest_link is not None:
        dtypes[LINKS] = _uint_dtype(largest_link)
    stream, shards, total = iter(pairs), 0, 0
    while count := _write_shard(directory / f"shard-{shards:05d}", islice(stream, PAIRS), dtypes, vectors):
        shards, total = shards + 1, total + count
    facts = {"kind": dtypes["target"], "links": dtypes.get(LINKS), "shards": shards, "pairs": total, "vectors": vectors}
    (directory / "shards.json").write_text(json.dumps(facts))
    return total


def _uint_dtype(largest: int) -> str:
    return "<u2" if largest < 1 << 16 else "<u4"


def _write_shard(stem: Path, pairs: Iterator[Any], dtypes: dict[str, str], vectors: VectorSpec | None) -> int:
    """Write one shard and return its number of pairs, 0 if none are left."""
    writers = [_IdWriter(stem, side, dtype) for side, dtype in dtypes.items()]
    if vectors is not None:
        writers[0] = _VectorWriter(stem, SIDES[0], vectors.dtype)
    total = 0
    while block := list(islice(pairs, max(1, BUFFER // (vectors.width if vectors else 1)))):
        for column, writer in enumerate(writers):
            writer.write([pair[column] for pair in block])
        total += len(block)
    return total


class _IdWriter:
    def __init__(self, stem: Path, side: str, dtype: str) -> None:
        self.stem, self.side, self.dtype = stem, side, dtype
        self.num_items = self.num_rows = 0

    def write(self, rows: Sequence[Any]) -> None:
        ends = self.num_items + np.array([len(row) for row in rows], dtype="<i8").cumsum()
        self.append("tokens", self.flatten(rows))
        self.append("offsets", ends if self.num_rows else np.concatenate([[0], ends]))
        self.num_items, self.num_rows = int(ends[-1]), self.num_rows + len(rows)

    def flatten(self, rows: Sequence[Any]) -> Array:
        return np.array([token for row in rows for token in row], dtype=self.dtype)

    def append(self, suffix: str, values: Array) -> None:
        with open(f"{self.stem}.{self.side}.{suffix}", "ab") as file:
            file.write(values.astype(values.dtype.newbyteorder("<")).tobytes())


class _VectorWriter(_IdWriter):
    """Writes a source once while it is the same object as the one before."""

    last: Any = None

    def write(self, rows: Sequence[Any]) -> None:
        new = [row is not previous for previous, row in pairwise([self.last, *rows])]
        self.append("rows", self.num_rows - 1 + np.array(new, dtype="<i8").cumsum())
        self.last = rows[-1]
        if any(new):
            super().write([row for row, is_new in zip(rows, new, strict=True) if is_new])

    def flatten(self, rows: Sequence[Any]) -> Array:
        return np.concatenate([np.asarray(row, dtype=self.dtype) for row in rows])


@dataclass(frozen=True)
class _Column:
    """One side of one shard."""

    tokens: Array
    offsets: Array  # one more than rows
    rows: Array | None = None  # the row of each pair; None: pair n has row n

    @classmethod
    def open(cls, stem: Path, side: str, dtype: str) -> "_Column":
        path = Path(f"{stem}.{side}.tokens")
        # An empty file, as of pairs without links, cannot be mapped.
        tokens = np.memmap(path, dtype=dtype, mode="r") if path.stat().st_size else np.empty(0, dtype=dtype)
        return cls(tokens, np.memmap(f"{stem}.{side}.offsets", dtype="<i8", mode="r"))

    @classmethod
    def open_vectors(cls, stem: Path, vectors: VectorSpec) -> "_Column":
        column = cls.open(stem, SIDES[0], vectors.dtype)
        rows = np.memmap(f"{stem}.{SIDES[0]}.rows", dtype="<i8", mode="r")
        return cls(column.tokens.reshape(-1, vectors.width), column.offsets, rows)

    def __getitem__(self, pair: int) -> Array:
        starts, ends = self.bounds(np.array([pair]))
        return np.asarray(self.tokens[int(starts[0]) : int(ends[0])])

    def bounds(self, pairs: Array) -> tuple[Array, Array]:
        """Return where the tokens of each pair start and end."""
        rows = pairs if self.rows is None else self.rows[pairs]
        return np.asarray(self.offsets[rows]), np.asarray(self.offsets[rows + 1])


class RaggedRows(NamedTuple):
    """Concatenated rows of ids or vectors, with the row and column of each, and the length of each row."""

    tokens: Array
    row: Array
    column: Array
    lengths: Array


class Shards:
    """All encoded pairs of a corpus, by index."""

    def __init__(self, directory: Path) -> None:
        try:
            facts = json.loads((directory / "shards.json").read_text())
        except (OSError, ValueError) as error:
            raise DataError(f"{directory}: no encoded text in it; remove it and run the command again") from error
        self.count: int = facts["pairs"]
        self.vectors = VectorSpec(*facts["vectors"]) if facts.get("vectors") else None
        stems = [directory / f"shard-{index:05d}" for index in range(facts["shards"])]
        targets = [_Column.open(stem, "target", facts["kind"]) for stem in stems]
        if self.vectors is None:
            sources = [_Column.open(stem, "source", facts["kind"]) for stem in stems]
        else:
            sources = [_Column.open_vectors(stem, self.vectors) for stem in stems]
        self.shards = list(zip(sources, targets, strict=True))
        dtype = facts.get("links")
        self.link_shards = [_Column.open(stem, LINKS, dtype) for stem in stems] if dtype else None

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, pair: int) -> tuple[Array, Array]:
        """Return the ids of a pair: source, target."""
        source, target = self.shards[pair // PAIRS]
        return source[pair % PAIRS], target[pair % PAIRS]

    def source_rows(self) -> Array:
        """Return a number for each pair; consecutive pairs that share a source have the same one."""
        columns = [source.rows for source, _ in self.shards if source.rows is not None]
        starts = np.cumsum([0, *(int(rows[-1]) + 1 for rows in columns)])
        return np.concatenate([np.asarray(rows) + start for rows, start in zip(columns, starts, strict=False)])

    @property
    def has_links(self) -> bool:
        """Return whether the pairs were written with alignment links."""
        return self.link_shards is not None

    def links(self, pair: int) -> Array:
        """Return the links (N, 3) of a pair."""
        if self.link_shards is None:
            raise ValueError("these pairs were written without links")
        return self.link_shards[pair // PAIRS][pair % PAIRS].reshape(-1, 3)

    def lengths(self, pairs: Array) -> Array:
        """Return the lengths (N, 2) of the pairs (N,): source, target."""
        result = np.empty((len(pairs), 2), dtype=np.int64)
        shard_index, row = pairs // PAIRS, pairs % PAIRS
        for shard in np.unique(shard_index):
            here = shard_index == shard
            for side, column in enumerate(self.shards[shard]):
                starts, ends = column.bounds(row[here])
                result[here, side] = ends - starts
        return result

    def gather(self, pairs: Array, lengths_of_pairs: Array | None = None) -> tuple[RaggedRows, RaggedRows]:
        """Return the ids of many pairs at once: sources, targets. Known lengths (N, 2) save a lookup."""
        shard_index, row = pairs // PAIRS, pairs % PAIRS
        sides = []
        if lengths_of_pairs is None:
            lengths_of_pairs = self.lengths(pairs)
        for side, lengths in enumerate(lengths_of_pairs.T):
            position = np.arange(lengths.sum()) - (lengths.cumsum() - lengths).repeat(lengths)
            vectors = self.vectors if side == 0 else None
            shape = (len(position), vectors.width) if vectors else len(position)
            tokens = np.empty(shape, dtype=vectors.dtype if vectors else np.int64)
            for shard in np.unique(shard_index):
                column, here = self.shards[shard][side], shard_index == shard
                inside = here.repeat(lengths)
                starts = column.bounds(row[here])[0].repeat(lengths[here])
                tokens[inside] = column.tokens[starts + position[inside]]
            sides.append(RaggedRows(tokens, np.arange(len(lengths)).repeat(lengths), position, lengths))
        return sides[0], sides[1]

"""Sentence pairs as arrays: groups of equal shape, and an index of the pairs of parts that occur together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from unicodedata import combining, normalize

import numpy as np
from numpy.typing import NDArray

from softgaze.alignment.words import Pairs

Ids = NDArray[np.int64]
Values = NDArray[np.float32]
Floats = NDArray[np.float64]

PREFIX = 14  # characters compared
SIMILARITY_BINS = 12
SLICE = 1 << 18  # pairs of parts compared at once


class Group(NamedTuple):
    """Sentence pairs of the same lengths."""

    numbers: Ids  # (B,) of the pairs
    cells: slice  # where their B·T·S cells are in `Cooccurrences.pair_of`
    shape: tuple[int, int, int]  # B, T, S


class Vocabulary:
    """Distinct strings with their ids, in order of appearance."""

    def __init__(self, items: Iterable[str] = ()) -> None:
        self.ids: dict[str, int] = {}
        for item in items:
            self.add(item)

    def add(self, item: str) -> int:
        return self.ids.setdefault(item, len(self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def find(self, items: Iterable[str]) -> Ids:
        """Return the id of each item, -1 for an unknown one."""
        return np.fromiter((self.ids.get(item, -1) for item in items), np.int64)


@dataclass(frozen=True)
class Cooccurrences:
    """Every source part × target part of some sentence pairs. A *pair of parts* is stored once, cells point to it."""

    source: Vocabulary
    target: Vocabulary
    source_frequency: Ids
    target_frequency: Ids
    groups: list[Group]
    keys: Ids  # sorted, source id · target vocabulary + target id
    pair_of: NDArray[np.int32]  # of each cell of each group, target parts before source parts

    @classmethod
    def of(cls, pairs: Pairs) -> "Cooccurrences":
        """Index sentence pairs; pairs with an empty side are in no group."""
        source, target = Vocabulary(), Vocabulary()
        by_shape: dict[tuple[int, int], list[int]] = {}
        encoded: list[tuple[list[int], list[int]]] = []
        for number, (one, other) in enumerate(pairs):
            encoded.append(([source.add(part) for part in one.parts], [target.add(part) for part in other.parts]))
            if one.parts and other.parts:
                by_shape.setdefault((len(one.parts), len(other.parts)), []).append(number)
        groups: list[Group] = []
        start = 0
        keys: list[Ids] = []
        frequencies = np.zeros(len(source), np.int64), np.zeros(len(target), np.int64)
        for (sources, targets), numbers in sorted(by_shape.items()):
            shape = len(numbers), targets, sources
            sides = [np.array([encoded[number][side] for number in numbers], np.int64) for side in (0, 1)]
            for frequency, side in zip(frequencies, sides, strict=True):
                frequency += np.bincount(side.ravel(), minlength=len(frequency))
            keys.append((sides[0][:, None, :] * len(target) + sides[1][:, :, None]).ravel())
            groups.append(Group(np.array(numbers), slice(start, start := start + len(keys[-1])), shape))
        cells = np.concatenate(keys) if keys else np.zeros(0, np.int64)
        unique, pair_of = np.unique(cells, return_inverse=True)
        return cls(source, target, *frequencies, groups, unique, pair_of.astype(np.int32))

    @cached_property
    def source_ids(self) -> Ids:
        return self.keys // max(1, len(self.target))

    @cached_property
    def target_ids(self) -> Ids:
        return self.keys % max(1, len(self.target))

    @cached_property
    def counts(self) -> Floats:
        """How often each pair of parts occurs together."""
        return np.bincount(self.pair_of, minlength=len(self.keys)).astype(np.float64)

    @cached_property
    def similarity(self) -> NDArray[np.int8]:
        """The similarity bin of each pair of parts."""
        sides = [character_matrix(side) for side in (self.source, self.target)]
        bins = np.empty(len(self.keys), np.int8)
        for start in range(0, len(self.keys), SLICE):
            rows = slice(start, start + SLICE)
            ids = self.source_ids[rows], self.target_ids[rows]
            bins[rows] = similarity_bins(*(side[index] for side, index in zip(sides, ids, strict=True)))
        return bins


def sum_by_id(ids: NDArray[np.integer], values: NDArray[np.floating], size: int) -> Floats:
    """Return the sum of the values of each id below `size`."""
    return np.bincount(ids, values, size).astype(np.float64, copy=False)


def character_matrix(words: Iterable[str]) -> NDArray[np.uint32]:
    """Return (words, PREFIX) characters without accents, 0 behind the end."""
    plain = ("".join(char for char in normalize("NFD", word) if not combining(char))[:PREFIX] for word in words)
    strings = np.array([word or " " for word in plain], dtype=f"U{PREFIX}")
    return np.ascontiguousarray(strings).view(np.uint32).reshape(len(strings), PREFIX)


def similarity_bins(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> NDArray[np.int8]:
    """Return 0 without a common first letter, up to 8 by the common share, then 9 to 11 for equal strings by length."""
    prefix = np.logical_and.accumulate((one == other) & (one > 0), axis=1).sum(1)
    longest = np.maximum((one > 0).sum(1), (other > 0).sum(1))
    share = prefix / np.maximum(longest, 1)
    bins = np.where(prefix > 0, 1 + np.minimum(share * 8, 7), 0)
    return np.where(share == 1, 9 + (longest >= 2) + (longest >= 4), bins).astype(np.int8)


def blocks_of_cells(pairs: Pairs, max_cells: int) -> Iterator[Sequence[int]]:
    """Yield the numbers of consecutive pairs whose cells fit into `max_cells`; a single pair may have more."""
    block: list[int] = []
    cells = 0
    for number, (one, other) in enumerate(pairs):
        size = len(one.parts) * len(other.parts)
        if block and cells + size > max_cells:
            yield block
            block, cells = [], 0
        block.append(number)
        cells += size
    if block:
        yield block

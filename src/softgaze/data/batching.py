"""Batches of pairs of similar length: a pure function of (seed, step), in constant memory.

Each epoch has its own random order of the pairs. The order is cut into pools of about `POOL` batches; a pool is sorted
by length, cut by token budget, and its batches are shuffled. The order is a keyed permutation, computed where needed.
General-domain pairs may be mixed in: each epoch takes the next ones of a random order, whose end is its next beginning.

Where files have several captions, an epoch has rounds: each round has every file once, with another of its captions. So
every file counts equally, however many captions it has, and a batch hardly ever has one file twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from softgaze.data.shards import Shards

Array = NDArray[Any]

POOL = 64  # batches sorted together: more reduce padding, fewer keep more randomness


class Batch(NamedTuple):
    """The indices of the pairs of one batch, and its epoch."""

    pairs: Array
    epoch: int


@dataclass(frozen=True)
class BatchSampler:
    """The endless sequence of training batches."""

    shards: "Shards"
    tokens: int  # budget: rows × longest sequence of either side
    seed: int
    mixed: int = 0  # general-domain pairs, the last ones of the shards
    mixed_per_epoch: int = 0  # of these
    segmentations: int = 1  # consecutive rows of the shards that are one training pair; epochs take turns

    @property
    def num_pairs(self) -> int:
        """Return the number of training pairs."""
        return (len(self.shards) - self.mixed) // self.segmentations

    @property
    def epoch_size(self) -> int:
        """Pairs per epoch: all but the general-domain ones, and some of those; of files, as many from each."""
        if self.files is not None:
            return self.files.rounds * len(self.files.starts)
        return self.num_pairs + self.mixed_per_epoch

    @cached_property
    def files(self) -> "CaptionedFiles | None":
        """The pairs of each file, if files have several captions; pairs of text are independent of each other."""
        files = CaptionedFiles.of(self.shards.source_rows()) if self.shards.vectors and not self.mixed else None
        return files if files and files.rounds > 1 else None

    def batches_from(self, step: int) -> Iterator[Batch]:
        """Yield the batches from number `step` on."""
        epoch, skip = 0, step
        while True:
            for pool in range(self.num_pools()):
                batches = self.pool_batches(epoch, pool)
                if skip >= len(batches):  # skipped without reading a token
                    skip -= len(batches)
                    continue
                for pairs in batches[skip:]:
                    yield Batch(pairs, epoch)
                skip = 0
            epoch += 1

    def num_pools(self) -> int:
        """Return the number of pools per epoch."""
        return -(-self.epoch_size // self.pool_size())

    @lru_cache(maxsize=1)  # noqa: B019  one small object lives as long as its run
    def pool_size(self) -> int:
        """Return how many pairs make about `POOL` batches, estimated from an even sample."""
        sample = np.linspace(0, len(self.shards) - 1, min(len(self.shards), 1000)).astype(np.int64)
        mean = self.shards.lengths(sample).max(axis=1).mean()
        return min(self.epoch_size, max(1, int(POOL * self.tokens / mean)))

    def pool_batches(self, epoch: int, pool: int) -> list[Array]:
        start = pool * self.pool_size()
        positions = np.arange(start, min(start + self.pool_size(), self.epoch_size))
        if self.files is not None:
            pairs = self.files.pairs(positions, self.seed, epoch)
        else:
            pairs = self.rows(permute(positions, self.epoch_size, hash_key(self.seed, epoch)), epoch)
        lengths = self.shards.lengths(pairs)
        longest = lengths.max(axis=1)
        if (lengths[:, 0] == longest[0]).all():
            # Sources of one length, such as images, stay shuffled: sorted by caption length, a batch would contain
            # only one kind of scene.
            order = np.arange(len(pairs))
        else:
            order = np.lexsort((lengths[:, 0], lengths[:, 1], longest))
        batches = np.split(pairs[order], split_by_budget(longest[order], self.tokens))
        rng = np.random.default_rng([self.seed, epoch, pool])
        return [batches[index] for index in rng.permutation(len(batches))]

    def rows(self, pairs: Array, epoch: int) -> Array:
        """Return the row of each training pair with the segmentation of this epoch.

        Indices after the training pairs stand for general-domain pairs, none of them twice before all were used.
        """
        result = pairs * self.segmentations + epoch % self.segmentations
        is_general = pairs >= self.num_pairs
        if not is_general.any():
            return result
        passes, positions = np.divmod(epoch * self.mixed_per_epoch + pairs[is_general] - self.num_pairs, self.mixed)
        drawn = np.empty_like(positions)
        for number in np.unique(passes).tolist():
            here = passes == number
            drawn[here] = permute(positions[here], self.mixed, hash_key(self.seed, number, self.mixed))
        result[is_general] = len(self.shards) - self.mixed + drawn
        return result


class CaptionedFiles(NamedTuple):
    """The consecutive pairs of each file."""

    starts: Array
    counts: Array
    rounds: int  # of an epoch: captions that a file usually has

    @classmethod
    def of(cls, rows: Array) -> "CaptionedFiles":
        """Group pairs by the row of their source."""
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        counts = np.diff(starts, append=len(rows))
        return cls(starts, counts, int(np.median(counts)))

    def pairs(self, positions: Array, seed: int, epoch: int) -> Array:
        """Return the pairs at these positions of an epoch; later epochs continue with the captions not used yet."""
        rounds, order = np.divmod(positions, len(self.starts))
        files = np.empty_like(order)
        for number in np.unique(rounds).tolist():
            here = rounds == number
            files[here] = permute(order[here], len(self.starts), hash_key(seed, epoch, number, 2))
        first = permute(np.arange(len(self.starts)), len(self.starts), hash_key(seed, 3))[files]  # differs by file
        result: Array = self.starts[files] + (first + epoch * self.rounds + rounds) % self.counts[files]
        return result


def permute(positions: Array, count: int, key: int) -> Array:
    """Map positions to a keyed random permutation of range(count) without building a table of it.

    A four-round Feistel network permutes the next power of four; results outside the range are permuted again.
    """
    half = max(1, (int(count - 1).bit_length() + 1) // 2)
    mask = np.uint64((1 << half) - 1)
    keys = np.random.SeedSequence(key).generate_state(4, np.uint64)
    result = positions.astype(np.uint64)
    outside = np.ones(len(result), dtype=bool)
    while outside.any():
        left, right = result[outside] >> np.uint64(half), result[outside] & mask
        for round_key in keys:
            mixed = (right ^ round_key) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0xBF58476D1CE4E5B9)
            left, right = right, left ^ ((mixed >> np.uint64(32)) & mask)
        result[outside] = (left << np.uint64(half)) | right
        outside = result >= count
    return result.astype(np.int64)


def batch_by_length(lengths: Sequence[int] | Array, max_tokens: int, min_length: int = 0) -> Iterator[Array]:
    """Yield the indices of sequences in batches of similar length with at most `max_tokens` padded tokens each.

    A sequence shorter than `min_length` counts as that long; a sequence longer than the budget is a batch of its own.
    """
    sizes = np.asarray(lengths, dtype=np.int64)
    if len(sizes):
        order = sizes.argsort(kind="stable")
        yield from np.split(order, split_by_budget(np.maximum(sizes[order], min_length), max_tokens))


def split_by_budget(lengths: Array, tokens: int) -> list[int]:
    """Return where to split ascending lengths so that rows × longest stays within `tokens`, except for single rows."""
    splits, start = [], 0
    for index, length in enumerate(lengths.tolist()):
        if index > start and (index + 1 - start) * length > tokens:
            splits.append(index)
            start = index
    return splits


def hash_key(*numbers: int) -> int:
    """Hash several numbers to one of 64 bits."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def padding_share(shards: "Shards", batches: list[Array]) -> float:
    """Return the share of padding among all positions of these batches."""
    real = padded = 0
    for pairs in batches:
        lengths = shards.lengths(pairs)
        real += int(lengths.sum())
        padded += int(lengths.max(axis=0).sum()) * len(pairs)
    return 1 - real / padded

"""Which pairs make batch n: a pure function of (seed, n), with little padding, in memory that does not grow.

Each epoch walks the pairs in an order of its own, in pools of some dozens of batches: a pool is sorted by length, cut
by token budget, and its batches shuffled. The order is computed where needed (a keyed permutation), never stored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy

from softgaze.data.shards import Array, Shards

POOL = 64  # batches sorted together: less padding with more, more variety with fewer


class Batch(NamedTuple):
    """Numbers of the pairs of one batch, and where it stands."""

    pairs: Array
    epoch: int


def shuffled(places: Array, count: int, key: int) -> Array:
    """Places in a random order of `count` things: a four-round Feistel network, walked until it lands inside.

    Each place meets exactly one thing, without a table of them all.
    """
    half = max(1, (int(count - 1).bit_length() + 1) // 2)
    mask = numpy.uint64((1 << half) - 1)
    keys = numpy.random.SeedSequence(key).generate_state(4, numpy.uint64)
    result = places.astype(numpy.uint64)
    outside = numpy.ones(len(result), dtype=bool)
    while outside.any():
        result[outside] = feistel(result[outside], half, mask, keys)
        outside = result >= count
    return result.astype(numpy.int64)


def feistel(values: Array, half: int, mask: numpy.uint64, keys: Array) -> Array:
    """One pass: left and right halves of the bits change places four times, each time stirred by a key."""
    left, right = values >> numpy.uint64(half), values & mask
    for key in keys:
        stirred = (right ^ key) * numpy.uint64(0x9E3779B97F4A7C15)
        stirred ^= stirred >> numpy.uint64(29)
        stirred *= numpy.uint64(0xBF58476D1CE4E5B9)
        left, right = right, left ^ ((stirred >> numpy.uint64(32)) & mask)
    return (left << numpy.uint64(half)) | right


@dataclass(frozen=True)
class Batches:
    """The endless sequence of training batches."""

    shards: Shards
    tokens: int  # budget: rows × the longest row of either side
    seed: int

    def starting(self, step: int) -> Iterator[Batch]:
        """Batches from number `step` on."""
        epoch, skip = 0, step
        while True:
            for pool in range(self.pools()):
                cuts = self.cut(epoch, pool)
                if skip >= len(cuts):  # passed over without reading a token
                    skip -= len(cuts)
                    continue
                for pairs in cuts[skip:]:
                    yield Batch(pairs, epoch)
                skip = 0
            epoch += 1

    def pools(self) -> int:
        """Pools in an epoch."""
        return -(-len(self.shards) // self.pool_size())

    @lru_cache(maxsize=1)  # noqa: B019  one small object lives as long as its run
    def pool_size(self) -> int:
        """Pairs that make about `POOL` batches, judged from an even sample."""
        sample = numpy.linspace(0, len(self.shards) - 1, min(len(self.shards), 1000)).astype(numpy.int64)
        mean = self.shards.lengths(sample).max(axis=1).mean()
        return min(len(self.shards), max(1, int(POOL * self.tokens / mean)))

    def cut(self, epoch: int, pool: int) -> list[Array]:
        """The batches of one pool, in their order."""
        start = pool * self.pool_size()
        places = numpy.arange(start, min(start + self.pool_size(), len(self.shards)))
        pairs = shuffled(places, len(self.shards), hash_key(self.seed, epoch))
        lengths = self.shards.lengths(pairs)
        order = by_length(lengths)
        pairs, longest = pairs[order], lengths.max(axis=1)[order]
        edges = cut_by_budget(longest, self.tokens)
        batches = numpy.split(pairs, edges)
        mixer = numpy.random.default_rng([self.seed, epoch, pool])
        return [batches[number] for number in mixer.permutation(len(batches))]


def by_length(lengths: Array) -> Array:
    """An order of pairs of `lengths` (N, 2) that pads little when it is cut into batches.

    Sources of one length, as pictures are, stay mixed: each batch would have captions of one kind of scene only.
    """
    longest = lengths.max(axis=1)
    if (lengths[:, 0] == longest[0]).all():
        return numpy.arange(len(lengths))
    return numpy.lexsort((lengths[:, 0], lengths[:, 1], longest))


def cut_by_budget(longest: Array, tokens: int) -> list[int]:
    """Where to cut ascending lengths so that rows × longest stays within `tokens` (one row may exceed it)."""
    edges, start = [], 0
    for place, length in enumerate(longest.tolist()):
        if place > start and (place + 1 - start) * length > tokens:
            edges.append(place)
            start = place
    return edges


def hash_key(*numbers: int) -> int:
    """One number from several."""
    return int(numpy.random.SeedSequence(numbers).generate_state(1, numpy.uint64)[0])


def padding_share(shards: Shards, batches: list[Array]) -> float:
    """The part of all places in these batches that holds no token."""
    real = padded = 0
    for pairs in batches:
        lengths = shards.lengths(pairs)
        real += int(lengths.sum())
        padded += int(lengths.max(axis=0).sum()) * len(pairs)
    return 1 - real / padded

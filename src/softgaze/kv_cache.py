"""Keys and values of one attention layer, projected once and extended while a decoder runs.

Shapes: B batch, G key heads, K keys, D width, H heads.
"""

from typing import NamedTuple

import torch
from torch import Tensor

SPARE = 8  # positions allocated ahead: the buffer is copied once per so many tokens


class KVCache(NamedTuple):
    """Projected keys and values. G ≤ H key heads are shared by groups of query heads."""

    keys: Tensor  # (B, G, K, D/H)
    values: Tensor

    @property
    def rows(self) -> int:
        return self.keys.shape[0]

    @property
    def length(self) -> int:
        return self.keys.shape[2]

    def append(self, new: "KVCache") -> "KVCache":
        """Return a cache with `new` added along K."""
        if self.keys.shape[:2] != new.keys.shape[:2]:
            shape, expected = tuple(new.keys.shape[:2]), tuple(self.keys.shape[:2])
            raise ValueError(f"cannot append keys with (batch, heads) {shape} to a cache with {expected}")
        if can_write_in_place(new):
            return KVBuffer.copy_of(self).write(self.keys.shape[2], new)
        return KVCache(*(torch.cat(pair, -2) for pair in zip(self, new, strict=True)))

    def select_rows(self, index: Tensor) -> "KVCache":
        """Return the batch rows `index`: dropped, repeated or permuted."""
        return KVCache(*(part.index_select(0, index) for part in self))


class BufferedKVCache(KVCache):
    """A cache that is a view of a larger buffer, so that the next token is written instead of copied.

    A state may be extended several times. The first extension writes in place; later ones copy. Rebuilt from its
    tensors (pytree), it loses its buffer and behaves as a plain cache.
    """

    buffer: "KVBuffer | None" = None

    def append(self, new: KVCache) -> KVCache:
        """Return a cache with `new` added along K, written in place where the buffer is free."""
        position = self.keys.shape[2]
        if (
            self.buffer
            and can_write_in_place(new)
            and self.buffer.filled == position < self.buffer.keys.shape[2]
            and len(self.keys) == len(new.keys)
        ):
            return self.buffer.write(position, new)
        return super().append(new)

    def select_rows(self, index: Tensor) -> KVCache:
        """Return the batch rows `index`, copied together with the spare positions behind them."""
        if self.buffer is None:
            return super().select_rows(index)
        keys, values = self.buffer.keys, self.buffer.values
        return KVBuffer(keys.index_select(0, index), values.index_select(0, index), self.keys.shape[2]).view()


class KVBuffer:
    """Memory for keys and values with spare positions, and how many positions are filled."""

    def __init__(self, keys: Tensor, values: Tensor, filled: int) -> None:
        self.keys, self.values, self.filled = keys, values, filled  # (B, G, K + spare, D/H)

    @classmethod
    def copy_of(cls, cache: KVCache) -> "KVBuffer":
        batch, heads, filled, _ = cache.keys.shape
        keys, values = (part.new_empty(batch, heads, filled + SPARE, part.shape[-1]) for part in cache)
        keys[:, :, :filled], values[:, :, :filled] = cache
        return cls(keys, values, filled)

    def write(self, position: int, new: KVCache) -> BufferedKVCache:
        """Write one token's keys and values at `position` and return the cache up to it."""
        self.keys.select(2, position).copy_(new.keys.select(2, 0))  # half the time of indexing
        self.values.select(2, position).copy_(new.values.select(2, 0))
        self.filled = position + 1
        return self.view()

    def view(self) -> BufferedKVCache:
        """Return the filled part as a cache."""
        cache = BufferedKVCache(self.keys.narrow(2, 0, self.filled), self.values.narrow(2, 0, self.filled))
        cache.buffer = self
        return cache


def can_write_in_place(new: KVCache) -> bool:
    """Whether `new` is one token of a search: no gradients are recorded and no graph is traced."""
    return new.keys.shape[2] == 1 and torch.is_inference_mode_enabled() and not torch.compiler.is_compiling()

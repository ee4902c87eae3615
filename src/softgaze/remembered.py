"""Keys and values as the heads of one layer see them: computed once, appended to while a decoder writes.

Knows nothing of scores, layers or searches. Letters: B batch, G heads of keys and values, K keys, D width, H heads.
"""

from typing import NamedTuple

import torch
from torch import Tensor

ROOM = 8  # places to spare: as many tokens are appended before all is copied once more


class KeysValues(NamedTuple):
    """A memory. G ≤ H heads of keys and values are shared by groups of query heads."""

    keys: Tensor  # (B, G, K, D/H)
    values: Tensor

    def append(self, more: "KeysValues") -> "KeysValues":
        """These and then `more`, along K."""
        if self.keys.shape[:2] != more.keys.shape[:2]:
            own, other = tuple(self.keys.shape[:2]), tuple(more.keys.shape[:2])
            raise ValueError(f"keys of (batch, heads) {other} cannot be appended to those of {own}")
        if searching(more):
            return Room.of(self).write(self.keys.shape[2], more)
        return KeysValues(*(torch.cat(pair, -2) for pair in zip(self, more, strict=True)))

    def choose(self, index: Tensor) -> "KeysValues":
        """Batch rows: dropped, repeated, permuted."""
        return KeysValues(*(part.index_select(0, index) for part in self))


class Growing(KeysValues):
    """The same at the front of memory that has room behind, where the next token's are written: nothing is copied.

    A state may be gone on from more than once. Only the first to do so writes behind it; others begin a copy. Made of
    tensors alone, as whoever rebuilds a tree of tensors does, it has no room and is like any other.
    """

    room: "Room | None" = None

    def append(self, more: KeysValues) -> KeysValues:
        """These and then `more`, along K."""
        place = self.keys.shape[2]
        if self.room and searching(more) and self.room.is_free(place) and len(self.keys) == len(more.keys):
            return self.room.write(place, more)
        return super().append(more)

    def choose(self, index: Tensor) -> KeysValues:
        """Batch rows, with the room behind them: one copy, where the next token would otherwise need another."""
        if self.room is None:
            return super().choose(index)
        return self.room.choose(index, self.keys.shape[2]).front(self.keys.shape[2])


class Room:
    """Memory for keys and for values, and how much of it is written."""

    def __init__(self, keys: Tensor, values: Tensor, filled: int) -> None:
        self.keys, self.values, self.filled = keys, values, filled  # (B, G, K + room, D/H)

    @classmethod
    def of(cls, own: KeysValues) -> "Room":
        """A copy of these with room behind."""
        batch, heads, filled, _ = own.keys.shape
        keys, values = (part.new_empty(batch, heads, filled + ROOM, part.shape[-1]) for part in own)
        keys[:, :, :filled], values[:, :, :filled] = own
        return cls(keys, values, filled)

    def is_free(self, place: int) -> bool:
        """Whether nothing has been written from there on, and something can be."""
        return self.filled == place < self.keys.shape[2]

    def write(self, place: int, more: KeysValues) -> Growing:
        """One token's at a place, and all up to it."""
        self.keys[:, :, place] = more.keys[:, :, 0]
        self.values[:, :, place] = more.values[:, :, 0]
        self.filled = place + 1
        return self.front(self.filled)

    def front(self, size: int) -> Growing:
        """The first ones."""
        found = Growing(self.keys[:, :, :size], self.values[:, :, :size])
        found.room = self
        return found

    def choose(self, index: Tensor, filled: int) -> "Room":
        """Batch rows, of which so many places are wanted. Rows that are copied whole are copied fastest."""
        return Room(self.keys.index_select(0, index), self.values.index_select(0, index), filled)


def searching(more: KeysValues) -> bool:
    """One token after another, and nobody will ask for gradients or trace a graph: memory may be written again."""
    return more.keys.shape[2] == 1 and torch.is_inference_mode_enabled() and not torch.compiler.is_compiling()

"""Changes to where a model looks: what each does to the weights it is shown. Knows nothing of texts or searches.

Weight is moved, never made: a row keeps its sum (1, but for Luong's local-p), and one with nothing left to look at is
zero, as everywhere. Places are those of source pieces, words those of the target, both counted from 0 in one part.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import torch
from torch import Tensor

from softgaze.models.base import Place


class Heads(NamedTuple):
    """Heads of one kind of attention; None is every layer, or every head."""

    kind: str = "cross"
    layer: int | None = None
    head: int | None = None


@dataclass(frozen=True)
class Edit(ABC):
    """One change, in some of the heads."""

    heads: tuple[Heads, ...]

    def at(self, place: Place, count: int) -> list[int]:
        """Which of a layer's `count` heads are changed."""
        here = [each.head for each in self.heads if each.kind == place.kind and each.layer in (None, place.layer)]
        return list(range(count)) if None in here else sorted({head for head in here if head is not None})

    def apply(self, place: Place, weights: Tensor, words: Tensor) -> Tensor:
        """Weights (B, H, Q, K) at a place, changed where this is to change them; `words` (B, Q) are being written."""
        heads = self.at(place, weights.shape[1])
        if not heads:
            return weights
        changed = weights.clone()
        changed[:, heads] = self.change(weights[:, heads], words)
        return changed

    def without(self, gone: Sequence[int]) -> Self:
        """The same change when the pieces at these places are left out of the source."""
        return self

    @abstractmethod
    def change(self, weights: Tensor, words: Tensor) -> Tensor:
        """What becomes of weights (B, H', Q, K)."""


@dataclass(frozen=True)
class Mask(Edit):
    """Places that may not be looked at: what they had goes to the others in proportion, as if masked beforehand."""

    places: tuple[int, ...]

    def change(self, weights: Tensor, words: Tensor) -> Tensor:
        """A softmax over fewer keys is the old one, scaled."""
        left = weights.clone()
        left[..., self.places] = 0.0
        return rescaled(left, weights)

    def without(self, gone: Sequence[int]) -> Self:
        """Places move up."""
        return replace(self, places=moved_up(self.places, gone))


@dataclass(frozen=True)
class Force(Edit):
    """Where the model must look while it writes a word: {word: places}, shared as before, or alike if they had nothing.

    A step belongs to the word that its piece belongs to; the end of the sentence belongs to the last word.
    """

    looks: tuple[tuple[int, tuple[int, ...]], ...]  # (word, places)
    is_spaced: bool = True  # whether a space begins a word, or every piece does

    def change(self, weights: Tensor, words: Tensor) -> Tensor:
        """All weight of the rows that write the word."""
        for word, places in self.looks:
            wanted = torch.zeros_like(weights)
            wanted[..., places] = weights[..., places]
            unseen = wanted.sum(-1, keepdim=True) == 0
            wanted[..., places] += unseen.to(weights.dtype)
            writing = (words == word)[:, None, :, None]  # (B, 1, Q, 1)
            weights = torch.where(writing, rescaled(wanted, weights), weights)
        return weights

    def without(self, gone: Sequence[int]) -> Self:
        """Places move up; nobody can be made to look at what is no longer there."""
        left = ((word, moved_up(places, gone)) for word, places in self.looks)
        return replace(self, looks=tuple(each for each in left if each[1]))


@dataclass(frozen=True)
class Sharpen(Edit):
    """Weights to the power of a factor, as if scores were multiplied by it: above 1 sharper, below 1 flatter."""

    factor: float

    def change(self, weights: Tensor, words: Tensor) -> Tensor:
        """Relative to the largest, so that no power is too small for a number."""
        largest = weights.amax(-1, keepdim=True)
        return rescaled((weights / torch.where(largest > 0, largest, 1.0)) ** self.factor, weights)


@dataclass(frozen=True)
class Ablate(Edit):
    """Heads that look nowhere, so that their context is zero."""

    def change(self, weights: Tensor, words: Tensor) -> Tensor:
        """Nothing."""
        return torch.zeros_like(weights)


def rescaled(weights: Tensor, like: Tensor) -> Tensor:
    """Rows with the sums of `like`; a row of zeros stays one."""
    totals = weights.sum(-1, keepdim=True)
    return weights / torch.where(totals > 0, totals, 1.0) * like.sum(-1, keepdim=True)


def moved_up(places: Sequence[int], gone: Sequence[int]) -> tuple[int, ...]:
    """Where places are once others before them are gone."""
    return tuple(place - sum(each < place for each in gone) for place in places if place not in gone)

"""The simpler simple recurrent unit (Kim 2019): one vector of state in place of a decoder's self-attention.

Shapes: B batch, T target length, D width.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.attention import Positions, WeightsHook


class RecurrentCache(NamedTuple):
    """The state of one recurrent layer."""

    cell: Tensor  # (B, D)
    read: Tensor  # (B, T, 0): its length counts the tokens read so far, without waiting for the device

    @property
    def rows(self) -> int:
        return self.cell.shape[0]

    @property
    def length(self) -> int:
        return self.read.shape[1]


class RecurrentOutput(NamedTuple):
    """The result of `SSRU`, in the order of `MultiHeadOutput`."""

    context: Tensor  # (B, T, D)
    weights: None  # a recurrence has no attention
    cache: RecurrentCache


class SSRU(nn.Module):
    """f = σ(W_f x + b), c = f ⊙ c₋₁ + (1 − f) ⊙ W x, h = ReLU(c), called as `MultiHeadAttention` is."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.forget = nn.Linear(width, width)
        self.candidate = nn.Linear(width, width, bias=False)

    def empty_cache(self, memory: Tensor) -> RecurrentCache:
        """Return the state before the first token, one row for each row of a memory (B, S, D)."""
        return RecurrentCache(torch.zeros_like(memory[:, 0]), memory[:, :0, :0])

    def forward(
        self,
        query: Tensor,
        mask: Tensor | None = None,
        *,
        cache: RecurrentCache,
        positions: Positions = None,
        hook: WeightsHook | None = None,
    ) -> RecurrentOutput:
        """Read `query` (B, T, D) after the tokens in `cache`; a recurrence needs no mask, positions or hook.

        A loop over T is exact, and on a CPU faster than a scan of logarithmic depth at every length up to 1,000.
        """
        forget = torch.sigmoid(self.forget(query))
        candidate = self.candidate(query)
        new, cell, cells = candidate - forget * candidate, cache.cell, []
        for kept, added in zip(forget.unbind(1), new.unbind(1), strict=True):
            cell = torch.addcmul(added, kept, cell)
            cells.append(cell)
        read = torch.cat([cache.read, query[:, :, :0]], dim=1)
        return RecurrentOutput(F.relu(torch.stack(cells, dim=1)), None, RecurrentCache(cell, read))

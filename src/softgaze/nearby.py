"""Self-attention within a reach: each item looks at its neighbours only, so cost grows linearly with length.

The sequence is cut into blocks as long as the reach; a block of queries meets the keys of its own block and of the one
on either side (Beltagy 2020). It is `attend` with a window mask, without the scores the mask would hide.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from softgaze.attention import Attended, Look, MultiHead, attend, causal_mask


def near_mask(queries: int, keys: int, reach: int, device: torch.device | None = None) -> Tensor:
    """(1, 1, Q, K): at most `reach` places to either side. The last query stands at the last key."""
    places = torch.arange(keys - queries, keys, device=device)
    return ((places[:, None] - torch.arange(keys, device=device)).abs() <= reach)[None, None]


def attend_nearby(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    reach: int,
    *,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Context (B, H, N, D) of N queries over as many keys; `mask` (B, 1, 1, N) hides padding."""
    batch, heads, size, width = query.shape
    block = max(1, reach)
    rest = -size % block  # that fills the last block up
    real = torch.ones(1, 1, 1, size, dtype=torch.bool, device=query.device) if mask is None else mask

    asked = blocks_of(F.pad(query, (0, 0, 0, rest)), block, 1)  # (B·n, H, block, D) for n blocks
    near_keys, near_values = (blocks_of(F.pad(part, (0, 0, block, block + rest)), block, 3) for part in (keys, values))
    real = real.expand(batch, 1, 1, size)
    near_real = blocks_of(F.pad(real, (block, block + rest)).transpose(2, 3), block, 3)  # (B·n, 1, 3·block, 1)

    ahead = torch.arange(3 * block, device=query.device) - block - torch.arange(block, device=query.device)[:, None]
    allowed = ahead.abs() <= reach  # (block, 3·block)
    if causal:
        allowed = allowed & (ahead <= 0)
    found = attend(asked, near_keys, near_values, near_real.transpose(2, 3) & allowed, dropout=dropout).context
    joined = found.view(batch, -1, heads, block, width).transpose(1, 2).flatten(2, 3)
    return joined[:, :, :size]


def blocks_of(vectors: Tensor, block: int, span: int) -> Tensor:
    """(B, H, N, D) -> (B·n, H, span·block, D): a step of one block from each to the next."""
    cut = vectors.unfold(2, span * block, block)  # (B, H, n, D, span·block)
    return cut.permute(0, 2, 1, 4, 3).flatten(0, 1)


class NearbyHeads(MultiHead):
    """Many heads that look at most `reach` places to either side, or only back."""

    def __init__(self, *sizes: Any, reach: int, causal: bool = False) -> None:
        super().__init__(*sizes)
        if reach < 1:
            raise ValueError(f"a reach is at least 1, not {reach}")
        self.reach, self.causal = reach, causal

    def past(self, queries: int, keys: int, device: torch.device) -> Tensor | None:
        """Nothing to add: a causal window knows it already."""
        return None

    def attend(
        self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, need_weights: bool, look: Look | None
    ) -> Attended:
        """In blocks where that saves something and nobody asks for weights, which are shown for all places."""
        queries, size = query.shape[-2], keys.shape[-2]
        seen = need_weights or look is not None or torch.compiler.is_compiling()
        if queries == size > 2 * self.reach and not seen:
            dropout = self.dropout if self.training else 0.0
            context = attend_nearby(query, keys, values, mask, self.reach, causal=self.causal, dropout=dropout)
            return Attended(context, None)
        allowed = near_mask(queries, size, self.reach, query.device)
        if self.causal:
            allowed = allowed & causal_mask(queries, size, query.device)
        return super().attend(query, keys, values, allowed if mask is None else mask & allowed, need_weights, look)

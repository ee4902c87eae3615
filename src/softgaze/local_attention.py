"""Sliding-window self-attention (Longformer, Beltagy 2020): each item attends to its neighbours only.

The sequence is cut into blocks as long as the window; a block of queries attends to the keys of its own block and of
the block on either side, so cost grows linearly with length. It equals `attend` with a window mask.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from softgaze.attention import Attended, MultiHeadAttention, WeightsHook, attend, causal_mask


def local_mask(queries: int, keys: int, window_size: int, device: torch.device | None = None) -> Tensor:
    """Return the mask (1, 1, Q, K) of keys at most `window_size` positions away. The last query is at the last key."""
    positions = torch.arange(keys - queries, keys, device=device)
    return ((positions[:, None] - torch.arange(keys, device=device)).abs() <= window_size)[None, None]


def attend_in_blocks(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    window_size: int,
    *,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Return the context (B, H, N, D) of N queries over as many keys; `mask` (B, 1, 1, N) hides padding."""
    batch, heads, size, width = query.shape
    block = max(1, window_size)
    rest = -size % block  # positions that fill the last block
    real = torch.ones(1, 1, 1, size, dtype=torch.bool, device=query.device) if mask is None else mask
    real = real.expand(batch, 1, 1, size)

    q = blocks_of(F.pad(query, (0, 0, 0, rest)), block, 1)  # (B·n, H, block, D) for n blocks
    k, v = (blocks_of(F.pad(part, (0, 0, block, block + rest)), block, 3) for part in (keys, values))
    real = blocks_of(F.pad(real, (block, block + rest)).transpose(2, 3), block, 3)  # (B·n, 1, 3·block, 1)

    offset = torch.arange(3 * block, device=query.device) - block - torch.arange(block, device=query.device)[:, None]
    allowed = offset.abs() <= window_size  # (block, 3·block)
    if causal:
        allowed = allowed & (offset <= 0)
    context = attend(q, k, v, real.transpose(2, 3) & allowed, dropout=dropout).context
    joined = context.view(batch, -1, heads, block, width).transpose(1, 2).flatten(2, 3)
    return joined[:, :, :size]


def blocks_of(vectors: Tensor, block: int, span: int) -> Tensor:
    """Cut (B, H, N, D) into windows of `span` blocks, one block apart: (B·n, H, span·block, D)."""
    windows = vectors.unfold(2, span * block, block)  # (B, H, n, D, span·block)
    return windows.permute(0, 2, 1, 4, 3).flatten(0, 1)


class LocalMultiHeadAttention(MultiHeadAttention):
    """Multi-head attention to at most `window_size` positions on either side, or only backwards if `causal`."""

    def __init__(self, *sizes: Any, window_size: int, causal: bool = False) -> None:
        super().__init__(*sizes)
        if window_size < 1:
            raise ValueError(f"window_size must be at least 1, got {window_size}")
        self.window_size, self.causal = window_size, causal

    def attend(  # type: ignore[override]
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None,
        *,
        dropout: float,
        need_weights: bool,
        hook: WeightsHook | None,
    ) -> Attended:
        """Attend in blocks where that saves work; weights, if requested, are formed over all positions."""
        queries, size = query.shape[-2], keys.shape[-2]
        whole = need_weights or hook is not None or torch.compiler.is_compiling()
        if queries == size > 2 * self.window_size and not whole:
            context = attend_in_blocks(query, keys, values, mask, self.window_size, causal=self.causal, dropout=dropout)
            return Attended(context, None)
        allowed = local_mask(queries, size, self.window_size, query.device)
        if self.causal:
            allowed = allowed & causal_mask(queries, size, query.device)
        mask = allowed if mask is None else mask & allowed
        return attend(query, keys, values, mask, dropout=dropout, need_weights=need_weights, hook=hook)

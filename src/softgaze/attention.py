"""Attention: weights = softmax(score(query, keys)), context = weights · values.

`attend` computes all attention of the package; `MultiHeadAttention` wraps it in projections. Scores other than dot
products are in `softgaze.scores`.

Shapes: B batch, H heads, Q queries, K keys, D width. Batch first.
A mask is boolean, **True = may attend**, broadcastable to (B, H, Q, K). A query without any key gets zero weights.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.dropout import dropout as drop
from softgaze.kv_cache import KVCache

ScoreFunction = Callable[[Tensor, Tensor], Tensor]  # query (…, Q, D), keys (…, K, D) -> scores (…, Q, K)
WeightsHook = Callable[[Tensor, Tensor], Tensor]  # weights (…, Q, K), values (…, K, D) -> weights to use instead
Kernel = Literal["fused", "plain"]
Positions = Any  # (N,) positions, or the tables that a rotation prepared from them


class Attended(NamedTuple):
    """The result of one attention; `weights` is None unless requested: the fused kernel never forms them."""

    context: Tensor  # (…, Q, D)
    weights: Tensor | None  # (…, Q, K)


def dot(query: Tensor, keys: Tensor) -> Tensor:
    """q · k (Luong 2015, §3.1, `dot`)."""
    check_width(query, keys.shape[-1])
    return query @ keys.transpose(-2, -1)


def scaled_dot(query: Tensor, keys: Tensor) -> Tensor:
    """q · k / √D (Vaswani 2017, eq. 1). Without the root, wide vectors saturate the softmax."""
    return dot(query / math.sqrt(query.shape[-1]), keys)


FUSED_SCALES: dict[ScoreFunction | None, float | None] = {None: None, scaled_dot: None, dot: 1.0}  # None: 1/√D
FUSED_MIN_KEYS = 129  # on a CPU, fewer keys are faster by plain matrix products …
FUSED_MAX_QUERIES = 16  # … unless there are only so many queries, as in a beam search


def attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    *,
    score: ScoreFunction | None = None,
    prior: Tensor | None = None,
    dropout: float = 0.0,
    need_weights: bool = False,
    hook: WeightsHook | None = None,
    kernel: Kernel | None = None,
) -> Attended:
    """Return the sum of `values` (…, K, D), weighted by how well their `keys` match each `query` (…, Q, D).

    Parameters
    ----------
    query, keys, values
        (…, Q, D), (…, K, D), (…, K, D).
    mask
        Boolean, True = may attend. A query without any key gets zeros.
    score
        Scores of (query, keys); by default the scaled dot product.
    prior
        Multiplies the weights after the softmax (the Gaussian of Luong's local-p).
    dropout
        Probability of dropping a weight.
    need_weights
        Whether to return the weights.
    hook
        Receives the weights and the values, and returns the weights to use.
    kernel
        `fused` or `plain`; by default the faster one for device and shape.

    Returns
    -------
    context : Tensor (…, Q, D)
    weights : Tensor (…, Q, K) or None
    """
    check_inputs(query, keys, values, mask, prior, dropout)
    if score in FUSED_SCALES:
        check_width(query, keys.shape[-1])
    fusable = score in FUSED_SCALES and prior is None and hook is None and not need_weights
    if fusable and (kernel or faster_kernel(query, keys)) == "fused":
        scale = FUSED_SCALES[score]
        context = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, dropout_p=dropout, scale=scale)
        return Attended(context, None)

    scores = query / math.sqrt(query.shape[-1]) @ keys.transpose(-2, -1) if score is None else score(query, keys)
    weights = masked_softmax(scores, mask)  # (…, Q, K)
    if prior is not None:
        weights = weights * prior
    if hook is not None:
        weights = checked_hook_output(hook(weights, values), weights)
    dropped = drop(weights, dropout) if dropout else weights
    return Attended(dropped @ values, None if fusable else weights)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the keys that may be attended; a row without any is zero, and so is its gradient."""
    if mask is None:
        return scores.softmax(-1)
    # A finite minimum instead of −inf: the softmax of a row of −inf is NaN, and so is its gradient. Half the minimum,
    # so that the sum stays finite; added rather than filled, because an addition costs nothing in the backward pass.
    bias = torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device)
    weights = (scores + bias.masked_fill(~mask, torch.finfo(scores.dtype).min / 2)).softmax(-1)
    has_key = mask.any(-1, keepdim=True)
    if torch.compiler.is_compiling() or not bool(has_key.all()):
        weights = weights.masked_fill(~has_key, 0.0)
    return weights


def faster_kernel(query: Tensor, keys: Tensor) -> Kernel:
    """Choose by device and shape: the fused CPU kernel only pays off for many keys or very few queries.

    At 24 keys, its forward and backward pass takes four times as long as plain matrix products.
    """
    if query.device.type != "cpu" or torch.compiler.is_compiling():
        return "fused"
    few_queries = query.shape[-2] <= (1 if torch.is_grad_enabled() else FUSED_MAX_QUERIES)
    return "fused" if few_queries or keys.shape[-2] >= FUSED_MIN_KEYS else "plain"


# --- masks ------------------------------------------------------------------------------------------------------


def padding_mask(lengths: Tensor, size: int) -> Tensor:
    """Return the mask (B, 1, 1, K) of the real items of sequences with `lengths` (B,), padded to `size`."""
    positions = torch.arange(size, device=lengths.device)
    return (positions < lengths[:, None])[:, None, None, :]


def causal_mask(queries: int, keys: int | None = None, device: torch.device | None = None) -> Tensor:
    """Return the mask (1, 1, Q, K) of a decoder. The last query sees every key, so cached keys may come first."""
    keys = queries if keys is None else keys
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)[None, None]


# --- multi-head attention ---------------------------------------------------------------------------------------


def no_rotation(vectors: Tensor, positions: Positions) -> Tensor:
    """Return the vectors: positions are not rotary."""
    return vectors


class MultiHeadOutput(NamedTuple):
    """The result of `MultiHeadAttention`; `cache` holds the keys and values that were attended."""

    context: Tensor  # (B, Q, D)
    weights: Tensor | None  # (B, H, Q, K)
    cache: KVCache


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = [head₁; …; head_H] W, each head attending in a width of D/H (Vaswani 2017, §3.2.2).

    `rotate(vectors, positions)` applies rotary positions to queries and keys. Fewer `key_heads` than `heads` is
    grouped-query attention (Ainslie 2023): a smaller cache; one key head is multi-query attention.
    """

    attend = staticmethod(attend)

    def __init__(
        self,
        width: int,
        heads: int,
        key_heads: int | None = None,
        dropout: float = 0.0,
        rotate: Callable[[Tensor, Positions], Tensor] = no_rotation,
    ) -> None:
        super().__init__()
        key_heads = heads if key_heads is None else key_heads
        if min(width, heads, key_heads) < 1:
            raise ValueError(f"width, heads and key_heads must be at least 1, got {width}, {heads} and {key_heads}")
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        if heads % key_heads:
            raise ValueError(f"{heads} heads are not divisible by {key_heads} key heads")
        self.heads, self.key_heads, self.head_width = heads, key_heads, width // heads
        self.dropout, self.rotate = dropout, rotate
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, self.head_width * key_heads)
        self.value = nn.Linear(width, self.head_width * key_heads)
        self.output = nn.Linear(width, width)

    def forward(
        self,
        query: Tensor,
        memory: Tensor | KVCache | None = None,
        mask: Tensor | None = None,
        *,
        cache: KVCache | None = None,
        positions: Positions = None,
        need_weights: bool = False,
        hook: WeightsHook | None = None,
    ) -> MultiHeadOutput:
        """Attend from `query` (B, Q, D) to `memory` (B, K, D), or to itself if there is no memory.

        `memory` may be projected already, by `project_kv`. In self-attention the keys and values of earlier steps come
        from `cache`; the result holds the extended one. `positions` (Q,) are those of the query.
        """
        if memory is None:
            q, keys, values = self.project(query, self.query, self.key, self.value)
            kv = KVCache(self.rotate(keys, positions), values)
            kv = kv if cache is None else cache.append(kv)
        else:
            (q,) = self.project(query, self.query)
            kv = memory if isinstance(memory, KVCache) else self.project_kv(memory)
        q = self.rotate(q, positions)
        keys, values = kv if self.heads == self.key_heads else self.repeat_kv(kv)
        dropout = self.dropout if self.training else 0.0
        context, weights = self.attend(q, keys, values, mask, dropout=dropout, need_weights=need_weights, hook=hook)
        return MultiHeadOutput(self.output(context.transpose(1, 2).flatten(2)), weights, kv)

    def project(self, vectors: Tensor, *layers: nn.Linear) -> list[Tensor]:
        """Apply each layer to `vectors` (B, N, D) and split the result into heads (B, G, N, D/H).

        In training, the layers run as one matrix product: 2 % of an update.
        """
        if vectors.ndim != 3:
            raise ValueError(f"expected vectors of shape (B, N, D), got {tuple(vectors.shape)}")
        check_width(vectors, layers[0].in_features)
        if self.training and len(layers) > 1 and all(map(is_plain_linear, layers)):
            weight, bias = (torch.cat([getattr(layer, name) for layer in layers]) for name in ("weight", "bias"))
            sizes = [layer.out_features for layer in layers]
            parts = torch.split_with_sizes(F.linear(vectors, weight, bias), sizes, dim=-1)
        else:
            parts = tuple(layer(vectors) for layer in layers)
        size = self.head_width
        return [part.view(*part.shape[:2], part.shape[2] // size, size).transpose(1, 2) for part in parts]

    def project_kv(self, memory: Tensor, positions: Positions = None) -> KVCache:
        """(B, K, D) -> keys and values (B, G, K, D/H), with G key heads."""
        keys, values = self.project(memory, self.key, self.value)
        return KVCache(self.rotate(keys, positions), values)

    def empty_cache(self, memory: Tensor) -> KVCache:
        """Return a cache without keys, one row for each row of a memory (B, S, D)."""
        empty = memory.new_empty(memory.shape[0], self.key_heads, 0, self.head_width)
        return KVCache(empty, empty)

    def repeat_kv(self, cache: KVCache) -> KVCache:
        """Repeat key heads (B, G, K, D/H) for the query heads that share them: (B, H, K, D/H)."""
        return KVCache(*(part.repeat_interleave(self.heads // self.key_heads, dim=1) for part in cache))


def is_plain_linear(layer: nn.Linear) -> bool:
    """Whether a layer may run as a part of a larger product: no adapter replaces it and no hook observes it."""
    return type(layer) is nn.Linear and not layer._forward_hooks and not layer._forward_pre_hooks


# --- input checks -----------------------------------------------------------------------------------------------


def check_width(vectors: Tensor, width: int) -> None:
    """Raise if the last dimension of `vectors` is not `width`."""
    if vectors.shape[-1] != width:
        raise ValueError(f"expected vectors of width {width}, got {vectors.shape[-1]}")


def check_inputs(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, prior: Tensor | None, dropout: float
) -> None:
    """Raise one clear error instead of torch's forty lines."""
    if min(query.ndim, keys.ndim, values.ndim) < 2:
        raise ValueError("query, keys and values need at least two dimensions: (…, Q, D), (…, K, D), (…, K, D)")
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError(f"expected one value per key, got {keys.shape[-2]} keys and {values.shape[-2]} values")
    if not (query.is_floating_point() and keys.is_floating_point() and values.is_floating_point()):
        raise ValueError(f"expected floating-point vectors, got {query.dtype}, {keys.dtype}, {values.dtype}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, got {dropout}")
    batch = query.shape[:-2]
    if not batch == keys.shape[:-2] == values.shape[:-2]:
        try:
            batch = torch.broadcast_shapes(batch, keys.shape[:-2], values.shape[:-2])  # type: ignore[no-untyped-call]
        except RuntimeError:
            shapes = ", ".join(str(tuple(part.shape)) for part in (query, keys, values))
            raise ValueError(f"query, keys and values must share batch and heads, got {shapes}") from None
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(f"a mask is boolean (True = may attend), got {mask.dtype}")
    for name, part in (("mask", mask), ("prior", prior)):
        if part is not None and not fits(part.shape, full := (*batch, query.shape[-2], keys.shape[-2])):
            raise ValueError(f"the {name} must broadcast to (…, queries, keys) = {full}, got {tuple(part.shape)}")


def fits(shape: torch.Size, full: tuple[int, ...]) -> bool:
    """Whether `shape` broadcasts to `full` without enlarging it."""
    return 2 <= len(shape) <= len(full) and all(
        size in (1, other) for size, other in zip(shape, full[len(full) - len(shape) :], strict=True)
    )


def checked_hook_output(returned: Tensor, weights: Tensor) -> Tensor:
    """Return the output of a hook, or raise if it cannot replace `weights`."""
    if not isinstance(returned, Tensor) or returned.shape != weights.shape:
        got = tuple(returned.shape) if isinstance(returned, Tensor) else returned
        raise ValueError(f"an attention hook must return weights of shape {tuple(weights.shape)}, got {got}")
    return returned

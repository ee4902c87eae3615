"""One decoder step of a Transformer for a search without hooks: the layers of `transformer.py`, one token at a time.

A step of a small model has little arithmetic: module calls and general shapes took half of its time. Here are only the
tensor operations, and `attend`.

Shapes: R rows (hypotheses), N memories (sources), R/N consecutive rows each; H heads, S source length, D width.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from softgaze.attention import MultiHeadAttention, Positions, attend
from softgaze.kv_cache import KVCache

if TYPE_CHECKING:
    from softgaze.models.transformer import FeedForward, Transformer, TransformerDecoderLayer, TransformerState

Vectors = Callable[[Tensor], Tensor]  # (R, D) -> (R, D)
LayerStep = Callable[[Tensor, KVCache, KVCache, Tensor | None, Positions], tuple[Tensor, KVCache]]


def can_step(model: "Transformer") -> bool:
    """Whether the decoder has the layers that `TransformerStep` computes, and no module hook observes them."""
    parts = [*model.decoder.modules(), model.target_embedding, model.decoder_norm, model.output]
    if any(part._forward_hooks or part._forward_pre_hooks for part in parts) or _has_any_global_hook():  # type: ignore[no-untyped-call]
        return False
    layers, linears = cast("list[TransformerDecoderLayer]", model.decoder), [model.output]
    for layer in layers:
        own, cross = layer.attention, layer.cross
        if type(own) is not MultiHeadAttention:
            return False
        linears += [
            own.query,
            own.key,
            own.value,
            own.output,
            cross.query,
            cross.output,
            cast("FeedForward", layer.feed_forward).outer,
        ]
    return all(type(each) is nn.Linear for each in linears)  # an adapter may replace one


class TransformerStep:
    """Called with one token for each row (R,) and the state: returns logits (R, V) and the next state."""

    def __init__(self, model: "Transformer") -> None:
        self.model, self.output = model, output_projection(cast(nn.Linear, model.output))
        self.norm = norm(model.decoder_norm)
        self.layers = [layer_step(layer) for layer in cast("list[TransformerDecoderLayer]", model.decoder)]
        self.last_mask: Tensor | None = None
        self.mask: Tensor | None = None  # of the last step; None without padding

    def __call__(self, token: Tensor, state: "TransformerState") -> tuple[Tensor, "TransformerState"]:
        model, first = self.model, state.caches[0].length
        position = torch.arange(first, first + 1, device=token.device)
        embedded = model.target_embedding(token)[:, None] * model.scale
        x: Tensor = model.target_embedding_norm(model.target_positions.add(embedded, position)[:, 0])
        prepared = model.target_positions.prepare(position)
        if state.memory_mask is not self.last_mask:
            self.last_mask = state.memory_mask
            self.mask = None if bool(self.last_mask.all()) else self.last_mask
        caches = []
        for layer, cache, memory in zip(self.layers, state.caches, state.memories, strict=True):
            x, cache = layer(x, cast(KVCache, cache), memory, self.mask, prepared)
            caches.append(cache)
        return self.output(self.norm(x)), state._replace(caches=tuple(caches))


def layer_step(layer: "TransformerDecoderLayer") -> LayerStep:
    """Return the step of one layer."""
    self_attention = self_attention_step(cast(MultiHeadAttention, layer.attention))
    cross = cross_attention_step(layer.cross)
    feed_forward = cast("FeedForward", layer.feed_forward)
    activate, outer = feed_forward.activate, linear(feed_forward.outer)
    (before_attention, after_attention), (before_cross, after_cross), (before, after) = (
        (identity, norm(residual.norm)) if residual.ends_normed else (norm(residual.norm), identity)
        for residual in (layer.around_attention, layer.around_cross, layer.around_feed_forward)
    )

    def step(
        x: Tensor, cache: KVCache, memory: KVCache, mask: Tensor | None, positions: Positions
    ) -> tuple[Tensor, KVCache]:
        context, cache = self_attention(before_attention(x), cache, positions)
        x = after_attention(x + context)
        x = after_cross(x + cross(before_cross(x), memory, mask))
        return after(x + outer(activate(before(x)))), cache

    return step


def self_attention_step(
    attention: MultiHeadAttention,
) -> Callable[[Tensor, KVCache, Positions], tuple[Tensor, KVCache]]:
    """Return self-attention of one token (R, D) to those in the cache and to itself.

    The three projections are one matrix product, and queries and keys are rotated together.
    """
    heads, key_heads, width, rotate = attention.heads, attention.key_heads, attention.head_width, attention.rotate
    layers = attention.query, attention.key, attention.value
    weight, bias = torch.cat([layer.weight for layer in layers]), torch.cat([layer.bias for layer in layers])
    output = linear(attention.output)

    def step(x: Tensor, cache: KVCache, positions: Positions) -> tuple[Tensor, KVCache]:
        projected = F.linear(x, weight, bias).view(x.shape[0], -1, 1, width)  # (R, H + 2G, 1, D/H)
        queries_and_keys, values = projected.split_with_sizes([heads + key_heads, key_heads], 1)
        queries, keys = rotate(queries_and_keys, positions).split_with_sizes([heads, key_heads], 1)
        cache = cache.append(KVCache(keys, values))
        keys, values = attention.repeat_kv(cache) if heads != key_heads else cache
        context = attend(queries, keys, values, kernel="fused").context
        return output(context.flatten(1)), cache

    return step


def cross_attention_step(attention: MultiHeadAttention) -> Callable[[Tensor, KVCache, Tensor | None], Tensor]:
    """Return cross-attention of one token (R, D) to memories with a mask (N, 1, 1, S)."""
    heads, width, is_grouped = attention.heads, attention.head_width, attention.heads != attention.key_heads
    query, output = linear(attention.query), linear(attention.output)

    def step(x: Tensor, memory: KVCache, mask: Tensor | None) -> Tensor:
        q = query(x).view(memory.keys.shape[0], -1, heads, width).transpose(1, 2)  # (N, H, R/N, D/H)
        keys, values = attention.repeat_kv(memory) if is_grouped else memory
        context = attend(q, keys, values, mask, kernel="fused").context
        return output(context.transpose(1, 2).reshape(x.shape))

    return step


def identity(x: Tensor) -> Tensor:
    return x


def linear(layer: nn.Linear) -> Vectors:
    """Return a linear layer as a function: attributes of a module are looked up in Python, twice a call."""
    weight, bias = layer.weight, layer.bias
    return lambda x: F.linear(x, weight, bias)


def output_projection(layer: nn.Linear) -> Vectors:
    """Return the projection to the vocabulary; for several rows on a CPU with weights that oneDNN rearranges once.

    MKL rearranges them at each step: a fifth of the time of beam 5 with 7,500 tokens (benchmarks/engines.md).
    """
    project, weight, bias = linear(layer), layer.weight, layer.bias
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or not torch._C._has_mkldnn:
        return project
    onednn = torch.ops.mkldnn
    rearranged = functools.cache(
        lambda: onednn._reorder_linear_weight(weight)
    )  # greedy search of one source needs none
    return lambda x: project(x) if x.shape[0] == 1 else onednn._linear_pointwise(x, rearranged(), bias, "none", [], "")


def norm(layer: nn.Module) -> Vectors:
    """Return a normalization as a function."""
    if type(layer) is not nn.LayerNorm:
        return layer
    shape, weight, bias, eps = layer.normalized_shape, layer.weight, layer.bias, layer.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, eps)

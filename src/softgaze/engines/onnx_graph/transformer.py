"""The Transformer decoder of captioners as an ONNX graph: rotary positions, pre-norm.

Letters: N sources of S items, R rows, W = R / N for each source in order, D width, L layers, H heads of d = D/H.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from onnx import TensorProto
from torch import nn

from softgaze.attention import MultiHeadAttention
from softgaze.engines.onnx_graph.builder import GraphBuilder
from softgaze.models.transformer import FeedForward, PreNorm, Transformer, TransformerDecoderLayer
from softgaze.positions import frequencies


def attend(graph: GraphBuilder, query: str, keys: str, values: str, mask: str = "") -> tuple[str, str]:
    """Queries (…, Q, d), transposed keys (…, d, K), values (…, K, d) -> contexts (…, Q, d) and weights (…, Q, K)."""
    scores = graph.op("MatMul", query, keys)
    weights = graph.op("Softmax", graph.op("Add", scores, mask) if mask else scores, axis=-1)
    return graph.op("MatMul", weights, values), weights


def project_query(graph: GraphBuilder, layer: MultiHeadAttention, vectors: str) -> str:
    """Return queries (…, D) divided by √d."""
    return str(graph.op("Div", graph.linear(layer.query, vectors), graph.constant(head_width(layer) ** 0.5)))


def split_heads(graph: GraphBuilder, layer: MultiHeadAttention, vectors: str, *, transposed: bool = False) -> str:
    """(N, S, D) -> (N, H, S, d), or transposed (N, H, d, S)."""
    parts = graph.reshape(vectors, graph.size(vectors, 0), -1, layer.heads, head_width(layer))
    return str(graph.op("Transpose", parts, perm=[0, 2, 3, 1] if transposed else [0, 2, 1, 3]))


def join_heads(graph: GraphBuilder, layer: MultiHeadAttention, vectors: str) -> str:
    """(N, H, S, d) -> (N, S, D)."""
    parts = graph.op("Transpose", vectors, perm=[0, 2, 1, 3])
    return graph.reshape(parts, graph.size(parts, 0), -1, layer.heads * head_width(layer))


def head_width(layer: MultiHeadAttention) -> int:
    return int(layer.query.out_features // layer.heads)


def pre_norm(graph: GraphBuilder, around: PreNorm, vectors: str) -> str:
    return graph.norm(cast(nn.LayerNorm, around.norm), vectors)


def feed_forward(graph: GraphBuilder, around: PreNorm, layer: nn.Module, vectors: str) -> str:
    """x + W₂ ReLU(W₁ norm(x))."""
    feed = cast(FeedForward, layer)
    inner = graph.op("Relu", graph.linear(feed.inner, pre_norm(graph, around, vectors)))
    return str(graph.op("Add", vectors, graph.linear(feed.outer, inner)))


# --- first state ------------------------------------------------------------------------------------------------


def start(graph: GraphBuilder, model: Transformer, memory: str, lengths: str) -> None:
    """Output the cross-attention keys and values of every layer for a memory (N, S, D), and an empty KV cache."""
    cross = [cast(TransformerDecoderLayer, layer).cross for layer in model.decoder]
    layers, heads, width = len(cross), cross[0].heads, head_width(cross[0])
    keys = [split_heads(graph, layer, graph.linear(layer.key, memory), transposed=True) for layer in cross]
    values = [split_heads(graph, layer, graph.linear(layer.value, memory)) for layer in cross]
    graph.output("keys", graph.stack(keys, 1), ["N", layers, heads, width, "S"])
    graph.output("memory", graph.stack(values, 1), ["N", layers, heads, "S", width])
    graph.output("mask", graph.padding_mask(memory, lengths), ["N", 1, "S"])
    empty = graph.op("ConstantOfShape", graph.shape(graph.size(memory, 0), 2 * layers, heads, 0, width))
    graph.output("hidden", empty, ["N", 2 * layers, heads, 0, width])


# --- a step -----------------------------------------------------------------------------------------------------


class StepInputs(NamedTuple):
    cache: str  # (R, 2L, H, T, d) keys and values of the target so far, layer by layer
    keys: str  # (N, L, H, d, S) of the source
    values: str  # (N, L, H, S, d)
    mask: str  # (N, 1, 1, S) additive
    cos: str  # (d,) rotation at this position
    sin: str


def step(graph: GraphBuilder, model: Transformer, rows: str, embedded: str) -> str:
    """Continue rows (R,) with embedded tokens (R, D): return features (R, D), output the next state and weights."""
    decoder = [cast(TransformerDecoderLayer, layer) for layer in model.decoder]
    layers, heads, width = len(decoder), decoder[0].cross.heads, head_width(decoder[0].cross)
    before = graph.input("hidden", ["before", 2 * layers, heads, "T", width])
    keys = graph.input("keys", ["N", layers, heads, width, "S"])
    values = graph.input("memory", ["N", layers, heads, "S", width])
    mask = graph.input("mask", ["N", 1, "S"])
    position = graph.cast(graph.input("position", [1], TensorProto.INT64))
    angles = graph.op("Mul", position, graph.parameter(frequencies(width, torch.device("cpu"))))  # (d/2,)
    cos, sin = graph.op("Cos", angles), graph.op("Sin", angles)
    inputs = StepInputs(
        graph.op("Gather", before, rows, axis=0),
        keys,
        values,
        graph.additive_mask(graph.unsqueeze(mask, 1)),
        graph.op("Concat", cos, cos, axis=0),
        graph.op("Concat", graph.op("Neg", sin), sin, axis=0),
    )
    vectors, cache, weights = graph.op("Mul", embedded, graph.constant(model.scale)), list[str](), list[str]()
    for index, layer in enumerate(decoder):
        vectors, keys_and_values = self_attention(graph, layer, vectors, inputs, index)
        vectors, layer_weights = cross_attention(graph, layer, vectors, inputs, index)
        vectors = feed_forward(graph, layer.around_feed_forward, layer.feed_forward, vectors)
        cache.extend(keys_and_values)
        weights.append(layer_weights)
    graph.output("next_hidden", graph.stack(cache, 1), ["R", 2 * layers, heads, "after", width])
    graph.output("weights", graph.stack(weights, 2), ["N", "W", layers, heads, "S"])
    return graph.norm(cast(nn.LayerNorm, model.decoder_norm), vectors)


def self_attention(
    graph: GraphBuilder, layer: TransformerDecoderLayer, vectors: str, inputs: StepInputs, index: int
) -> tuple[str, Sequence[str]]:
    """Attend to the target so far: return vectors (R, D), and the keys and values with those of the new token."""
    attention, normalized = cast(MultiHeadAttention, layer.attention), pre_norm(graph, layer.around_attention, vectors)
    width = head_width(attention)
    query, key, value = (
        graph.reshape(projected, -1, attention.heads, 1, width)  # (R, H, 1, d)
        for projected in (
            project_query(graph, attention, normalized),
            graph.linear(attention.key, normalized),
            graph.linear(attention.value, normalized),
        )
    )
    query, key = rotate(graph, query, inputs), rotate(graph, key, inputs)
    keys, values = (
        graph.op("Concat", graph.select(inputs.cache, 2 * index + offset), new, axis=2)  # (R, H, T + 1, d)
        for offset, new in enumerate((key, value))
    )
    context, _ = attend(graph, query, graph.op("Transpose", keys, perm=[0, 1, 3, 2]), values)
    output = graph.linear(attention.output, graph.reshape(context, -1, attention.heads * width))
    return graph.op("Add", vectors, output), (keys, values)


def rotate(graph: GraphBuilder, vectors: str, inputs: StepInputs) -> str:
    """(a, b) -> (a cos − b sin, b cos + a sin), as `positions.Rotary`."""
    first, second = graph.op("Split", vectors, results=2, axis=-1)
    swapped = graph.op("Concat", second, first, axis=-1)
    return str(graph.op("Add", graph.op("Mul", vectors, inputs.cos), graph.op("Mul", swapped, inputs.sin)))


def cross_attention(
    graph: GraphBuilder, layer: TransformerDecoderLayer, vectors: str, inputs: StepInputs, index: int
) -> tuple[str, str]:
    """Attend to the source, the rows of one source together: return vectors (R, D) and weights (N, W, H, S)."""
    cross, normalized = layer.cross, pre_norm(graph, layer.around_cross, vectors)
    width = cross.heads * head_width(cross)
    query = graph.reshape(project_query(graph, cross, normalized), graph.size(inputs.values, 0), -1, width)  # (N, W, D)
    keys, values = graph.select(inputs.keys, index), graph.select(inputs.values, index)
    context, weights = attend(graph, split_heads(graph, cross, query), keys, values, inputs.mask)
    output = graph.linear(cross.output, graph.reshape(join_heads(graph, cross, context), -1, width))
    return graph.op("Add", vectors, output), graph.op("Transpose", weights, perm=[0, 2, 1, 3])

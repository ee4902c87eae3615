"""The Transformer as ONNX graphs: the decoder of captioners, and text models whose decoder is recurrent (SSRU).

Letters: N sources of S items, R rows, W = R / N for each source in order, D width, L layers, H heads of d = D/H.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from onnx import TensorProto
from torch import nn

from softgaze.attention import MultiHeadAttention
from softgaze.engines.onnx_graph.builder import GraphBuilder
from softgaze.models.ssru import SSRU
from softgaze.models.transformer import (
    FeedForward,
    GELUFeedForward,
    PostNorm,
    PreNorm,
    SiLUFeedForward,
    SwiGLUFeedForward,
    Transformer,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)
from softgaze.positions import Learned, PositionEncoding, Rotary, Sinusoidal, frequencies


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
    """Return the input of a layer: normalized, unless the norm comes after the layer."""
    return vectors if isinstance(around, PostNorm) else graph.norm(cast(nn.LayerNorm, around.norm), vectors)


def add_output(graph: GraphBuilder, around: PreNorm, vectors: str, output: str) -> str:
    """Add the output of a layer to the residual stream."""
    added = str(graph.op("Add", vectors, output))
    return graph.norm(cast(nn.LayerNorm, around.norm), added) if isinstance(around, PostNorm) else added


def feed_forward(graph: GraphBuilder, around: PreNorm, layer: nn.Module, vectors: str) -> str:
    """The feed-forward block with its residual connection."""
    feed, normalized = cast(FeedForward, layer), pre_norm(graph, around, vectors)
    inner = activate(graph, feed, graph.linear(feed.inner, normalized))
    if isinstance(feed, SwiGLUFeedForward):
        inner = graph.op("Mul", inner, graph.linear(feed.gate, normalized))
    return add_output(graph, around, vectors, graph.linear(feed.outer, inner))


def activate(graph: GraphBuilder, layer: FeedForward, inner: str) -> str:
    """ReLU, x · σ(x), or x · Φ(x)."""
    if isinstance(layer, SiLUFeedForward | SwiGLUFeedForward):
        return str(graph.op("Mul", inner, graph.op("Sigmoid", inner)))
    if isinstance(layer, GELUFeedForward):
        share = graph.op("Add", graph.op("Erf", graph.op("Div", inner, graph.constant(2**0.5))), graph.constant(1.0))
        return str(graph.op("Mul", graph.op("Mul", inner, share), graph.constant(0.5)))
    return str(graph.op("Relu", inner))


def final_norm(graph: GraphBuilder, norm: nn.Module, vectors: str) -> str:
    return vectors if isinstance(norm, nn.Identity) else graph.norm(cast(nn.LayerNorm, norm), vectors)


# --- embeddings and encoder -------------------------------------------------------------------------------------


class Rotation(NamedTuple):
    """Cosines and sines that rotate queries and keys; None: positions are not rotary."""

    cos: str  # (…, d)
    sin: str


def rotation(graph: GraphBuilder, positions: str, width: int) -> Rotation:
    """Return the rotation at positions (…, 1) of heads of this width."""
    angles = graph.op("Mul", positions, graph.parameter(frequencies(width, torch.device("cpu"))))  # (…, d/2)
    cos, sin = graph.op("Cos", angles), graph.op("Sin", angles)
    return Rotation(
        graph.op("Concat", cos, cos, axis=-1),
        graph.op("Concat", graph.op("Neg", sin), sin, axis=-1),
    )


def embed(graph: GraphBuilder, model: Transformer, side: str, embedded: str, positions: str) -> str:
    """Scale embeddings (…, D), add positions (P,) of floats, and normalize."""
    encoding = cast(PositionEncoding, getattr(model, f"{side}_positions"))
    vectors = graph.op("Mul", embedded, graph.constant(model.scale))
    if isinstance(encoding, Learned):
        rows = graph.op("Gather", graph.parameter(encoding.table.weight), graph.cast(positions, TensorProto.INT64))
        vectors = graph.op("Add", vectors, rows)
    elif isinstance(encoding, Sinusoidal):
        rates = graph.parameter(frequencies(encoding.width, torch.device("cpu")))
        angles = graph.op("Mul", graph.unsqueeze(positions, 1), rates)  # (P, D/2)
        pairs = [graph.unsqueeze(graph.op(wave, angles), 2) for wave in ("Sin", "Cos")]
        waves = graph.reshape(graph.op("Concat", *pairs, axis=2), -1, encoding.width)
        vectors = graph.op("Add", vectors, waves)
    return final_norm(graph, getattr(model, f"{side}_embedding_norm"), vectors)


def encode(graph: GraphBuilder, model: Transformer, source: str, lengths: str) -> str:
    """(N, S) ids and (N,) lengths -> the memory (N, S, D)."""
    embedded = graph.op("Gather", graph.parameter(model.source_embedding.weight), source)
    positions = graph.arange(graph.size(source, 1))
    vectors = embed(graph, model, "source", embedded, positions)
    mask = graph.additive_mask(graph.unsqueeze(graph.padding_mask(source, lengths), 1))  # (N, 1, 1, S)
    for module in model.encoder:
        layer = cast(TransformerEncoderLayer, module)
        attention, normalized = layer.attention, pre_norm(graph, layer.around_attention, vectors)
        query = split_heads(graph, attention, project_query(graph, attention, normalized))
        keys = split_heads(graph, attention, graph.linear(attention.key, normalized))
        if isinstance(model.source_positions, Rotary):
            turn = rotation(graph, graph.unsqueeze(positions, 1), head_width(attention))
            query, keys = rotate(graph, query, turn), rotate(graph, keys, turn)
        values = split_heads(graph, attention, graph.linear(attention.value, normalized))
        context, _ = attend(graph, query, graph.op("Transpose", keys, perm=[0, 1, 3, 2]), values, mask)
        output = graph.linear(attention.output, join_heads(graph, attention, context))
        vectors = add_output(graph, layer.around_attention, vectors, output)
        vectors = feed_forward(graph, layer.around_feed_forward, layer.feed_forward, vectors)
    return final_norm(graph, model.encoder_norm, vectors)


# --- first state ------------------------------------------------------------------------------------------------


def start(graph: GraphBuilder, model: Transformer, memory: str, lengths: str) -> None:
    """Output the keys and values of every cross-attention for a memory (N, S, D), and the state before any token."""
    cross = [cast(TransformerDecoderLayer, layer).cross for layer in model.decoder]
    layers, heads, width = len(cross), cross[0].heads, head_width(cross[0])
    keys = [split_heads(graph, layer, graph.linear(layer.key, memory), transposed=True) for layer in cross]
    values = [split_heads(graph, layer, graph.linear(layer.value, memory)) for layer in cross]
    graph.output("keys", graph.stack(keys, 1), ["N", layers, heads, width, "S"])
    graph.output("memory", graph.stack(values, 1), ["N", layers, heads, "S", width])
    graph.output("mask", graph.padding_mask(memory, lengths), ["N", 1, "S"])
    sizes = state_sizes(model, 0)
    graph.output("hidden", graph.op("ConstantOfShape", graph.shape(graph.size(memory, 0), *sizes)), ["N", *sizes])


def state_sizes(model: Transformer, length: str | int) -> list[str | int]:
    """Return the shape of a row's state: keys and values of `length` tokens, or the vectors of recurrent layers."""
    layers, heads, width = len(model.decoder), model.heads, model.target_embedding.embedding_dim
    return [layers, width] if is_recurrent(model) else [2 * layers, heads, length, width // heads]


def is_recurrent(model: Transformer) -> bool:
    return isinstance(cast(TransformerDecoderLayer, model.decoder[0]).attention, SSRU)


# --- a step -----------------------------------------------------------------------------------------------------


class StepInputs(NamedTuple):
    state: str  # (R, 2L, H, T, d) keys and values of the target so far, layer by layer; or (R, L, D) of a recurrence
    keys: str  # (N, L, H, d, S) of the source
    values: str  # (N, L, H, S, d)
    mask: str  # (N, 1, 1, S) additive
    turn: Rotation  # at this position


def step(graph: GraphBuilder, model: Transformer, rows: str, embedded: str) -> str:
    """Continue rows (R,) with embedded tokens (R, D): return features (R, D), output the next state and weights."""
    decoder = [cast(TransformerDecoderLayer, layer) for layer in model.decoder]
    layers, heads, width = len(decoder), decoder[0].cross.heads, head_width(decoder[0].cross)
    before = graph.input("hidden", ["before", *state_sizes(model, "T")])
    keys = graph.input("keys", ["N", layers, heads, width, "S"])
    values = graph.input("memory", ["N", layers, heads, "S", width])
    mask = graph.input("mask", ["N", 1, "S"])
    position = graph.cast(graph.input("position", [1], TensorProto.INT64))
    inputs = StepInputs(
        graph.op("Gather", before, rows, axis=0),
        keys,
        values,
        graph.additive_mask(graph.unsqueeze(mask, 1)),
        rotation(graph, position, width),
    )
    vectors, state, weights = embed(graph, model, "target", embedded, position), list[str](), list[str]()
    read = recurrence if is_recurrent(model) else self_attention
    for index, layer in enumerate(decoder):
        vectors, layer_state = read(graph, layer, vectors, inputs, index)
        vectors, layer_weights = cross_attention(graph, layer, vectors, inputs, index)
        vectors = feed_forward(graph, layer.around_feed_forward, layer.feed_forward, vectors)
        state.extend(layer_state)
        weights.append(layer_weights)
    graph.output("next_hidden", graph.stack(state, 1), ["R", *state_sizes(model, "after")])
    graph.output("weights", graph.stack(weights, 2), ["N", "W", layers, heads, "S"])
    return final_norm(graph, model.decoder_norm, vectors)


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
    query, key = rotate(graph, query, inputs.turn), rotate(graph, key, inputs.turn)
    keys, values = (
        graph.op("Concat", graph.select(inputs.state, 2 * index + offset), new, axis=2)  # (R, H, T + 1, d)
        for offset, new in enumerate((key, value))
    )
    context, _ = attend(graph, query, graph.op("Transpose", keys, perm=[0, 1, 3, 2]), values)
    output = graph.linear(attention.output, graph.reshape(context, -1, attention.heads * width))
    return add_output(graph, layer.around_attention, vectors, output), (keys, values)


def recurrence(
    graph: GraphBuilder, layer: TransformerDecoderLayer, vectors: str, inputs: StepInputs, index: int
) -> tuple[str, Sequence[str]]:
    """Update the cell of an SSRU: return vectors (R, D) and the cell (R, D)."""
    unit, normalized = cast(SSRU, layer.attention), pre_norm(graph, layer.around_attention, vectors)
    forget = graph.op("Sigmoid", graph.linear(unit.forget, normalized))
    kept = graph.op("Mul", forget, graph.select(inputs.state, index))
    new = graph.op("Sub", graph.constant(1.0), forget)
    cell = str(graph.op("Add", kept, graph.op("Mul", new, graph.linear(unit.candidate, normalized))))
    return add_output(graph, layer.around_attention, vectors, graph.op("Relu", cell)), (cell,)


def rotate(graph: GraphBuilder, vectors: str, turn: Rotation) -> str:
    """(a, b) -> (a cos − b sin, b cos + a sin), as `positions.Rotary`."""
    first, second = graph.op("Split", vectors, results=2, axis=-1)
    swapped = graph.op("Concat", second, first, axis=-1)
    return str(graph.op("Add", graph.op("Mul", vectors, turn.cos), graph.op("Mul", swapped, turn.sin)))


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
    return add_output(graph, layer.around_cross, vectors, output), graph.op("Transpose", weights, perm=[0, 2, 1, 3])

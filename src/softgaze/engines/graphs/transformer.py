"""A Transformer's decoder as ONNX has it, of the kind that captioners have: rotary positions, norms before each block.

Letters: N sources of S items, R rows, each source having R / N = W side by side, D width, L layers, H heads of d = D/H.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from onnx import TensorProto
from torch import nn

from softgaze.attention import MultiHead
from softgaze.engines.graphs.graph import Graph
from softgaze.models.transformer import DecoderLayer, FeedForward, PreNorm, Transformer
from softgaze.positions import frequencies


class Looked(NamedTuple):
    """What one attention gave."""

    context: str  # (…, Q, d)
    weights: str  # (…, Q, K)


def attend(graph: Graph, query: str, keys: str, values: str, hidden: str = "") -> Looked:
    """Of queries (…, Q, d), keys that are turned already, (…, d, K), and values (…, K, d)."""
    scores = graph.op("MatMul", query, keys)
    weights = graph.op("Softmax", graph.op("Add", scores, hidden) if hidden else scores, axis=-1)
    return Looked(graph.op("MatMul", weights, values), weights)


def ask(graph: Graph, layer: MultiHead, vectors: str) -> str:
    """Queries (…, D), divided by √d as the scores are."""
    return str(graph.op("Div", graph.linear(layer.query, vectors), graph.constant(head_width(layer) ** 0.5)))


def split_heads(graph: Graph, layer: MultiHead, vectors: str, *, turned: bool = False) -> str:
    """(N, S, D) -> (N, H, S, d), or turned (N, H, d, S)."""
    parts = graph.reshape(vectors, graph.size(vectors, 0), -1, layer.heads, head_width(layer))
    return str(graph.op("Transpose", parts, perm=[0, 2, 3, 1] if turned else [0, 2, 1, 3]))


def join_heads(graph: Graph, layer: MultiHead, vectors: str) -> str:
    """(N, H, S, d) -> (N, S, D)."""
    parts = graph.op("Transpose", vectors, perm=[0, 2, 1, 3])
    return graph.reshape(parts, graph.size(parts, 0), -1, layer.heads * head_width(layer))


def head_width(layer: MultiHead) -> int:
    """The d of its heads."""
    return int(layer.query.out_features // layer.heads)


def before(graph: Graph, around: PreNorm, vectors: str) -> str:
    """What a block reads."""
    return graph.norm(cast(nn.LayerNorm, around.norm), vectors)


def feed_forward(graph: Graph, around: PreNorm, layer: nn.Module, vectors: str) -> str:
    """x + W₂ ReLU(W₁ norm(x))."""
    feed = cast(FeedForward, layer)
    inner = graph.op("Relu", graph.linear(feed.inner, before(graph, around, vectors)))
    return str(graph.op("Add", vectors, graph.linear(feed.outer, inner)))


# --- before the first step --------------------------------------------------------------------------------------


def begin(graph: Graph, model: Transformer, memory: str, lengths: str) -> None:
    """What every layer remembers of a memory (N, S, D); of what is written, nothing."""
    looks = [cast(DecoderLayer, layer).cross for layer in model.decoder]
    layers, heads, width = len(looks), looks[0].heads, head_width(looks[0])
    keys = [split_heads(graph, each, graph.linear(each.key, memory), turned=True) for each in looks]
    values = [split_heads(graph, each, graph.linear(each.value, memory)) for each in looks]
    graph.output("keys", graph.stack(keys, 1), ["N", layers, heads, width, "S"])
    graph.output("memory", graph.stack(values, 1), ["N", layers, heads, "S", width])
    graph.output("mask", graph.real(memory, lengths), ["N", 1, "S"])
    nothing = graph.op("ConstantOfShape", graph.shape(graph.size(memory, 0), 2 * layers, heads, 0, width))
    graph.output("hidden", nothing, ["N", 2 * layers, heads, 0, width])


# --- a step -----------------------------------------------------------------------------------------------------


class Known(NamedTuple):
    """What a step has to look at."""

    own: str  # (R, 2L, H, T, d) keys and values of what is written, layer by layer
    keys: str  # (N, L, H, d, S) of the source
    values: str  # (N, L, H, S, d)
    hidden: str  # (N, 1, 1, S) what may not be seen of it
    cos: str  # (d,) by how much queries and keys are turned at this place
    sin: str


def step(graph: Graph, model: Transformer, rows: str, word: str) -> str:
    """Rows to go on with (R,), the word each reads (R, D), and all that is known -> features (R, D), and the same."""
    decoder = [cast(DecoderLayer, layer) for layer in model.decoder]
    layers, heads, width = len(decoder), decoder[0].cross.heads, head_width(decoder[0].cross)
    known = inputs(graph, rows, layers, heads, width)
    vectors, after, weights = graph.op("Mul", word, graph.constant(model.scale)), list[str](), list[str]()
    for number, layer in enumerate(decoder):
        vectors, own = look_back(graph, layer, vectors, known, number)
        vectors, looked = look(graph, layer, vectors, known, number)
        vectors = feed_forward(graph, layer.around_feed_forward, layer.feed_forward, vectors)
        after.extend(own)
        weights.append(looked)
    graph.output("after", graph.stack(after, 1), ["R", 2 * layers, heads, "after", width])
    graph.output("weights", graph.stack(weights, 2), ["N", "W", layers, heads, "S"])
    return graph.norm(cast(nn.LayerNorm, model.decoder_norm), vectors)


def inputs(graph: Graph, rows: str, layers: int, heads: int, width: int) -> Known:
    """All that is known."""
    own = graph.input("hidden", ["before", 2 * layers, heads, "T", width])
    keys = graph.input("keys", ["N", layers, heads, width, "S"])
    values = graph.input("memory", ["N", layers, heads, "S", width])
    mask = graph.input("mask", ["N", 1, "S"])
    place = graph.cast(graph.input("position", [1], TensorProto.INT64))
    angles = graph.op("Mul", place, graph.parameter(frequencies(width, torch.device("cpu"))))  # (d/2,)
    cos, sin = graph.op("Cos", angles), graph.op("Sin", angles)
    return Known(
        graph.op("Gather", own, rows, axis=0),
        keys,
        values,
        graph.hidden(graph.wider(mask, 1)),
        graph.op("Concat", cos, cos, axis=0),
        graph.op("Concat", graph.op("Neg", sin), sin, axis=0),
    )


def look_back(graph: Graph, layer: DecoderLayer, vectors: str, known: Known, number: int) -> tuple[str, Sequence[str]]:
    """At all that was written: vectors (R, D), and the keys and values with those of one more token."""
    own, read = layer.attention, before(graph, layer.around_attention, vectors)
    query, key, value = (
        graph.reshape(each, -1, own.heads, 1, head_width(own))  # (R, H, 1, d)
        for each in (ask(graph, own, read), graph.linear(own.key, read), graph.linear(own.value, read))
    )
    query, key = rotated(graph, query, known), rotated(graph, key, known)
    keys, values = (
        graph.op("Concat", graph.pick(known.own, 2 * number + part), new, axis=2)  # (R, H, T + 1, d)
        for part, new in enumerate((key, value))
    )
    context = attend(graph, query, graph.op("Transpose", keys, perm=[0, 1, 3, 2]), values).context
    change = graph.linear(own.output, graph.reshape(context, -1, own.heads * head_width(own)))
    return graph.op("Add", vectors, change), (keys, values)


def rotated(graph: Graph, vectors: str, known: Known) -> str:
    """(a, b) -> (a cos − b sin, b cos + a sin), as `positions.Rotary`."""
    first, second = graph.op("Split", vectors, results=2, axis=-1)
    others = graph.op("Concat", second, first, axis=-1)
    return str(graph.op("Add", graph.op("Mul", vectors, known.cos), graph.op("Mul", others, known.sin)))


def look(graph: Graph, layer: DecoderLayer, vectors: str, known: Known, number: int) -> tuple[str, str]:
    """At the source: vectors (R, D), and weights (N, W, H, S). The rows of a source look together."""
    cross, read = layer.cross, before(graph, layer.around_cross, vectors)
    width = cross.heads * head_width(cross)
    asked = graph.reshape(ask(graph, cross, read), graph.size(known.values, 0), -1, width)  # (N, W, D)
    keys, values = graph.pick(known.keys, number), graph.pick(known.values, number)
    found = attend(graph, split_heads(graph, cross, asked), keys, values, known.hidden)
    change = graph.linear(cross.output, graph.reshape(join_heads(graph, cross, found.context), -1, width))
    return graph.op("Add", vectors, change), graph.op("Transpose", found.weights, perm=[0, 2, 1, 3])

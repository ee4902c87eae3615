"""Recurrent encoders and decoders as ONNX has them.

Letters: N sources of S items, R rows, each source having R / N side by side, D width, V vocabulary.
"""

import math
from collections.abc import Sequence
from typing import cast

import numpy
from onnx import TensorProto
from torch import nn

from softgaze.attention import (
    Additive,
    Cosine,
    Everywhere,
    General,
    LocalMonotonic,
    LocalPredictive,
    Location,
    ScaledDot,
)
from softgaze.engines.graphs.graph import Array, Graph
from softgaze.models.rnn import GRU, LSTM, RNN, AttentiveRNN, BahdanauRNN, BothWays, LuongRNN

SMALL = 1e-12  # as torch's `normalize`: the least length a vector is divided by
# How torch orders the gates of a cell, and which of them ONNX has first, second, …
ONNX_GATES: dict[type[nn.Module], tuple[int, ...]] = {GRU: (1, 0, 2), LSTM: (0, 3, 1, 2)}


# --- the encoder ------------------------------------------------------------------------------------------------


def read(graph: Graph, model: RNN, source: str, lengths: str) -> tuple[str, str]:
    """(N, S) ids and (N,) lengths -> what is remembered of each, (N, S, D), and the last state (N, D)."""
    words = vectors = graph.op("Gather", graph.parameter(model.source_embedding.weight), source)
    final = ""
    for layer in model.encoder:
        vectors, final = both_ways(graph, cast(BothWays, layer), vectors, lengths)
    if isinstance(model, AttentiveRNN) and model.shortcut:
        vectors = graph.op("Add", vectors, words)
    return vectors, final


def both_ways(graph: Graph, layer: BothWays, vectors: str, lengths: str) -> tuple[str, str]:
    """One bidirectional layer: (N, S, D) -> the same, and the last state of each direction, joined (N, D)."""
    kind = "GRU" if isinstance(layer.ahead, GRU) else "LSTM"
    cells = [cast(nn.RNNBase, way.rnn) for way in (layer.ahead, layer.back)]
    order = ONNX_GATES[type(layer.ahead)]
    inputs, carried, biases = (
        numpy.stack([gates(cell, names, order) for cell in cells])
        for names in (("weight_ih_l0",), ("weight_hh_l0",), ("bias_ih_l0", "bias_hh_l0"))
    )
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    outputs, last = graph.op(
        kind,
        graph.op("Transpose", vectors, perm=[1, 0, 2]),
        *(graph.constant(each) for each in (inputs, carried, biases)),
        graph.cast(lengths, TensorProto.INT32),
        results=2,
        hidden_size=cells[0].hidden_size,
        direction="bidirectional",
        **more,
    )  # (S, 2, N, D/2), (2, N, D/2)
    width = 2 * cells[0].hidden_size
    joined = graph.reshape(graph.op("Transpose", outputs, perm=[2, 0, 1, 3]), graph.size(vectors, 0), -1, width)
    return joined, graph.reshape(graph.op("Transpose", last, perm=[1, 0, 2]), -1, width)


def gates(cell: nn.RNNBase, names: Sequence[str], order: Sequence[int]) -> Array:
    """Parameters of a cell, its gates in another order; biases one after the other."""
    found = []
    for name in names:
        parts = numpy.split(getattr(cell, name).detach().cpu().numpy(), len(order))
        found += [parts[number] for number in order]
    return numpy.concatenate(found)


# --- before the first step --------------------------------------------------------------------------------------


def begin(graph: Graph, model: RNN, memory: str, final: str, lengths: str) -> None:
    """All that a decoder starts with, from a memory (N, S, D) and what stands for the whole of it, (N, D)."""
    first = graph.op("Tanh", graph.linear(model.bridge, final))
    hidden = graph.reshape(first, -1, first_states(model), model.width)
    if feeds_itself(model):
        nothing = graph.op("Mul", graph.wider(final, 1), graph.constant(0.0))
        hidden = graph.op("Concat", hidden, nothing, axis=1)
    graph.output("hidden", hidden, ["N", states(model), model.width])
    if not isinstance(model, AttentiveRNN):
        graph.output("final", final, ["N", model.width])
        return
    graph.output("memory", memory, ["N", "S", model.width])
    keys, shape = prepared(graph, model, memory)
    graph.output("keys", keys, shape)
    graph.output("mask", graph.real(memory, lengths), ["N", 1, "S"])


def first_states(model: RNN) -> int:
    """Vectors that a cell carries on."""
    return int(model.bridge.out_features // model.width)


def feeds_itself(model: RNN) -> bool:
    """Whether what a step said is read by the next."""
    return isinstance(model, LuongRNN) and model.feeds_back


def states(model: RNN) -> int:
    """Vectors that go from step to step; the last is what the step before said, if that is read."""
    return first_states(model) + feeds_itself(model)


def prepared(graph: Graph, model: AttentiveRNN, memory: str) -> tuple[str, list[str | int]]:
    """Keys, and their shape: those of products are turned, (N, D, S)."""
    score = model.score
    if isinstance(score, Additive):
        return graph.linear(score.key_part, memory), ["N", "S", model.width]
    keys = memory
    if isinstance(score, General):
        keys = graph.linear(score.bilinear, memory)
    if isinstance(score, Cosine):
        keys = normalised(graph, memory)
    return graph.op("Transpose", keys, perm=[0, 2, 1]), ["N", model.width, "S"]


def normalised(graph: Graph, vectors: str) -> str:
    """Vectors of length 1."""
    length = graph.op("ReduceL2", vectors, axes=[-1], keepdims=1)
    return str(graph.op("Div", vectors, graph.op("Max", length, graph.constant(SMALL))))


# --- a step -----------------------------------------------------------------------------------------------------


def step(graph: Graph, model: RNN, rows: str, word: str) -> str:
    """Rows to go on with (R,), the word each reads (R, D), and all that is known -> features (R, D), and the same."""
    before = graph.input("hidden", ["before", states(model), model.width])
    hidden = graph.op("Gather", before, rows, axis=0)
    vectors = [graph.pick(hidden, number) for number in range(states(model))]
    features, after = go_on(graph, model, word, vectors)
    graph.output("after", graph.stack(after, 1), ["R", states(model), model.width])
    return features


def go_on(graph: Graph, model: RNN, word: str, before: list[str]) -> tuple[str, list[str]]:
    """Features (R, D) for the output, and the vectors after the step: what tells the three decoders apart."""
    if isinstance(model, BahdanauRNN):
        context = look(graph, model, before[model.layers - 1])
        seen, after = cell(graph, model, graph.op("Concat", word, context, axis=1), before)
        return read_out(graph, model, seen, word, context), after
    if isinstance(model, LuongRNN):
        fed = graph.op("Concat", word, before[-1], axis=1) if model.feeds_back else word
        seen, after = cell(graph, model, fed, before)
        features = read_out(graph, model, seen, look(graph, model, seen))
        return features, [*after, *[features] * model.feeds_back]
    context = for_each_row(graph, graph.input("final", ["N", model.width]), word, model.width)
    seen, after = cell(graph, model, graph.op("Concat", word, context, axis=1), before)
    return read_out(graph, model, seen, word, context), after


def read_out(graph: Graph, model: RNN, *parts: str) -> str:
    """tanh(W […] + b)."""
    return str(graph.op("Tanh", graph.linear(model.readout, graph.op("Concat", *parts, axis=1))))


def for_each_row(graph: Graph, vectors: str, rows: str, width: int) -> str:
    """(N, D) -> (R, D): each one for all the rows of its source."""
    groups = graph.reshape(rows, graph.size(vectors, 0), -1, width)  # (N, R/N, D)
    spread = graph.op("Expand", graph.wider(vectors, 1), graph.op("Shape", groups))
    return graph.reshape(spread, -1, width)


def cell(graph: Graph, model: RNN, vectors: str, before: list[str]) -> tuple[str, list[str]]:
    """All layers, one upon the other: what the top one says, and the vectors after."""
    rnn, layers = cast(nn.RNNBase, model.decoder.rnn), model.layers
    hs, cs = [], []
    for layer in range(layers):
        weights = [getattr(rnn, f"{kind}_l{layer}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        fresh, carried = (
            graph.op("Gemm", value, graph.parameter(weight), graph.parameter(bias), transB=1)
            for value, weight, bias in zip((vectors, before[layer]), weights[:2], weights[2:], strict=True)
        )
        if isinstance(model.decoder, GRU):
            vectors = gru(graph, fresh, carried, before[layer])
        else:
            vectors, c = lstm(graph, fresh, carried, before[layers + layer])
            cs.append(c)
        hs.append(vectors)
    return vectors, [*hs, *cs]


def gru(graph: Graph, fresh: str, carried: str, before: str) -> str:
    """r = σ(…), z = σ(…), n = tanh(… + r …), h = n + z (h − n)."""
    reset, keep, new = graph.op("Split", fresh, results=3, axis=1)
    reset_too, keep_too, new_too = graph.op("Split", carried, results=3, axis=1)
    reset = graph.op("Sigmoid", graph.op("Add", reset, reset_too))
    keep = graph.op("Sigmoid", graph.op("Add", keep, keep_too))
    new = graph.op("Tanh", graph.op("Add", new, graph.op("Mul", reset, new_too)))
    return str(graph.op("Add", new, graph.op("Mul", keep, graph.op("Sub", before, new))))


def lstm(graph: Graph, fresh: str, carried: str, memory: str) -> tuple[str, str]:
    """c = σ(f) c + σ(i) tanh(g), h = σ(o) tanh(c)."""
    let_in, keep, new, let_out = graph.op("Split", graph.op("Add", fresh, carried), results=4, axis=1)
    let_in, keep, let_out = (graph.op("Sigmoid", each) for each in (let_in, keep, let_out))
    added = graph.op("Mul", let_in, graph.op("Tanh", new))
    memory = graph.op("Add", graph.op("Mul", keep, memory), added)
    return str(graph.op("Mul", let_out, graph.op("Tanh", memory))), memory


# --- looking ----------------------------------------------------------------------------------------------------


def look(graph: Graph, model: AttentiveRNN, query: str) -> str:
    """Context (R, D) for a query (R, D): the rows of a source look together, so its memory is there once."""
    memory = graph.input("memory", ["N", "S", model.width])
    mask = graph.input("mask", ["N", 1, "S"])
    asked = graph.reshape(query, graph.size(memory, 0), -1, model.width)  # (N, R/N, D)
    mask, bell = window(graph, model.window, asked, mask)
    scores = graph.op("Add", compare(graph, model, asked, memory), graph.hidden(mask))
    weights = graph.op("Softmax", scores, axis=-1)
    weights = graph.op("Mul", weights, mask)  # who may look nowhere has weights of zero
    if bell:
        weights = graph.op("Mul", weights, bell)
    graph.output("weights", weights, ["N", "W", "S"])
    return graph.reshape(graph.op("MatMul", weights, memory), -1, model.width)


def compare(graph: Graph, model: AttentiveRNN, asked: str, memory: str) -> str:
    """Scores (N, R/N, S)."""
    score = model.score
    if isinstance(score, Location):
        size = graph.size(memory, 1)
        known = graph.op("Slice", graph.parameter(score.places.weight), graph.constant([0]), size, graph.constant([0]))
        return str(graph.op("MatMul", asked, graph.op("Transpose", known, perm=[1, 0])))
    if isinstance(score, Additive):
        keys = graph.input("keys", ["N", "S", model.width])
        query = graph.wider(graph.linear(score.query_part, asked), 2)
        met = graph.op("Tanh", graph.op("Add", query, graph.wider(keys, 1)))
        return str(graph.op("Squeeze", graph.linear(score.vector, met), graph.constant([3])))
    if isinstance(score, Cosine):
        asked = normalised(graph, asked)
    if isinstance(score, ScaledDot):
        asked = graph.op("Div", asked, graph.constant(math.sqrt(model.width)))
    return str(graph.op("MatMul", asked, graph.input("keys", ["N", model.width, "S"])))


def window(graph: Graph, kind: Everywhere, asked: str, mask: str) -> tuple[str, str]:
    """The mask (N, R/N or 1, S) of where each row may look, and what its weights are multiplied by, "" for nothing."""
    if not isinstance(kind, LocalMonotonic | LocalPredictive):
        return mask, ""
    places = graph.places(graph.size(mask, 2))
    if isinstance(kind, LocalMonotonic):
        center = graph.cast(graph.input("position", [1], TensorProto.INT64))
        return near(graph, graph.op("Sub", places, center), kind.reach, mask), ""
    inner, outer = cast(nn.Linear, kind.predict[0]), cast(nn.Linear, kind.predict[2])
    share = graph.op("Sigmoid", graph.linear(outer, graph.op("Tanh", graph.linear(inner, asked))))  # (N, R/N, 1)
    length = graph.op("ReduceSum", mask, graph.constant([2]), keepdims=1)
    apart = graph.op("Sub", places, graph.op("Mul", length, share))  # (N, R/N, S)
    squared = graph.op("Mul", apart, apart)
    bell = graph.op("Exp", graph.op("Mul", squared, graph.constant(-0.5 / (kind.reach / 2) ** 2)))
    return near(graph, apart, kind.reach, mask), bell


def near(graph: Graph, apart: str, reach: int, mask: str) -> str:
    """The mask where nothing is further away than the reach."""
    inside = graph.op("LessOrEqual", graph.op("Abs", apart), graph.constant(float(reach)))
    return str(graph.op("Mul", mask, graph.cast(inside)))

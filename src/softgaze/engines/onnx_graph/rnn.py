"""Recurrent encoders and decoders as ONNX graphs.

Letters: N sources of S items, R rows (R / N for each source, in order), D width.
"""

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
from onnx import TensorProto
from torch import nn

from softgaze.engines.onnx_graph.builder import Array, GraphBuilder
from softgaze.models.rnn import GRU, LSTM, AttentiveRNN, BahdanauRNN, BiRNNLayer, LuongRNN, RecurrentSeq2Seq
from softgaze.scores import (
    Additive,
    Cosine,
    General,
    GlobalWindow,
    LocalMonotonic,
    LocalPredictive,
    Location,
    ScaledDot,
)

MIN_NORM = 1e-12  # as torch's `normalize`
# For each gate of ONNX, its index in the order of torch.
ONNX_GATES: dict[type[nn.Module], tuple[int, ...]] = {GRU: (1, 0, 2), LSTM: (0, 3, 1, 2)}


# --- encoder ----------------------------------------------------------------------------------------------------


def encode(graph: GraphBuilder, model: RecurrentSeq2Seq, source: str, lengths: str) -> tuple[str, str]:
    """(N, S) ids and (N,) lengths -> the memory (N, S, D) and the last state (N, D)."""
    embedded = vectors = graph.op("Gather", graph.parameter(model.source_embedding.weight), source)
    final = ""
    for layer in model.encoder:
        vectors, final = bidirectional_layer(graph, cast(BiRNNLayer, layer), vectors, lengths)
    if isinstance(model, AttentiveRNN) and model.shortcut:
        vectors = graph.op("Add", vectors, embedded)
    return vectors, final


def bidirectional_layer(graph: GraphBuilder, layer: BiRNNLayer, vectors: str, lengths: str) -> tuple[str, str]:
    """One bidirectional layer: (N, S, D) -> the same, and the last state of each direction, joined (N, D)."""
    kind = "GRU" if isinstance(layer.ahead, GRU) else "LSTM"
    cells = [cast(nn.RNNBase, direction.rnn) for direction in (layer.ahead, layer.back)]
    order = ONNX_GATES[type(layer.ahead)]
    input_weights, hidden_weights, biases = (
        np.stack([reorder_gates(cell, names, order) for cell in cells])
        for names in (("weight_ih_l0",), ("weight_hh_l0",), ("bias_ih_l0", "bias_hh_l0"))
    )
    attributes = {"linear_before_reset": 1} if kind == "GRU" else {}
    outputs, last = graph.op(
        kind,
        graph.op("Transpose", vectors, perm=[1, 0, 2]),
        *(graph.constant(array) for array in (input_weights, hidden_weights, biases)),
        graph.cast(lengths, TensorProto.INT32),
        results=2,
        hidden_size=cells[0].hidden_size,
        direction="bidirectional",
        **attributes,
    )  # (S, 2, N, D/2), (2, N, D/2)
    width = 2 * cells[0].hidden_size
    joined = graph.reshape(graph.op("Transpose", outputs, perm=[2, 0, 1, 3]), graph.size(vectors, 0), -1, width)
    return joined, graph.reshape(graph.op("Transpose", last, perm=[1, 0, 2]), -1, width)


def reorder_gates(cell: nn.RNNBase, names: Sequence[str], order: Sequence[int]) -> Array:
    """Return parameters of a cell with the gates in ONNX's order, concatenated."""
    reordered = []
    for name in names:
        gates = np.split(getattr(cell, name).detach().cpu().numpy(), len(order))
        reordered += [gates[index] for index in order]
    return np.concatenate(reordered)


# --- first state ------------------------------------------------------------------------------------------------


def start(graph: GraphBuilder, model: RecurrentSeq2Seq, memory: str, final: str, lengths: str) -> None:
    """Output the first state of a decoder, from a memory (N, S, D) and the final encoder state (N, D)."""
    first = graph.op("Tanh", graph.linear(model.bridge, final))
    hidden = graph.reshape(first, -1, num_cell_states(model), model.width)
    if feeds_input(model):
        zeros = graph.op("Mul", graph.unsqueeze(final, 1), graph.constant(0.0))
        hidden = graph.op("Concat", hidden, zeros, axis=1)
    graph.output("hidden", hidden, ["N", num_states(model), model.width])
    if not isinstance(model, AttentiveRNN):
        graph.output("final", final, ["N", model.width])
        return
    graph.output("memory", memory, ["N", "S", model.width])
    keys, shape = project_keys(graph, model, memory)
    graph.output("keys", keys, shape)
    graph.output("mask", graph.padding_mask(memory, lengths), ["N", 1, "S"])


def num_cell_states(model: RecurrentSeq2Seq) -> int:
    return int(model.bridge.out_features // model.width)


def feeds_input(model: RecurrentSeq2Seq) -> bool:
    """Whether the features of a step are an input of the next (input feeding)."""
    return isinstance(model, LuongRNN) and model.input_feeding


def num_states(model: RecurrentSeq2Seq) -> int:
    """Return the number of vectors that go from step to step; with input feeding the last are the features."""
    return num_cell_states(model) + feeds_input(model)


def project_keys(graph: GraphBuilder, model: AttentiveRNN, memory: str) -> tuple[str, list[str | int]]:
    """Return the keys and their shape; those of dot products are transposed, (N, D, S)."""
    score = model.score
    if isinstance(score, Additive):
        return graph.linear(score.key_part, memory), ["N", "S", model.width]
    keys = memory
    if isinstance(score, General):
        keys = graph.linear(score.bilinear, memory)
    if isinstance(score, Cosine):
        keys = normalize(graph, memory)
    return graph.op("Transpose", keys, perm=[0, 2, 1]), ["N", model.width, "S"]


def normalize(graph: GraphBuilder, vectors: str) -> str:
    length = graph.op("ReduceL2", vectors, axes=[-1], keepdims=1)
    return str(graph.op("Div", vectors, graph.op("Max", length, graph.constant(MIN_NORM))))


# --- step -------------------------------------------------------------------------------------------------------


def step(graph: GraphBuilder, model: RecurrentSeq2Seq, rows: str, embedded: str) -> str:
    """Continue rows (R,) with embedded tokens (R, D): return features (R, D), output the next state."""
    before = graph.input("hidden", ["before", num_states(model), model.width])
    hidden = graph.op("Gather", before, rows, axis=0)
    states = [graph.select(hidden, index) for index in range(num_states(model))]
    if isinstance(model, LuongRNN):
        inputs = graph.op("Concat", embedded, states[-1], axis=1) if model.input_feeding else embedded
        output, next_states = cell_step(graph, model, inputs, states)
        features = readout(graph, model, output, attend(graph, model, output))
        next_states += [features] * model.input_feeding
    else:
        if isinstance(model, BahdanauRNN):
            context = attend(graph, model, states[model.layers - 1])
        else:
            final = graph.input("final", ["N", model.width])  # repeated for all rows of each source
            groups = graph.reshape(embedded, graph.size(final, 0), -1, model.width)  # (N, R/N, D)
            repeated = graph.op("Expand", graph.unsqueeze(final, 1), graph.op("Shape", groups))
            context = graph.reshape(repeated, -1, model.width)
        output, next_states = cell_step(graph, model, graph.op("Concat", embedded, context, axis=1), states)
        features = readout(graph, model, output, embedded, context)
    graph.output("next_hidden", graph.stack(next_states, 1), ["R", num_states(model), model.width])
    return features


def readout(graph: GraphBuilder, model: RecurrentSeq2Seq, *parts: str) -> str:
    """tanh(W […] + b)."""
    return str(graph.op("Tanh", graph.linear(model.readout, graph.op("Concat", *parts, axis=1))))


def cell_step(graph: GraphBuilder, model: RecurrentSeq2Seq, vectors: str, states: list[str]) -> tuple[str, list[str]]:
    """One step of all layers: return the output of the last, and the next states."""
    rnn, layers = cast(nn.RNNBase, model.decoder.rnn), model.layers
    hidden_states, cell_states = [], []
    for layer in range(layers):
        weights = [getattr(rnn, f"{kind}_l{layer}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        from_input, from_hidden = (
            graph.op("Gemm", value, graph.parameter(weight), graph.parameter(bias), transB=1)
            for value, weight, bias in zip((vectors, states[layer]), weights[:2], weights[2:], strict=True)
        )
        if isinstance(model.decoder, GRU):
            vectors = gru(graph, from_input, from_hidden, states[layer])
        else:
            vectors, cell_state = lstm(graph, from_input, from_hidden, states[layers + layer])
            cell_states.append(cell_state)
        hidden_states.append(vectors)
    return vectors, [*hidden_states, *cell_states]


def gru(graph: GraphBuilder, from_input: str, from_hidden: str, hidden: str) -> str:
    """r = σ(…), z = σ(…), n = tanh(… + r …), h = n + z (h − n)."""
    reset, update, new = graph.op("Split", from_input, results=3, axis=1)
    hidden_reset, hidden_update, hidden_new = graph.op("Split", from_hidden, results=3, axis=1)
    reset = graph.op("Sigmoid", graph.op("Add", reset, hidden_reset))
    update = graph.op("Sigmoid", graph.op("Add", update, hidden_update))
    new = graph.op("Tanh", graph.op("Add", new, graph.op("Mul", reset, hidden_new)))
    return str(graph.op("Add", new, graph.op("Mul", update, graph.op("Sub", hidden, new))))


def lstm(graph: GraphBuilder, from_input: str, from_hidden: str, cell_state: str) -> tuple[str, str]:
    """c = σ(f) c + σ(i) tanh(g), h = σ(o) tanh(c)."""
    gates = graph.op("Split", graph.op("Add", from_input, from_hidden), results=4, axis=1)
    input_gate, forget, output = (graph.op("Sigmoid", gates[index]) for index in (0, 1, 3))
    added = graph.op("Mul", input_gate, graph.op("Tanh", gates[2]))
    cell_state = graph.op("Add", graph.op("Mul", forget, cell_state), added)
    return str(graph.op("Mul", output, graph.op("Tanh", cell_state))), cell_state


# --- attention --------------------------------------------------------------------------------------------------


def attend(graph: GraphBuilder, model: AttentiveRNN, query: str) -> str:
    """Return contexts (R, D) for queries (R, D); the rows of a source share its memory."""
    memory = graph.input("memory", ["N", "S", model.width])
    mask = graph.input("mask", ["N", 1, "S"])
    query = graph.reshape(query, graph.size(memory, 0), -1, model.width)  # (N, R/N, D)
    mask, prior = window(graph, model.window, query, mask)
    masked = graph.op("Add", scores(graph, model, query, memory), graph.additive_mask(mask))
    weights = graph.op("Mul", graph.op("Softmax", masked, axis=-1), mask)  # a query without any key gets zero weights
    if prior:
        weights = graph.op("Mul", weights, prior)
    graph.output("weights", weights, ["N", "W", "S"])
    return graph.reshape(graph.op("MatMul", weights, memory), -1, model.width)


def scores(graph: GraphBuilder, model: AttentiveRNN, query: str, memory: str) -> str:
    """Scores (N, R/N, S)."""
    score = model.score
    if isinstance(score, Location):
        size = graph.size(memory, 1)
        start = graph.constant([0])
        positions = graph.op("Slice", graph.parameter(score.positions.weight), start, size, graph.constant([0]))
        return str(graph.op("MatMul", query, graph.op("Transpose", positions, perm=[1, 0])))
    if isinstance(score, Additive):
        keys = graph.input("keys", ["N", "S", model.width])
        query = graph.unsqueeze(graph.linear(score.query_part, query), 2)
        hidden = graph.op("Tanh", graph.op("Add", query, graph.unsqueeze(keys, 1)))
        return str(graph.op("Squeeze", graph.linear(score.vector, hidden), graph.constant([3])))
    if isinstance(score, Cosine):
        query = normalize(graph, query)
    if isinstance(score, ScaledDot):
        query = graph.op("Div", query, graph.constant(math.sqrt(model.width)))
    return str(graph.op("MatMul", query, graph.input("keys", ["N", model.width, "S"])))


def window(graph: GraphBuilder, kind: GlobalWindow, query: str, mask: str) -> tuple[str, str]:
    """Return the mask (N, R/N or 1, S) of the window, and the factor of the weights, "" for none."""
    if not isinstance(kind, LocalMonotonic | LocalPredictive):
        return mask, ""
    positions = graph.arange(graph.size(mask, 2))
    if isinstance(kind, LocalMonotonic):
        center = graph.cast(graph.input("position", [1], TensorProto.INT64))
        return inside_window(graph, graph.op("Sub", positions, center), kind.window_size, mask), ""
    inner, outer = cast(nn.Linear, kind.predict[0]), cast(nn.Linear, kind.predict[2])
    center = graph.op("Sigmoid", graph.linear(outer, graph.op("Tanh", graph.linear(inner, query))))  # (N, R/N, 1)
    length = graph.op("ReduceSum", mask, graph.constant([2]), keepdims=1)
    distance = graph.op("Sub", positions, graph.op("Mul", length, center))  # (N, R/N, S)
    squared = graph.op("Mul", distance, distance)
    prior = graph.op("Exp", graph.op("Mul", squared, graph.constant(-0.5 / (kind.window_size / 2) ** 2)))
    return inside_window(graph, distance, kind.window_size, mask), prior


def inside_window(graph: GraphBuilder, distance: str, window_size: int, mask: str) -> str:
    """Return the mask of positions at most `window_size` away."""
    inside = graph.op("LessOrEqual", graph.op("Abs", distance), graph.constant(float(window_size)))
    return str(graph.op("Mul", mask, graph.cast(inside)))

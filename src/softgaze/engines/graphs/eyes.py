"""What reads sources of vectors, as ONNX has it: see `models/eyes.py`, whose layers these are.

Letters: N sources of S items, D width.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy
import torch
from torch import nn

from softgaze.backbones import backbone
from softgaze.engines.graphs.graph import Graph
from softgaze.engines.graphs.pictures import bright, in_a_row, rows_of, see, whole
from softgaze.engines.graphs.transformer import ask, attend, before, feed_forward, join_heads, split_heads
from softgaze.models.captioner import Captioner
from softgaze.models.conv import HALVE_VARIANCE
from softgaze.models.conv import EncoderLayer as ConvolutionLayer
from softgaze.models.eyes import GROUPS, WAVES, Convolutions, Frames, Frozen, Halving, Patches, Places, Thought, Tuned
from softgaze.models.transformer import EncoderLayer
from softgaze.positions import frequencies


class Items(NamedTuple):
    """What there is to see."""

    values: str  # (N, S, numbers of an item)
    mask: str  # (N, 1, S) 1 where there is an item, 0 where there is padding
    width: int  # numbers of an item


def read(graph: Graph, model: Captioner, source: str, lengths: str) -> tuple[str, str]:
    """Items and (N,) lengths -> a vector for each item, (N, S, D), and their mean (N, D)."""
    items = Items(graph.cast(source), graph.real(source, lengths), model.item_width)
    vectors = EYES[type(model.eyes)](graph, model.eyes, items)
    total = graph.op("Squeeze", graph.op("MatMul", items.mask, vectors), graph.constant([1]))
    return vectors, str(graph.op("Div", total, graph.wider(graph.cast(lengths), 1)))


def before_the_model(graph: Graph, network: str, patches: str, width: int) -> str:
    """Patches of `width` bytes as a frozen network sees them, which is no part of the model."""
    return see(graph, backbone(network).eval(), whole(graph, bright(graph, graph.cast(patches)), width))


# --- pictures ---------------------------------------------------------------------------------------------------


def convolutions(graph: Graph, eyes: Convolutions, items: Items) -> str:
    """A small CNN."""
    picture = whole(graph, bright(graph, items.values), items.width)
    for halve, norm in zip(eyes.halvings, eyes.norms, strict=True):
        smaller = halved(graph, cast(Halving, halve), picture)
        picture = graph.op("Relu", grouped(graph, cast(nn.GroupNorm, norm), smaller))
    vectors = graph.linear(eyes.project, in_a_row(graph, picture))
    for each in eyes.layers:
        layer = cast(Thought, each)
        vectors = feed_forward(graph, layer.around, layer.feed_forward, vectors)
    return placed(graph, eyes.places, graph.norm(eyes.norm, vectors))


def halved(graph: Graph, layer: Halving, picture: str) -> str:
    """A convolution with its border of zeros, if it has one."""
    border = [int(width) for width in layer.conv.padding]
    return graph.convolution(layer.conv, picture, [*border, *border], layer.kernel())


def grouped(graph: Graph, layer: nn.GroupNorm, picture: str) -> str:
    """Channels (N, D, rows, columns) normed in groups: as if each group were an instance."""
    plain = [graph.constant(numpy.full(GROUPS, value)) for value in (1.0, 0.0)]
    groups = graph.reshape(picture, graph.size(picture, 0), GROUPS, -1)
    normed = graph.op("InstanceNormalization", groups, *plain, epsilon=layer.eps)
    again = graph.op("Reshape", normed, graph.op("Shape", picture))
    scale, shift = (graph.wider(graph.parameter(part), 1, 2) for part in (layer.weight, layer.bias))
    return str(graph.op("Add", graph.op("Mul", again, scale), shift))


def patches(graph: Graph, eyes: Patches, items: Items) -> str:
    """Self-attention among patches."""
    vectors = placed(graph, eyes.places, graph.linear(eyes.project, bright(graph, items.values)))
    hidden = graph.hidden(graph.wider(items.mask, 1))  # (N, 1, 1, S)
    for each in eyes.layers:
        layer = cast(EncoderLayer, each)
        own, query = layer.attention, before(graph, layer.around_attention, vectors)
        keys = split_heads(graph, own, graph.linear(own.key, query), turned=True)
        values = split_heads(graph, own, graph.linear(own.value, query))
        context = attend(graph, split_heads(graph, own, ask(graph, own, query)), keys, values, hidden).context
        vectors = graph.op("Add", vectors, graph.linear(own.output, join_heads(graph, own, context)))
        vectors = feed_forward(graph, layer.around_feed_forward, layer.feed_forward, vectors)
    return graph.norm(eyes.norm, vectors)


def placed(graph: Graph, layer: Places, vectors: str) -> str:
    """(N, S, D) of a square grid, with where each patch is."""
    rows = rows_of(graph, vectors)
    places = graph.op("Add", graph.places(rows), graph.constant(0.5))
    shares = graph.op("Div", places, graph.cast(rows))
    angles = graph.op("Mul", graph.wider(shares, 1), graph.constant(math.pi * 2.0 ** numpy.arange(WAVES)))
    waves = graph.op("Concat", graph.op("Sin", angles), graph.op("Cos", angles), axis=1)  # (rows, 2 WAVES)
    grid = graph.shape(rows, rows, 2 * WAVES)
    down, across = (graph.op("Expand", graph.wider(waves, axis), grid) for axis in (1, 0))
    both = graph.reshape(graph.op("Concat", down, across, axis=2), -1, 4 * WAVES)  # (S, 4 WAVES)
    return str(graph.op("Add", vectors, graph.linear(layer.project, both)))


def frozen(graph: Graph, eyes: Frozen, items: Items) -> str:
    """Vectors of a network that has seen the picture before."""
    return placed(graph, eyes.places, graph.linear(eyes.project, graph.norm(eyes.norm, items.values)))


def tuned(graph: Graph, eyes: Tuned, items: Items) -> str:
    """A network that is a part of the model."""
    vectors = see(graph, eyes.network, whole(graph, bright(graph, items.values), items.width))
    return frozen(graph, eyes.seen, items._replace(values=vectors))


# --- frames -----------------------------------------------------------------------------------------------------


def frames(graph: Graph, eyes: Frames, items: Items) -> str:
    """Gated convolutions that see a few neighbours."""
    vectors = graph.linear(eyes.project, graph.norm(eyes.norm, items.values))
    vectors = graph.op("Add", vectors, waves(graph, graph.size(vectors, 1), eyes.positions.width))
    real = graph.op("Transpose", items.mask, perm=[0, 2, 1])  # (N, S, 1)
    for layer in eyes.layers:
        vectors = gated(graph, cast(ConvolutionLayer, layer), vectors, real)
    return graph.norm(eyes.last_norm, vectors)


def waves(graph: Graph, count: str, width: int) -> str:
    """(S, D): sines and cosines in turn, as `positions.sinusoidal`."""
    slow = graph.parameter(frequencies(width, torch.device("cpu")))
    angles = graph.op("Mul", graph.wider(graph.places(count), 1), slow)  # (S, D/2)
    both = graph.stack([graph.op("Sin", angles), graph.op("Cos", angles)], 2)
    return graph.reshape(both, -1, width)


def gated(graph: Graph, layer: ConvolutionLayer, vectors: str, real: str) -> str:
    """(x + a ⊙ σ(b)) / √2, where [a; b] is a convolution of what is real of x."""
    reach = layer.gated.reach
    seen = graph.op("Transpose", graph.op("Mul", vectors, real), perm=[0, 2, 1])  # (N, D, S)
    both = graph.convolution(layer.gated.convolution, seen, [reach // 2, reach - reach // 2])
    value, gate = graph.op("Split", both, results=2, axis=1)
    passed = graph.op("Transpose", graph.op("Mul", value, graph.op("Sigmoid", gate)), perm=[0, 2, 1])
    return str(graph.op("Mul", graph.op("Add", passed, vectors), graph.constant(HALVE_VARIANCE)))


Write = Callable[[Graph, Any, Items], str]  # -> a vector for each item, (N, S, D)
EYES: dict[type[nn.Module], Write] = {
    Convolutions: convolutions,
    Patches: patches,
    Frames: frames,
    Frozen: frozen,
    Tuned: tuned,
}

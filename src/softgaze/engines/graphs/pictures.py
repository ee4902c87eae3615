"""Pictures that come in patches, and the pretrained networks that see them, as ONNX has both: see `backbones.py`."""

from collections.abc import Sequence
from typing import Any

from onnx import TensorProto

from softgaze.backbones import COLOURS, EFFICIENTNET, Backbone, side_of
from softgaze.engines.graphs.graph import Graph
from softgaze.errors import UsageError


def bright(graph: Graph, values: str) -> str:
    """Bytes from 0 to 255 as numbers from −1 to 1."""
    return str(graph.op("Sub", graph.op("Div", values, graph.constant(127.5)), graph.constant(1.0)))


def whole(graph: Graph, patches: str, width: int) -> str:
    """Square patches in reading order, (N, S, width), as the picture they make, (N, 3, side, side)."""
    rows, patch = rows_of(graph, patches), side_of(width // COLOURS)
    grid = graph.reshape(patches, -1, rows, rows, patch, patch, COLOURS)  # (N, down, across, down, across, colour)
    side = graph.op("Mul", rows, graph.constant([patch]))
    return graph.reshape(graph.op("Transpose", grid, perm=[0, 5, 1, 3, 2, 4]), -1, COLOURS, side, side)


def rows_of(graph: Graph, patches: str) -> str:
    """(1,) rows of a square grid of S patches."""
    root = graph.op("Sqrt", graph.cast(graph.size(patches, 1)))
    return graph.cast(graph.op("Round", root), TensorProto.INT64)


def in_a_row(graph: Graph, grid: str) -> str:
    """(N, D, rows, columns) -> (N, S, D)."""
    flat = graph.reshape(grid, graph.size(grid, 0), graph.size(grid, 1), -1)
    return str(graph.op("Transpose", flat, perm=[0, 2, 1]))


# --- pretrained networks ----------------------------------------------------------------------------------------


def see(graph: Graph, network: Backbone, picture: str) -> str:
    """A vector for each patch of a picture of numbers from −1 to 1, (N, S, width)."""
    if network.name != EFFICIENTNET:
        raise UsageError(
            f"{network.name}: a network of Hugging Face is not exported to onnx, only {EFFICIENTNET}, cnn, patches and "
            "frames; its layers are its own, and we can only write ours"
        )
    return in_a_row(graph, efficientnet(graph, network.network, picture))


def efficientnet(graph: Graph, network: Any, picture: str) -> str:
    """(N, 3, 224, 224) -> (N, 1280, 7, 7)."""
    picture = lively(graph, network._conv_stem, network._bn0, picture)
    for block in network._blocks:
        picture = bottleneck(graph, block, picture)
    return lively(graph, network._conv_head, network._bn1, picture)


def bottleneck(graph: Graph, block: Any, picture: str) -> str:
    """Widened, looked at channel by channel, narrowed; and added to what it was, where it has the same shape."""
    inner, facts = picture, block._block_args
    if facts.expand_ratio != 1:
        inner = lively(graph, block._expand_conv, block._bn0, inner)
    inner = lively(graph, block._depthwise_conv, block._bn1, inner)
    inner = normed(graph, block._project_conv, block._bn2, inner)
    alike = facts.id_skip and block._depthwise_conv.stride[0] == 1 and facts.input_filters == facts.output_filters
    return str(graph.op("Add", inner, picture)) if alike else inner


def lively(graph: Graph, layer: Any, norm: Any, picture: str) -> str:
    """Between 0 and 6."""
    return str(graph.op("Clip", normed(graph, layer, norm, picture), graph.constant(0.0), graph.constant(6.0)))


def normed(graph: Graph, layer: Any, norm: Any, picture: str) -> str:
    """A convolution, and its channels by the statistics that came with the weights."""
    learned = (graph.parameter(part) for part in (norm.weight, norm.bias, norm.running_mean, norm.running_var))
    seen = graph.convolution(layer, picture, borders(layer))
    return str(graph.op("BatchNormalization", seen, *learned, epsilon=norm.eps))


def borders(layer: Any) -> Sequence[int]:
    """Zeros above, left, below and right: more below and right where they do not come out even."""
    left, right, top, bottom = getattr(layer.static_padding, "padding", (0, 0, 0, 0))
    return [top, left, bottom, right]

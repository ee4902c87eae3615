"""The encoders of `models/feature_encoders.py` and the EfficientNet backbone as ONNX graphs.

Letters: N sources of S items, D width.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from onnx import TensorProto
from torch import nn

from softgaze.engines.onnx_graph.builder import GraphBuilder
from softgaze.engines.onnx_graph.transformer import (
    attend,
    feed_forward,
    join_heads,
    pre_norm,
    project_query,
    split_heads,
)
from softgaze.errors import UsageError
from softgaze.models.backbones import EFFICIENTNETS, RGB, Backbone, backbone, grid_size
from softgaze.models.captioner import Captioner
from softgaze.models.conv import HALVE_VARIANCE, ConvEncoderLayer
from softgaze.models.feature_encoders import (
    GROUPS,
    WAVES,
    CNNEncoder,
    Downsample,
    FinetunedBackbone,
    FrameEncoder,
    GridPositions,
    PatchEncoder,
    PatchMLP,
    PrecomputedFeatures,
    SelfAttentionLayers,
)
from softgaze.models.transformer import TransformerEncoderLayer
from softgaze.positions import frequencies


class FeatureInput(NamedTuple):
    values: str  # (N, S, width)
    mask: str  # (N, 1, S) 1 for an item, 0 for padding
    width: int


def encode(graph: GraphBuilder, model: Captioner, source: str, lengths: str) -> tuple[str, str]:
    """Features and (N,) lengths -> a vector for each item, (N, S, D), and their mean (N, D)."""
    inputs = FeatureInput(graph.cast(source), graph.padding_mask(source, lengths), model.item_width)
    vectors = ENCODERS[type(model.feature_encoder)](graph, model.feature_encoder, inputs)
    total = graph.op("Squeeze", graph.op("MatMul", inputs.mask, vectors), graph.constant([1]))
    return vectors, str(graph.op("Div", total, graph.unsqueeze(graph.cast(lengths), 1)))


# --- images -----------------------------------------------------------------------------------------------------


def cnn_encoder(graph: GraphBuilder, encoder: CNNEncoder, inputs: FeatureInput) -> str:
    image = join_patches(graph, scale_pixels(graph, inputs.values), inputs.width)
    for module, norm in zip(encoder.downsample, encoder.norms, strict=True):
        layer = cast(Downsample, module)
        border = [int(width) for width in layer.conv.padding]
        smaller = graph.convolution(layer.conv, image, [*border, *border], layer.kernel())
        image = graph.op("Relu", group_norm(graph, cast(nn.GroupNorm, norm), smaller))
    vectors = graph.linear(encoder.project, flatten_grid(graph, image))
    for module in encoder.layers:
        mlp = cast(PatchMLP, module)
        vectors = feed_forward(graph, mlp.around, mlp.feed_forward, vectors)
    return add_grid_positions(graph, encoder.positions, graph.norm(encoder.norm, vectors))


def group_norm(graph: GraphBuilder, layer: nn.GroupNorm, image: str) -> str:
    """Normalize groups of channels of (N, D, rows, columns), as if each group were an instance."""
    identity = [graph.constant(np.full(GROUPS, value)) for value in (1.0, 0.0)]
    groups = graph.reshape(image, graph.size(image, 0), GROUPS, -1)
    normalized = graph.op("InstanceNormalization", groups, *identity, epsilon=layer.eps)
    normalized = graph.op("Reshape", normalized, graph.op("Shape", image))
    scale, shift = (graph.unsqueeze(graph.parameter(part), 1, 2) for part in (layer.weight, layer.bias))
    return str(graph.op("Add", graph.op("Mul", normalized, scale), shift))


def patch_encoder(graph: GraphBuilder, encoder: PatchEncoder, inputs: FeatureInput) -> str:
    """Self-attention among patches."""
    projected = graph.linear(encoder.project, scale_pixels(graph, inputs.values))
    vectors = add_grid_positions(graph, encoder.positions, projected)
    return graph.norm(encoder.norm, self_attention(graph, encoder, vectors, inputs.mask))


def self_attention(graph: GraphBuilder, encoder: SelfAttentionLayers, vectors: str, padding: str) -> str:
    """Add layers of self-attention among items (N, S, D)."""
    mask = graph.additive_mask(graph.unsqueeze(padding, 1))  # (N, 1, 1, S)
    for module in encoder.layers:
        layer = cast(TransformerEncoderLayer, module)
        attention, normalized = layer.attention, pre_norm(graph, layer.around_attention, vectors)
        query = split_heads(graph, attention, project_query(graph, attention, normalized))
        keys = split_heads(graph, attention, graph.linear(attention.key, normalized), transposed=True)
        values = split_heads(graph, attention, graph.linear(attention.value, normalized))
        context, _ = attend(graph, query, keys, values, mask)
        vectors = graph.op("Add", vectors, graph.linear(attention.output, join_heads(graph, attention, context)))
        vectors = feed_forward(graph, layer.around_feed_forward, layer.feed_forward, vectors)
    return vectors


def precomputed_features(graph: GraphBuilder, encoder: PrecomputedFeatures, inputs: FeatureInput) -> str:
    projected = graph.linear(encoder.project, graph.norm(encoder.norm, inputs.values))
    vectors = add_grid_positions(graph, encoder.positions, projected)
    if not encoder.layers:
        return vectors
    return graph.norm(encoder.last_norm, self_attention(graph, encoder, vectors, inputs.mask))


def finetuned_backbone(graph: GraphBuilder, encoder: FinetunedBackbone, inputs: FeatureInput) -> str:
    image = join_patches(graph, scale_pixels(graph, inputs.values), inputs.width)
    vectors = backbone_features(graph, encoder.network, image)
    return precomputed_features(graph, encoder.features, inputs._replace(values=vectors))


def add_grid_positions(graph: GraphBuilder, layer: GridPositions, vectors: str) -> str:
    """Add the positions of a square grid of patches to (N, S, D)."""
    side = grid_side(graph, vectors)
    centers = graph.op("Add", graph.arange(side), graph.constant(0.5))
    shares = graph.op("Div", centers, graph.cast(side))
    angles = graph.op("Mul", graph.unsqueeze(shares, 1), graph.constant(math.pi * 2.0 ** np.arange(WAVES)))
    waves = graph.op("Concat", graph.op("Sin", angles), graph.op("Cos", angles), axis=1)  # (rows, 2 WAVES)
    grid = graph.shape(side, side, 2 * WAVES)
    down, across = (graph.op("Expand", graph.unsqueeze(waves, axis), grid) for axis in (1, 0))
    both = graph.reshape(graph.op("Concat", down, across, axis=2), -1, 4 * WAVES)  # (S, 4 WAVES)
    return str(graph.op("Add", vectors, graph.linear(layer.project, both)))


def scale_pixels(graph: GraphBuilder, values: str) -> str:
    """Scale bytes from 0…255 to −1…1."""
    return str(graph.op("Sub", graph.op("Div", values, graph.constant(127.5)), graph.constant(1.0)))


def join_patches(graph: GraphBuilder, patches: str, width: int) -> str:
    """Join square patches in reading order, (N, S, width), to an image (N, 3, side, side)."""
    rows, patch = grid_side(graph, patches), grid_size(width // RGB)
    grid = graph.reshape(patches, -1, rows, rows, patch, patch, RGB)  # (N, down, across, down, across, colour)
    side = graph.op("Mul", rows, graph.constant([patch]))
    return graph.reshape(graph.op("Transpose", grid, perm=[0, 5, 1, 3, 2, 4]), -1, RGB, side, side)


def grid_side(graph: GraphBuilder, patches: str) -> str:
    """(1,) rows of a square grid of S patches."""
    root = graph.op("Sqrt", graph.cast(graph.size(patches, 1)))
    return graph.cast(graph.op("Round", root), TensorProto.INT64)


def flatten_grid(graph: GraphBuilder, grid: str) -> str:
    """(N, D, rows, columns) -> (N, S, D)."""
    flat = graph.reshape(grid, graph.size(grid, 0), graph.size(grid, 1), -1)
    return str(graph.op("Transpose", flat, perm=[0, 2, 1]))


# --- pretrained backbones ---------------------------------------------------------------------------------------


def frozen_backbone(graph: GraphBuilder, name: str, patches: str, width: int) -> str:
    """Features (N, S, D) of patches of `width` bytes, by a frozen backbone that is not part of the model."""
    image = join_patches(graph, scale_pixels(graph, graph.cast(patches)), width)
    return backbone_features(graph, backbone(name).eval(), image)


def backbone_features(graph: GraphBuilder, network: Backbone, image: str) -> str:
    """A feature vector for each patch of an image with values in −1…1, (N, S, width)."""
    if network.name not in EFFICIENTNETS:
        raise UsageError(
            f"{network.name}: the backbone of a directory cannot be exported to onnx; "
            f"use {next(iter(EFFICIENTNETS))}, cnn, patches or frames"
        )
    model: Any = network.network  # (N, 3, 224, 224) -> (N, 1280, 7, 7)
    image = conv_bn_relu6(graph, model._conv_stem, model._bn0, image)
    for block in model._blocks:  # expand, convolve by channel, project; add the input where the shapes agree
        inner, arguments = image, block._block_args
        if arguments.expand_ratio != 1:
            inner = conv_bn_relu6(graph, block._expand_conv, block._bn0, inner)
        inner = conv_bn_relu6(graph, block._depthwise_conv, block._bn1, inner)
        inner = conv_bn(graph, block._project_conv, block._bn2, inner)
        same_size = block._depthwise_conv.stride[0] == 1 and arguments.input_filters == arguments.output_filters
        image = graph.op("Add", inner, image) if arguments.id_skip and same_size else inner
    return flatten_grid(graph, conv_bn_relu6(graph, model._conv_head, model._bn1, image))


def conv_bn_relu6(graph: GraphBuilder, layer: Any, norm: Any, image: str) -> str:
    return str(graph.op("Clip", conv_bn(graph, layer, norm, image), graph.constant(0.0), graph.constant(6.0)))


def conv_bn(graph: GraphBuilder, layer: Any, norm: Any, image: str) -> str:
    """A convolution with its static padding, and batch normalization by running statistics."""
    left, right, top, bottom = getattr(layer.static_padding, "padding", (0, 0, 0, 0))
    convolved = graph.convolution(layer, image, [top, left, bottom, right])
    statistics = (graph.parameter(part) for part in (norm.weight, norm.bias, norm.running_mean, norm.running_var))
    return str(graph.op("BatchNormalization", convolved, *statistics, epsilon=norm.eps))


# --- frames -----------------------------------------------------------------------------------------------------


def frame_encoder(graph: GraphBuilder, encoder: FrameEncoder, inputs: FeatureInput) -> str:
    """Gated convolutions over neighbouring frames."""
    vectors = graph.linear(encoder.project, graph.norm(encoder.norm, inputs.values))
    width = encoder.positions.width
    rates = graph.parameter(frequencies(width, torch.device("cpu")))  # as `positions.sinusoidal`
    angles = graph.op("Mul", graph.unsqueeze(graph.arange(graph.size(vectors, 1)), 1), rates)  # (S, D/2)
    waves = graph.stack([graph.op("Sin", angles), graph.op("Cos", angles)], 2)
    vectors = graph.op("Add", vectors, graph.reshape(waves, -1, width))
    mask = graph.op("Transpose", inputs.mask, perm=[0, 2, 1])  # (N, S, 1)
    for module in encoder.layers:  # (x + a ⊙ σ(b)) / √2, where [a; b] is a convolution of the masked x
        gated = cast(ConvEncoderLayer, module).gated
        masked = graph.op("Transpose", graph.op("Mul", vectors, mask), perm=[0, 2, 1])  # (N, D, S)
        both = graph.convolution(gated.convolution, masked, [gated.span // 2, gated.span - gated.span // 2])
        value, gate = graph.op("Split", both, results=2, axis=1)
        product = graph.op("Transpose", graph.op("Mul", value, graph.op("Sigmoid", gate)), perm=[0, 2, 1])
        vectors = graph.op("Mul", graph.op("Add", product, vectors), graph.constant(HALVE_VARIANCE))
    return graph.norm(encoder.last_norm, vectors)


ENCODERS: dict[type[nn.Module], Callable[[GraphBuilder, Any, FeatureInput], str]] = {  # -> (N, S, D)
    CNNEncoder: cnn_encoder,
    PatchEncoder: patch_encoder,
    FrameEncoder: frame_encoder,
    PrecomputedFeatures: precomputed_features,
    FinetunedBackbone: finetuned_backbone,
}

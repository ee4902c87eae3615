"""Encoders of feature vectors: (B, S, W) items of W numbers -> (B, S, D), one vector per item.

An image is a square grid of patches in reading order, each the RGB bytes of its pixels. Audio, or any other array, is a
sequence of frames.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.attention import MultiHeadAttention
from softgaze.dropout import Dropout
from softgaze.models.backbones import RGB, Backbone, backbone, grid_size, image_from_patches, normalize_bytes
from softgaze.models.base import AttentionHook, hook_for
from softgaze.models.conv import ConvEncoderLayer
from softgaze.models.transformer import FeedForward, PreNorm, TransformerEncoderLayer
from softgaze.positions import Sinusoidal

WAVES = 4  # wavelengths of patch positions: twice the side of the image, its side, a half, a quarter
TAPER = {2: (1.0, 1.0), 4: (1.0, 5.0, 5.0, 1.0)}  # weights of the pixels that a downsampling kernel covers, per side
GROUPS = 8  # channel groups of GroupNorm
KERNEL = 5  # frames a layer of `FrameEncoder` covers


class GridPositions(nn.Module):
    """Add sinusoidal row and column positions to patches; the number of patches is free."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(4 * WAVES, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, S, D) of a square grid in reading order."""
        rows = grid_size(x.shape[1])
        centers = (torch.arange(rows, device=x.device, dtype=x.dtype) + 0.5) / rows
        angles = centers[:, None] * (math.pi * 2 ** torch.arange(WAVES, device=x.device, dtype=x.dtype))
        waves = torch.cat([angles.sin(), angles.cos()], -1)  # (rows, 2 · WAVES)
        down, across = waves[:, None].expand(-1, rows, -1), waves[None].expand(rows, -1, -1)
        positioned: Tensor = x + self.project(torch.cat([down, across], -1).flatten(0, 1))
        return positioned


class CNNEncoder(nn.Module):
    """A small CNN: downsample until a pixel is a patch, then apply an MLP to each patch.

    With a large receptive field an object's features may settle in a neighbouring patch, and attention misses
    the object. The field is limited to about half a patch, tapered (docs/log.md).
    """

    def __init__(self, item_width: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        halvings = grid_size(item_width // RGB).bit_length() - 1
        # Early stages have many pixels and few channels: half of the width is a quarter of the work.
        narrow = [round_to_groups(width >> (halvings - index)) for index in range(halvings - 1)]
        channels = [RGB, *narrow, round_to_groups(width)]
        # Wide kernels only for the edges between pixels (first) and between patches (last).
        kernels = [4 if index in (0, halvings - 1) else 2 for index in range(halvings)]
        self.downsample = nn.ModuleList(
            Downsample(before, after, kernel)
            for (before, after), kernel in zip(pairwise(channels), kernels, strict=True)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(GROUPS, after) for after in channels[1:])
        self.project = nn.Linear(channels[-1], width)
        self.layers = nn.ModuleList(PatchMLP(width, dropout) for _ in range(layers))
        self.positions, self.norm, self.dropout = GridPositions(width), nn.LayerNorm(width), Dropout(dropout)

    def forward(self, values: Tensor, mask: Tensor, hook: AttentionHook | None = None) -> Tensor:
        """(B, S, W) -> (B, S, D)."""
        image = image_from_patches(normalize_bytes(values, self.norm.weight.dtype))
        image = image.contiguous(memory_format=torch.channels_last)  # a fifth less time on a CPU
        for downsample, norm in zip(self.downsample, self.norms, strict=True):
            image = F.relu(norm(downsample(image)))
        x = self.project(image.flatten(2).transpose(1, 2))  # (B, S, D)
        for layer in self.layers:
            x = layer(x)
        features: Tensor = self.dropout(self.positions(self.norm(x)))
        return features


def round_to_groups(channels: int) -> int:
    """Round up to a multiple of the norm groups, at least two per group."""
    return max(2 * GROUPS, -(-channels // GROUPS) * GROUPS)


class Downsample(nn.Module):
    """A stride-2 convolution with an even kernel: an odd one would shift the image by half a pixel.

    Its learned weights are tapered towards the edges, as in the binomial filters of Zhang (2019).
    """

    near: Tensor

    def __init__(self, before: int, after: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(before, after, kernel, stride=2, padding=kernel // 2 - 1)
        taper = torch.tensor(TAPER[kernel])
        near = torch.outer(taper, taper) / taper.square().mean()  # mean square 1: the variance is unchanged
        self.register_buffer("near", near, persistent=False)

    def kernel(self) -> Tensor:
        """Return the tapered weights."""
        return self.conv.weight * self.near

    def forward(self, image: Tensor) -> Tensor:
        """(B, D, rows, columns) -> (B, D', rows / 2, columns / 2)."""
        return F.conv2d(image, self.kernel(), self.conv.bias, self.conv.stride, self.conv.padding)


class PatchMLP(nn.Module):
    """x + W₂ ReLU(W₁ norm(x)), applied to each patch."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.feed_forward, self.around = FeedForward(width, 2 * width, dropout), PreNorm(nn.LayerNorm(width), dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        return self.around.after(x, self.feed_forward(self.around.before(x)))


class SelfAttentionLayers(nn.Module):
    """Layers of self-attention among items; `layers` may be 0. A hook sees them as kind "encoder"."""

    def __init__(self, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            TransformerEncoderLayer(
                MultiHeadAttention(width, heads),
                FeedForward(width, 2 * width, dropout),
                lambda: PreNorm(nn.LayerNorm(width), dropout),
            )
            for _ in range(layers)
        )

    def attend(self, x: Tensor, mask: Tensor, hook: AttentionHook | None) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        for index, layer in enumerate(self.layers):
            x = layer(x, mask, None, hook_for(hook, "encoder", index))
        return x


class PatchEncoder(SelfAttentionLayers):
    """Projected patches and layers of self-attention (ViT, Dosovitskiy 2021)."""

    def __init__(self, item_width: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__(width, layers, heads, dropout)
        self.project, self.positions = nn.Linear(item_width, width), GridPositions(width)
        self.norm = nn.LayerNorm(width)

    def forward(self, values: Tensor, mask: Tensor, hook: AttentionHook | None = None) -> Tensor:
        """(B, S, W) -> (B, S, D)."""
        x = self.positions(self.project(normalize_bytes(values, self.norm.weight.dtype)))
        normed: Tensor = self.norm(self.attend(x, mask, hook))
        return normed


class FrameEncoder(nn.Module):
    """Projected frames with sinusoidal positions and layers of gated convolutions."""

    def __init__(self, item_width: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm, self.project = nn.LayerNorm(item_width), nn.Linear(item_width, width)
        self.positions, self.last_norm = Sinusoidal(width, width, 0), nn.LayerNorm(width)
        self.layers = nn.ModuleList(ConvEncoderLayer(width, KERNEL, 1, dropout) for _ in range(layers))

    def forward(self, values: Tensor, mask: Tensor, hook: AttentionHook | None = None) -> Tensor:
        """(B, S, W) -> (B, S, D)."""
        x: Tensor = self.project(self.norm(values.to(self.norm.weight.dtype)))
        x = self.positions.add(x, torch.arange(x.shape[1], device=x.device))
        for layer in self.layers:
            x = layer(x, mask[:, 0, 0, :, None].to(x.dtype))
        normed: Tensor = self.last_norm(x)
        return normed


class PrecomputedFeatures(SelfAttentionLayers):
    """Project the vectors that a frozen backbone computed before, and relate regions by self-attention."""

    def __init__(self, item_width: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__(width, layers, heads, dropout)
        self.norm, self.project = nn.LayerNorm(item_width), nn.Linear(item_width, width)
        self.positions, self.dropout = GridPositions(width), Dropout(dropout)
        if layers:
            self.last_norm = nn.LayerNorm(width)

    def forward(self, values: Tensor, mask: Tensor, hook: AttentionHook | None = None) -> Tensor:
        """(B, S, W) -> (B, S, D)."""
        # Scale and shift of the norm are moved into the projection: frozen features then need no gradient.
        normed = F.layer_norm(values.to(self.norm.weight.dtype), self.norm.normalized_shape, eps=self.norm.eps)
        bias = F.linear(self.norm.bias, self.project.weight, self.project.bias)
        projected = F.linear(normed, self.project.weight * self.norm.weight, bias)
        features: Tensor = self.dropout(self.positions(projected))
        if self.layers:
            features = self.last_norm(self.attend(features, mask, hook))
        return features


class FinetunedBackbone(nn.Module):
    """A pretrained network that is trained further."""

    def __init__(self, network: Backbone, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.network = network
        self.features = PrecomputedFeatures(network.shape.width, width, layers, heads, dropout)

    def forward(self, values: Tensor, mask: Tensor, hook: AttentionHook | None = None) -> Tensor:
        """(B, S, W) -> (B, S, D)."""
        features: Tensor = self.features(self.network.encode_patches(values), mask, hook)
        return features


MakeEncoder = Callable[[int, int, int, int, float], nn.Module]  # item width, width, layers, heads, dropout
FEATURE_ENCODERS: dict[str, MakeEncoder] = {"cnn": CNNEncoder, "patches": PatchEncoder, "frames": FrameEncoder}


def feature_encoder(name: str, frozen: bool, *, self_attention: bool = False) -> MakeEncoder:
    """Return the encoder called `name`; another name is a backbone, whose features are precomputed if it is frozen."""
    if name in FEATURE_ENCODERS:
        return FEATURE_ENCODERS[name]

    def make(item_width: int, width: int, layers: int, heads: int, dropout: float) -> nn.Module:
        sizes = width, layers if self_attention else 0, heads, dropout
        return PrecomputedFeatures(item_width, *sizes) if frozen else FinetunedBackbone(backbone(name), *sizes)

    return make

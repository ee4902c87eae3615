"""What reads a source of vectors: (B, S, W) items of W numbers -> (B, S, D), a vector for each item.

A picture comes as square patches in reading order, each the red, green and blue bytes of its pixels, and there are as
many rows as columns. A sound, or any other array, comes as frames. Knows nothing of files, text or decoders.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.attention import MultiHead
from softgaze.backbones import COLOURS, Backbone, backbone, bright, side_of, whole
from softgaze.dropout import Dropout
from softgaze.models.base import Watch, look_at
from softgaze.models.conv import EncoderLayer as ConvolutionLayer
from softgaze.models.transformer import EncoderLayer, FeedForward, PreNorm
from softgaze.positions import Sinusoidal

WAVES = 4  # lengths of the waves that say where a patch is: the picture's double side, its side, a half, a quarter
NEAR = {2: (1.0, 1.0), 4: (1.0, 5.0, 5.0, 1.0)}  # pixels that become one, across and down, and what each counts
GROUPS = 8  # of channels that are normed together
KERNEL = 5  # frames that a layer of `Frames` sees at once


class Places(nn.Module):
    """Adds to each patch where it is in the picture, by waves across and down; any number of patches will do."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(4 * WAVES, width)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, S, D) of a square grid in reading order."""
        rows = side_of(vectors.shape[1])
        places = (torch.arange(rows, device=vectors.device, dtype=vectors.dtype) + 0.5) / rows
        lengths = math.pi * 2 ** torch.arange(WAVES, device=vectors.device, dtype=vectors.dtype)
        angles = places[:, None] * lengths  # (rows, WAVES)
        waves = torch.cat([angles.sin(), angles.cos()], -1)
        down, across = waves[:, None].expand(-1, rows, -1), waves[None].expand(rows, -1, -1)
        placed: Tensor = vectors + self.project(torch.cat([down, across], -1).flatten(0, 1))
        return placed


class Convolutions(nn.Module):
    """A small CNN: halves the picture until a pixel is a patch, then thinks about each patch by itself.

    What is known of a thing could be kept in any patch that sees it, and where chance keeps it to one side of all
    things, a model looks beside them. So a patch sees some half a patch around it, and that dimly (docs/log.md).
    """

    def __init__(self, item_width: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        halvings = side_of(item_width // COLOURS).bit_length() - 1
        # Half of the width is a quarter of the work, and pixels that stand for a patch are many.
        narrow = [in_groups(width >> (halvings - number)) for number in range(halvings - 1)]
        channels = [COLOURS, *narrow, in_groups(width)]
        # The first sees edges between pixels and the last those between patches; more would see far.
        seen = [4 if number in (0, halvings - 1) else 2 for number in range(halvings)]
        self.halvings = nn.ModuleList(
            Halving(before, after, pixels) for (before, after), pixels in zip(pairwise(channels), seen, strict=True)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(GROUPS, after) for after in channels[1:])
        self.project = nn.Linear(channels[-1], width)
        self.layers = nn.ModuleList(Thought(width, dropout) for _ in range(layers))
        self.places, self.norm, self.dropout = Places(width), nn.LayerNorm(width), Dropout(dropout)

    def forward(self, values: Tensor, real: Tensor, watch: Watch | None = None) -> Tensor:
        """(B, S, W) -> (B, S, D)."""
        picture = whole(bright(values, self.norm.weight.dtype))
        picture = picture.contiguous(memory_format=torch.channels_last)  # a fifth less time on a CPU
        for halve, norm in zip(self.halvings, self.norms, strict=True):
            picture = F.relu(norm(halve(picture)))
        vectors = self.project(picture.flatten(2).transpose(1, 2))  # (B, S, D)
        for layer in self.layers:
            vectors = layer(vectors)
        seen: Tensor = self.dropout(self.places(self.norm(vectors)))
        return seen


def in_groups(channels: int) -> int:
    """Some more, so that they can be normed in groups."""
    return max(2 * GROUPS, -(-channels // GROUPS) * GROUPS)


class Halving(nn.Module):
    """A convolution that makes a pixel of so many, an even number: an odd one would shift the picture by half a pixel.

    Whatever it learns, what lies off the middle counts less, as in the binomial filters of Zhang (2019).
    """

    near: Tensor

    def __init__(self, before: int, after: int, pixels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(before, after, pixels, stride=2, padding=pixels // 2 - 1)
        counts = torch.tensor(NEAR[pixels])
        near = torch.outer(counts, counts) / counts.square().mean()  # a mean square of 1: as loud as a plain one
        self.register_buffer("near", near, persistent=False)

    def kernel(self) -> Tensor:
        """What the picture is multiplied with."""
        return self.conv.weight * self.near

    def forward(self, picture: Tensor) -> Tensor:
        """(B, D, rows, columns) -> (B, D', rows / 2, columns / 2)."""
        return F.conv2d(picture, self.kernel(), self.conv.bias, self.conv.stride, self.conv.padding)


class Thought(nn.Module):
    """x + W₂ ReLU(W₁ norm(x)): nothing of it goes from one patch to another."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.feed_forward, self.around = FeedForward(width, 2 * width, dropout), PreNorm(nn.LayerNorm(width), dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        return self.around.after(vectors, self.feed_forward(self.around.before(vectors)))


class Patches(nn.Module):
    """Each patch projected, then layers of self-attention among them (Dosovitskiy 2021)."""

    def __init__(self, item_width: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.project, self.places, self.norm = nn.Linear(item_width, width), Places(width), nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            EncoderLayer(
                MultiHead(width, heads),
                FeedForward(width, 2 * width, dropout),
                lambda: PreNorm(nn.LayerNorm(width), dropout),
            )
            for _ in range(layers)
        )

    def forward(self, values: Tensor, real: Tensor, watch: Watch | None = None) -> Tensor:
        """(B, S, W) -> (B, S, D)."""
        vectors = self.places(self.project(bright(values, self.norm.weight.dtype)))
        everywhere = torch.arange(vectors.shape[1], device=vectors.device)
        for number, layer in enumerate(self.layers):
            vectors = layer(vectors, everywhere, real, look_at(watch, "encoder", number))
        normed: Tensor = self.norm(vectors)
        return normed


class Frames(nn.Module):
    """Frames one after the other: normed, projected, placed, then gated convolutions that see a few neighbours."""

    def __init__(self, item_width: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm, self.project = nn.LayerNorm(item_width), nn.Linear(item_width, width)
        self.positions, self.last_norm = Sinusoidal(width, width, 0), nn.LayerNorm(width)
        self.layers = nn.ModuleList(ConvolutionLayer(width, KERNEL, 1, dropout) for _ in range(layers))

    def forward(self, values: Tensor, real: Tensor, watch: Watch | None = None) -> Tensor:
        """(B, S, W) -> (B, S, D)."""
        vectors: Tensor = self.project(self.norm(values.to(self.norm.weight.dtype)))
        places = torch.arange(vectors.shape[1], device=vectors.device)
        vectors = self.positions.add(vectors, places)
        for layer in self.layers:
            vectors = layer(vectors, real[:, 0, 0, :, None].to(vectors.dtype))
        normed: Tensor = self.last_norm(vectors)
        return normed


class Frozen(nn.Module):
    """Vectors that a pretrained network has made already: normed, projected, placed."""

    def __init__(self, item_width: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm, self.project = nn.LayerNorm(item_width), nn.Linear(item_width, width)
        self.places, self.dropout = Places(width), Dropout(dropout)

    def forward(self, values: Tensor, real: Tensor, watch: Watch | None = None) -> Tensor:
        """(B, S, W) -> (B, S, D)."""
        seen: Tensor = self.dropout(self.places(self.project(self.norm(values.to(self.norm.weight.dtype)))))
        return seen


class Tuned(nn.Module):
    """Patches seen by a pretrained network that goes on learning."""

    def __init__(self, network: Backbone, width: int, dropout: float) -> None:
        super().__init__()
        self.network, self.seen = network, Frozen(network.shape.width, width, 0, 0, dropout)

    def forward(self, values: Tensor, real: Tensor, watch: Watch | None = None) -> Tensor:
        """(B, S, W) -> (B, S, D)."""
        seen: Tensor = self.seen(self.network.of_patches(values), real, watch)
        return seen


Make = Callable[[int, int, int, int, float], nn.Module]  # item width, width, layers, heads, dropout
EYES: dict[str, Make] = {"cnn": Convolutions, "patches": Patches, "frames": Frames}


def eyes_for(encoder: str, frozen: bool) -> Make:
    """By name; a pretrained network has been at work before, if it is frozen."""
    if encoder in EYES:
        return EYES[encoder]
    if frozen:
        return Frozen
    return lambda item_width, width, layers, heads, dropout: Tuned(backbone(encoder), width, dropout)

"""Token positions for models that would otherwise see a set: sinusoidal, learned, frozen, rotary.

Each kind either adds a vector to the embeddings once (`add`) or rotates queries and keys in every head (`rotate`).
Positions count from 0: (N,), or for `add` also (B, N) when rows are at different positions.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn


class RotaryTables(NamedTuple):
    """Cosines and sines of the rotation angles at N positions."""

    cos: Tensor  # (N, D/H)
    sin: Tensor  # the first half negative: the factor of the other dimension of a pair


class PositionEncoding(nn.Module):
    """No positions: the model sees a set. The other kinds override `add`, or `prepare` and `rotate`."""

    rotates = False  # whether `rotate` does anything
    has_table = False  # whether `max_length` limits the positions

    def __init__(self, width: int, head_width: int, max_length: int) -> None:
        super().__init__()

    def add(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Add the positions to embeddings (B, N, D)."""
        return vectors

    def prepare(self, positions: Tensor) -> Tensor | RotaryTables:
        """Compute once, for all layers and heads, the argument of `rotate`."""
        return positions

    def rotate(self, vectors: Tensor, positions: Tensor | RotaryTables | None) -> Tensor:
        """Rotate queries or keys (B, H, N, D/H) by their positions (N,)."""
        return vectors


def sinusoidal(positions: Tensor, width: int) -> Tensor:
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(…) (Vaswani 2017, §3.5): (…, N) -> (…, N, D)."""
    angles = positions[..., None] * frequencies(width, positions.device)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :width]


def frequencies(width: int, device: torch.device) -> Tensor:
    """10000^(−2i/D) for each pair of dimensions."""
    pairs = torch.arange(0, width, 2, dtype=torch.float32, device=device)
    return torch.exp(pairs * (-math.log(10000.0) / width))


class Sinusoidal(PositionEncoding):
    """Fixed sinusoids: nothing to learn, no maximum length."""

    def __init__(self, width: int, head_width: int, max_length: int) -> None:
        super().__init__(width, head_width, max_length)
        self.width = width

    def add(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Computed on demand: it costs little compared with a layer, and no table can be outgrown."""
        return vectors + sinusoidal(positions, self.width).to(vectors.dtype)


class Learned(PositionEncoding):
    """A learned vector per position, up to `max_length`."""

    has_table = True

    def __init__(self, width: int, head_width: int, max_length: int) -> None:
        super().__init__(width, head_width, max_length)
        self.table = nn.Embedding(max_length, width)
        nn.init.normal_(self.table.weight, std=0.02)

    def add(self, vectors: Tensor, positions: Tensor) -> Tensor:
        limit = self.table.num_embeddings
        if not torch.compiler.is_compiling():
            first, last = (int(edge) for edge in positions.aminmax())
            if first < 0 or last >= limit:
                raise ValueError(f"learned positions are 0 to {limit - 1}, got {first} to {last}; raise max_length")
        positioned: Tensor = vectors + self.table(positions)
        return positioned


class Frozen(Learned):
    """A stored vector per position that training leaves unchanged: the exact positions of an imported model."""

    def __init__(self, width: int, head_width: int, max_length: int) -> None:
        super().__init__(width, head_width, max_length)
        self.table.weight.requires_grad_(False)


class Rotary(PositionEncoding):
    """Rotate each pair of dimensions by an angle proportional to the position (RoPE, Su 2021).

    Scores then depend on the distance of query and key.
    """

    rotates = True

    def __init__(self, width: int, head_width: int, max_length: int) -> None:
        super().__init__(width, head_width, max_length)
        if head_width % 2:
            raise ValueError(f"rotary positions need an even head width, got {head_width}")
        self.head_width = head_width

    def prepare(self, positions: Tensor) -> RotaryTables:
        """Dimensions i and i + D/2 form a pair, as in Llama's layout."""
        angles = positions[:, None] * frequencies(self.head_width, positions.device)  # (N, D/2)
        cos, sin = angles.cos(), angles.sin()
        return RotaryTables(torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1))

    def rotate(self, vectors: Tensor, positions: Tensor | RotaryTables | None) -> Tensor:
        """(a, b) -> (a cos − b sin, b cos + a sin)."""
        if positions is None:
            raise ValueError("rotary attention needs the positions of its queries and keys")
        cos, sin = positions if isinstance(positions, RotaryTables) else self.prepare(positions)
        first, second = vectors.chunk(2, dim=-1)
        return vectors * cos.to(vectors.dtype) + torch.cat([second, first], -1) * sin.to(vectors.dtype)


POSITIONS: dict[str, type[PositionEncoding]] = {
    "none": PositionEncoding,
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "frozen": Frozen,
    "rotary": Rotary,
}

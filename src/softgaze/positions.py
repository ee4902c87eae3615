"""Where a token stands, for models that would otherwise see a set: sinusoidal, learned, rotary.

Each kind may do one of two things: `add` to the embeddings, once, or `rotate` queries and keys, in every head.
Places are numbers from 0: (N,), or for `add` also (B, N) when rows stand at different ones.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Turns(NamedTuple):
    """By how much each pair of dimensions is turned at N places."""

    cos: Tensor  # (N, D/H)
    sin: Tensor  # its first half negative: what the other of a pair is multiplied by


class Positions(nn.Module):
    """No positions at all: the model sees a set. The other kinds override one of the two methods."""

    def __init__(self, width: int, head_width: int, max_length: int) -> None:
        super().__init__()

    def add(self, vectors: Tensor, places: Tensor) -> Tensor:
        """Embeddings (B, N, D) with their places added."""
        return vectors

    def turns(self, places: Tensor) -> Tensor | Turns:
        """What `rotate` needs of places (N,), computed once for all layers and heads."""
        return places

    def rotate(self, vectors: Tensor, places: Tensor | Turns | None) -> Tensor:
        """Queries or keys (B, H, N, D/H) turned by their places (N,)."""
        return vectors


def sinusoidal(places: Tensor, width: int) -> Tensor:
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(…) (Vaswani 2017, §3.5): (…, N) -> (…, N, D)."""
    angles = places[..., None] * frequencies(width, places.device)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :width]


def frequencies(width: int, device: torch.device) -> Tensor:
    """10000^(−2i/D), one for each pair of dimensions."""
    pairs = torch.arange(0, width, 2, dtype=torch.float32, device=device)
    return torch.exp(pairs * (-math.log(10000.0) / width))


class Sinusoidal(Positions):
    """Fixed waves: nothing to learn, no longest sentence."""

    def __init__(self, width: int, head_width: int, max_length: int) -> None:
        super().__init__(width, head_width, max_length)
        self.width = width

    def add(self, vectors: Tensor, places: Tensor) -> Tensor:
        """Computed when needed; beside a layer's products it costs nothing, and there is no table to outgrow."""
        return vectors + sinusoidal(places, self.width).to(vectors.dtype)


class Learned(Positions):
    """A vector for each place, learnt; places past the table do not exist."""

    def __init__(self, width: int, head_width: int, max_length: int) -> None:
        super().__init__(width, head_width, max_length)
        self.table = nn.Embedding(max_length, width)
        nn.init.normal_(self.table.weight, std=0.02)

    def add(self, vectors: Tensor, places: Tensor) -> Tensor:
        """Refuses what is longer than the table."""
        limit = self.table.num_embeddings
        if not torch.compiler.is_compiling():
            first, last = (int(edge) for edge in places.aminmax())
            if first < 0 or last >= limit:
                raise ValueError(f"learned positions are 0 to {limit - 1}, not {first} to {last}; raise max_length")
        placed: Tensor = vectors + self.table(places)
        return placed


class Rotary(Positions):
    """Turn each pair of dimensions by an angle that grows with the place: scores depend on distance (Su 2021, RoPE)."""

    def __init__(self, width: int, head_width: int, max_length: int) -> None:
        super().__init__(width, head_width, max_length)
        if head_width % 2:
            raise ValueError(f"rotary positions turn pairs: a head width of {head_width} is odd")
        self.head_width = head_width

    def turns(self, places: Tensor) -> Turns:
        """Dimensions i and i + D/2 form a pair, as in Llama's layout."""
        angles = places[:, None] * frequencies(self.head_width, places.device)  # (N, D/2)
        cos, sin = angles.cos(), angles.sin()
        return Turns(torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1))

    def rotate(self, vectors: Tensor, places: Tensor | Turns | None) -> Tensor:
        """(a, b) -> (a cos − b sin, b cos + a sin)."""
        if places is None:
            raise ValueError("rotary positions need the places of what they turn")
        cos, sin = places if isinstance(places, Turns) else self.turns(places)
        first, second = vectors.chunk(2, dim=-1)
        return vectors * cos.to(vectors.dtype) + torch.cat([second, first], -1) * sin.to(vectors.dtype)


POSITIONS: dict[str, type[Positions]] = {
    "none": Positions,
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "rotary": Rotary,
}

"""Score functions (how well a key matches a query) and attention windows (which keys are considered).

Shapes: query (…, Q, D), keys (…, K, D), scores (…, Q, K).
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.attention import check_width, dot, scaled_dot


def cosine(query: Tensor, keys: Tensor) -> Tensor:
    """cos(q, k), between −1 and 1, so its softmax is never sharp."""
    return dot(F.normalize(query, dim=-1), F.normalize(keys, dim=-1))


# --- modules ----------------------------------------------------------------------------------------------------


class Score(nn.Module):
    """A score in two parts: `keys` depends on the memory alone and runs once; `compare` runs for each query."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()

    def keys(self, memory: Tensor) -> Tensor:
        """Project the memory to the keys that `compare` takes: (…, K, D) -> (…, K, D')."""
        return memory

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score queries against projected keys."""
        raise NotImplementedError

    def forward(self, query: Tensor, memory: Tensor) -> Tensor:
        return self.compare(query, self.keys(memory))


class SameWidthScore(Score):
    """A score without parameters: queries and keys must have one width."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        if query_width != key_width:
            raise ValueError(
                f"{type(self).__name__} needs queries and keys of one width, got {query_width} and {key_width}"
            )


class Dot(SameWidthScore):
    """q · k."""

    compare = staticmethod(dot)


class ScaledDot(SameWidthScore):
    """q · k / √D."""

    compare = staticmethod(scaled_dot)


class Cosine(SameWidthScore):
    """cos(q, k)."""

    compare = staticmethod(cosine)


class General(Score):
    """qᵀ W k (Luong 2015, §3.1, `general`). With W applied to the keys it is a dot product."""

    compare = staticmethod(dot)

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.bilinear = nn.Linear(key_width, query_width, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        """W k."""
        check_width(memory, self.bilinear.in_features)
        projected: Tensor = self.bilinear(memory)
        return projected


class Additive(Score):
    """vᵀ tanh(W q + U k) (Bahdanau 2015, A.1.2)."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.query_part = nn.Linear(query_width, query_width, bias=False)
        self.key_part = nn.Linear(key_width, query_width, bias=False)
        self.vector = nn.Linear(query_width, 1, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        """U k."""
        check_width(memory, self.key_part.in_features)
        projected: Tensor = self.key_part(memory)
        return projected

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score every query against every key; the intermediate tensor is (…, Q, K, D)."""
        check_width(query, self.query_part.in_features)
        scores: Tensor = self.vector(torch.tanh(self.query_part(query).unsqueeze(-2) + keys.unsqueeze(-3)))
        return scores.squeeze(-1)


class Concat(Additive):
    """vᵀ tanh(W [q; k]) (Luong 2015, §3.1, `concat`): the additive score, with W split into two matrices."""


class Location(Score):
    """W q (Luong 2015, eq. 8): the query alone selects positions; keys only determine how many there are.

    More keys than positions are an error; the paper ignores the rest.
    """

    def __init__(self, query_width: int, key_width: int, max_positions: int = 1024) -> None:
        super().__init__(query_width, key_width)
        self.positions = nn.Linear(query_width, max_positions, bias=False)

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores of the first K positions."""
        check_width(query, self.positions.in_features)
        size, limit = keys.shape[-2], self.positions.out_features
        if size > limit:
            raise ValueError(f"the location score has {limit} positions, got {size} keys")
        return F.linear(query, self.positions.weight[:size])


SCORES: dict[str, type[Score]] = {
    "dot": Dot,
    "scaled-dot": ScaledDot,
    "cosine": Cosine,
    "general": General,
    "additive": Additive,
    "concat": Concat,
    "location": Location,
}


# --- windows (Luong 2015, §3.2) ---------------------------------------------------------------------------------


class WindowResult(NamedTuple):
    """The keys a window considers, and the factors it applies after the softmax."""

    mask: Tensor  # (B, 1, Q, K)
    prior: Tensor | None  # (B, 1, Q, K)


class GlobalWindow(nn.Module):
    """Global attention: every real key."""

    def __init__(self, query_width: int, window_size: int) -> None:
        super().__init__()
        self.window_size = window_size

    def forward(self, query: Tensor, positions: Tensor, mask: Tensor) -> WindowResult:
        """Return the window of `query` (B, 1, Q, D) at target `positions` (B, Q); `mask` (B, 1, 1, K) is padding."""
        return WindowResult(mask, None)


class LocalMonotonic(GlobalWindow):
    """local-m: the window of target position t is centred on source position t.

    A target longer than its source by more than the window size has no keys left: zero weights and context.
    """

    def forward(self, query: Tensor, positions: Tensor, mask: Tensor) -> WindowResult:
        return WindowResult(mask & window_mask(positions, mask.shape[-1], self.window_size), None)


class LocalPredictive(GlobalWindow):
    """local-p: the centre is S · sigmoid(vᵀ tanh(W q)); a Gaussian around it scales the weights (eq. 9, 10).

    The Gaussian comes after the softmax, so the weights sum to less than 1. The centre learns through it.
    """

    def __init__(self, query_width: int, window_size: int) -> None:
        super().__init__(query_width, window_size)
        self.predict = nn.Sequential(
            nn.Linear(query_width, query_width, bias=False), nn.Tanh(), nn.Linear(query_width, 1, bias=False)
        )

    def forward(self, query: Tensor, positions: Tensor, mask: Tensor) -> WindowResult:
        length = mask.sum(-1)  # (B, 1, 1): the real source length, without padding
        centers = (length * self.predict(query).squeeze(-1).sigmoid()).squeeze(1)  # (B, Q)
        size, deviation = mask.shape[-1], self.window_size / 2
        gaussian = torch.exp(-0.5 * (distances(centers, size) / deviation) ** 2)
        return WindowResult(mask & window_mask(centers, size, self.window_size), gaussian[:, None])


WINDOWS: dict[str, type[GlobalWindow]] = {"global": GlobalWindow, "local-m": LocalMonotonic, "local-p": LocalPredictive}


def window_mask(centers: Tensor, size: int, window_size: int) -> Tensor:
    """(B, Q) centres -> the mask (B, 1, Q, K) of keys at most `window_size` positions from each query's centre."""
    return (distances(centers, size).abs() <= window_size)[:, None]


def distances(centers: Tensor, size: int) -> Tensor:
    """Signed distance of `size` positions from each centre: (B, Q) -> (B, Q, K)."""
    return torch.arange(size, device=centers.device) - centers[..., None]

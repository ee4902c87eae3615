"""Doubly stochastic attention (Xu 2015, §4.2.1): every part of a source is looked at about once, by all words together.

The weights of a step sum to 1 over the source; the extra loss Σᵢ (1 − Σₜ αₜᵢ)² asks the same over the steps.
"""

import torch
from torch import Tensor

from softgaze.models.base import Place
from softgaze.symbols import PAD
from softgaze.training.loss import Pairs


class Evenly:
    """A watch that keeps the weights of the cross-attention, with their gradient, and changes nothing."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Tensor]] = {}  # of each layer, each (B, Q, S): all steps at once, or one by one

    def __call__(self, place: Place, weights: Tensor, values: Tensor) -> Tensor:
        """Remember the mean of the heads."""
        if place.kind == "cross":
            self.rows.setdefault(place.layer, []).append(weights.mean(1))
        return weights

    def summed_loss(self, pairs: Pairs) -> Tensor:
        """Over the sources of a batch; the mean of the layers counts."""
        looks = torch.stack([torch.cat(rows, 1) for rows in self.rows.values()]).mean(0)  # (B, T, S)
        given = (looks * (pairs.wanted != PAD)[..., None]).sum(1)  # (B, S)
        inside = torch.arange(given.shape[1], device=given.device) < pairs.source.lengths[:, None]
        return ((1 - given).square() * inside).sum()

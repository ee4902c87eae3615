"""How far a signal travels: layers or cells it must cross from one position to another, found by sending one.

A position is changed, the layer is applied once, and whoever changed with it has heard. Those who have heard are
changed in turn before the next application, all else drawn afresh, so that no signal is too weak to be seen.
"""

import torch
from torch import Tensor

from softgaze.evaluation.why.layers import HEADS, Layer

WIDTH = 2 * HEADS  # of the vectors that are sent; how wide they are changes no path
SILENCE = 1e-9  # differences up to this are rounding


def longest_path(kind: type[Layer], length: int) -> int:
    """The most applications before somebody hears of the first position; farthest from it is the last."""
    return max(depth for depth in heard(kind, length, 0) if depth is not None)


def heard(kind: type[Layer], length: int, start: int) -> list[int | None]:
    """For each position, after how many applications it first depends on the input at `start`; None if it never does.

    Applications of a stack are its layers, those of a recurrence its cells. A layer that would bring no news, since it
    reaches beyond the ends, is left out, and the stack begins anew above.
    """
    depths: list[int | None] = [None] * length
    applied = number = 0
    while True:
        before = torch.tensor([depth is not None for depth in depths])
        news = told(kind(WIDTH, number).double(), before, start) & ~before
        if bool(news.any()):
            applied, number = applied + 1, number + 1
            depths = [applied if new else depth for new, depth in zip(news.tolist(), depths, strict=True)]
        elif number:
            number = 0
        else:
            return depths


@torch.no_grad()
def told(layer: Layer, before: Tensor, start: int) -> Tensor:
    """Which positions one application makes depend on `start`, given those that do already; all are (N,)."""
    inputs = torch.randn(len(before), WIDTH, dtype=torch.double)
    carried = torch.randn_like(inputs) if bool(before.any()) else None
    here = torch.arange(len(before)) == start
    other = layer.step(changed(inputs, here), None if carried is None else changed(carried, before))
    same = layer.step(inputs[None], None if carried is None else carried[None])
    return ((other - same)[0].abs() > SILENCE).any(-1)


def changed(vectors: Tensor, places: Tensor) -> Tensor:
    """As a batch of one, with other vectors at some places."""
    return torch.where(places[:, None], torch.randn_like(vectors), vectors)[None]

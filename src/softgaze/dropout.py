"""Dropout (Srivastava 2014). On a CPU its masks come from random bytes, since drawing a number for each is slow."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.speed import is_fast

LEVELS = 256  # of a random byte

_own = threading.local()  # the generator of this thread, where it has one


@contextmanager
def noise(seed: int) -> Iterator[None]:
    """Draw this thread's CPU masks from `seed`, whatever other threads draw meanwhile."""
    before = getattr(_own, "generator", None)
    _own.generator = numpy.random.SFC64(seed)
    try:
        yield
    finally:
        _own.generator = before


def dropout(vectors: Tensor, share: float) -> Tensor:
    """Set a random `share` of the numbers to zero and scale up the others, so that the mean stays.

    Torch draws CPU masks one number after another, a fifth of a small Transformer's step. A byte each is enough: the
    share becomes the nearest 256th (0.1 is 0.1016), and the scale follows it, so the mean is still exact.
    """
    if vectors.device.type != "cpu" or not is_fast() or torch.compiler.is_compiling():
        return F.dropout(vectors, share)
    level = min(max(1, round(share * LEVELS)), LEVELS - 1)
    dropped: Tensor = ByteDropout.apply(vectors, level)  # type: ignore[no-untyped-call]
    return dropped


class ByteDropout(torch.autograd.Function):
    """Multiply by a mask of 0 and 1/(1 − share), going forward and coming back."""

    @staticmethod
    def forward(context: Any, vectors: Tensor, level: int) -> Tensor:
        """Keep the numbers whose byte is not below `level`."""
        draws, mask = random_bytes(vectors.numel()).view(vectors.shape), torch.empty_like(vectors)
        # Compared straight into floats: by way of booleans it takes eight times as long.
        torch.ge(draws, level, out=mask).mul_(LEVELS / (LEVELS - level))
        context.save_for_backward(mask)
        return vectors * mask

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """The same mask again."""
        return gradient * context.saved_tensors[0], None


def random_bytes(count: int) -> Tensor:
    """From this thread's generator (twice as fast) or torch's own, so that a seed decides them: eight to a number."""
    size, generator = -(-count // 8), getattr(_own, "generator", None)
    if generator is not None:
        return torch.from_numpy(generator.random_raw(size)).view(torch.uint8)[:count]
    return torch.empty(size, dtype=torch.long).random_(-(2**63), None).view(torch.uint8)[:count]


class Dropout(nn.Module):
    """Dropout while training; nothing afterwards."""

    def __init__(self, share: float) -> None:
        super().__init__()
        if not 0 <= share < 1:
            raise ValueError(f"a dropout of {share} is not a share from 0 up to 1")
        self.share = share

    def forward(self, vectors: Tensor) -> Tensor:
        """Any shape."""
        return dropout(vectors, self.share) if self.training and self.share else vectors

    def extra_repr(self) -> str:
        """What printing the model shows."""
        return str(self.share)

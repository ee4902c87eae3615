"""Dropout (Srivastava 2014). On a CPU its masks come from random bytes, because drawing a float each is slow."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 256  # of a random byte

_local = threading.local()  # the generator of this thread, where `seeded` set one


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw this thread's CPU masks from `seed`, independently of other threads."""
    previous = getattr(_local, "generator", None)
    _local.generator = np.random.SFC64(seed)
    try:
        yield
    finally:
        _local.generator = previous


def dropout(vectors: Tensor, p: float) -> Tensor:
    """Zero a random share `p` of the values and scale up the others, so that the mean is unchanged.

    Torch draws CPU masks one float at a time, a fifth of a small Transformer's step. One byte each is enough: `p`
    becomes the nearest 256th (0.1 is 0.1016) and the scale follows it, so the mean stays exact.
    """
    if vectors.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(vectors, p)
    level = min(max(1, round(p * LEVELS)), LEVELS - 1)
    dropped: Tensor = ByteDropout.apply(vectors, level)  # type: ignore[no-untyped-call]
    return dropped


class ByteDropout(torch.autograd.Function):
    """Multiply by a mask of 0 and 1/(1 − p), forward and backward."""

    @staticmethod
    def forward(context: Any, vectors: Tensor, level: int) -> Tensor:
        """Keep the values whose random byte is not below `level`."""
        draws, mask = random_bytes(vectors.numel()).view(vectors.shape), torch.empty_like(vectors)
        # Compared straight into floats: by way of booleans it takes eight times as long.
        torch.ge(draws, level, out=mask).mul_(LEVELS / (LEVELS - level))
        context.save_for_backward(mask)
        return vectors * mask

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * context.saved_tensors[0], None


def random_bytes(count: int) -> Tensor:
    """Draw bytes, eight per 64-bit number, from this thread's generator (twice as fast) or from torch's."""
    size, generator = -(-count // 8), getattr(_local, "generator", None)
    if generator is not None:
        return torch.from_numpy(generator.random_raw(size)).view(torch.uint8)[:count]
    return torch.empty(size, dtype=torch.long).random_(-(2**63), None).view(torch.uint8)[:count]


class Dropout(nn.Module):
    """Apply `dropout` in training mode."""

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {p}")
        self.p = p

    def forward(self, vectors: Tensor) -> Tensor:
        return dropout(vectors, self.p) if self.training and self.p else vectors

    def extra_repr(self) -> str:
        return str(self.p)

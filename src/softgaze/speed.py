"""What makes a plain CPU fast, and where each measure lives. All are on unless `training.fast` is false.

- `tune_allocator`, here: large tensors are kept and reused instead of being handed back to the system.
- `keep_primitives`, here: oneDNN remembers the kernels of more batch shapes than its 1,024.
- `dropout.dropout`: masks from random bytes, eight to a drawn number.
- `attention.attend`: short sentences are attended by batched matrix products, not by the fused kernel.
- `attention.project`: queries, keys and values of the same vectors are one product.
- `training.loss`: the loss over the vocabulary never holds all logits.
- `training.gradients`: the halves of a batch are computed side by side.

Each leaves the mathematics as it was, and a test holds it equal to the plain form. `benchmarks/` has the figures.
"""

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# From malloc.h. Numbers, since Python has no names for them.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGEST = 2**30  # bytes: nothing a training step allocates on a CPU is larger

_fast = True


def is_fast() -> bool:
    """Whether the measures that change how something is computed are on."""
    return _fast


@contextmanager
def measures(fast: bool) -> Iterator[None]:
    """Turn them on or off for as long as the block runs."""
    global _fast
    before, _fast = _fast, fast
    try:
        yield
    finally:
        _fast = before


def prepare_process(device: "torch.device") -> list[str]:
    """Tune this process for training on a CPU; says what was done. Measures the platform lacks are passed over."""
    if device.type != "cpu":
        return []
    done = (
        tune_allocator(),
        keep_primitives(),
        "byte dropout",
        "plain short attention",
        "joined projections",
        "sliced loss",
    )
    return [each for each in done if each]


def tune_allocator() -> str:
    """Keep freed memory: glibc returns each large tensor to the system, which hands it out again page by page.

    A third of a plain training step is spent in those page faults. One arena, since backward runs in a thread of its
    own and would otherwise keep a second hoard.
    """
    if platform.libc_ver()[0] != "glibc":
        return ""
    mallopt = ctypes.CDLL(None).mallopt
    accepted = [
        mallopt(option, value)
        for option, value in ((M_MMAP_THRESHOLD, LARGEST), (M_TRIM_THRESHOLD, 2**31 - 1), (M_ARENA_MAX, 1))
    ]
    return "kept memory" if all(accepted) else ""


def keep_primitives(capacity: int = 8192) -> str:
    """Let oneDNN keep its compiled kernels: each new batch shape would push another out. Read at its first use."""
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(capacity))
    return "kept kernels"

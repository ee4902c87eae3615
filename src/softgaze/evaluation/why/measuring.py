"""Time and memory of layers, measured on the CPU: one sequence forward and back, as in training."""

import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from softgaze.evaluation.why.layers import Layer
from softgaze.evaluation.why.operations import tensors

LEAST = 0.004  # seconds: a pass that is shorter is repeated until so much has passed
Advance = Callable[[], object]  # told of every step that is done


def training_pass(layer: Layer, vectors: Tensor) -> None:
    """Forward, and back to the input and the layer's own matrices."""
    layer(vectors).sum().backward()


def seconds(passes: Sequence[Callable[[], None]], rounds: int, advance: Advance) -> list[list[float]]:
    """For each pass a time in every round. They take turns, so that a busy moment of the machine is shared by all."""
    found: list[list[float]] = [[] for _ in passes]
    for own in passes:
        own()  # kernels are chosen and memory is taken the first time
    for _ in range(rounds):
        for times, own in zip(found, passes, strict=True):
            times.append(one_time(own))
            advance()
    return found


def one_time(run: Callable[[], None]) -> float:
    """The median of as many runs as fill a few milliseconds, at least one."""
    times: list[float] = []
    while not times or sum(times) < LEAST:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def most_held(layer: Layer, vectors: Tensor) -> int:
    """The most bytes that a training pass holds at once beyond the input, the layer's matrices and their gradients.

    What a kernel takes for itself and gives back before it ends is not seen.
    """
    training_pass(layer, vectors)  # from now on there are gradients to add to
    held = Held(owned(layer, vectors))
    with held:
        training_pass(layer, vectors)
    return held.most


def owned(layer: Layer, vectors: Tensor) -> Iterator[Tensor]:
    """What is there before a pass begins."""
    for each in (vectors, *layer.parameters()):
        yield each
        if each.grad is not None:
            yield each.grad


class Held(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the memory of all tensors that are alive, and remembers the most."""

    def __init__(self, not_counted: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now: int = 0
        self.most: int = 0
        self.known = {each.untyped_storage()._cdata for each in not_counted}

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, and note what it made."""
        result = operator(*args, **(kwargs or {}))
        for each in tensors(result):
            self.note(each.untyped_storage())
        return result

    def note(self, storage: torch.UntypedStorage) -> None:
        """Views share one storage, which counts once and for as long as it lives."""
        number = storage._cdata
        if number not in self.known:
            self.known.add(number)
            self.now += storage.nbytes()
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self.forget, number, storage.nbytes())

    def forget(self, number: int, size: int) -> None:
        """Of a storage that is gone."""
        self.known.discard(number)
        self.now -= size

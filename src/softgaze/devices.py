"""Where tensors live: the device a name stands for, and one line when it, or torch itself, is not there."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from threading import get_native_id
from typing import TYPE_CHECKING, TypeVar

from softgaze.errors import ResourceError, UsageError, did_you_mean

if TYPE_CHECKING:
    import torch

NAMES = ("auto", "cpu", "cuda", "mps")

Job = TypeVar("Job")
Done = TypeVar("Done")


def need_torch() -> None:
    """Say how to install what the base install leaves out; found without importing it, which takes seconds."""
    for package in ("torch", "safetensors"):
        need(package, "softgaze[train]")


def need(package: str, install: str) -> None:
    """A package must be there, or how to get it is said in one line."""
    if find_spec(package) is None:
        raise ResourceError(f"this needs {package}, which is not installed; pip install '{install}'")


def has_torch() -> bool:
    """Whether torch, and what reads its weights, are installed."""
    return all(find_spec(package) is not None for package in ("torch", "safetensors"))


def pick_device(name: str = "auto") -> "torch.device":
    """The device called `name`: cpu, cuda, cuda:1, mps; or auto: the first of cuda, mps, cpu that is there."""
    need_torch()
    import torch

    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if count(kind)))
    kind, _, number = name.partition(":")
    if kind not in NAMES[1:] or not (number.isdecimal() or name == kind):
        raise UsageError(f"unknown device {name!r}; {did_you_mean(name, NAMES)}")
    if int(number or 0) >= count(kind):
        there = ", ".join(f"{each} ({count(each)})" for each in NAMES[1:] if count(each))
        raise UsageError(f"device {name} is not available; here there is {there}, and auto takes the best")
    return torch.device(name)


def count(kind: str) -> int:
    """How many devices of a kind this machine and this build of torch have."""
    import torch

    if kind == "cuda":
        return torch.cuda.device_count() if torch.cuda.is_available() else 0
    return int(torch.backends.mps.is_available()) if kind == "mps" else 1


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """So many threads for each operation, as long as the block runs."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(max(1, count))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def side_by_side(work: Callable[[Job], Done], jobs: Sequence[Job], device: "torch.device") -> Iterator[Done]:
    """What `work` makes of each job, in order; on a CPU, each thread does jobs of its own.

    Threads that share every operation wait for each other at every operation.
    """
    import torch

    workers = min(torch.get_num_threads(), len(jobs)) if device.type == "cpu" else 1
    if workers < 2:
        yield from map(work, jobs)
        return
    with using_threads(torch.get_num_threads() // workers):
        yield from pooled(work, jobs, workers)


def pooled(work: Callable[[Job], Done], jobs: Sequence[Job], workers: int) -> Iterator[Done]:
    """What `work` makes of each job, in order, by so many threads; by this one where there is nothing to share."""
    if min(workers, len(jobs)) < 2:
        yield from map(work, jobs)
        return
    pool = ThreadPoolExecutor(workers)  # a new one: to torch, a thread has the number of threads it first met
    try:
        yield from pool.map(work, jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def behind_others(work: Callable[[], Done], by: int = 10) -> Done:
    """What `work` gives, done by a thread that lets others go first; so do the threads it starts (on Linux).

    Where something small must be answered at once while all cores compute.
    """

    def politely() -> Done:
        if sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, get_native_id(), by)
        return work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(politely).result()


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """Threads worth having: one a core, or fewer where OMP_NUM_THREADS says so, which torch heeds by itself."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores(), max(1, int(asked))) if asked.isdecimal() else cores()

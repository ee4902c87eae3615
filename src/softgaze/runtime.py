"""Devices, threads, optional packages, and explicit CPU tuning.

Importing or using the library changes nothing process-wide. `tune_cpu` does; the command line and the server call it.
"""

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ctypes.util import find_library
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import get_native_id
from typing import TYPE_CHECKING, TypeVar

from softgaze.errors import ResourceError, UsageError, did_you_mean

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cpu", "cuda", "mps")

Job = TypeVar("Job")
Result = TypeVar("Result")


# --- optional packages ------------------------------------------------------------------------------------------


def need(package: str, install: str) -> None:
    """Raise with the pip command if `package` is not installed; it is not imported, which may take seconds."""
    if find_spec(package) is None:
        raise ResourceError(f"{package} is not installed; run: pip install '{install}'")


def need_torch() -> None:
    """Raise if torch or safetensors are missing: the base install has neither."""
    for package in ("torch", "safetensors"):
        need(package, "softgaze[train]")


def has_torch() -> bool:
    """Whether torch and safetensors are installed."""
    return all(find_spec(package) is not None for package in ("torch", "safetensors"))


# --- devices ----------------------------------------------------------------------------------------------------


def pick_device(name: str = "auto") -> "torch.device":
    """Return the device called `name`: cpu, cuda, cuda:1, mps; auto is the first available of cuda, mps, cpu."""
    need_torch()
    import torch

    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if device_count(kind)))
    kind, _, index = name.partition(":")
    if kind not in DEVICES[1:] or not (index.isdecimal() or name == kind):
        raise UsageError(f"unknown device {name!r}; {did_you_mean(name, DEVICES)}")
    if int(index or 0) >= device_count(kind):
        available = ", ".join(f"{kind} ({device_count(kind)})" for kind in DEVICES[1:] if device_count(kind))
        raise UsageError(f"device {name} is not available; available: {available}; or use auto")
    return torch.device(name)


def device_count(kind: str) -> int:
    """Return how many devices of a kind this machine and this build of torch have."""
    import torch

    if kind == "cuda":
        return torch.cuda.device_count() if torch.cuda.is_available() else 0
    return int(torch.backends.mps.is_available()) if kind == "mps" else 1


def has_nvidia_gpu() -> bool:
    """Whether the system has an NVIDIA GPU, seen without importing torch, which takes seconds."""
    if sys.platform == "win32":
        return find_library("nvcuda") is not None
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()  # the second in WSL


@cache
def cpu_flags() -> frozenset[str]:
    """Return the CPU features that Linux reports; elsewhere none."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return frozenset(next((line.split(":", 1)[1].split() for line in lines if line.startswith("flags")), []))


def has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16; False if that is unknown."""
    return bool({"amx_bf16", "avx512_bf16"} & cpu_flags())


def has_vnni() -> bool:
    """Whether the processor multiplies int8 without 16-bit sums, which overflow; False if that is unknown."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    return bool({"avx512_vnni", "avx_vnni"} & cpu_flags())


def user_cache_directory() -> Path:
    """Return the directory for files of this user that may be deleted at any time."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "softgaze"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/softgaze"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "softgaze"


# --- threads ----------------------------------------------------------------------------------------------------


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """Return one thread per core, or fewer if OMP_NUM_THREADS says so, as torch does by itself."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores(), max(1, int(limit))) if limit.isdecimal() else cores()


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Run the block with `count` intra-op threads. This is process-wide: only for tuned processes."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(max(1, count))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def parallel_map(
    work: Callable[[Job], Result], jobs: Sequence[Job], device: "torch.device", *, is_small: bool = False
) -> Iterator[Result]:
    """Yield `work(job)` in order; in a tuned process on a CPU, by one worker per thread.

    Threads that share every operation wait for each other at every operation. Workers divide the intra-op threads,
    which is a process-wide setting: without `tune_cpu` jobs run one after the other. A single job `is_small` if its
    operations take less time than two threads need to wait for each other: it gets one thread.
    """
    import torch

    may_set_threads = device.type == "cpu" and _tuned
    workers = min(torch.get_num_threads(), len(jobs)) if may_set_threads else 1
    if workers == len(jobs) == 1 and is_small and may_set_threads:
        with using_threads(1):
            result = work(jobs[0])
        yield result
        return
    if workers < 2:
        yield from map(work, jobs)
        return
    with using_threads(torch.get_num_threads() // workers):
        yield from thread_map(work, jobs, workers)


def thread_map(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> Iterator[Result]:
    """Yield `work(job)` in order, by `workers` threads."""
    if min(workers, len(jobs)) < 2:
        yield from map(work, jobs)
        return
    pool = ThreadPoolExecutor(workers)  # a new one: a thread keeps the number of intra-op threads it started with
    try:
        yield from pool.map(work, jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def run_low_priority(work: Callable[[], Result], nice: int = 10) -> Result:
    """Return `work()`, run by a thread of low priority; so are the threads it starts (on Linux).

    Small requests are then answered at once while all cores compute.
    """

    def run() -> Result:
        if sys.platform == "linux":
            own = get_native_id()
            os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + nice)
        return work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


# --- process-wide tuning ----------------------------------------------------------------------------------------

# Options of mallopt, from malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGEST_ALLOCATION = 2**30  # bytes: no tensor of a training step on a CPU is larger
# Kernels that oneDNN and torch keep: on processors with bfloat16 enough for the layers of one batch, elsewhere of many
# batches, because only kernels of bfloat16 take much memory (benchmarks/kernels.md).
BFLOAT16_KERNELS, KERNELS = 64, 8192
SPIN_COUNT = 10_000  # loops in which an OpenMP thread waits for work before it sleeps; libgomp's default is 300,000

_tuned = False


def tune_cpu() -> None:
    """Tune this process for torch on a CPU. Call it once, before the first computation.

    - Keep freed memory. glibc returns each large tensor to the system, and page faults take a third of a plain training
      step. One arena, because the backward pass runs in a thread that would otherwise keep memory of its own.
    - Set how many compiled kernels oneDNN keeps (default: 1,024). Every batch shape needs its own kernels. An RNN in
      float32 reuses them; in bfloat16 they would fill gigabytes.
    - Let waiting OpenMP threads sleep soon. A thread that spins while other programs need its core delays the thread it
      waits for: on a busy machine, updates take twice as long (benchmarks/busy.md). Read when torch is imported.
    - Allow the batches of a translation to be decoded in parallel threads.
    """
    global _tuned
    _tuned = True
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(BFLOAT16_KERNELS if has_bfloat16() else KERNELS))
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPIN_COUNT))
    if platform.libc_ver()[0] == "glibc":
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in (
            (M_MMAP_THRESHOLD, LARGEST_ALLOCATION),
            (M_TRIM_THRESHOLD, 2**31 - 1),
            (M_ARENA_MAX, 1),
        ):
            mallopt(option, value)


# --- memory -----------------------------------------------------------------------------------------------------


def peak_memory() -> int | None:
    """Return the peak resident memory of this process in bytes, or None if the system does not report it.

    Linux is read from /proc, because `getrusage` there starts with the memory of the parent process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = (line.split() for line in status.read_text().splitlines())
        return next((int(line[1]) * 1024 for line in lines if line[:1] == ["VmHWM:"]), None)
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def peak_device_memory(device: str) -> int | None:
    """Return the peak memory of this process' tensors on a GPU in bytes, or None for other devices."""
    if not device.startswith("cuda"):
        return None
    import torch

    return torch.cuda.max_memory_allocated(device)

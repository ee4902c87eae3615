"""How much memory a process took."""

import sys
from pathlib import Path


def peak_memory() -> int | None:
    """The most memory this process has held, in bytes; None where no system tells.

    Linux is asked by /proc: what `getrusage` says there begins with the memory of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = (line.split() for line in status.read_text().splitlines())
        return next((int(line[1]) * 1024 for line in lines if line[:1] == ["VmHWM:"]), None)
    try:
        import resource
    except ImportError:  # Windows
        return None
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else held * 1024


def peak_device_memory(device: str) -> int | None:
    """The most memory that tensors of this process took on a GPU, in bytes; None where the device is no such one.

    What the process holds there beside tensors is not counted: it is kept for the next, or belongs to the driver.
    """
    if not device.startswith("cuda"):
        return None
    import torch

    return torch.cuda.max_memory_allocated(device)

"""Which numbers to compute in: bfloat16 where the processor multiplies it in hardware, float32 elsewhere."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """The context a forward pass runs in; weights and optimiser stay in float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if uses_bfloat16(device, precision) else nullcontext()


def uses_bfloat16(device: torch.device, precision: str) -> bool:
    """Whether that is asked for, or wise."""
    return precision == "bfloat16" or (precision == "auto" and has_bfloat16(device))


def has_bfloat16(device: torch.device) -> bool:
    """Emulated bfloat16 is slower than float32, so the question is what the hardware does."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        return bool({"amx_bf16", "avx512_bf16"} & cpu_flags())
    return False


def cpu_flags() -> set[str]:
    """What Linux says of the processor; nothing elsewhere, which means float32."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return set()
    lines = path.read_text(errors="replace").splitlines()
    return set(next((line.split(":", 1)[1].split() for line in lines if line.startswith("flags")), []))

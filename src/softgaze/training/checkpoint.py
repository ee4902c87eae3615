"""Checkpoints: weights, optimizer state and counters in a directory that is complete or absent.

Every file has a checksum. A damaged checkpoint is set aside and the previous one is used. No pickle.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from softgaze.atomic_io import TEMPORARY, fingerprint, new_directory, remove
from softgaze.bundle import check_file
from softgaze.errors import DataError

KEEP = 2  # the newest, and one to fall back on
WEIGHTS, OPTIMIZER, PROGRESS, MANIFEST = (
    "weights.safetensors",
    "optimiser.safetensors",
    "progress.json",
    "manifest.json",
)
RENAMED = {"waited": "data_wait", "rate_scale": "lr_scale", "went_back": "rolled_back"}  # in progress.json


@dataclass
class TrainingProgress:
    """Counters of a run."""

    step: int = 0
    elapsed: float = 0.0  # seconds of training over all resumes
    data_wait: float = 0.0  # of these, seconds of waiting for data
    tokens: int = 0  # target tokens
    best: float | None = None  # value of the chosen metric, higher is better
    best_step: int = 0
    validated_step: int = 0
    bad_validations: int = 0  # in a row, before the decay
    decay_start: int | None = None  # step at which the patience was exhausted and the learning rate began to fall
    skipped: int = 0  # updates with non-finite numbers
    lr_scale: float = 1.0  # below 1 after a rollback
    rolled_back: bool = False
    snapshots: list[str] = field(default_factory=list)  # weights of the last validations, to average
    fingerprints: dict[str, dict[str, Any]] = field(default_factory=dict)  # of the snapshots


def save_checkpoint(
    directory: Path, model: nn.Module, optimizer: torch.optim.Optimizer, progress: TrainingProgress
) -> Path:
    """Write `step-…` under `directory` and remove the oldest checkpoints."""
    path = directory / f"step-{progress.step:08d}"
    with new_directory(path) as temporary:
        write_tensors(temporary / WEIGHTS, parameters_of(model))
        state = {
            f"{key}:{name}": value.detach().cpu().contiguous().clone()
            for name, parameter in model.named_parameters()
            for key, value in optimizer.state[parameter].items()
        }
        write_tensors(temporary / OPTIMIZER, state)
        (temporary / PROGRESS).write_text(json.dumps(asdict(progress)))
        files = {name: fingerprint(temporary / name) for name in (WEIGHTS, OPTIMIZER, PROGRESS)}
        (temporary / MANIFEST).write_text(json.dumps(files))
    for old in checkpoints(directory)[:-KEEP]:
        remove(old)
    return path


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write a safetensors file; raise the system's `OSError` instead of the library's error (a full disk)."""
    try:
        save_file(tensors, path)
    except SafetensorError as error:
        code = re.search(r"os error (\d+)", str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), os.strerror(int(code[1]))) from error


def checkpoints(directory: Path) -> list[Path]:
    """Return the complete checkpoints, oldest first; remove leftovers of a crash."""
    for leftover in directory.glob(f"{TEMPORARY}*"):
        remove(leftover)
    return sorted(directory.glob("step-*"))


def newest_checkpoint(directory: Path) -> tuple[Path | None, list[str]]:
    """Return the newest intact checkpoint and the errors of newer ones, which are renamed to `damaged-…`.

    Raise a `DataError` if all are damaged: starting over would overwrite the model of the run.
    """
    damaged: list[tuple[Path, str]] = []
    for path in reversed(checkpoints(directory)):
        try:
            check_checkpoint(path)
        except DataError as error:
            damaged.append((path, str(error)))
            continue
        for other, _ in damaged:  # kept, because it may be all there is
            aside = other.with_name(f"damaged-{other.name}")
            remove(aside)
            other.rename(aside)
        return path, [message for _, message in damaged]
    if damaged:
        raise DataError(
            f"{damaged[0][1]}; no older checkpoint of this run is intact; continue from its model in another directory "
            f"(--init {directory.parent}), or start over with --fresh"
        )
    return None, []


def check_checkpoint(path: Path) -> None:
    """Raise a `DataError` if a file is missing or does not match its checksum."""
    try:
        files: dict[str, Any] = dict(json.loads((path / MANIFEST).read_text()))
    except (OSError, TypeError, ValueError) as error:
        raise DataError(f"{path / MANIFEST}: cannot be read: {error}") from error
    for name in (WEIGHTS, OPTIMIZER, PROGRESS):
        if name not in files:
            raise DataError(f"{path / MANIFEST}: has no entry for {name}")
        check_file(path / name, files[name])


def load_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> TrainingProgress:
    """Restore weights and optimizer state; return the counters."""
    restore_parameters(model, load_file(path / WEIGHTS))
    parameters = dict(model.named_parameters())
    for full_name, value in load_file(path / OPTIMIZER).items():
        key, _, name = full_name.partition(":")
        parameter = parameters[name]
        on_cpu = key == "step" and not optimizer.defaults.get("fused")  # step counters stay there unless fused
        optimizer.state[parameter][key] = (value if on_cpu else value.to(parameter.device)).clone()
    counters = json.loads((path / PROGRESS).read_text())
    return TrainingProgress(**{RENAMED.get(name, name): value for name, value in counters.items()})


def parameters_of(model: nn.Module) -> dict[str, Tensor]:
    """Return a CPU copy of every parameter."""
    return {name: value.detach().cpu().contiguous().clone() for name, value in model.named_parameters()}


def restore_parameters(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Set every parameter from `parameters_of`."""
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(tensors[name])

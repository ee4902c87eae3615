"""Checkpoints: weights, optimiser and counters in a directory that appears whole or not at all.

Every file is fingerprinted; a damaged checkpoint is refused by name and the one before it is used. No pickle.
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
from torch import Tensor

from softgaze.bundle import check_file
from softgaze.errors import DataError
from softgaze.files import TEMPORARY, fingerprint, new_directory, remove
from softgaze.models.base import Seq2Seq

KEEP = 2  # the newest, and one to fall back on
WEIGHTS, OPTIMISER, PROGRESS, MANIFEST = (
    "weights.safetensors",
    "optimiser.safetensors",
    "progress.json",
    "manifest.json",
)


@dataclass
class Progress:
    """Where training stands, apart from tensors."""

    step: int = 0
    elapsed: float = 0.0  # seconds of training over all resumes
    waited: float = 0.0  # of these, for data
    tokens: int = 0  # target tokens learnt from
    best: float | None = None  # of the chosen metric, higher is better
    best_step: int = 0
    validated_step: int = 0
    bad_validations: int = 0  # in a row
    skipped: int = 0  # updates with non-finite numbers
    rate_scale: float = 1.0  # below 1 after going back from non-finite numbers
    went_back: bool = False
    snapshots: list[str] = field(default_factory=list)  # weights of the last validations, to average
    fingerprints: dict[str, dict[str, Any]] = field(default_factory=dict)  # of their files


def save_checkpoint(directory: Path, model: Seq2Seq, optimiser: torch.optim.Optimizer, progress: Progress) -> Path:
    """Write `step-…` under `directory` and remove what is no longer needed."""
    path = directory / f"step-{progress.step:08d}"
    with new_directory(path) as place:
        write_tensors(place / WEIGHTS, parameters_of(model))
        write_tensors(place / OPTIMISER, optimiser_tensors(model, optimiser))
        (place / PROGRESS).write_text(json.dumps(asdict(progress)))
        files = {name: fingerprint(place / name) for name in (WEIGHTS, OPTIMISER, PROGRESS)}
        (place / MANIFEST).write_text(json.dumps(files))
    for old in checkpoints(directory)[:-KEEP]:
        remove(old)
    return path


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """A safetensors file; where the system would not let it be written, its own error and not the library's."""
    try:
        save_file(tensors, path)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def checkpoints(directory: Path) -> list[Path]:
    """Finished checkpoints, oldest first; leftovers of a crash are removed."""
    for leftover in directory.glob(f"{TEMPORARY}*"):
        remove(leftover)
    return sorted(directory.glob("step-*"))


def newest_checkpoint(directory: Path) -> tuple[Path | None, list[str]]:
    """The newest checkpoint that is whole, and what was wrong with newer ones, which are set aside.

    Where there are some but none is whole, a `DataError`: to begin again would overwrite the model of the run.
    """
    complaints = []
    for path in reversed(checkpoints(directory)):
        try:
            check_checkpoint(path)
        except DataError as error:
            complaints.append((path, str(error)))
        else:
            for damaged, _ in complaints:
                set_aside(damaged)
            return path, [complaint for _, complaint in complaints]
    if complaints:
        raise DataError(
            f"{complaints[0][1]}; no older checkpoint of this run is whole; go on from its model in another directory "
            f"(--init {directory.parent}), or start over with --fresh"
        )
    return None, []


def set_aside(path: Path) -> None:
    """Out of the way of the checkpoints to come, which are counted; but not deleted, for it may be all there is."""
    place = path.with_name(f"damaged-{path.name}")
    remove(place)
    path.rename(place)


def check_checkpoint(path: Path) -> None:
    """Every file must be there and match its fingerprint."""
    try:
        files: dict[str, Any] = dict(json.loads((path / MANIFEST).read_text()))
    except (OSError, TypeError, ValueError) as error:
        raise DataError(f"{path / MANIFEST}: cannot be read: {error}") from error
    for name in (WEIGHTS, OPTIMISER, PROGRESS):
        if name not in files:
            raise DataError(f"{path / MANIFEST}: does not name {name}")
        check_file(path / name, files[name])


def load_checkpoint(path: Path, model: Seq2Seq, optimiser: torch.optim.Optimizer) -> Progress:
    """Put weights and optimiser back as they were."""
    restore_parameters(model, load_file(path / WEIGHTS))
    restore_optimiser(model, optimiser, load_file(path / OPTIMISER))
    return Progress(**json.loads((path / PROGRESS).read_text()))


def parameters_of(model: Seq2Seq) -> dict[str, Tensor]:
    """Every parameter once, copied off the device."""
    return {name: value.detach().cpu().contiguous().clone() for name, value in model.named_parameters()}


def restore_parameters(model: Seq2Seq, tensors: Mapping[str, Tensor]) -> None:
    """The reverse of `parameters_of`."""
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(tensors[name])


def optimiser_tensors(model: Seq2Seq, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimiser remembers of each parameter, by name."""
    tensors = {}
    for name, parameter in model.named_parameters():
        for key, value in optimiser.state[parameter].items():
            tensors[f"{key}:{name}"] = value.detach().cpu().contiguous().clone()
    return tensors


def restore_optimiser(model: Seq2Seq, optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """The reverse of `optimiser_tensors`; counters of steps stay where the optimiser keeps them."""
    parameters = dict(model.named_parameters())
    for full_name, value in tensors.items():
        key, _, name = full_name.partition(":")
        parameter = parameters[name]
        place = value if key == "step" and not optimiser.defaults.get("fused") else value.to(parameter.device)
        optimiser.state[parameter][key] = place.clone()

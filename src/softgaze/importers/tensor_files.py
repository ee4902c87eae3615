"""Tensors of safetensors and PyTorch files, read one at a time. Nothing in a file is executed."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor

from softgaze.bundle import tensor_shapes
from softgaze.errors import DataError
from softgaze.importers.base import LazyTensor, read_json

SAFETENSORS, PYTORCH = "model.safetensors", "pytorch_model.bin"
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


@dataclass(frozen=True)
class TensorFiles:
    """The tensors of a directory, in one file or in shards."""

    shapes: dict[str, list[int]]
    file_of: dict[str, Path]
    loaded: Mapping[str, Tensor]  # memory-mapped tensors of PyTorch files

    @classmethod
    def open(cls, directory: Path) -> "TensorFiles":
        """Open the safetensors of a directory or, if there are none, its PyTorch files."""
        for name in (SAFETENSORS, PYTORCH):
            if (directory / name).is_file():
                return cls.of([directory / name])
            index = directory / f"{name}.index.json"
            if index.is_file():
                return cls.of(shards(index))
        raise DataError(f"{directory}: has neither {SAFETENSORS} nor {PYTORCH}; convert the weights to one of them")

    @classmethod
    def of(cls, paths: list[Path]) -> "TensorFiles":
        shapes: dict[str, list[int]] = {}
        file_of: dict[str, Path] = {}
        loaded: dict[str, Tensor] = {}
        for path in paths:
            if path.suffix == ".safetensors":
                own = tensor_shapes(path)
            else:
                tensors = load_pickle(path)
                own = {name: list(tensor.shape) for name, tensor in tensors.items()}
                loaded |= tensors
            shapes |= own
            file_of |= dict.fromkeys(own, path)
        return cls(shapes, file_of, loaded)

    @property
    def paths(self) -> list[Path]:
        return sorted(set(self.file_of.values()))

    def lazy(self, *names: str) -> LazyTensor:
        """Return the first of several names that the files have, to be read later."""
        name = next((name for name in names if name in self.shapes), names[0])
        return LazyTensor(partial(self.read, name))

    def read(self, name: str) -> Tensor:
        """Read one tensor; the file is closed with it, so that its pages do not stay in memory."""
        if name not in self.shapes:
            raise DataError(f"{self.paths[0]}: has no tensor {name}")
        if name in self.loaded:
            tensor = self.loaded[name]
        else:
            from safetensors import safe_open

            with safe_open(self.file_of[name], framework="pt") as file:
                tensor = file.get_tensor(name)
        if tensor.dtype not in FLOATS:
            raise DataError(
                f"{self.file_of[name]}: {name} has the type {tensor.dtype}, expected floating-point numbers"
            )
        return tensor


def shards(index: Path) -> list[Path]:
    """Return the files that an index lists; they are in its directory."""
    table = read_json(index).get("weight_map")
    names = (
        sorted({*table.values()}) if isinstance(table, dict) and all(isinstance(v, str) for v in table.values()) else []
    )
    if not names or any(Path(name).name != name for name in names):
        raise DataError(f"{index}: expected a weight_map of file names in the same directory")
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise DataError(f"{index.parent / missing[0]}: is listed in {index.name} but is missing")
    return [index.parent / name for name in names]


def load_pickle(path: Path) -> dict[str, Tensor]:
    """Load the tensors of a PyTorch file; a file with any other object is rejected before that is created."""
    try:
        with warnings.catch_warnings(action="ignore"):
            loaded: Any = torch.load(path, map_location="cpu", mmap=is_zip(path), weights_only=True)
    except UnpicklingError as error:
        raise DataError(
            f"{path}: contains objects other than tensors, so it is not loaded; convert it to safetensors"
        ) from error
    except (EOFError, KeyError, OSError, RuntimeError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(f"{path}: cannot be read as tensors: {str(error).splitlines()[0][:200]}") from error
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise DataError(f"{path}: expected a dictionary of tensors")
    return {str(name): value.detach() for name, value in loaded.items()}


def is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"

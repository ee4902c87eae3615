"""What a model directory may claim: a manifest that fits itself, names that stay inside, a header that adds up.

Everything here is checked before anything large is read or allocated, and needs neither torch nor safetensors.
"""

import hashlib
import json
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from softgaze.errors import DataError

MANIFEST = "manifest.json"
OWN = "sha256"  # the manifest's fingerprint of itself; bundles of before 0.2 have none
KEYS = {"format", "softgaze", "engine", "files", "facts", OWN}
LARGEST_TEXT = 1 << 24  # bytes of a manifest, settings or a header; ours have thousands
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


def read_small(path: Path) -> str:
    """Text of a file that has no reason to be large."""
    size = path.stat().st_size
    if size > LARGEST_TEXT:
        raise ValueError(f"it has {size:,} bytes, and nothing of ours has more than {LARGEST_TEXT:,}")
    return path.read_text(encoding="utf-8")


def own_fingerprint(manifest: dict[str, Any]) -> str:
    """Of everything else a manifest says."""
    rest = {key: value for key, value in manifest.items() if key != OWN}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def parse(text: str) -> dict[str, Any]:
    """A manifest of any format, whole to its last byte; or a `ValueError`."""
    if not text.endswith("}\n"):
        raise ValueError("it was cut")
    return dict(json.loads(text))


def check_manifest(manifest: dict[str, Any]) -> None:
    """It holds what one of our format holds, unchanged; or a `ValueError`."""
    unknown = sorted(set(manifest) - KEYS)
    if unknown:
        raise ValueError(f"it holds {unknown[0]!r}, which this version does not know")
    for key in ("files", "facts"):
        if not isinstance(manifest[key], dict):
            raise TypeError(f"its {key} are no object")
    if OWN in manifest and manifest[OWN] != own_fingerprint(manifest):
        raise ValueError("it does not match its own fingerprint: it was changed or damaged")


def check_names(path: Path, names: dict[str, Any]) -> None:
    """Files of a bundle lie inside it, and are files: no way up, no way out, no links."""
    for name in names:
        parts = PurePosixPath(name).parts
        if not parts or ".." in parts or PurePosixPath(name).is_absolute() or not plain(name):
            raise DataError(f"{path / MANIFEST}: names {name!r}, which does not lie inside the bundle")
        for depth in range(1, len(parts) + 1):
            place = path.joinpath(*parts[:depth])
            if place.is_symlink():
                raise DataError(f"{place}: is a link; a bundle holds its files itself, so copy what it points to")


def plain(name: str) -> bool:
    """Neither a drive nor a backslash, which are ways out on Windows, nor a character no name has."""
    return "\\" not in name and not PureWindowsPath(name).drive and name.isprintable()


def shapes(path: Path) -> dict[str, list[int]]:
    """Of each tensor, from the header of a safetensors file, which must account for every byte of it."""
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(size - 8, LARGEST_TEXT):
                raise ValueError(f"its header would have {length:,} bytes, the file has {size:,}")
            header = json.loads(file.read(length))
        entries = [entry for name, entry in header.items() if name != "__metadata__"]
        check_offsets(entries, size - 8 - length)
        return {name: list(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as safetensors: {error}") from error


def check_offsets(entries: list[dict[str, Any]], size: int) -> None:
    """Tensors lie one after the other, each as large as its shape says, and fill the file."""
    end = 0
    for entry in sorted(entries, key=lambda entry: tuple(entry["data_offsets"])):
        start, stop = entry["data_offsets"]
        counts = [*entry["shape"], start, stop]
        if not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError("a shape or an offset is no count")
        if start != end or stop - start != prod(entry["shape"]) * BYTES[entry["dtype"]]:
            raise ValueError(f"a tensor claims the bytes from {start:,} to {stop:,}, which its shape does not")
        end = stop
    if end != size:
        raise ValueError(f"its tensors have {end:,} bytes, the file has {size:,} for them")

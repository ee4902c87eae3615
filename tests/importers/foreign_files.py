"""Small writers of foreign formats, for tests: Marian `.npz` and `.bin`, CTranslate2 `model.bin`."""

import io
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

FLOAT32, INT8, INTGEMM8, INTGEMM16 = 0x404, 0x101, 0x4101, 0x4102
ALIGNMENT = 256


def settings_bytes(settings: Mapping[str, Any]) -> bytes:
    return yaml.safe_dump(dict(settings)).encode() + b"\0"


def write_npz(path: Path, tensors: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> Path:
    """As `np.savez`, with the settings of the model as an array of bytes."""
    text = np.frombuffer(settings_bytes(settings), np.int8)
    np.savez(path, **{"special:model.yml": text}, **tensors)
    return path


def quantized(name: str, values: np.ndarray, dtype: str = "int8") -> tuple[bytes, np.ndarray]:
    """The bytes of an intgemm matrix, transposed unless it is an embedding, and the values they stand for."""
    multiplier = np.float32(np.iinfo(dtype).max / np.abs(values).max())
    integers = np.rint(values * multiplier).astype(dtype)
    stored = integers if "Wemb" in name else integers.T
    data = np.ascontiguousarray(stored).tobytes() + multiplier.tobytes()
    return data, (integers.astype(np.float32) / multiplier).astype(np.float32)


def write_marian(
    path: Path, tensors: Mapping[str, np.ndarray], settings: Mapping[str, Any], matrices: int = INTGEMM8
) -> dict[str, np.ndarray]:
    """Write a `.bin` whose weight matrices are stored as `matrices`; return the values that a reader should find."""
    items, expected = [], {}
    for name, values in tensors.items():
        is_matrix = values.ndim == 2 and values.shape[0] > 1 and matrices != FLOAT32
        if is_matrix:
            data, expected[name] = quantized(name, values, "int8" if matrices == INTGEMM8 else "int16")
            items.append((f"{name}_QuantMultA", FLOAT32, (1, 1), struct.pack("<f", 3.0)))
        else:
            data, expected[name] = values.astype("<f4").tobytes(), values.astype(np.float32)
        items.append((name, matrices if is_matrix else FLOAT32, values.shape, data))
    text = settings_bytes(settings)
    items.append(("special:model.yml", INT8, (len(text),), text))
    path.write_bytes(marian_bytes(items))
    return expected


def marian_bytes(items: list[tuple[str, int, tuple[int, ...], bytes]]) -> bytes:
    padded = [data + bytes(-len(data) % ALIGNMENT) for _, _, _, data in items[:-1]] + [items[-1][3]]
    out = io.BytesIO()
    out.write(struct.pack("<QQ", 1, len(items)))
    for (name, code, shape, _), data in zip(items, padded, strict=True):
        out.write(struct.pack("<QQQQ", len(name.encode()) + 1, code, len(shape), len(data)))
    for name, _, _, _ in items:
        out.write(name.encode() + b"\0")
    for _, _, shape, _ in items:
        out.write(struct.pack(f"<{len(shape)}i", *shape))
    padding = -(out.tell() + 8) % ALIGNMENT
    out.write(struct.pack("<Q", padding) + bytes(padding))
    return out.getvalue() + b"".join(padded)


CTRANSLATE2_DTYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")


def write_ctranslate2(
    path: Path, variables: Mapping[str, tuple[str, np.ndarray]], aliases: Mapping[str, str], version: int = 6
) -> Path:
    """Write {name: (dtype, values)}; bfloat16 values are given as the upper half of float32."""

    def text(string: str) -> bytes:
        return struct.pack("<H", len(string.encode()) + 1) + string.encode() + b"\0"

    out = io.BytesIO()
    out.write(struct.pack("<I", version) + text("TransformerSpec") + struct.pack("<II", 7, len(variables)))
    for name, (dtype, values) in variables.items():
        data = np.ascontiguousarray(values).tobytes()
        out.write(text(name) + struct.pack(f"<B{values.ndim}I", values.ndim, *values.shape))
        if version >= 4:
            out.write(struct.pack("<BI", CTRANSLATE2_DTYPES.index(dtype), len(data)))
        else:
            out.write(struct.pack("<BI", values.itemsize, values.size))
        out.write(data)
    if version >= 3:
        out.write(struct.pack("<I", len(aliases)))
        for alias, name in aliases.items():
            out.write(text(alias) + text(name))
    path.write_bytes(out.getvalue())
    return path


def zip_directory(directory: Path, archive: Path, top: str) -> Path:
    """Zip a directory under the folder `top`, as an Argos package is."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(directory.rglob("*")):
            file.write(path, f"{top}/{path.relative_to(directory)}")
    return archive

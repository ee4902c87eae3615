"""Read the weights of other frameworks one tensor at a time: Marian `.npz` and `.bin`, CTranslate2 `model.bin`.

Nothing in a file is executed. Every size is compared with the size of the file before memory is allocated for it.
"""

import math
import re
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing
import yaml

from softgaze.errors import DataError

Array = np.typing.NDArray[np.float32]

MAX_NAME = 1 << 12  # bytes of a tensor's name
MAX_RANK = 8
MAX_SETTINGS = 1 << 16  # bytes of special:model.yml; Marian writes about a thousand
MAX_EXPANSION = 8  # of a compressed file: weights compress little
EXPANSION_GRACE = 1 << 24  # bytes that any compressed file may expand to
NPZ_MAGIC = b"PK"

MARIAN_SETTINGS = "special:model.yml"
QUANT_MULTIPLIER = "_QuantMultA"  # multipliers of activations, for integer kernels only


class TensorFile(ABC):
    """Named tensors of a file. Shapes are known at once; values are read on request, as float32."""

    def __init__(self, path: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.path, self.shapes = path, shapes

    @abstractmethod
    def read(self, name: str) -> Array:
        """Return one tensor."""

    def checked(self, name: str, values: Any) -> Array:
        """Return values as float32; raise if one is not finite."""
        with np.errstate(over="ignore"):  # float64 that does not fit
            array = np.array(values, dtype=np.float32, order="C")
        if not np.isfinite(array).all():
            raise DataError(f"{self.path}: {name} contains NaN or infinite values")
        return array


# --- binary headers ---------------------------------------------------------------------------------------------


class BinaryReader:
    """Sequential reads of little-endian numbers that never pass the end of the file."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file = path, file
        self.size, self.position = path.stat().st_size, 0

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        start = self.position
        self.skip(count)
        self.file.seek(start)
        return self.file.read(count)

    def skip(self, count: int) -> None:
        """Pass over bytes without reading them."""
        left = self.size - self.position
        if count > left:
            raise DataError(
                f"{self.path}: is truncated or damaged: byte {self.position:,} announces {count:,} more bytes, "
                f"but {left:,} are left"
            )
        self.position += count

    def numbers(self, code: str, count: int) -> tuple[int, ...]:
        """Return the next integers of a `struct` code."""
        return struct.unpack(f"<{count}{code}", self.take(count * struct.calcsize(f"<{code}")))

    def text(self, count: int) -> str:
        """Return a string that was stored with its final NUL."""
        if not 1 <= count <= MAX_NAME:
            raise DataError(f"{self.path}: is damaged: a name has {count:,} bytes, expected 1 to {MAX_NAME:,}")
        data = self.take(count)
        try:
            return data[:-1].decode()
        except UnicodeDecodeError:
            raise DataError(f"{self.path}: is damaged: a name is not UTF-8") from None


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor is, and how it is stored."""

    shape: tuple[int, ...]
    dtype: str
    offset: int
    quantized: bool = False  # one float32 multiplier follows the integers

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        return self.count * np.dtype(self.dtype).itemsize + (4 if self.quantized else 0)


def check_entry(path: Path, name: str, entry: StoredTensor, stored: int) -> None:
    """Raise unless shape, type and stored size of a tensor agree."""
    if len(entry.shape) > MAX_RANK or any(size < 0 for size in entry.shape) or entry.size > stored:
        shape = list(entry.shape[:MAX_RANK])
        raise DataError(f"{path}: is damaged: {name} has shape {shape}, which does not fit into {stored:,} bytes")


def read_values(path: Path, name: str, entry: StoredTensor) -> Any:
    """Read the values of one tensor as they are stored, flat, and its multiplier."""
    with path.open("rb") as file:
        file.seek(entry.offset)
        data = file.read(entry.size)
    if len(data) != entry.size:
        raise DataError(f"{path}: is truncated: {name} has {len(data):,} of {entry.size:,} bytes")
    values = np.frombuffer(data, entry.dtype, entry.count)
    if not entry.quantized:
        return values
    multiplier = np.frombuffer(data, "<f4", 1, offset=entry.size - 4)[0]
    if not np.isfinite(multiplier) or multiplier <= 0:
        raise DataError(f"{path}: is damaged: the multiplier of {name} is {multiplier}")
    return divide(values, multiplier)


def divide(integers: Any, scales: Any) -> Array:
    """Return integers / scales; an overflow gives an infinite value, which `checked` rejects."""
    with np.errstate(over="ignore"):
        quotients: Array = integers.astype(np.float32) / scales
    return quotients


# --- Marian -----------------------------------------------------------------------------------------------------

MARIAN_TYPES = {  # type code -> dtype, quantized
    0x101: ("i1", False),
    0x402: ("<f2", False),
    0x404: ("<f4", False),
    0x4101: ("i1", True),  # intgemm8
    0x4102: ("<i2", True),  # intgemm16
}


class MarianBinary(TensorFile):
    """A Marian `.bin`, also of Bergamot and Firefox: headers, names and shapes first, then all data."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self.entries = marian_entries(BinaryReader(path, file))
        weights = {name: entry.shape for name, entry in self.entries.items() if not name.endswith(QUANT_MULTIPLIER)}
        super().__init__(path, {name: shape for name, shape in weights.items() if name != MARIAN_SETTINGS})

    def read(self, name: str) -> Array:
        entry = self.entries[name]
        values = read_values(self.path, name, entry)
        if entry.quantized and "Wemb" not in name:  # integer matrices are stored transposed, except embeddings
            return self.checked(name, values.reshape(entry.shape[::-1]).T)
        return self.checked(name, values.reshape(entry.shape))

    def settings(self) -> dict[str, Any]:
        """Return the options of the model."""
        entry = self.entries.get(MARIAN_SETTINGS)
        if entry is None or entry.dtype != "i1" or entry.quantized or entry.size > MAX_SETTINGS:
            raise DataError(f"{self.path}: contains no {MARIAN_SETTINGS} of at most {MAX_SETTINGS:,} bytes")
        return parse_settings(self.path, read_values(self.path, MARIAN_SETTINGS, entry).tobytes())


def marian_entries(reader: BinaryReader) -> dict[str, StoredTensor]:
    """Read the header of a Marian `.bin`."""
    version, count = reader.numbers("Q", 2)
    if version != 1:
        raise DataError(f"{reader.path}: is not a Marian model: expected version 1, got {version}")
    flat = reader.numbers("Q", 4 * count)
    headers = [flat[first : first + 4] for first in range(0, len(flat), 4)]  # name, type, rank, bytes
    names = [reader.text(name) for name, _, _, _ in headers]
    for name, (_, _, rank, _) in zip(names, headers, strict=True):
        if rank > MAX_RANK:
            raise DataError(f"{reader.path}: is damaged: {name} has {rank:,} dimensions")
    shapes = [reader.numbers("i", rank) for _, _, rank, _ in headers]
    reader.skip(reader.numbers("Q", 1)[0])
    entries: dict[str, StoredTensor] = {}
    for name, shape, (_, code, _, stored) in zip(names, shapes, headers, strict=True):
        offset = reader.position
        reader.skip(stored)
        if name.endswith(QUANT_MULTIPLIER):
            continue
        if code not in MARIAN_TYPES:
            raise DataError(
                f"{reader.path}: {name} is stored as type {code:#x}, for one kind of processor; expected float32, "
                "float16, intgemm8 or intgemm16, as in the .npz it was made from"
            )
        entry = StoredTensor(shape, MARIAN_TYPES[code][0], offset, MARIAN_TYPES[code][1])
        check_entry(reader.path, name, entry, stored)
        entries[name] = entry
    return entries


class MarianNpz(TensorFile):
    """A Marian `.npz`: a zip of NumPy arrays, matrices as (in, out)."""

    header = re.compile(
        rb"\{'descr': ?'([<|=]?[fiu][1248])', ?'fortran_order': ?(True|False), ?'shape': ?\(([\d, ]*)\),? ?\}\s*$"
    )

    def __init__(self, path: Path) -> None:
        self.entries: dict[str, tuple[StoredTensor, str, bool]] = {}  # name -> entry, member, Fortran order
        with zip_errors(path), zipfile.ZipFile(path) as archive:
            check_expansion(path, archive)
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                if name in self.entries:
                    raise DataError(f"{path}: is damaged: it contains {name} twice")
                self.entries[name] = self.parse_header(path, archive, member)
        super().__init__(path, {name: entry[0].shape for name, entry in self.entries.items() if ":" not in name})

    def parse_header(
        self, path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo
    ) -> tuple[StoredTensor, str, bool]:
        """Read the header of one array."""
        name = member.filename[:MAX_NAME]
        with archive.open(member) as file:
            magic = file.read(8)
            code, width = ("<H", 2) if magic[6:7] == b"\x01" else ("<I", 4)
            if magic[:6] != b"\x93NUMPY" or len(length := file.read(width)) != width:
                raise DataError(f"{path}: {name} is not a NumPy array")
            (size,) = struct.unpack(code, length)
            match = self.header.match(file.read(size)) if size <= MAX_NAME else None
        if match is None:
            raise DataError(f"{path}: {name} has no readable header of a NumPy array of numbers")
        shape = tuple(int(digits) for digits in match[3].split(b",") if digits.strip())
        offset = 8 + width + size
        entry = StoredTensor(shape, match[1].decode(), offset)
        check_entry(path, name, entry, member.file_size - offset)
        return entry, member.filename, match[2] == b"True"

    def values(self, name: str) -> Any:
        """Read one array in its stored type."""
        entry, member, fortran = self.entries[name]
        with zip_errors(self.path), zipfile.ZipFile(self.path) as archive, archive.open(member) as file:
            file.read(entry.offset)
            data = file.read(entry.size)
        if len(data) != entry.size:
            raise DataError(f"{self.path}: is truncated: {name} has {len(data):,} of {entry.size:,} bytes")
        return np.frombuffer(data, entry.dtype).reshape(entry.shape, order="F" if fortran else "C")

    def read(self, name: str) -> Array:
        return self.checked(name, self.values(name))

    def settings(self) -> dict[str, Any]:
        """Return the options of the model."""
        found = self.entries.get(MARIAN_SETTINGS)
        if found is None or found[0].size > MAX_SETTINGS:
            raise DataError(f"{self.path}: contains no {MARIAN_SETTINGS} of at most {MAX_SETTINGS:,} bytes")
        return parse_settings(self.path, self.values(MARIAN_SETTINGS).tobytes())


def parse_settings(path: Path, data: bytes) -> dict[str, Any]:
    """Parse the YAML of `special:model.yml`, which ends with a NUL."""
    try:
        settings = yaml.safe_load(data.rstrip(b"\0").decode())
    except (RecursionError, UnicodeDecodeError, ValueError, yaml.YAMLError) as error:
        raise DataError(f"{path}: {MARIAN_SETTINGS} is not valid YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(settings, dict):
        raise DataError(f"{path}: {MARIAN_SETTINGS} contains no settings")
    return settings


def open_marian(path: Path) -> MarianBinary | MarianNpz:
    """Open a Marian model file of either kind."""
    with path.open("rb") as file:
        return MarianNpz(path) if file.read(2) == NPZ_MAGIC else MarianBinary(path)


# --- CTranslate2 ------------------------------------------------------------------------------------------------

CTRANSLATE2_TYPES = ("<f4", "i1", "<i2", "<i4", "<f2", "bfloat16")
ITEM_TYPES = {4: "<f4", 2: "<i2", 1: "i1"}  # of versions below 4, by item size
CTRANSLATE2_VERSIONS = range(2, 7)
SCALE, ZERO = "_scale", "_zero"


class CTranslate2Binary(TensorFile):
    """A CTranslate2 `model.bin`: each variable with its data, then names that share a variable."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            reader = BinaryReader(path, file)
            self.spec, self.revision, self.entries = ctranslate2_entries(reader)
        super().__init__(path, {name: entry.shape for name, entry in self.entries.items()})

    def read(self, name: str) -> Array:
        """Return one variable, multiplied out if it is stored as integers with scales."""
        values = self.stored(name)
        scales = self.entries.get(f"{name}{SCALE}")
        if scales is None:
            return self.checked(name, values)
        if f"{name}{ZERO}" in self.entries or scales.count not in (1, values.shape[0] if values.ndim else 1):
            raise DataError(f"{self.path}: {name} is quantized in a way that softgaze cannot read")
        divisors = self.checked(f"{name}{SCALE}", self.stored(f"{name}{SCALE}")).reshape(-1, *[1] * (values.ndim - 1))
        if not (divisors > 0).all():
            raise DataError(f"{self.path}: is damaged: {name}{SCALE} has values that are not positive")
        return self.checked(name, divide(values, divisors))

    def stored(self, name: str) -> Any:
        """Return one variable as numbers of its stored type."""
        entry = self.entries[name]
        if entry.dtype == "bfloat16":
            bits = read_values(self.path, name, StoredTensor(entry.shape, "<u2", entry.offset))
            return (bits.astype(np.uint32) << 16).view(np.float32).reshape(entry.shape)
        return read_values(self.path, name, entry).reshape(entry.shape)

    def number(self, name: str, default: int) -> int:
        """Return an attribute of the model, which is stored as a variable."""
        entry = self.entries.get(name)
        if entry is None:
            return default
        if entry.count != 1:
            raise DataError(f"{self.path}: {name} has shape {list(entry.shape)}, expected one number")
        return int(self.checked(name, self.stored(name)).item())


def ctranslate2_entries(reader: BinaryReader) -> tuple[str, int, dict[str, StoredTensor]]:
    """Read the name of the specification, its revision and the headers of all variables."""
    (version,) = reader.numbers("I", 1)
    if version not in CTRANSLATE2_VERSIONS:
        raise DataError(f"{reader.path}: is not a CTranslate2 model: expected version 2 to 6, got {version:,}")
    spec = reader.text(*reader.numbers("H", 1))
    revision, count = reader.numbers("I", 2)
    entries: dict[str, StoredTensor] = {}
    for _ in range(count):
        name = reader.text(*reader.numbers("H", 1))
        shape = reader.numbers("I", reader.numbers("B", 1)[0])
        (code,), (stored,) = reader.numbers("B", 1), reader.numbers("I", 1)
        if version < 4:
            dtype, stored = ITEM_TYPES.get(code, ""), stored * code
        else:
            dtype = CTRANSLATE2_TYPES[code] if code < len(CTRANSLATE2_TYPES) else ""
        if not dtype:
            raise DataError(f"{reader.path}: is damaged: {name} has the unknown type {code}")
        entry = StoredTensor(shape, dtype, reader.position)
        reader.skip(stored)
        storage = StoredTensor(shape, "<u2", 0) if dtype == "bfloat16" else entry
        check_entry(reader.path, name, storage, stored)
        entries[name] = entry
    for _ in range(reader.numbers("I", 1)[0] if version >= 3 else 0):
        alias, name = (reader.text(*reader.numbers("H", 1)) for _ in range(2))
        if name not in entries:
            raise DataError(f"{reader.path}: is damaged: {alias} refers to {name}, which does not exist")
        entries[alias] = entries[name]
        if f"{name}{SCALE}" in entries:
            entries[f"{alias}{SCALE}"] = entries[f"{name}{SCALE}"]
    return spec, revision, entries


# --- zip archives -----------------------------------------------------------------------------------------------


@contextmanager
def zip_errors(path: Path) -> Iterator[None]:
    """Turn the many errors of a damaged zip into one line."""
    try:
        yield
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError, struct.error) as error:
        raise DataError(f"{path}: is not a readable zip archive: {' '.join(str(error).split())[:200]}") from error


def check_expansion(path: Path, archive: zipfile.ZipFile) -> None:
    """Reject an archive whose files are together much larger than itself: a zip bomb."""
    total, size = sum(member.file_size for member in archive.infolist()), path.stat().st_size
    if total > max(MAX_EXPANSION * size, EXPANSION_GRACE):
        raise DataError(f"{path}: would expand to {total:,} bytes, {total // max(size, 1):,} times its size; rejected")

"""Sources that are neither text nor pictures: arrays (frames, width) of numbers, from files. Knows no models.

* `.npy` holds one array; `.npz` holds one, or one called "features". Whole numbers and floats become 32-bit floats.
  Pickled objects, other shapes, NaN and infinity are refused, and sizes are looked at before anything is unpacked.
* `.wav` becomes log-mel frames, see `sound`.
"""

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy
import numpy.typing
from numpy.lib import format as npy

from softgaze.data.sound import Mel, log_mel, read_wav
from softgaze.errors import DataError, absent

Array = numpy.typing.NDArray[Any]

LARGEST = 1 << 27  # numbers in one source: half a GiB, more than any attention can look at
NAME = "features"
ENDINGS = (".npy", ".npz", ".wav")


def read_features(path: Path, mel: Mel = Mel(), width: int | None = None) -> Array:
    """Frames (frames, width) of 32-bit floats from a file; `width` is the one to insist on."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise DataError(f"{path}: features are named {', '.join(ENDINGS)}, not {path.suffix or 'nothing'!r}")
    if ending == ".wav":
        sound = read_wav(path)
        with _named(path):
            return _checked(log_mel(*sound, mel), width)
    with _named(path):
        return _checked(_from_npz(path) if ending == ".npz" else _from_npy(path), width)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Whatever goes wrong becomes one line that begins with the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise absent(path) from error
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except MemoryError as error:
        raise DataError(f"{path}: does not fit into memory; cut it into parts") from error
    except Exception as error:  # numpy and zipfile meet damaged files with errors of every kind
        why = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{path}: cannot be read ({why}); write it with numpy.save and without objects") from error


def _checked(frames: Array, width: int | None) -> Array:
    """The array if it can be a source, as 32-bit floats."""
    if frames.ndim != 2 or 0 in frames.shape:
        raise DataError(f"an array of shape {frames.shape}; features are (frames, width), at least one of each")
    if frames.dtype.kind not in "fiu":
        raise DataError(f"an array of {frames.dtype}; features are real numbers")
    if width is not None and frames.shape[1] != width:
        raise DataError(f"{frames.shape[1]} numbers a frame; the others have {width}")
    with numpy.errstate(over="ignore"):  # becomes infinity, which is named below
        frames = numpy.ascontiguousarray(frames, dtype=numpy.float32)
    bad = ~numpy.isfinite(frames)
    if bad.any():
        frame, place = numpy.argwhere(bad)[0]
        raise DataError(f"frame {frame:,}, number {place:,} is {frames[frame, place]}; features are finite numbers")
    return frames


def _from_npy(path: Path) -> Array:
    with path.open("rb") as file:
        return _array(file, path.stat().st_size)


def _from_npz(path: Path) -> Array:
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        if len(members) != 1 and NAME not in members:
            raise DataError(f"holds {len(members)} arrays; keep one, or call it {NAME!r}")
        member = members.get(NAME) or next(iter(members.values()))
        with archive.open(member) as file:
            return _array(file, member.file_size)


def _array(file: IO[bytes], size: int) -> Array:
    """An array from its file of so many bytes; what the header says is held against them before any is read."""
    version = npy.read_magic(file)
    header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if header is None:
        raise DataError(f"an array in version {version} of the format; write it with numpy.save")
    shape, by_column, kind = header(file)
    count = math.prod(shape)
    if kind.hasobject:
        raise DataError("an array of objects; features are real numbers")
    if count > LARGEST or count * kind.itemsize > size - file.tell():
        raise DataError(f"an array of shape {shape} in {size:,} bytes; is it cut short?")
    numbers = numpy.frombuffer(file.read(count * kind.itemsize), dtype=kind, count=count)
    return numbers.reshape(shape, order="F" if by_column else "C")

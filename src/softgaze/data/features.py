"""Sources that are arrays (frames, width) of numbers: NumPy files, and audio files as log-mel frames.

`.npy` contains one array; `.npz` contains one, or one named "features". Integers and floats become 32-bit floats.
Pickled objects, other shapes, NaN and infinity are rejected, and sizes are checked before anything is unpacked.
"""

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from softgaze.data import audio
from softgaze.errors import DataError, ResourceError, absent

Array = npt.NDArray[Any]

MAX_NUMBERS = 1 << 27  # half a GiB per source
NAME = "features"
SUFFIXES = (".npy", ".npz", *audio.SUFFIXES)


def read_features(path: Path, mel: audio.Mel = audio.Mel(), width: int | None = None) -> Array:
    """Read frames (frames, width) as 32-bit floats; reject other widths than `width` if it is given."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{path}: expected a feature file ({', '.join(SUFFIXES)}), got {path.suffix or 'no suffix'!r}")
    sound = audio.read_audio(path) if suffix in audio.SUFFIXES else None
    try:
        if sound is not None:
            frames = audio.log_mel(*sound, mel)
        elif suffix == ".npz":
            frames = _read_npz(path)
        else:
            with path.open("rb") as file:
                frames = _read_array(file, path.stat().st_size)
        return _check(frames, width)
    except FileNotFoundError as error:
        raise absent(path) from error
    except ResourceError:
        raise
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except MemoryError as error:
        raise DataError(f"{path}: does not fit into memory; split it") from error
    except Exception as error:  # numpy and zipfile raise errors of every kind on damaged files
        why = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{path}: cannot be read ({why}); write it with numpy.save and without objects") from error


def _check(frames: Array, width: int | None) -> Array:
    if frames.ndim != 2 or 0 in frames.shape:
        raise DataError(f"expected an array of shape (frames, width), got {frames.shape}")
    if frames.dtype.kind not in "fiu":
        raise DataError(f"expected real numbers, got {frames.dtype}")
    if width is not None and frames.shape[1] != width:
        raise DataError(f"expected frames of {width} numbers, got {frames.shape[1]}")
    with np.errstate(over="ignore"):  # overflow becomes infinity, which is rejected below
        frames = np.ascontiguousarray(frames, dtype=np.float32)
    invalid = ~np.isfinite(frames)
    if invalid.any():
        frame, column = np.argwhere(invalid)[0]
        raise DataError(f"expected finite numbers, got {frames[frame, column]} in frame {frame:,}, number {column:,}")
    return frames


def _read_npz(path: Path) -> Array:
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        if len(members) != 1 and NAME not in members:
            raise DataError(f"contains {len(members)} arrays; keep one, or name it {NAME!r}")
        member = members.get(NAME) or next(iter(members.values()))
        with archive.open(member) as file:
            return _read_array(file, member.file_size)


def _read_array(file: IO[bytes], size: int) -> Array:
    """Read an array of a file of `size` bytes; its header is compared with the size before any data are read."""
    version = npy.read_magic(file)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read_header is None:
        raise DataError(f"unsupported version {version} of the array format; write it with numpy.save")
    shape, fortran_order, dtype = read_header(file)
    count = math.prod(shape)
    if dtype.hasobject:
        raise DataError("expected real numbers, got objects")
    if count > MAX_NUMBERS or count * dtype.itemsize > size - file.tell():
        raise DataError(f"an array of shape {shape} does not fit into {size:,} bytes; the file may be truncated")
    numbers = np.frombuffer(file.read(count * dtype.itemsize), dtype=dtype, count=count)
    return numbers.reshape(shape, order="F" if fortran_order else "C")

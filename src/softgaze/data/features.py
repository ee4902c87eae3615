r"""Sources that are arrays (frames, width) of numbers: NumPy files, and audio files as log-mel frames.

`.npy` contains one array; `.npz` contains one, or one named "features". Integers and floats become 32-bit floats.
Pickled objects, other shapes, NaN and infinity are rejected, and sizes are checked before anything is unpacked.

A log-mel frame is `window` seconds of sound under a Hann window, one every `hop` seconds, as many as fit. Its power
spectrum, scaled so that all bands add up to the mean square of the signal, is summed under `filters` triangles that are
evenly spaced on the mel scale, mel = 2595 log10(1 + f / 700), between `low` and `high` hertz. The frame is the natural
logarithm of that, at least log `FLOOR`. Lengths are in seconds and hertz, so the frames hardly depend on the sampling
rate; bands above half the rate are silent.

    power[k] = |Σ hann[n] · sample[n] · exp(-2πikn / N)|² · 2 / (N · Σ hann²)
    frame[b] = log max(FLOOR, Σ_k triangle[b, k] · power[k])

`soundfile` (libsndfile) reads WAV, FLAC, OGG and more; it comes with `softgaze[audio]`.
"""

import math
import zipfile
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from softgaze.errors import DataError, ResourceError, absent

Array = npt.NDArray[Any]

MAX_NUMBERS = 1 << 27  # half a GiB per source
NAME = "features"
AUDIO_SUFFIXES = (".wav", ".flac", ".ogg")
SUFFIXES = (".npy", ".npz", *AUDIO_SUFFIXES)
FLOOR = 1e-10  # less than 16-bit samples can represent
MAX_SECONDS = 3600
MAX_SAMPLES = 1 << 29  # of all channels
_RESOLUTION = 10  # hertz, at most, between two bins: the narrowest triangles are about 20 wide
_BLOCK = 256  # frames computed at once

# --- audio -------------------------------------------------------------------------------------------------------


class Mel(NamedTuple):
    """Settings of the spectrogram: seconds, number of bands, hertz."""

    window: float = 0.025
    hop: float = 0.010
    filters: int = 80
    low: float = 20.0
    high: float = 8000.0


class Sound(NamedTuple):
    """Samples (samples,) between -1 and 1, and the sampling rate in hertz."""

    samples: Array
    rate: int


def log_mel(samples: Array, rate: int, mel: Mel = Mel()) -> Array:
    """Return the frames (frames, filters) of a sound."""
    length = round(mel.window * rate)
    count = math.floor((len(samples) / rate - mel.window) / mel.hop + 1e-6) + 1
    if length < 2 or count < 1:
        seconds = len(samples) / rate
        raise DataError(f"a sound of {seconds:.3f} s at {rate:,} Hz; a frame needs {mel.window:g} s and two samples")
    starts = np.minimum(np.rint(np.arange(count) * mel.hop * rate).astype(int), len(samples) - length)
    hann = 0.5 - 0.5 * np.cos(2 * math.pi * (np.arange(length) + 0.5) / length)
    size = fft_size(rate, length)
    filters = mel_filters(rate, size, mel)
    frames = np.empty((count, mel.filters), dtype=np.float32)
    for first in range(0, count, _BLOCK):
        windows = samples[starts[first : first + _BLOCK, None] + np.arange(length)] * hann  # (block, length)
        power = abs(np.fft.rfft(windows, size)) ** 2 * 2 / (size * (hann**2).sum())  # (block, size / 2 + 1)
        frames[first : first + _BLOCK] = np.log(np.maximum(power @ filters, FLOOR))
    return frames


def fft_size(rate: int, length: int) -> int:
    """Return a power of two that covers the window and resolves the narrowest triangles."""
    return 1 << (max(length, math.ceil(rate / _RESOLUTION)) - 1).bit_length()


@cache
def mel_filters(rate: int, size: int, mel: Mel) -> Array:
    """Return the weight (size / 2 + 1, filters) of each frequency in each band."""
    lowest, highest = (2595 * math.log10(1 + hertz / 700) for hertz in (mel.low, mel.high))
    corners = 700 * (10 ** (np.linspace(lowest, highest, mel.filters + 2) / 2595) - 1)
    hertz = np.arange(size // 2 + 1)[:, None] * rate / size
    rising = (hertz - corners[:-2]) / (corners[1:-1] - corners[:-2])
    falling = (corners[2:] - hertz) / (corners[2:] - corners[1:-1])
    return np.maximum(0, np.minimum(rising, falling))


def read_audio(path: Path) -> Sound:
    """Read an audio file and average its channels."""
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: libsndfile is missing
        raise ResourceError("audio needs soundfile, which is not installed; pip install 'softgaze[audio]'") from None
    try:
        with path.open("rb") as stream, soundfile.SoundFile(stream) as file:
            seconds = file.frames / file.samplerate
            if not 0 < seconds <= MAX_SECONDS or file.frames * file.channels > MAX_SAMPLES:
                raise DataError(f"{path}: expected up to {MAX_SECONDS:,} s of sound, got {seconds:,.0f} s")
            samples = file.read(dtype="float64", always_2d=True)
            rate = file.samplerate
    except FileNotFoundError as error:
        raise absent(path) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except soundfile.SoundFileError as error:
        why = " ".join(str(getattr(error, "error_string", error)).split())
        raise DataError(f"{path}: not a readable audio file ({why}); convert it to 16-bit WAV") from error
    if not len(samples) or not np.isfinite(samples).all():
        raise DataError(f"{path}: expected finite samples; convert the file to 16-bit WAV")
    return Sound(samples.mean(axis=1, dtype=np.float64), rate)


# --- arrays ------------------------------------------------------------------------------------------------------


def read_features(path: Path, mel: Mel = Mel(), width: int | None = None) -> Array:
    """Read frames (frames, width) as 32-bit floats; reject other widths than `width` if it is given."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{path}: expected a feature file ({', '.join(SUFFIXES)}), got {path.suffix or 'no suffix'!r}")
    sound = read_audio(path) if suffix in AUDIO_SUFFIXES else None
    try:
        if sound is not None:
            frames = log_mel(*sound, mel)
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

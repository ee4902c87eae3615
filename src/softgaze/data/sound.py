r"""Sound as log-mel frames, with numpy only: what an ear would tell apart, a hundred times a second.

A frame is `window` seconds of sound under a Hann window, one every `hop` seconds; the last that fits whole is the last.
Its power spectrum, scaled so that all bands together have the mean square of what was heard, is summed under `filters`
triangles that stand evenly on the mel scale, mel = 2595 log10(1 + f / 700), each from the middle of the one below it to
the middle of the one above, between `low` and `high` hertz. The natural logarithm of that, with no power below `FLOOR`,
is the frame. All lengths are in seconds and hertz, so a sound gives nearly the same frames at every sampling rate;
bands above half the rate are silent.

    power[k] = |Σ hann[n] · sample[n] · exp(-2πikn / N)|² · 2 / (N · Σ hann²)
    frame[b] = log max(FLOOR, Σ_k triangle[b, k] · power[k])

WAV files of 8, 16, 24 and 32 bits or floats are read, with any number of channels, whose mean is taken.
"""

import math
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy
import numpy.typing

from softgaze.errors import DataError, absent

Array = numpy.typing.NDArray[Any]

FLOOR = 1e-10  # below what 16 bits can hold
LONGEST = 3600  # seconds
_RESOLUTION = 10  # hertz between two numbers of a spectrum, at most: the lowest triangles are about 20 wide
_BLOCK = 256  # frames computed at once


class Mel(NamedTuple):
    """How sound becomes frames: seconds, number of bands, hertz."""

    window: float = 0.025
    hop: float = 0.010
    filters: int = 80
    low: float = 20.0
    high: float = 8000.0

    def centres(self, frames: int) -> Array:
        """The second in the middle of each of so many frames."""
        return numpy.arange(frames) * self.hop + self.window / 2


class Sound(NamedTuple):
    """Samples (samples,) between -1 and 1, and how many there are in a second."""

    samples: Array
    rate: int


# -------------------------------------------------------------------------------------------------------------- frames


def log_mel(samples: Array, rate: int, mel: Mel = Mel()) -> Array:
    """Frames (frames, filters) of a sound."""
    length = round(mel.window * rate)
    count = math.floor((len(samples) / rate - mel.window) / mel.hop + 1e-6) + 1
    if length < 2 or count < 1:
        seconds = len(samples) / rate
        raise DataError(f"a sound of {seconds:.3f} s at {rate:,} Hz; a frame needs {mel.window:g} s and two samples")
    starts = numpy.minimum(numpy.rint(numpy.arange(count) * mel.hop * rate).astype(int), len(samples) - length)
    hann = 0.5 - 0.5 * numpy.cos(2 * math.pi * (numpy.arange(length) + 0.5) / length)
    size = spectrum_size(rate, length)
    bands = triangles(rate, size, mel)
    frames = numpy.empty((count, mel.filters), dtype=numpy.float32)
    for first in range(0, count, _BLOCK):
        heard = samples[starts[first : first + _BLOCK, None] + numpy.arange(length)] * hann  # (block, length)
        power = abs(numpy.fft.rfft(heard, size)) ** 2 * 2 / (size * (hann**2).sum())  # (block, size / 2 + 1)
        frames[first : first + _BLOCK] = numpy.log(numpy.maximum(power @ bands, FLOOR))
    return frames


def spectrum_size(rate: int, length: int) -> int:
    """Points of the transform: a power of two, no shorter than the window and fine enough for the lowest triangles."""
    return 1 << (max(length, math.ceil(rate / _RESOLUTION)) - 1).bit_length()


@cache
def triangles(rate: int, size: int, mel: Mel) -> Array:
    """The weight (size / 2 + 1, filters) of each frequency in each band."""
    lowest, highest = (2595 * math.log10(1 + hertz / 700) for hertz in (mel.low, mel.high))
    corners = 700 * (10 ** (numpy.linspace(lowest, highest, mel.filters + 2) / 2595) - 1)
    hertz = numpy.arange(size // 2 + 1)[:, None] * rate / size
    rising = (hertz - corners[:-2]) / (corners[1:-1] - corners[:-2])
    falling = (corners[2:] - hertz) / (corners[2:] - corners[1:-1])
    return numpy.maximum(0, numpy.minimum(rising, falling))


# ----------------------------------------------------------------------------------------------------------------- WAV


class _Format(NamedTuple):
    """What a WAV file says about its samples."""

    floats: bool
    channels: int
    rate: int
    bits: int


def read_wav(path: Path) -> Sound:
    """The sound in a WAV file, its channels averaged; a `DataError` if it is none, or one we do not read."""
    try:
        with path.open("rb") as file:
            return _sound(path, file, path.stat().st_size)
    except FileNotFoundError as error:
        raise absent(path) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error


def _sound(path: Path, file: BinaryIO, size: int) -> Sound:
    start = file.read(12)
    if start[:4] != b"RIFF" or start[8:] != b"WAVE":
        raise DataError(f"{path} is not WAV; convert it, for instance with ffmpeg -i {path.name} sound.wav")
    form: _Format | None = None
    for name, length in _chunks(file, size):
        if name == b"fmt ":
            form = _format(path, file.read(min(length, 40)))
        elif name == b"data" and form is not None:
            return _decoded(path, form, file, min(length, size - file.tell()))
    raise DataError(f"{path} has no sound in it ({'no data' if form else 'no format'}); is it cut short?")


def _chunks(file: BinaryIO, size: int) -> Iterator[tuple[bytes, int]]:
    """Name and length of each part of the file, with the file at its beginning."""
    place = file.tell()
    while place + 8 <= size:
        file.seek(place)
        name, length = struct.unpack("<4sI", file.read(8))
        yield name, length
        place += 8 + length + length % 2  # parts begin at even bytes


def _format(path: Path, raw: bytes) -> _Format:
    if len(raw) < 16:
        raise DataError(f"{path}: its format is cut short; convert it again")
    kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", raw[:16])
    if kind == 0xFFFE and len(raw) >= 26:  # "extensible": the kind proper comes later
        (kind,) = struct.unpack("<H", raw[24:26])
    known = {1: (8, 16, 24, 32), 3: (32, 64)}
    if bits not in known.get(kind, ()) or not channels or not rate:
        what = f"kind {kind}, {bits} bits, {channels} channels, {rate:,} Hz"
        raise DataError(f"{path}: a WAV we do not read ({what}); convert it to 16-bit PCM")
    return _Format(kind == 3, channels, rate, bits)


def _decoded(path: Path, form: _Format, file: BinaryIO, length: int) -> Sound:
    """Samples of any kind as floats, a whole number of frames of them."""
    step = form.channels * form.bits // 8
    length -= length % step
    seconds = length / step / form.rate
    if not 0 < seconds <= LONGEST:
        raise DataError(f"{path}: {seconds:,.0f} s of sound; a source is longer than 0 s and at most {LONGEST:,} s")
    raw = numpy.frombuffer(file.read(length), dtype=numpy.uint8)
    samples = _floats(raw, form) if form.floats else _integers(raw, form.bits)
    if not numpy.isfinite(samples).all():
        raise DataError(f"{path}: holds samples that are no numbers; convert it again")
    return Sound(samples.reshape(-1, form.channels).mean(axis=1, dtype=numpy.float64), form.rate)


def _floats(raw: Array, form: _Format) -> Array:
    return raw.view(f"<f{form.bits // 8}")


def _integers(raw: Array, bits: int) -> Array:
    """Between -1 and 1. Samples of 8 bits have their zero at 128; all others are signed."""
    if bits == 8:
        return (raw.astype(numpy.float64) - 128) / 128
    wide = numpy.zeros((len(raw) * 8 // bits, 4), dtype=numpy.uint8)
    wide[:, 4 - bits // 8 :] = raw.reshape(-1, bits // 8)  # the low bytes stay zero
    return wide.view("<i4")[:, 0] / float(1 << 31)

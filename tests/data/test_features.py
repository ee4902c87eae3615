"""Arrays and audio from files: read as they are, or rejected in one line; nothing is ever unpickled."""

import cmath
import io
import math
import struct
import sys
import wave
import zipfile
from contextlib import suppress

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from errors import one_line_error
from softgaze.data.features import FLOOR, Mel, fft_size, log_mel, read_audio, read_features
from softgaze.errors import DataError, ResourceError

# --- arrays -----------------------------------------------------------------------------------------------------

numbers = st.sampled_from(["<f4", ">f8", "<f2", "<i2", ">i4", "u1"]).flatmap(
    lambda kind: st_numpy.arrays(
        kind, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements={"min_value": 0, "max_value": 100}
    )
)


@given(frames=numbers, ending=st.sampled_from(["npy", "npz"]), by_column=st.booleans())
def test_what_numpy_wrote_is_read(tmp_path_factory, frames, ending, by_column):
    path = tmp_path_factory.mktemp("features") / f"a.{ending}"
    frames = np.asfortranarray(frames) if by_column else frames
    np.save(path, frames) if ending == "npy" else np.savez_compressed(path, frames)
    found = read_features(path, width=frames.shape[1])
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert np.array_equal(found, frames.astype(np.float32))


def test_of_several_arrays_the_one_called_features_is_taken(tmp_path):
    np.savez(tmp_path / "a.npz", features=np.ones((2, 3)), lengths=np.ones(2))
    assert read_features(tmp_path / "a.npz").shape == (2, 3)
    np.savez(tmp_path / "b.npz", left=np.ones((2, 3)), right=np.ones((2, 3)))
    with one_line_error(DataError, "b.npz", "2 arrays"):
        read_features(tmp_path / "b.npz")


def test_a_sound_becomes_frames_unless_it_is_too_short(tmp_path):
    samples, mel = np.random.default_rng(0).integers(-9999, 9999, 4000).astype("<i2"), Mel(filters=13)
    write_wave(tmp_path / "a.WAV", samples.tobytes())
    assert np.array_equal(read_features(tmp_path / "a.WAV", mel), log_mel(samples / 32768, 8000, mel))
    write_wave(tmp_path / "b.wav", b"\0" * 20)
    with one_line_error(DataError, "b.wav: a sound of 0.001 s"):
        read_features(tmp_path / "b.wav")


def write_wave(path, data, channels=1, rate=8000):
    """Write 16-bit samples with Python's own module."""
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(data)


class Trap:
    def __reduce__(self) -> tuple:
        return (pytest.fail, ("unpickled",))


def saved(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def spotted(value: float) -> np.ndarray:
    frames = np.zeros((4, 3))
    frames[2, 1] = value
    return frames


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (saved(np.zeros(5)), "got (5,)"),
        (saved(np.zeros((2, 3, 4))), "got (2, 3, 4)"),
        (saved(np.zeros((0, 4))), "got (0, 4)"),
        (saved(np.zeros((4, 0))), "got (4, 0)"),
        (saved(np.array(3.0)), "got ()"),
        (saved(spotted(np.nan)), "got nan in frame 2, number 1"),
        (saved(spotted(-np.inf)), "got -inf in frame 2, number 1"),
        (saved(spotted(1e300)), "got inf in frame 2, number 1"),
        (saved(np.zeros((2, 2), dtype=complex)), "real numbers"),
        (saved(np.array([["a", "b"]])), "real numbers"),
        (saved(np.array([[True]])), "real numbers"),
        (saved(np.array([[Trap()]], dtype=object)), "got objects"),
        (saved(np.zeros((50, 50)))[:-1], "truncated"),
        (b"", "cannot be read"),
        (b"not an array", "cannot be read"),
    ],
)
@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_what_cannot_be_a_source_is_one_line(tmp_path, raw, why, ending):
    path = tmp_path / f"a.{ending}"
    if ending == "npz":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("arr_0.npy", raw)
    else:
        path.write_bytes(raw)
    with one_line_error(DataError, why, path):
        read_features(path)


def test_a_header_larger_than_the_file_is_rejected_before_reading(tmp_path):
    raw = saved(np.zeros((2, 2))).replace(b"(2, 2), }" + b" " * 18, b"(2000000000, 2000000000), }")
    (tmp_path / "a.npy").write_bytes(raw)
    with one_line_error(DataError, "shape (2000000000, 2000000000) does not fit"):
        read_features(tmp_path / "a.npy")


def test_names_widths_and_absences(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 4)))
    with pytest.raises(DataError, match=r"frames of 5 numbers, got 4"):
        read_features(tmp_path / "a.npy", width=5)
    with pytest.raises(DataError, match=r"\.npy.*got '\.mp3'"):
        read_features(tmp_path / "a.mp3")
    for ending in ("npy", "npz", "wav"):
        with pytest.raises(DataError, match="does not exist"):
            read_features(tmp_path / f"gone.{ending}")
    (tmp_path / "zip.npz").write_text("no archive")
    with pytest.raises(DataError, match="not a zip file"):
        read_features(tmp_path / "zip.npz")


@pytest.mark.parametrize("ending", ["npy", "npz"])
@given(data=st.data())
def test_damaged_bytes_are_an_array_or_an_error(tmp_path_factory, ending, data):
    path = tmp_path_factory.mktemp("features") / f"a.{ending}"
    frames = np.arange(12).reshape(3, 4)
    np.save(path, frames) if ending == "npy" else np.savez(path, frames)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    with suppress(DataError):
        assert read_features(path).ndim == 2


# --- log-mel frames -----------------------------------------------------------------------------------------------

SMALL = Mel(window=0.008, hop=0.003, filters=5, low=100, high=900)


def by_the_formula(samples: list[float], rate: int, mel: Mel) -> list[list[float]]:
    """The docstring of the module, sum by sum."""
    length, hop = round(mel.window * rate), round(mel.hop * rate)
    size = fft_size(rate, length)
    hann = [math.sin(math.pi * (n + 0.5) / length) ** 2 for n in range(length)]
    steps = [
        mel_of(mel.low) + (mel_of(mel.high) - mel_of(mel.low)) * b / (mel.filters + 1) for b in range(mel.filters + 2)
    ]
    corners = [700 * (10 ** (step / 2595) - 1) for step in steps]
    frames = []
    for start in range(0, len(samples) - length + 1, hop):
        power = []
        for k in range(size // 2 + 1):
            terms = (hann[n] * samples[start + n] * cmath.exp(-2j * math.pi * k * n / size) for n in range(length))
            power.append(abs(sum(terms)) ** 2 * 2 / (size * sum(h * h for h in hann)))
        bands = []
        for low, middle, high in zip(corners, corners[1:], corners[2:], strict=False):
            weights = [triangle(k * rate / size, low, middle, high) for k in range(len(power))]
            bands.append(sum(weight * value for weight, value in zip(weights, power, strict=True)))
        frames.append([math.log(max(FLOOR, band)) for band in bands])
    return frames


def mel_of(hertz: float) -> float:
    return 2595 * math.log10(1 + hertz / 700)


def triangle(hertz: float, low: float, middle: float, high: float) -> float:
    if low <= hertz <= middle:
        return (hertz - low) / (middle - low)
    return (high - hertz) / (high - middle) if middle < hertz <= high else 0.0


def sine(hertz: float, rate: int, seconds: float = 0.5, strength: float = 0.5) -> np.ndarray:
    return strength * np.sin(2 * math.pi * hertz * np.arange(round(seconds * rate)) / rate)


def test_frames_are_those_of_the_formula():
    samples = np.random.default_rng(0).uniform(-1, 1, 40)
    assert log_mel(samples, 2000, SMALL) == pytest.approx(
        np.array(by_the_formula(list(samples), 2000, SMALL)), abs=1e-4
    )


@pytest.mark.parametrize("hertz", [300, 1000, 3000])
def test_bands_together_have_the_power_of_a_tone(hertz):
    frames = log_mel(sine(hertz, 16_000), 16_000)
    assert np.exp(frames).sum(axis=1) == pytest.approx(np.full(len(frames), 0.125), rel=0.02)
    corners = 700 * (10 ** (np.linspace(mel_of(20), mel_of(8000), 82) / 2595) - 1)
    assert set(frames.argmax(axis=1)) <= {abs(corners[1:-1] - hertz).argmin()}


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000])
def test_a_sound_gives_nearly_the_same_frames_at_every_rate(rate):
    mel = Mel(high=3_500)
    expected, found = log_mel(sine(440, 16_000), 16_000, mel), log_mel(sine(440, rate), rate, mel)
    assert found.shape == expected.shape
    loud = expected > -12
    assert abs(found - expected)[loud].max() < 0.15


def test_bands_above_half_the_rate_are_silent():
    frames = log_mel(np.random.default_rng(0).normal(size=8_000), 8_000)
    assert (frames[:, -10:] == np.float32(math.log(FLOOR))).all()
    assert (frames[:, :40] > -12).all()


@given(length=st.integers(0, 3_000), rate=st.sampled_from([8_000, 16_000, 44_100]))
def test_every_frame_that_fits_is_there(length, rate):
    mel = Mel(filters=4)
    expected = math.floor((length / rate - mel.window) / mel.hop + 1e-6) + 1
    if expected < 1:
        with pytest.raises(DataError, match=r"a frame needs 0.025 s"):
            log_mel(np.zeros(length), rate, mel)
    else:
        assert log_mel(np.zeros(length), rate, mel).shape == (expected, 4)


def test_more_frames_than_are_computed_at_once_are_the_same_frames():
    samples = np.random.default_rng(0).normal(size=8_000 * 4)
    whole = log_mel(samples, 8_000)
    assert len(whole) > 256
    assert log_mel(samples[300 * 80 :], 8_000) == pytest.approx(whole[300:], abs=1e-5)


# --- audio files -------------------------------------------------------------------------------------------------


def encoded(samples: np.ndarray, kind: int, bits: int) -> bytes:
    if kind == 3:
        return samples.astype(f"<f{bits // 8}").tobytes()
    if bits == 8:
        return np.rint(samples * 127 + 128).astype(np.uint8).tobytes()
    whole = np.rint(samples * (2 ** (bits - 1) - 1)).astype("<i8")
    return whole.view(np.uint8).reshape(-1, 8)[:, : bits // 8].tobytes()


def wav(data: bytes, kind: int = 1, channels: int = 1, rate: int = 8_000, bits: int = 16, extra: bytes = b"") -> bytes:
    frame = channels * bits // 8
    form = struct.pack("<HHIIHH", kind, channels, rate, rate * frame % 2**32, frame % 2**16, bits) + extra
    parts = b"".join(
        name + struct.pack("<I", len(part)) + part + b"\0" * (len(part) % 2)
        for name, part in ((b"LIST", b"odd"), (b"fmt ", form), (b"fact", b"1234"), (b"data", data))
    )
    return b"RIFF" + struct.pack("<I", 4 + len(parts)) + b"WAVE" + parts


@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize(("kind", "bits"), [(1, 8), (1, 16), (1, 24), (1, 32), (3, 32), (3, 64)])
def test_samples_of_every_kind_are_read(tmp_path, kind, bits, channels):
    samples = np.random.default_rng(0).uniform(-1, 1, (501, channels))
    samples[0] = 1
    samples[1] = -1
    (tmp_path / "a.wav").write_bytes(wav(encoded(samples.ravel(), kind, bits), kind, channels, 22_050, bits))
    sound = read_audio(tmp_path / "a.wav")
    assert sound.rate == 22_050
    assert sound.samples == pytest.approx(samples.mean(axis=1), abs=4 / 2**bits if kind == 1 else 1e-6)


def test_the_extensible_form_and_a_length_that_was_never_written(tmp_path):
    samples = sine(440, 8_000, 0.1)
    extra = struct.pack("<HHIH", 22, 16, 4, 1) + bytes.fromhex("000000001000800000aa00389b71")
    raw = wav(encoded(samples, 1, 16), 0xFFFE, extra=extra)
    (tmp_path / "a.wav").write_bytes(raw)
    assert read_audio(tmp_path / "a.wav").samples == pytest.approx(samples, abs=1e-4)
    start = raw.index(b"data") + 4
    (tmp_path / "b.wav").write_bytes(raw[:start] + b"\xff\xff\xff\xff" + raw[start + 4 :])  # as written to a pipe
    assert np.array_equal(read_audio(tmp_path / "b.wav").samples, read_audio(tmp_path / "a.wav").samples)


def test_python_writes_what_we_read(tmp_path):
    write_wave(tmp_path / "a.wav", struct.pack("<6h", 1000, 3000, -32768, -32768, 0, 16384), channels=2, rate=16_000)
    assert read_audio(tmp_path / "a.wav").samples == pytest.approx(np.array([2000, -32768, 8192]) / 32768)


@pytest.mark.parametrize("suffix", ["flac", "ogg"])
def test_compressed_files_are_read(tmp_path, suffix):
    soundfile.write(tmp_path / f"a.{suffix}", sine(440, 16_000), 16_000)
    sound = read_audio(tmp_path / f"a.{suffix}")
    assert sound.rate == 16_000
    assert sound.samples[100:-100] == pytest.approx(sine(440, 16_000)[100:-100], abs=0.02)


BAD = {
    "empty": b"",
    "mp3-tag": b"ID3 an mp3 file",
    "no-format": wav(b"12")[:30],
    "no-data-chunk": wav(b"")[:-8],
    "no-samples": wav(b""),
    "half-a-sample": wav(b"1"),
    "unknown-codec": wav(b"1234", kind=84),
    "no-channels": wav(b"1234", channels=0),
    "no-rate": wav(b"1234", rate=0),
    "too-long": wav(b"0" * 8002, rate=1),
    "nan": wav(struct.pack("<f", math.nan), kind=3, bits=32),
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD)
def test_a_file_without_usable_sound_is_an_error_of_one_line(tmp_path, raw):
    (tmp_path / "a.wav").write_bytes(raw)
    with one_line_error(DataError, "a.wav"):
        read_audio(tmp_path / "a.wav")


def test_a_missing_package_is_reported_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(ResourceError, match=r"softgaze\[audio\]"):
        read_audio(tmp_path / "a.wav")


@given(data=st.data())
def test_damaged_bytes_are_a_sound_or_an_error(tmp_path_factory, data):
    raw = bytearray(wav(encoded(sine(440, 8_000, 0.03), 1, 16)))
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, 70))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("sound") / "a.wav"
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    with suppress(DataError):
        log_mel(*read_audio(path), Mel(filters=4))

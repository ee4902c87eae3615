"""Arrays from files: taken as they are, or one line says why not; nothing is ever unpickled."""

import io
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from softgaze.data.audio import Mel, log_mel
from softgaze.data.features import read_features
from softgaze.errors import DataError

numbers = st.sampled_from(["<f4", ">f8", "<f2", "<i2", ">i4", "u1"]).flatmap(
    lambda kind: st_numpy.arrays(
        kind, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements={"min_value": 0, "max_value": 100}
    )
)


@given(frames=numbers, ending=st.sampled_from(["npy", "npz"]), by_column=st.booleans())
def test_what_numpy_wrote_is_read(
    tmp_path_factory: pytest.TempPathFactory, frames: np.ndarray, ending: str, by_column: bool
) -> None:
    path = tmp_path_factory.mktemp("features") / f"a.{ending}"
    frames = np.asfortranarray(frames) if by_column else frames
    np.save(path, frames) if ending == "npy" else np.savez_compressed(path, frames)
    found = read_features(path, width=frames.shape[1])
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert np.array_equal(found, frames.astype(np.float32))


def test_of_several_arrays_the_one_called_features_is_taken(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", features=np.ones((2, 3)), lengths=np.ones(2))
    assert read_features(tmp_path / "a.npz").shape == (2, 3)
    np.savez(tmp_path / "b.npz", left=np.ones((2, 3)), right=np.ones((2, 3)))
    with pytest.raises(DataError, match=r"b.npz: contains 2 arrays; keep one, or name it 'features'"):
        read_features(tmp_path / "b.npz")


def test_a_sound_becomes_frames(tmp_path: Path) -> None:
    import wave

    samples = np.random.default_rng(0).integers(-9999, 9999, 4000).astype("<i2")
    with wave.open(str(tmp_path / "a.WAV"), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    mel = Mel(filters=13)
    assert np.array_equal(read_features(tmp_path / "a.WAV", mel), log_mel(samples / 32768, 8000, mel))


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
def test_what_cannot_be_a_source_is_one_line(tmp_path: Path, raw: bytes, why: str, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    if ending == "npz":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("arr_0.npy", raw)
    else:
        path.write_bytes(raw)
    with pytest.raises(DataError) as caught:
        read_features(path)
    assert why in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_header_larger_than_the_file_is_rejected_before_reading(tmp_path: Path) -> None:
    raw = saved(np.zeros((2, 2))).replace(b"(2, 2), }" + b" " * 18, b"(2000000000, 2000000000), }")
    (tmp_path / "a.npy").write_bytes(raw)
    with pytest.raises(DataError, match=r"shape \(2000000000, 2000000000\) does not fit"):
        read_features(tmp_path / "a.npy")


def test_names_widths_and_absences(tmp_path: Path) -> None:
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


def test_a_sound_that_is_too_short_is_reported_with_its_file(tmp_path: Path) -> None:
    import wave

    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(b"\0" * 20)
    with pytest.raises(DataError, match=r"a.wav: a sound of 0.001 s"):
        read_features(tmp_path / "a.wav")


@pytest.mark.parametrize("ending", ["npy", "npz"])
@given(data=st.data())
def test_damaged_bytes_are_an_array_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, ending: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("features") / f"a.{ending}"
    frames = np.arange(12).reshape(3, 4)
    np.save(path, frames) if ending == "npy" else np.savez(path, frames)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    with suppress(DataError):
        assert read_features(path).ndim == 2

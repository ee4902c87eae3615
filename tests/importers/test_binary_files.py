"""Readers of foreign weights return the written values, and one-line errors for every damaged file."""

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from importers.foreign_files import (
    FLOAT32,
    INTGEMM8,
    INTGEMM16,
    marian_bytes,
    write_ctranslate2,
    write_marian,
    write_npz,
)
from softgaze.errors import DataError
from softgaze.importers.binary_files import CTranslate2Binary, MarianBinary, MarianNpz, open_marian

SETTINGS = {"type": "transformer", "dim-emb": 4}
DICE = np.random.default_rng(0)
TENSORS = {
    "Wemb": DICE.normal(size=(5, 4)).astype(np.float32),
    "encoder_l1_self_Wq": DICE.normal(size=(4, 3)).astype(np.float32),
    "encoder_l1_self_bq": DICE.normal(size=(1, 4)).astype(np.float32),
}
INTEGERS = DICE.integers(-127, 128, size=(3, 4))
HALF = DICE.normal(size=(2, 3)).astype(np.float16)
VARIABLES = {
    "encoder/num_heads": ("int16", np.array(2, "<i2")),
    "encoder/layer_norm/gamma": ("float32", TENSORS["encoder_l1_self_bq"][0]),
    "decoder/a/weight": ("int8", INTEGERS.astype(np.int8)),
    "decoder/a/weight_scale": ("float32", np.array([2.0, 3.0, 5.0], np.float32)),
    "decoder/b/weight": ("int16", INTEGERS.astype("<i2")),
    "decoder/b/weight_scale": ("float32", np.array(7.0, np.float32)),
    "decoder/c/weight": ("float16", HALF),
    "decoder/d/weight": ("bfloat16", (HALF.astype(np.float32).view(np.uint32) >> 16).astype("<u2")),
}
MAX_MEMORY = 1 << 22  # bytes; the files have thousands


# --- values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("matrices", [FLOAT32, INTGEMM8, INTGEMM16])
def test_a_marian_binary_holds_what_was_written(tmp_path, matrices):
    expected = write_marian(tmp_path / "model.bin", TENSORS, SETTINGS, matrices)
    file = open_marian(tmp_path / "model.bin")
    assert isinstance(file, MarianBinary)
    assert file.settings() == SETTINGS
    assert dict(file.shapes) == {name: values.shape for name, values in TENSORS.items()}
    for name, values in expected.items():
        np.testing.assert_array_equal(file.read(name), values)
        tolerance = {FLOAT32: 0, INTGEMM8: 0.02, INTGEMM16: 1e-4}[matrices]
        np.testing.assert_allclose(file.read(name), TENSORS[name], atol=tolerance)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_npz_holds_what_was_written(tmp_path, save):
    fortran = np.asfortranarray(TENSORS["encoder_l1_self_Wq"])
    path = write_npz(tmp_path / "model.npz", TENSORS | {"fortran": fortran}, SETTINGS)
    if save is np.savez_compressed:
        save(path, **np.load(path))
    file = open_marian(path)
    assert isinstance(file, MarianNpz)
    assert file.settings() == SETTINGS
    assert file.shapes.keys() == TENSORS.keys() | {"fortran"}
    for name, values in (TENSORS | {"fortran": fortran}).items():
        np.testing.assert_array_equal(file.read(name), values)


@pytest.mark.parametrize("version", [3, 4, 6])
def test_a_ctranslate2_file_holds_what_was_written(tmp_path, version):
    variables = {
        name: entry for name, entry in VARIABLES.items() if version >= 4 or "float16" not in entry[0]
    }  # before version 4 the size of an item was its type
    file = CTranslate2Binary(
        write_ctranslate2(tmp_path / "model.bin", variables, {"alias/weight": "decoder/a/weight"}, version)
    )
    assert (file.spec, file.revision) == ("TransformerSpec", 7)
    assert file.number("encoder/num_heads", 0) == 2
    assert file.number("encoder/absent", 5) == 5
    rows = np.array([[2.0], [3.0], [5.0]])
    np.testing.assert_allclose(file.read("decoder/a/weight"), INTEGERS / rows, rtol=1e-6)
    np.testing.assert_allclose(file.read("decoder/b/weight"), INTEGERS / 7.0, rtol=1e-6)
    if version >= 4:
        np.testing.assert_array_equal(file.read("decoder/c/weight"), HALF.astype(np.float32))
        np.testing.assert_allclose(file.read("decoder/d/weight"), HALF.astype(np.float32), rtol=1e-2)
    np.testing.assert_array_equal(file.read("alias/weight"), file.read("decoder/a/weight"))


# --- damage -----------------------------------------------------------------------------------------------------


def written(kind: str, folder: Path) -> bytes:
    path = folder / "model"
    if kind == "bin":
        write_marian(path, TENSORS, SETTINGS)
    elif kind == "npz":
        write_npz(folder / "model.npz", TENSORS, SETTINGS)
        return (folder / "model.npz").read_bytes()
    else:
        write_ctranslate2(path, VARIABLES, {"alias": "decoder/a/weight"})
    return path.read_bytes()


def read_all(kind: str, path: Path) -> dict[str, np.ndarray]:
    file = CTranslate2Binary(path) if kind == "ctranslate2" else open_marian(path)
    if not isinstance(file, CTranslate2Binary):
        file.settings()
    return {name: file.read(name) for name in file.shapes}


def outcome(kind: str, path: Path, data: bytes) -> str:
    """Read a damaged file: return the error of one line, or nothing; never take much memory."""
    path.write_bytes(data)
    message = ""
    tracemalloc.start()
    try:
        read_all(kind, path)
    except DataError as error:
        message = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MAX_MEMORY
    assert "\n" not in message
    assert len(message) < 600
    assert not message or path.name in message
    return message


KINDS = pytest.mark.parametrize("kind", ["bin", "npz", "ctranslate2"])


@KINDS
def test_a_file_cut_anywhere_is_rejected(tmp_path, kind):
    data = written(kind, tmp_path)
    assert not outcome(kind, tmp_path / "whole", data)
    for length in range(len(data)):
        assert outcome(kind, tmp_path / "cut", data[:length]), length


@KINDS
@settings(max_examples=100, deadline=None)
@given(changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=8))
def test_changed_bytes_never_crash_a_reader(tmp_path_factory, kind, changes):
    folder = tmp_path_factory.mktemp("changed")
    data = bytearray(written(kind, folder))
    for where, value in changes:
        data[int(where * len(data))] = value
    outcome(kind, folder / "changed", bytes(data))


@KINDS
def test_every_byte_of_a_header_may_be_wrong(tmp_path, kind):
    data = written(kind, tmp_path)
    for position in range(min(len(data), 900)):
        for value in (0x00, 0xFF):
            outcome(kind, tmp_path / "changed", data[:position] + bytes([value]) + data[position + 1 :])


# --- hostile files ----------------------------------------------------------------------------------------------


def refused(kind: str, path: Path, data: bytes, *words: str) -> None:
    message = outcome(kind, path, data)
    for word in words:
        assert word in message


def test_headers_that_announce_too_much_are_rejected_before_memory_is_taken(tmp_path):
    path = tmp_path / "huge"
    refused("bin", path, struct.pack("<QQ", 1, 1 << 60), "truncated")
    refused("bin", path, marian_bytes([("w", FLOAT32, (1 << 30, 1 << 30), b"1234")]), "does not fit")
    refused("bin", path, marian_bytes([("w", FLOAT32, (-1, -1), b"1234")]), "does not fit")
    refused("bin", path, marian_bytes([("w", 0x5101, (1, 1), b"1234")]), "0x5101")
    refused("ctranslate2", path, struct.pack("<IH", 6, 3) + b"ab\0" + struct.pack("<II", 7, 1 << 31), "truncated")


def npz_of(content: bytes, **options) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        archive.writestr("Wemb.npy", content)
    return buffer.getvalue()


def test_a_zip_bomb_is_rejected(tmp_path):
    bomb = npz_of(bytes(1 << 26), compression=zipfile.ZIP_DEFLATED)
    refused("npz", tmp_path / "bomb.npz", bomb, "would expand to 67,108,864 bytes")


def test_pickled_arrays_are_rejected(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}], dtype=object), allow_pickle=True)
    refused("npz", tmp_path / "pickle.npz", npz_of(buffer.getvalue()), "Wemb.npy", "no readable header")


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_multiplier_must_be_positive(tmp_path, value):
    data = marian_bytes(
        [("w", INTGEMM8, (2, 1), b"\1\2" + struct.pack("<f", value)), ("special:model.yml", 0x101, (2,), b"{}")]
    )
    refused("bin", tmp_path / "model.bin", data, "multiplier")


def test_values_must_be_finite(tmp_path):
    write_npz(tmp_path / "model.npz", {"Wemb": np.array([1.0, np.inf], np.float32)}, SETTINGS)
    refused("npz", tmp_path / "copy", (tmp_path / "model.npz").read_bytes(), "Wemb", "infinite")


@pytest.mark.parametrize("text", [b"\xff\xfe", b"[1, 2]", b"a: [", b"[" * 400, b"!!python/object/apply:os.getcwd []"])
def test_settings_that_are_none_are_rejected(tmp_path, text):
    refused(
        "bin",
        tmp_path / "model.bin",
        marian_bytes([("special:model.yml", 0x101, (len(text),), text)]),
        "special:model.yml",
    )

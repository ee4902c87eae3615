"""Files on disk and in other storage behave alike; texts are read from text files and Parquet."""

import gzip
import os

import pytest

pytest.importorskip("pyarrow", reason="needs softgaze[scale]")
import pyarrow
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.parquet import write_table

from softgaze.data.corpus import LineError, read_lines
from softgaze.errors import DataError, ResourceError, UsageError
from softgaze.scale.storage import StoragePath, list_inputs, read_texts


@pytest.fixture(params=["", "file://", "local://", "memory://"])
def root(request, tmp_path):
    """A path, a URL for Arrow, and URLs for fsspec on disk and in memory."""
    return f"{request.param}{tmp_path}"


def test_written_files_are_read(root):
    path = StoragePath.of(f"{root}/deep/down/a.txt")
    assert not path.is_file()
    path.write(b"one\ntwo")
    assert path.is_file()
    assert not path.is_directory()
    assert (path.size(), path.read(), path.name) == (7, b"one\ntwo", "a.txt")
    path.write(b"new")
    assert path.read() == b"new"
    path.remove()
    assert not path.is_file()


def test_directories_are_listed_and_removed(root):
    directory = StoragePath.of(f"{root}/some/")
    assert directory.names() == []
    for name in ("b", "a", "c.txt"):
        directory.child(name).write(b"x")
    directory.child("inner").child("d").write(b"x")
    assert directory.is_directory()
    assert directory.names() == ["a", "b", "c.txt"]
    directory.remove()
    assert directory.names() == []


def test_compression_by_suffix(root):
    path = StoragePath.of(f"{root}/a.txt.gz")
    path.write("줄\n".encode() * 1000)
    assert path.size() < 1000
    assert path.read() == "줄\n".encode() * 1000


def test_gzip_files(tmp_path):
    with gzip.open(tmp_path / "a.gz", "wb") as file:
        file.write(b"text")
    assert StoragePath.of(str(tmp_path / "a.gz")).read() == b"text"
    (tmp_path / "b.gz").write_bytes((tmp_path / "a.gz").read_bytes()[:-9])
    with pytest.raises(DataError, match=r"b\.gz: cannot be read"):
        StoragePath.of(str(tmp_path / "b.gz")).read()


def test_missing_file(root):
    with pytest.raises(DataError, match=r"a\.txt does not exist"):
        StoragePath.of(f"{root}/a.txt").read()


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = StoragePath.of(str(tmp_path / "a.txt"))
    path.write(b"old")
    with pytest.raises(ZeroDivisionError), path.create() as file:
        file.write(b"new" * (1 // 0))
    assert path.read() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_unknown_storage():
    with pytest.raises(UsageError, match="nowhere://a"):
        StoragePath.of("nowhere://a").read()


def test_unwritable_path(tmp_path):
    (tmp_path / "file").write_text("")
    for url in (f"{tmp_path}/file/a", f"file://{tmp_path}/file/a"):
        with pytest.raises(ResourceError, match="cannot be written"):
            StoragePath.of(url).write(b"x")


def test_relative_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = StoragePath.of("a.txt")
    monkeypatch.chdir("/")
    path.write(b"x")
    assert (tmp_path / "a.txt").exists()


# --- input ------------------------------------------------------------------------------------------------------


def texts(path, language="en"):
    return list(read_texts(StoragePath.of(str(path)), language))


def test_a_directory_stands_for_its_files(tmp_path):
    for name in ("b.txt", "a.txt", ".hidden", "_SUCCESS"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "below").mkdir()
    (tmp_path / "z").write_text("x\n")
    files = list_inputs([str(tmp_path / "z"), str(tmp_path)])
    assert [path.name for path in files] == ["z", "a.txt", "b.txt", "z"]


def test_missing_inputs(tmp_path):
    with pytest.raises(DataError, match="no input files"):
        list_inputs([str(tmp_path)])
    with pytest.raises(DataError, match="nothing does not exist"):
        list_inputs([str(tmp_path / "nothing")])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0")), max_size=8))
def test_lines_equal_those_of_the_corpus_reader(tmp_path_factory, some):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes("".join(f"{line}\n" for line in ["first", *some]).encode())
    assert texts(path) == list(read_lines(path))
    with gzip.open(path.with_suffix(".gz"), "wb") as file:
        file.write(path.read_bytes())
    assert texts(path.with_suffix(".gz")) == texts(path)


def test_invalid_utf8_is_located(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\n\xff\n")
    with pytest.raises(LineError, match=r"a\.txt, line 2, byte 4: not UTF-8"):
        texts(tmp_path / "a.txt")


def test_empty_file(tmp_path):
    (tmp_path / "a.txt").touch()
    assert texts(tmp_path / "a.txt") == []


def table(path, **columns):
    write_table(pyarrow.table(columns), path, row_group_size=2)
    return path


def test_every_parquet_row_is_one_text(tmp_path):
    some = ["one\ntwo", "", "세 개", "\r\u2028", "five"]
    path = table(tmp_path / "a.parquet", source=pyarrow.array([*some, None]), score=[1.0] * 6)
    assert texts(path) == [*some, ""]


@pytest.mark.parametrize(
    ("columns", "chosen"),
    [
        ({"de": ["b"], "en": ["a"]}, "a"),
        ({"en": ["b"], "source": ["a"]}, "a"),
        ({"number": [1], "anything": ["a"]}, "a"),
        ({"text": pyarrow.array(["a"], pyarrow.large_string()), "other": ["b"]}, "a"),
    ],
)
def test_selection_of_the_column(tmp_path, columns, chosen):
    assert texts(table(tmp_path / "a.parquet", **columns)) == [chosen]


@pytest.mark.parametrize("columns", [{"de": ["b"], "fr": ["a"]}, {"number": [1]}])
def test_ambiguous_columns(tmp_path, columns):
    with pytest.raises(DataError, match=r"a\.parquet.*column"):
        texts(table(tmp_path / "a.parquet", **columns))


def test_invalid_parquet(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read as Parquet"):
        texts(tmp_path / "a.parquet")

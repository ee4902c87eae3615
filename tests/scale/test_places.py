"""Files on a disk and elsewhere are read and written alike."""

import gzip
import os

import pytest

pytest.importorskip("pyarrow", reason="needs softgaze[scale]")

from softgaze.errors import DataError, ResourceError, UsageError
from softgaze.scale.places import Place


@pytest.fixture(params=["", "file://", "local://", "memory://"])
def root(request, tmp_path):
    """By path; by URL to Arrow; by URL to fsspec, on the disk and in memory."""
    return f"{request.param}{tmp_path}"


def test_what_is_written_is_read(root):
    place = Place.of(f"{root}/deep/down/a.txt")
    assert not place.is_file()
    place.write(b"one\ntwo")
    assert place.is_file()
    assert not place.is_directory()
    assert (place.size(), place.read(), place.name) == (7, b"one\ntwo", "a.txt")
    place.write(b"new")
    assert place.read() == b"new"
    place.remove()
    assert not place.is_file()


def test_a_directory_lists_its_files_and_goes_with_them(root):
    directory = Place.of(f"{root}/some/")
    assert directory.names() == []
    for name in ("b", "a", "c.txt"):
        directory.child(name).write(b"x")
    directory.child("inner").child("d").write(b"x")
    assert directory.is_directory()
    assert directory.names() == ["a", "b", "c.txt"]
    directory.remove()
    assert directory.names() == []


def test_names_say_what_is_compressed(root):
    place = Place.of(f"{root}/a.txt.gz")
    place.write("줄\n".encode() * 1000)
    assert place.size() < 1000
    assert place.read() == "줄\n".encode() * 1000


def test_what_gzip_made_is_read(tmp_path):
    with gzip.open(tmp_path / "a.gz", "wb") as file:
        file.write(b"text")
    assert Place.of(str(tmp_path / "a.gz")).read() == b"text"
    (tmp_path / "b.gz").write_bytes((tmp_path / "a.gz").read_bytes()[:-9])
    with pytest.raises(DataError, match=r"b\.gz cannot be read"):
        Place.of(str(tmp_path / "b.gz")).read()


def test_what_is_not_there_is_named(root):
    with pytest.raises(DataError, match=r"a\.txt does not exist"):
        Place.of(f"{root}/a.txt").read()


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    place = Place.of(str(tmp_path / "a.txt"))
    place.write(b"old")
    with pytest.raises(ZeroDivisionError), place.filling() as file:
        file.write(b"new" * (1 // 0))
    assert place.read() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_storage_nobody_knows_is_one_line():
    with pytest.raises(UsageError, match="nowhere://a: cannot be reached"):
        Place.of("nowhere://a").read()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    for url in (f"{tmp_path}/file/a", f"file://{tmp_path}/file/a"):
        with pytest.raises(ResourceError, match="cannot be written"):
            Place.of(url).write(b"x")


def test_a_relative_path_means_the_same_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = Place.of("a.txt")
    monkeypatch.chdir("/")
    place.write(b"x")
    assert (tmp_path / "a.txt").exists()

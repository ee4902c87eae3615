import hashlib
import os
from contextlib import suppress

import pytest

from softgaze.errors import ResourceError
from softgaze.files import TEMPORARY, new_directory, remove, sha256_of, write_bytes, write_text


def test_sha256_is_that_of_the_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 300_000)
    assert sha256_of(tmp_path / "a") == hashlib.sha256(b"x" * 300_000).hexdigest()


def test_write_replaces_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    for content in ("one", "두 번째\r\n", ""):
        write_text(path, content)
        assert path.read_bytes() == content.encode()
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, name):
    path = tmp_path / "a"
    write_bytes(path, b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(ResourceError, match=r"a: cannot be written: No space left on device"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"


def test_writing_where_there_is_no_directory_is_one_line(tmp_path):
    with pytest.raises(ResourceError, match="cannot be written: No such file"):
        write_bytes(tmp_path / "no" / "a", b"")


def test_a_new_directory_appears_when_it_is_full(tmp_path):
    path = tmp_path / "a"
    with new_directory(path) as place:
        (place / "inner").mkdir()
        (place / "inner" / "file").write_text("x")
        assert not path.exists()
    assert (path / "inner" / "file").read_text() == "x"
    assert os.listdir(tmp_path) == ["a"]


def test_a_new_directory_replaces_the_old_one_whole(tmp_path):
    for name in ("one", "two"):
        with new_directory(tmp_path / "a") as place:
            (place / name).touch()
    assert os.listdir(tmp_path / "a") == ["two"]


def test_a_directory_that_was_never_finished_leaves_the_old_one(tmp_path):
    with new_directory(tmp_path / "a") as place:
        (place / "old").touch()
    with suppress(ValueError), new_directory(tmp_path / "a") as place:
        (place / "new").touch()
        raise ValueError
    assert os.listdir(tmp_path / "a") == ["old"]
    assert os.listdir(tmp_path) == ["a"]


def test_what_a_crash_left_behind_is_no_obstacle(tmp_path):
    left = tmp_path / f"{TEMPORARY}a"
    left.mkdir()
    (left / "half").touch()
    with new_directory(tmp_path / "a") as place:
        (place / "whole").touch()
    assert os.listdir(tmp_path / "a") == ["whole"]


def test_remove_takes_what_may_not_be_there(tmp_path):
    remove(tmp_path / "nothing")
    (tmp_path / "a" / "b").mkdir(parents=True)
    remove(tmp_path / "a")
    assert not (tmp_path / "a").exists()

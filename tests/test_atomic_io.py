import hashlib
import json
import os
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.atomic_io import TEMPORARY, new_directory, open_resumable, remove, sha256_of, write_bytes, write_text
from softgaze.errors import ResourceError, UsageError


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


def test_a_new_directory_appears_when_it_is_complete_and_replaces_the_old_one(tmp_path):
    path, leftover = tmp_path / "a", tmp_path / f"{TEMPORARY}a"
    leftover.mkdir()
    (leftover / "of a crash").touch()
    with new_directory(path) as directory:
        (directory / "inner").mkdir()
        (directory / "inner" / "file").write_text("x")
        assert not path.exists()
    assert (path / "inner" / "file").read_text() == "x"
    with new_directory(path) as directory:
        (directory / "second").touch()
    with suppress(ValueError), new_directory(path) as directory:
        (directory / "never finished").touch()
        raise ValueError
    assert os.listdir(path) == ["second"]
    assert os.listdir(tmp_path) == ["a"]


def test_remove_takes_what_may_not_be_there(tmp_path):
    remove(tmp_path / "nothing")
    (tmp_path / "a" / "b").mkdir(parents=True)
    remove(tmp_path / "a")
    assert not (tmp_path / "a").exists()


# --- resumable output -------------------------------------------------------------------------------------------

LINES = [f"line {number} 줄\n".encode() for number in range(20)]


class CrashError(Exception):
    """The machine stops."""


def write(path, inputs, *, window=3, crash_after=None):
    """Write all lines, or until the crash; return how many an earlier run had completed."""
    with open_resumable(path, inputs) as output:
        for number, line in enumerate(LINES[output.lines :], 1):
            if crash_after is not None and number > crash_after:
                output.file.write(b"half a li")
                raise CrashError
            output.file.write(line)
            if number % window == 0:
                output.checkpoint(number)
        return output.lines


@given(crashes=st.lists(st.integers(0, 20), max_size=5), window=st.integers(1, 7))
def test_crashed_and_resumed_equals_undisturbed(tmp_path_factory, crashes, window):
    path = tmp_path_factory.mktemp("output") / "out.txt"
    for after in crashes:
        if path.exists():
            break
        try:
            write(path, {"input": "a"}, window=window, crash_after=after)
        except CrashError:
            assert not path.exists()
    if not path.exists():
        write(path, {"input": "a"}, window=window)
    assert path.read_bytes() == b"".join(LINES)
    assert [each.name for each in path.parent.iterdir()] == ["out.txt"]


def test_a_run_resumes_after_whole_windows(tmp_path):
    with pytest.raises(CrashError):
        write(tmp_path / "out.txt", {}, crash_after=8)
    assert write(tmp_path / "out.txt", {}) == 6


def test_other_inputs_start_over(tmp_path):
    with pytest.raises(CrashError):
        write(tmp_path / "out.txt", {"input": "a"}, crash_after=8)
    assert write(tmp_path / "out.txt", {"input": "b"}) == 0
    assert (tmp_path / "out.txt").read_bytes() == b"".join(LINES)


@pytest.mark.parametrize("spoil", ["record", "part", "shorter", "lines"])
def test_a_damaged_record_or_part_starts_over(tmp_path, spoil):
    path, part, record = (tmp_path / name for name in ("out.txt", "out.txt.part", "out.txt.part.json"))
    with pytest.raises(CrashError):
        write(path, {}, crash_after=8)
    if spoil == "record":
        record.write_text("{")
    elif spoil == "part":
        part.unlink()
    elif spoil == "shorter":
        part.write_bytes(part.read_bytes()[:10])
    else:
        record.write_text(json.dumps({"inputs": {}, "bytes": 3}))
    assert write(path, {}) == 0
    assert path.read_bytes() == b"".join(LINES)


def test_a_crash_before_the_first_checkpoint_leaves_nothing(tmp_path):
    with pytest.raises(CrashError):
        write(tmp_path / "out.txt", {}, crash_after=1)
    assert list(tmp_path.iterdir()) == []


def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path):
    (tmp_path / "out.txt").write_text("old")
    with pytest.raises(CrashError):
        write(tmp_path / "out.txt", {}, crash_after=8)
    assert (tmp_path / "out.txt").read_text() == "old"


def test_a_directory_is_rejected(tmp_path):
    with pytest.raises(UsageError, match="is a directory"), open_resumable(tmp_path, {}):
        pass

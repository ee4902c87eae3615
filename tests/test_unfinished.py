"""Output that goes on: whatever happens on the way, the end is that of an undisturbed run."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.errors import UsageError
from softgaze.unfinished import going_on

LINES = [f"line {number} 줄\n".encode() for number in range(20)]


class Crash(Exception):  # noqa: N818
    """Somebody pulled the plug."""


def write(path, made_from, *, window=3, crash_after=None):
    """All lines, or until the crash; how many were there already."""
    with going_on(path, made_from) as unfinished:
        for number, line in enumerate(LINES[unfinished.lines :], 1):
            if crash_after is not None and number > crash_after:
                unfinished.file.write(b"half a li")
                raise Crash
            unfinished.file.write(line)
            if number % window == 0:
                unfinished.keep(number)
        return unfinished.lines


@given(crashes=st.lists(st.integers(0, 20), max_size=5), window=st.integers(1, 7))
def test_crashed_and_run_again_is_undisturbed(tmp_path_factory, crashes, window):
    path = tmp_path_factory.mktemp("unfinished") / "out.txt"
    for after in crashes:
        if path.exists():
            break
        try:
            write(path, {"input": "a"}, window=window, crash_after=after)
        except Crash:
            assert not path.exists()
    if not path.exists():
        write(path, {"input": "a"}, window=window)
    assert path.read_bytes() == b"".join(LINES)
    assert [each.name for each in path.parent.iterdir()] == ["out.txt"]


def test_only_whole_windows_are_gone_on_from(tmp_path):
    with pytest.raises(Crash):
        write(tmp_path / "out.txt", {}, crash_after=8)
    assert write(tmp_path / "out.txt", {}) == 6


def test_what_was_made_from_something_else_is_begun_anew(tmp_path):
    with pytest.raises(Crash):
        write(tmp_path / "out.txt", {"input": "a"}, crash_after=8)
    assert write(tmp_path / "out.txt", {"input": "b"}) == 0
    assert (tmp_path / "out.txt").read_bytes() == b"".join(LINES)


@pytest.mark.parametrize("spoil", ["note", "part", "shorter", "lines"])
def test_a_damaged_note_or_part_is_begun_anew(tmp_path, spoil):
    path, part, note = (tmp_path / name for name in ("out.txt", "out.txt.part", "out.txt.part.json"))
    with pytest.raises(Crash):
        write(path, {}, crash_after=8)
    if spoil == "note":
        note.write_text("{")
    elif spoil == "part":
        part.unlink()
    elif spoil == "shorter":
        part.write_bytes(part.read_bytes()[:10])
    else:
        note.write_text(json.dumps({"made_from": {}, "bytes": 3}))
    assert write(path, {}) == 0
    assert path.read_bytes() == b"".join(LINES)


def test_a_crash_before_anything_was_kept_leaves_nothing(tmp_path):
    with pytest.raises(Crash):
        write(tmp_path / "out.txt", {}, crash_after=1)
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_before_stays_until_all_is_done(tmp_path):
    (tmp_path / "out.txt").write_text("old")
    with pytest.raises(Crash):
        write(tmp_path / "out.txt", {}, crash_after=8)
    assert (tmp_path / "out.txt").read_text() == "old"


def test_a_directory_is_refused(tmp_path):
    with pytest.raises(UsageError, match="is a directory"), going_on(tmp_path, {}):
        pass

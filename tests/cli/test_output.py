"""Output helpers: files, progress, tables, JSON lines."""

import io
import json
import os
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from softgaze.cli._output import json_line, open_output, progress, table_text


@given(st.recursive(st.text(), lambda values: st.lists(values) | st.dictionaries(st.text(), values)))
def test_a_json_line_is_one_printable_line_with_the_same_meaning(record):
    line = json_line(record)
    assert len(line.splitlines()) == 1
    assert not {"\x1b", "\x9b", "\u202e"} & set(line)
    assert json.loads(line) == record


def test_a_table_is_aligned_and_never_cut_in_a_pipe():
    rows = [("a" * 300, "1"), ("[bold]b[/]", "1,000")]
    header, *lines = table_text(rows, header=("name", "count"), numbers_from=1).splitlines()
    assert header.startswith("name")
    assert [line.split() for line in lines] == [list(row) for row in rows]
    assert len({len(line) for line in (header, *lines)}) == 1
    assert table_text([]) == ""


def test_a_link_is_followed_and_a_device_not_replaced(tmp_path):
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with open_output(tmp_path / "link") as file:
        file.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"
    with open_output(Path(os.devnull)) as file:
        file.write(b"x")
    assert not Path(os.devnull).is_file()


# --- progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_only(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress(10) as advance:
        advance(5)
    assert sys.stderr.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress(10, enabled=False) as advance:
        advance(5)
    assert sys.stderr.getvalue() == ""
    with progress(2000) as advance:
        advance(1500)
    assert "1,500 lines" in sys.stderr.getvalue()
    assert " left" in sys.stderr.getvalue()


def test_logged_progress_has_lines_with_speed_and_remaining_time(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr("softgaze.cli._output.LOG_SECONDS", 0.0)
    with progress(8, "images", logged=True) as advance:
        advance(3)
        advance(5)
    first, last = sys.stderr.getvalue().splitlines()
    assert first.startswith("3 of 8 images, ")
    assert first.endswith(" left")
    assert last.startswith("8 of 8 images, ")
    assert " left" not in last

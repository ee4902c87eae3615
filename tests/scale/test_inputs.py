"""Files and directories, lines and cells, in the order they were named."""

import gzip

import pytest

pytest.importorskip("pyarrow", reason="needs softgaze[scale]")
import pyarrow
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.parquet import write_table

from softgaze.data.corpus import LineError, read_lines
from softgaze.errors import DataError
from softgaze.scale.inputs import files_of, texts_of
from softgaze.scale.places import Place


def texts(path, language="en"):
    return list(texts_of(Place.of(str(path)), language))


def test_a_directory_stands_for_its_files_by_name(tmp_path):
    for name in ("b.txt", "a.txt", ".hidden", "_SUCCESS"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "below").mkdir()
    (tmp_path / "z").write_text("x\n")
    found = files_of([str(tmp_path / "z"), str(tmp_path)])
    assert [each.name for each in found] == ["z", "a.txt", "b.txt", "z"]


def test_nothing_to_read_is_said(tmp_path):
    with pytest.raises(DataError, match="no files are there"):
        files_of([str(tmp_path)])
    with pytest.raises(DataError, match="nothing does not exist"):
        files_of([str(tmp_path / "nothing")])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0")), max_size=8))
def test_lines_are_those_of_one_machine(tmp_path_factory, some):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes("".join(f"{line}\n" for line in ["first", *some]).encode())
    assert texts(path) == list(read_lines(path))
    with gzip.open(path.with_suffix(".gz"), "wb") as file:
        file.write(path.read_bytes())
    assert texts(path.with_suffix(".gz")) == texts(path)


def test_a_line_that_is_no_text_is_named(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\n\xff\n")
    with pytest.raises(LineError, match=r"a\.txt, line 2, byte 4: not UTF-8"):
        texts(tmp_path / "a.txt")


def test_an_empty_file_has_no_lines(tmp_path):
    (tmp_path / "a.txt").touch()
    assert texts(tmp_path / "a.txt") == []


def table(path, **columns):
    write_table(pyarrow.table(columns), path, row_group_size=2)
    return path


def test_a_row_is_a_line_whatever_it_holds(tmp_path):
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
def test_the_column_is_the_one_that_is_meant(tmp_path, columns, chosen):
    assert texts(table(tmp_path / "a.parquet", **columns)) == [chosen]


@pytest.mark.parametrize("columns", [{"de": ["b"], "fr": ["a"]}, {"number": [1]}])
def test_a_column_that_cannot_be_told_is_asked_for(tmp_path, columns):
    with pytest.raises(DataError, match=r"a\.parquet: which column is to be translated\?"):
        texts(table(tmp_path / "a.parquet", **columns))


def test_what_is_no_table_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read as Parquet"):
        texts(tmp_path / "a.parquet")

"""Whole examinations: what is clean stays quiet, what cannot be read is named, and nothing at all makes it fail."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.doctor.toys import codes, found, save, toy_pairs
from softgaze.data.corpus import Corpus, Pair, write_lines
from softgaze.data.doctor import examine, fix
from softgaze.errors import DataError


@pytest.mark.parametrize("count", [1, 3, 150, 300, 2500])
@pytest.mark.parametrize("hangul", [False, True])
def test_a_clean_corpus_has_nothing_to_complain_about(tmp_path: Path, count: int, hangul: bool) -> None:
    report = examine(save(tmp_path, toy_pairs(count, seed=count, hangul=hangul)))
    assert codes(report) <= {"too_small"}
    assert report.exit_code == 0
    assert report.pairs == report.usable == count


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.tuples(*[st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=20)] * 2),
        min_size=1,
        max_size=12,
    )
)
def test_any_text_at_all_can_be_examined(tmp_path: Path, lines: list[tuple[str, str]]) -> None:
    pairs = [Pair(source.lstrip("\ufeff"), target.lstrip("\ufeff")) for source, target in lines]
    report = examine(save(tmp_path, pairs))
    assert report.pairs == len(pairs)
    assert all("\x1b" not in line and "\n" not in line for line in report.lines())
    assert json.loads(report.to_json())["pairs"] == len(pairs)


def test_unreadable_lines_are_findings_and_the_rest_is_examined(tmp_path: Path) -> None:
    pairs = toy_pairs(150)
    corpus = save(tmp_path, [*pairs, pairs[0]])
    raw = (tmp_path / "t.xx").read_bytes().split(b"\n")
    raw[4], raw[6], raw[9] = raw[4] + b"\xe9", raw[6] + b"\xe9", b"\0"
    (tmp_path / "t.xx").write_bytes(b"\n".join(raw))
    report = examine(corpus)
    encoding, nul = [finding for finding in report.findings if finding.code == "unreadable"]
    assert (encoding.level, encoding.count, nul.count, report.exit_code) == ("fatal", 2, 1, 3)
    byte = len(b"\n".join(raw[:4])) + len(raw[4])
    assert f"{tmp_path / 't.xx'}, line 5, byte {byte}: not UTF-8" in encoding.message
    assert (encoding.examples[0].line, encoding.examples[0].byte) == (5, byte)
    assert report.usable == 148
    assert found(report, "duplicate").count == 1
    assert "one_sided" not in codes(report)
    fixed = fix(corpus, tmp_path / "f.en", tmp_path / "f.xx")
    assert fixed.dropped["unreadable"] == 3
    assert fixed.kept == 147


def test_broken_rows_of_a_table(tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    write_lines(table, ["abc\tklm", "no tab", "a\tb\tc", "abd\tklo"])
    report = examine(Corpus.of([], [table]))
    assert [finding.count for finding in report.findings if finding.code == "unreadable"] == [1, 1]
    assert report.usable == 2


def test_files_that_cannot_be_read_at_all(tmp_path: Path) -> None:
    good = save(tmp_path, toy_pairs(20))
    (tmp_path / "cut.en.gz").write_bytes(gzip.compress(b"abc\n" * 999)[:-12])
    broken = Corpus.of([*[part.paths for part in good.parts], (tmp_path / "cut.en.gz", tmp_path / "gone.xx")])
    report = examine(broken)
    assert report.exit_code == 3
    assert "cut short" in found(report, "file").message
    assert report.usable == 20
    with pytest.raises(DataError, match="cut short"):
        fix(broken, tmp_path / "f.en", tmp_path / "f.xx", report)
    assert examine(Corpus.of([(tmp_path / "gone.en", tmp_path / "t.xx")])).pairs == 0


def test_several_parts_name_their_file(tmp_path: Path) -> None:
    first, second = save(tmp_path, toy_pairs(30), "a"), save(tmp_path, [Pair("", "klm"), *toy_pairs(30, 1)], "b")
    report = examine(Corpus((*first.parts, *second.parts)))
    assert found(report, "one_sided").examples[0].place == "b.en, line 1"
    assert report.pairs == 61


def test_progress_runs_to_the_end(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    examine(save(tmp_path, toy_pairs(100)), lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (200, 200)

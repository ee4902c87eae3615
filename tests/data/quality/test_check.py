"""Whole checks: clean text has no findings, bad data are findings with their position, nothing raises."""

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.quality.toys import codes, finding_of, fix, save, save_sides, sides, toy_pairs
from softgaze.data.corpus import Corpus, Pair, write_lines
from softgaze.data.quality import Example, Finding, QualityReport, check_corpus
from softgaze.data.quality.check import printable
from softgaze.errors import DataError


@pytest.mark.parametrize("lost", [5, 700, 1190])
@pytest.mark.parametrize("side", [0, 1])
def test_a_lost_line_is_reported_with_its_position(tmp_path, lost, side):
    pairs = toy_pairs(1200)
    texts = sides(pairs)
    del texts[side][lost]
    corpus = save_sides(tmp_path, *texts)
    report = check_corpus(corpus)
    finding = finding_of(report, "line_counts")
    assert report.exit_code == 3
    assert all(f"{len(lines):,}" in finding.message for lines in texts)
    assert abs(int(finding.message.rsplit("near line ", 1)[1].replace(",", "")) - lost - 1) <= 3

    fixed, kept = fix(tmp_path, corpus, report)
    assert set(kept) <= set(pairs)
    assert fixed.kept == len(kept) >= 1170


def test_lines_lost_one_after_another_are_each_found(tmp_path):
    sources, targets = sides(toy_pairs(1500))
    for lost in (1100, 700, 300):
        del targets[lost]
    report = check_corpus(save_sides(tmp_path, sources, targets))
    shifts = [finding for finding in report.findings if finding.code == "shifted"]
    assert [finding.message[-4:] for finding in shifts] == ["n-1)", "n-2)", "n-3)"]
    for finding, count in zip(shifts, (400, 400, 396), strict=True):
        assert abs(finding.count - count) <= 5
    assert "near line 30" in finding_of(report, "line_counts").message
    assert "unrelated" not in codes(report)


def test_additional_lines_at_the_end_are_reported(tmp_path):
    sources, targets = sides(toy_pairs(1200))
    corpus = save_sides(tmp_path, sources, [*targets, "klmn", "klmn"])
    assert "additional lines at its end" in finding_of(check_corpus(corpus), "line_counts").message


def test_a_tiny_corpus_with_different_counts_is_not_fixed(tmp_path):
    sources, targets = sides(toy_pairs(50))
    corpus = save_sides(tmp_path, sources, targets[1:])
    report = check_corpus(corpus)
    assert "was not found" in finding_of(report, "line_counts").message
    with pytest.raises(DataError, match="cannot be fixed"):
        fix(tmp_path, corpus, report)
    assert not (tmp_path / "f.en").exists()


@pytest.mark.parametrize("count", [1, 3, 150, 300, 2500])
@pytest.mark.parametrize("hangul", [False, True])
def test_a_clean_corpus_has_no_findings(tmp_path, count, hangul):
    report = check_corpus(save(tmp_path, toy_pairs(count, seed=count, hangul=hangul)))
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
def test_any_text_at_all_can_be_examined(tmp_path, lines):
    pairs = [Pair(source.lstrip("\ufeff"), target.lstrip("\ufeff")) for source, target in lines]
    report = check_corpus(save(tmp_path, pairs))
    assert report.pairs == len(pairs)
    assert all("\x1b" not in line and "\n" not in line for line in report.lines())
    assert json.loads(report.to_json())["pairs"] == len(pairs)


def test_unreadable_lines_are_findings_and_the_rest_is_examined(tmp_path):
    pairs = toy_pairs(150)
    corpus = save(tmp_path, [*pairs, pairs[0]])
    raw = (tmp_path / "t.xx").read_bytes().split(b"\n")
    raw[4], raw[6], raw[9] = raw[4] + b"\xe9", raw[6] + b"\xe9", b"\0"
    (tmp_path / "t.xx").write_bytes(b"\n".join(raw))
    report = check_corpus(corpus)
    encoding, nul = [finding for finding in report.findings if finding.code == "unreadable"]
    assert (encoding.level, encoding.count, nul.count, report.exit_code) == ("fatal", 2, 1, 3)
    byte = len(b"\n".join(raw[:4])) + len(raw[4])
    assert f"{tmp_path / 't.xx'}, line 5, byte {byte}: not UTF-8" in encoding.message
    assert (encoding.examples[0].line, encoding.examples[0].byte) == (5, byte)
    assert report.usable == 148
    assert finding_of(report, "duplicate").count == 1
    assert "one_sided" not in codes(report)
    fixed, _ = fix(tmp_path, corpus)
    assert fixed.dropped["unreadable"] == 3
    assert fixed.kept == 147


def test_broken_rows_of_a_table(tmp_path):
    table = tmp_path / "t.tsv"
    write_lines(table, ["abc\tklm", "no tab", "a\tb\tc", "abd\tklo"])
    report = check_corpus(Corpus.of([], [table]))
    assert [finding.count for finding in report.findings if finding.code == "unreadable"] == [1, 1]
    assert report.usable == 2


def test_files_that_cannot_be_read_at_all(tmp_path):
    good = save(tmp_path, toy_pairs(20))
    (tmp_path / "cut.en.gz").write_bytes(gzip.compress(b"abc\n" * 999)[:-12])
    broken = Corpus.of([*[part.paths for part in good.parts], (tmp_path / "cut.en.gz", tmp_path / "gone.xx")])
    report = check_corpus(broken)
    assert report.exit_code == 3
    assert "truncated" in finding_of(report, "file").message
    assert report.usable == 20
    with pytest.raises(DataError, match="truncated"):
        fix(tmp_path, broken, report)
    assert check_corpus(Corpus.of([(tmp_path / "gone.en", tmp_path / "t.xx")])).pairs == 0


def test_several_parts_name_their_file(tmp_path):
    first, second = save(tmp_path, toy_pairs(30), "a"), save(tmp_path, [Pair("", "klm"), *toy_pairs(30, 1)], "b")
    report = check_corpus(Corpus((*first.parts, *second.parts)))
    assert finding_of(report, "one_sided").examples[0].location == "b.en, line 1"
    assert report.pairs == 61


def test_progress_runs_to_the_end(tmp_path):
    seen: list[tuple[int, int]] = []
    check_corpus(save(tmp_path, toy_pairs(100)), lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (200, 200)


def test_at_most_five_examples_and_no_control_characters(tmp_path):
    report = check_corpus(save(tmp_path, [Pair(f"[bold]abc {n}\x1b[31m.", f"klm {n}.") for n in range(40)]))
    finding = finding_of(report, "control")
    assert finding.count == 40
    assert len(finding.examples) == 5
    assert "\\x1b" in finding.examples[0].text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb", "a\\tb"),
        ("a\u00a0b", "a b"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("\u202ex", "\\u202ex"),
        ("a" * 80, "a" * 69 + "…"),
    ],
)
def test_control_characters_are_escaped(text, shown):
    assert printable(text) == shown


def test_a_location_is_file_line_and_byte():
    assert Example("", 1200, None, "").location == "line 1,200"
    assert Example("t.en", 2, 3456, "").location == "t.en, line 2, byte 3,456"


@pytest.mark.parametrize(("levels", "code"), [([], 0), (["note", "warning"], 0), (["note", "fatal", "note"], 3)])
def test_only_what_would_stop_training_is_a_failure(levels, code):
    findings = tuple(Finding("x", level, 1, "message") for level in levels)
    report = QualityReport(("t.en", "t.xx"), 0, 0, None, None, findings)
    assert report.exit_code == code
    assert list(report.lines()) == ([f"{level}: message" for level in levels] or ["no findings"])

"""Files of different length: the place where they slip is named, or it is said that it could not be found."""

from pathlib import Path

import pytest

from data.doctor.toys import codes, found, save, sides, toy_pairs
from softgaze.data.corpus import Corpus, read_lines, read_pairs, write_lines
from softgaze.data.doctor import examine, fix
from softgaze.errors import DataError


@pytest.mark.parametrize("lost", [5, 700, 1190])
@pytest.mark.parametrize("side", [0, 1])
def test_a_lost_line_is_named_with_its_place(tmp_path: Path, lost: int, side: int) -> None:
    pairs = toy_pairs(1200)
    texts = sides(pairs)
    del texts[side][lost]
    files = tmp_path / "t.en", tmp_path / "t.xx"
    for path, lines in zip(files, texts, strict=True):
        write_lines(path, lines)
    report = examine(Corpus.of([files]))
    finding = found(report, "line_counts")
    assert report.exit_code == 3
    assert f"{files[0]} has {len(texts[0]):,} lines, {files[1]} {len(texts[1]):,}; " in finding.message
    assert abs(int(finding.message.rsplit("near line ", 1)[1].replace(",", "")) - lost - 1) <= 3

    fixed = fix(Corpus.of([files]), tmp_path / "f.en", tmp_path / "f.xx", report)
    kept = list(read_pairs(tmp_path / "f.en", tmp_path / "f.xx"))
    assert set(kept) <= set(pairs)
    assert fixed.kept == len(kept) >= 1170


def test_lines_lost_one_after_another_are_each_found(tmp_path: Path) -> None:
    sources, targets = sides(toy_pairs(1500))
    for lost in (1100, 700, 300):
        del targets[lost]
    write_lines(tmp_path / "t.en", sources)
    write_lines(tmp_path / "t.xx", targets)
    report = examine(Corpus.of([(tmp_path / "t.en", tmp_path / "t.xx")]))
    shifts = [finding for finding in report.findings if finding.code == "shifted"]
    assert [finding.message[-4:] for finding in shifts] == ["n-1)", "n-2)", "n-3)"]
    for finding, count in zip(shifts, (400, 400, 396), strict=True):
        assert abs(finding.count - count) <= 5
    assert "near line 30" in found(report, "line_counts").message
    assert "unrelated" not in codes(report)


def test_extra_lines_at_the_very_end_are_told(tmp_path: Path) -> None:
    corpus = save(tmp_path, toy_pairs(1200))
    write_lines(tmp_path / "t.xx", [*read_lines(tmp_path / "t.xx"), "klmn", "klmn"])
    assert "extra lines there" in found(examine(corpus), "line_counts").message


def test_different_counts_of_a_tiny_corpus_are_not_guessed_at(tmp_path: Path) -> None:
    corpus = save(tmp_path, toy_pairs(50))
    write_lines(tmp_path / "t.xx", list(read_lines(tmp_path / "t.xx"))[1:])
    report = examine(corpus)
    assert "could not be found" in found(report, "line_counts").message
    with pytest.raises(DataError, match="cannot be fixed"):
        fix(corpus, tmp_path / "f.en", tmp_path / "f.xx", report)
    assert not (tmp_path / "f.en").exists()

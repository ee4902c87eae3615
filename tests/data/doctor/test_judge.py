"""Single pairs: what was planted is found at its line, what is ordinary is left alone."""

from pathlib import Path

import pytest

from data.doctor.toys import codes, found, save, toy_pairs
from softgaze.data.corpus import Pair
from softgaze.data.doctor import examine


@pytest.mark.parametrize(
    ("code", "level", "pair"),
    [
        ("empty", "warning", Pair(" ", "\u200b")),
        ("one_sided", "warning", Pair("", "klmno.")),
        ("ratio", "warning", Pair("abc.", "klmno " * 30)),
        ("script", "warning", Pair("abc abc abc.", "привет мир всем.")),
        ("replacement", "warning", Pair("abc\ufffd abc abc.", "klmno klmno.")),
        ("mojibake", "warning", Pair("abc abc abc.", "klmnÃ© klmno.")),
        ("control", "warning", Pair("abc\x07 abc abc.", "klmno klmno.")),
        ("control", "warning", Pair("abc abc\u2028abc.", "klmno klmno.")),
        ("private", "warning", Pair("abc abc abc\ue000.", "klmno klmno.")),
        ("markup", "warning", Pair("abc &amp; abc abc.", "klmno klmno.")),
        ("markup", "warning", Pair("abc abc abc.", "<br/>klmno klmno.")),
        ("markup", "warning", Pair("abc abc abc.", 'klmno <a href="x">klmno</a>.')),
        ("long", "warning", Pair("abc " * 250, "klmno " * 250)),
        ("metaspace", "note", Pair("abc abc▁abc.", "klmno klmno.")),
        ("invisible", "note", Pair("abc abc\u00adabc.", "klmno klmno.")),
        ("identical", "note", Pair("klmno klmno.", "klmno klmno.")),
    ],
)
def test_an_odd_pair_is_found_at_its_line(tmp_path: Path, code: str, level: str, pair: Pair) -> None:
    pairs = toy_pairs(150)
    pairs[41:41] = [pair]
    report = examine(save(tmp_path, pairs))
    finding = found(report, code)
    assert (finding.level, finding.count) == (level, 1)
    assert [example.line for example in finding.examples] == [42]
    assert codes(report) == {code, "too_small"}
    assert report.exit_code == 0


@pytest.mark.parametrize("text", ["a < b and c > d.", "R&D; abc", "x<y abc.", "👩‍👩‍👧 abc abc.", "می‌روم"])
def test_ordinary_text_is_not_odd(tmp_path: Path, text: str) -> None:
    pairs = toy_pairs(50)
    report = examine(save(tmp_path, [*pairs, Pair(text, text)]))
    assert not codes(report) & {"markup", "invisible", "control", "private", "mojibake"}


def test_repeats_and_ambiguous_sources(tmp_path: Path) -> None:
    pairs = toy_pairs(150)
    report = examine(save(tmp_path, [*pairs, pairs[3], pairs[3], Pair(pairs[5].source, pairs[6].target)]))
    assert found(report, "duplicate").count == 2
    assert [example.line for example in found(report, "duplicate").examples] == [151, 152]
    assert [example.line for example in found(report, "ambiguous").examples] == [6, 153]


def test_scripts_are_those_of_the_corpus(tmp_path: Path) -> None:
    pairs = toy_pairs(150, hangul=True)
    pairs[9] = Pair(pairs[9].source, "this was never translated.")
    pairs[19] = Pair("가나다라 마바사.", pairs[19].target)
    pairs[29] = Pair(pairs[29].source, "abcdefghijklm 가나다라마.")
    report = examine(save(tmp_path, pairs))
    assert [example.line for example in found(report, "script").examples] == [10, 20]
    assert [example.line for example in found(report, "mixed_script").examples] == [30]

"""Statistics of a corpus, and rules: a planted unusual pair is found at its line, ordinary pairs are not."""

from pathlib import Path

import pytest

from data.quality.toys import codes, finding_of, save, toy_pairs
from softgaze.data.corpus import Pair
from softgaze.data.quality import check_corpus
from softgaze.data.quality.line_features import FIRST_SCRIPT, HAN, KANA
from softgaze.data.quality.rules import CorpusStatistics


def test_numbers_describe_each_side(tmp_path: Path) -> None:
    pairs = [Pair("a " * words, "가나 " * words) for words in range(1, 101)]
    report = check_corpus(save(tmp_path, [Pair(*map(str.strip, pair)) for pair in pairs]))
    assert report.source is not None
    assert report.target is not None
    words = report.source.words
    assert (words.minimum, words.median, words.mean, words.p95, words.p99, words.maximum) == (1, 50, 50.5, 95, 99, 100)
    assert sum(count for _, _, count in words.histogram) == 100
    assert report.target.characters.maximum == 299
    assert report.source.scripts == {"Latin": 1.0}
    assert report.target.scripts == {"Hangul": 1.0}
    assert report.source.language == "en"


def test_kanji_are_at_home_with_kana() -> None:
    statistics = CorpusStatistics()
    statistics.dominant_scripts[1][KANA - FIRST_SCRIPT] = 100
    assert statistics.home_scripts(1)[HAN - FIRST_SCRIPT]


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
    report = check_corpus(save(tmp_path, pairs))
    finding = finding_of(report, code)
    assert (finding.level, finding.count) == (level, 1)
    assert [example.line for example in finding.examples] == [42]
    assert codes(report) == {code, "too_small"}
    assert report.exit_code == 0


@pytest.mark.parametrize("text", ["a < b and c > d.", "R&D; abc", "x<y abc.", "👩‍👩‍👧 abc abc.", "می‌روم"])
def test_ordinary_text_is_not_odd(tmp_path: Path, text: str) -> None:
    pairs = toy_pairs(50)
    report = check_corpus(save(tmp_path, [*pairs, Pair(text, text)]))
    assert not codes(report) & {"markup", "invisible", "control", "private", "mojibake"}


def test_repeats_and_ambiguous_sources(tmp_path: Path) -> None:
    pairs = toy_pairs(150)
    report = check_corpus(save(tmp_path, [*pairs, pairs[3], pairs[3], Pair(pairs[5].source, pairs[6].target)]))
    assert finding_of(report, "duplicate").count == 2
    assert [example.line for example in finding_of(report, "duplicate").examples] == [151, 152]
    assert [example.line for example in finding_of(report, "ambiguous").examples] == [6, 153]


def test_scripts_are_those_of_the_corpus(tmp_path: Path) -> None:
    pairs = toy_pairs(150, hangul=True)
    pairs[9] = Pair(pairs[9].source, "this was never translated.")
    pairs[19] = Pair("가나다라 마바사.", pairs[19].target)
    pairs[29] = Pair(pairs[29].source, "abcdefghijklm 가나다라마.")
    report = check_corpus(save(tmp_path, pairs))
    assert [example.line for example in finding_of(report, "script").examples] == [10, 20]
    assert [example.line for example in finding_of(report, "mixed_script").examples] == [30]

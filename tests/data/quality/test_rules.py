"""Features and statistics of lines; a planted unusual pair is found at its line, ordinary pairs are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.quality.toys import codes, finding_of, save, toy_pairs
from softgaze.data.corpus import Pair
from softgaze.data.quality import check_corpus
from softgaze.data.quality.rules import (
    FIRST_SCRIPT,
    HAN,
    KANA,
    SCRIPT_CLASS,
    CorpusStatistics,
    character_class,
    measure,
    windows,
)


def test_numbers_describe_each_side(tmp_path):
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


def test_kanji_are_at_home_with_kana():
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
def test_an_odd_pair_is_found_at_its_line(tmp_path, code, level, pair):
    pairs = toy_pairs(150)
    pairs[41:41] = [pair]
    report = check_corpus(save(tmp_path, pairs))
    finding = finding_of(report, code)
    assert (finding.level, finding.count) == (level, 1)
    assert [example.line for example in finding.examples] == [42]
    assert codes(report) == {code, "too_small"}
    assert report.exit_code == 0


@pytest.mark.parametrize("text", ["a < b and c > d.", "R&D; abc", "x<y abc.", "👩‍👩‍👧 abc abc.", "می‌روم"])
def test_ordinary_text_is_not_odd(tmp_path, text):
    pairs = toy_pairs(50)
    report = check_corpus(save(tmp_path, [*pairs, Pair(text, text)]))
    assert not codes(report) & {"markup", "invisible", "control", "private", "mojibake"}


def test_repeats_and_ambiguous_sources(tmp_path):
    pairs = toy_pairs(150)
    report = check_corpus(save(tmp_path, [*pairs, pairs[3], pairs[3], Pair(pairs[5].source, pairs[6].target)]))
    assert finding_of(report, "duplicate").count == 2
    assert [example.line for example in finding_of(report, "duplicate").examples] == [151, 152]
    assert [example.line for example in finding_of(report, "ambiguous").examples] == [6, 153]


def test_scripts_are_those_of_the_corpus(tmp_path):
    pairs = toy_pairs(150, hangul=True)
    pairs[9] = Pair(pairs[9].source, "this was never translated.")
    pairs[19] = Pair("가나다라 마바사.", pairs[19].target)
    pairs[29] = Pair(pairs[29].source, "abcdefghijklm 가나다라마.")
    report = check_corpus(save(tmp_path, pairs))
    assert [example.line for example in finding_of(report, "script").examples] == [10, 20]
    assert [example.line for example in finding_of(report, "mixed_script").examples] == [30]


# --- features of lines --------------------------------------------------------------------------------------------


def test_scripts_come_from_unicode_names():
    scripts = {"LATIN": "aßＡ", "CYRILLIC": "я", "ARABIC": "ع", "HANGUL": "가", "HAN": "漢々", "KANA": "ひーｶ"}
    for script, characters in {**scripts, "DEVANAGARI": "ा", "THAI": "ก"}.items():
        assert {character_class(character) for character in characters} == {SCRIPT_CLASS[script]}


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=8))
def test_lines_are_measured_as_python_would(lines):
    measured = measure(lines)
    assert measured.length.tolist() == list(map(len, lines))
    assert measured.class_counts.sum(axis=1).tolist() == list(map(len, lines))
    together = set(zip(measured.token_line.tolist(), measured.token.tolist(), strict=True))
    alone = {(n, token) for n, line in enumerate(lines) for token in measure([line]).token.tolist()}
    assert together == alone


@pytest.mark.parametrize("text", ["a b", " a  b ", "", " ", "가 나 다", "don't stop"])
def test_words_are_counted_at_spaces(text):
    assert measure([text]).words.tolist() == [len(text.split())]


@pytest.mark.parametrize(("size", "context"), [(1, 0), (4, 2), (5, 9), (23, 3), (50, 50)])
def test_windows_hold_each_row_once_and_reach_beyond_it(size, context):
    rows = [(f"a{n}", f"k{n}") for n in range(23)]
    cut = list(windows(iter(rows), size, context))
    assert [row for window in cut for row in window.rows] == rows
    for window in cut:
        low, high = max(0, window.start - context), window.start + len(window.rows) + context
        assert window.targets_in_context == [target for _, target in rows[low:high]]
        assert window.left == window.start - low

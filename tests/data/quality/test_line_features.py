"""Line features: character classes come from Unicode, and arrays agree with Python strings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.data.quality.line_features import SCRIPT_CLASS, character_class, measure, windows


@pytest.mark.parametrize(
    ("character", "script"),
    [
        *[("a", "LATIN"), ("ß", "LATIN"), ("Ａ", "LATIN"), ("я", "CYRILLIC"), ("ع", "ARABIC"), ("가", "HANGUL")],
        *[
            ("漢", "HAN"),
            ("々", "HAN"),
            ("ひ", "KANA"),
            ("ー", "KANA"),
            ("ｶ", "KANA"),
            ("ा", "DEVANAGARI"),
            ("ก", "THAI"),
        ],
    ],
)
def test_scripts_come_from_unicode_names(character: str, script: str) -> None:
    assert character_class(character) == SCRIPT_CLASS[script]


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=8))
def test_lines_are_measured_as_python_would(lines: list[str]) -> None:
    measured = measure(lines)
    assert measured.length.tolist() == list(map(len, lines))
    assert measured.class_counts.sum(axis=1).tolist() == list(map(len, lines))
    together = {
        (line, token) for line, token in zip(measured.token_line.tolist(), measured.token.tolist(), strict=True)
    }
    alone = {(n, token) for n, line in enumerate(lines) for token in measure([line]).token.tolist()}
    assert together == alone


@pytest.mark.parametrize("text", ["a b", " a  b ", "", " ", "가 나 다", "don't stop"])
def test_words_are_counted_at_spaces(text: str) -> None:
    assert measure([text]).words.tolist() == [len(text.split())]


@pytest.mark.parametrize(("size", "context"), [(1, 0), (4, 2), (5, 9), (23, 3), (50, 50)])
def test_windows_hold_each_row_once_and_reach_beyond_it(size: int, context: int) -> None:
    rows = [(f"a{n}", f"k{n}") for n in range(23)]
    cut = list(windows(iter(rows), size, context))
    assert [row for window in cut for row in window.rows] == rows
    for window in cut:
        low, high = max(0, window.start - context), window.start + len(window.rows) + context
        assert window.targets_in_context == [target for _, target in rows[low:high]]
        assert window.left == window.start - low

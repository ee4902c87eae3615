"""Any text stays printable, keeps its direction and fits its width."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.explain.render.text_layout import (
    ELLIPSIS,
    POP_ISOLATE,
    RIGHT_TO_LEFT_ISOLATE,
    clean,
    escape_unprintable,
    graphemes,
    is_right_to_left,
    isolate,
    text_width,
    truncate,
    wrap,
)

anything = st.text(st.characters(exclude_categories=()))


@given(text=anything)
def test_clean_text_can_be_encoded_and_printed(text):
    result = clean(text)
    result.encode()
    assert len(result) == len(text)
    assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in result)
    assert not any(unicodedata.bidirectional(char) in ("LRE", "RLE", "LRO", "RLO", "PDF") for char in result)


@given(text=st.text("ab\u2066\u2067\u2068\u2069"))
def test_isolates_of_clean_text_are_balanced(text):
    depth = 0
    for char in clean(text):
        depth += {"\u2069": -1, "a": 0, "b": 0, "\ufffd": 0}.get(char, 1)
        assert depth >= 0
    assert depth == 0
    assert clean(clean(text)) == clean(text)
    assert clean(f"\u2067{clean(text)}\u2069") == f"\u2067{clean(text)}\u2069"


@given(text=anything)
def test_escaped_json_is_equal_and_printable(text):
    line = escape_unprintable(json.dumps(text, ensure_ascii=False))
    assert json.loads(line) == text
    assert clean(line.translate(dict.fromkeys(range(0x2066, 0x206A)))) == line.translate(
        dict.fromkeys(range(0x2066, 0x206A))
    )


@given(text=st.text(st.characters(categories=("L", "M", "N", "P", "S", "Zs"))))
def test_printable_text_is_unchanged(text):
    assert clean(text) == text


@pytest.mark.parametrize("word", ["مدرسة.", "שלום", "(مدرسة)", "«ذهب»", "12 ذهب"])
def test_arabic_and_hebrew_are_right_to_left(word):
    assert is_right_to_left(word)
    assert isolate(word) == RIGHT_TO_LEFT_ISOLATE + word + POP_ISOLATE


@pytest.mark.parametrize("word", ["school", "학교에", "日本", "", "...", "123", "a مدرسة"])
def test_other_scripts_are_not(word):
    assert isolate(word) == word


def test_widths_follow_the_characters():
    assert text_width("日本") == text_width("학교") == 2
    assert text_width("ill") < text_width("bbb") < text_width("BBB") < text_width("MWM") < text_width("日本語")
    assert text_width("e\u0301") == text_width("e")
    assert text_width("مُدَرِّسَة") == text_width("مدرسة")
    assert text_width("abc", 14) == pytest.approx(14 * text_width("abc"))


@given(text=anything)
def test_graphemes_concatenate_to_the_text(text):
    assert "".join(graphemes(text)) == text


def test_graphemes_keep_accents_and_joined_emoji():
    assert list(graphemes("e\u0301a👨‍👩‍👧b")) == ["e\u0301", "a", "👨‍👩‍👧", "b"]


@given(text=anything, width=st.floats(2, 30))
def test_truncated_text_fits_and_is_a_prefix(text, width):
    result = truncate(text, width)
    assert text_width(result) <= width + 1e-9
    assert result == text or (result.endswith(ELLIPSIS) and text.startswith(result.removesuffix(ELLIPSIS)))


@given(text=st.text(st.sampled_from("abW 日학 e\u0301👨‍")), width=st.floats(2, 30))
def test_lines_contain_every_character_and_fit(text, width):
    lines = wrap(text, width)
    assert "".join(lines).replace(" ", "") == "".join(text.split())
    assert all(line and (text_width(line) <= width + 1e-9 or len(list(graphemes(line))) == 1) for line in lines)


def test_lines_break_at_spaces():
    assert wrap("one two three", text_width("one two")) == ["one two", "three"]

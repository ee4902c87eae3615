"""Text keeps its letters, its direction and its place, whatever it is."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.gaze.lettering import (
    ELLIPSIS,
    END_OF_DIRECTION,
    RIGHT_TO_LEFT,
    clean,
    clusters,
    cut,
    escaped,
    isolated,
    runs_right_to_left,
    width_of,
    wrapped,
)

anything = st.text(st.characters(exclude_categories=()))


@given(text=anything)
def test_clean_text_can_be_stored_and_printed(text):
    found = clean(text)
    found.encode()
    assert len(found) == len(text)
    assert not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in found)
    assert not any(unicodedata.bidirectional(letter) in ("LRE", "RLE", "LRO", "RLO", "PDF") for letter in found)


@given(text=st.text("ab\u2066\u2067\u2068\u2069"))
def test_no_direction_reaches_beyond_a_clean_text(text):
    depth = 0
    for letter in clean(text):
        depth += {"\u2069": -1, "a": 0, "b": 0, "\ufffd": 0}.get(letter, 1)
        assert depth >= 0
    assert depth == 0
    assert clean(clean(text)) == clean(text)
    assert clean(f"\u2067{clean(text)}\u2069") == f"\u2067{clean(text)}\u2069"


@given(text=anything)
def test_escaped_json_means_the_same_and_can_be_stored(text):
    line = escaped(json.dumps(text, ensure_ascii=False))
    assert json.loads(line) == text
    assert clean(line.translate(dict.fromkeys(range(0x2066, 0x206A)))) == line.translate(
        dict.fromkeys(range(0x2066, 0x206A))
    )


@given(text=st.text(st.characters(categories=("L", "M", "N", "P", "S", "Zs"))))
def test_what_can_be_written_stays(text):
    assert clean(text) == text


@pytest.mark.parametrize("word", ["مدرسة.", "שלום", "(مدرسة)", "«ذهب»", "12 ذهب"])
def test_arabic_and_hebrew_run_from_right_to_left(word):
    assert runs_right_to_left(word)
    assert isolated(word) == RIGHT_TO_LEFT + word + END_OF_DIRECTION


@pytest.mark.parametrize("word", ["school", "학교에", "日本", "", "...", "123", "a مدرسة"])
def test_the_rest_does_not(word):
    assert isolated(word) == word


def test_widths_are_those_of_the_letters():
    assert width_of("日本") == width_of("학교") == 2
    assert width_of("ill") < width_of("bbb") < width_of("BBB") < width_of("MWM") < width_of("日本語")
    assert width_of("e\u0301") == width_of("e")
    assert width_of("مُدَرِّسَة") == width_of("مدرسة")
    assert width_of("abc", 14) == pytest.approx(14 * width_of("abc"))


@given(text=anything)
def test_clusters_are_the_text(text):
    assert "".join(clusters(text)) == text


def test_what_belongs_together_stays_together():
    assert list(clusters("e\u0301a👨‍👩‍👧b")) == ["e\u0301", "a", "👨‍👩‍👧", "b"]


@given(text=anything, room=st.floats(2, 30))
def test_a_cut_text_fits_and_begins_as_it_did(text, room):
    found = cut(text, room)
    assert width_of(found) <= room + 1e-9
    assert found == text or (found.endswith(ELLIPSIS) and text.startswith(found.removesuffix(ELLIPSIS)))


@given(text=st.text(st.sampled_from("abW 日학 e\u0301👨‍")), room=st.floats(2, 30))
def test_lines_hold_every_letter_and_fit(text, room):
    lines = wrapped(text, room)
    assert "".join(lines).replace(" ", "") == "".join(text.split())
    assert all(line and (width_of(line) <= room + 1e-9 or len(list(clusters(line))) == 1) for line in lines)


def test_lines_are_broken_at_spaces():
    assert wrapped("one two three", width_of("one two")) == ["one two", "three"]

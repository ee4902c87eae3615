"""Whatever is written in a drawing, it stays XML, and the text comes out as it went in."""

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from softgaze.gaze.drawing import element, picture, text, ticks, written
from softgaze.gaze.lettering import clean, isolated

SPACE = "{http://www.w3.org/2000/svg}"
anything = st.text(st.characters(exclude_categories=()))


@given(words=anything)
def test_any_text_comes_back(words):
    assert (ElementTree.fromstring(text(1, 2, words)).text or "") == clean(isolated(words))


@given(words=anything)
def test_any_title_comes_back(words):
    drawing = ElementTree.fromstring(picture(10, 20, "", title=words, description=words))
    assert drawing.findtext(f"{SPACE}title") == clean(words)
    assert drawing.findtext(f"{SPACE}desc", "") == clean(words)
    assert drawing.get("viewBox") == "0 0 10 20"


@given(value=st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_attributes_are_quoted(value):
    assert ElementTree.fromstring(element("a", stroke_width=value)).get("stroke-width") == value


def test_numbers_are_short():
    assert [written(number) for number in (1, 1.0, 1.25, 0.333, 12.96)] == ["1", "1", "1.2", "0.3", "13"]


@given(end=st.floats(1e-3, 1e6))
def test_ticks_are_few_even_and_reach_the_end(end):
    found = ticks(end)
    assert found[0] == 0
    assert found[-1] >= end * (1 - 1e-6)
    assert found[-2] < end
    assert 2 <= len(found) <= 7


def test_a_score_that_stays_at_zero_has_an_axis_too():
    assert ticks(0.0)[-1] == 1.0

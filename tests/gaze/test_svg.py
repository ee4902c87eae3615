"""The picture: well-formed whatever the words are, all numbers in it, and the map can be read back from it."""

import re
from xml.etree import ElementTree

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maps import random_attention
from softgaze.errors import UsageError
from softgaze.gaze import Alignment, Attention
from softgaze.gaze.colours import GOLD
from softgaze.gaze.lettering import clean, isolated
from softgaze.gaze.sheet import Sheet
from softgaze.gaze.svg import PRINTED, bare, short, svg
from softgaze.gaze.words import END_MARK

SPACE = "{http://www.w3.org/2000/svg}"
VIEWS = {
    "cross": {},
    "subwords": {"unit": "subwords"},
    "encoder": {"kind": "encoder"},
    "decoder": {"kind": "decoder"},
    "reading": {"rows": "reading"},
    "rollout": {"measure": "rollout"},
}
SOURCE, TARGET = ["I", "read", "books", END_MARK], ["저는", "책을", "읽어요", END_MARK]
WEIGHTS = [[0.9, 0.05, 0.05, 0], [0, 0.3, 0.7, 0], [0, 0.6, 0.3, 0.1], [0, 0, 0.01, 0.99]]
anything = st.text(st.characters(exclude_categories=()), max_size=30)
hostile = st.sampled_from(["</text><script>alert(1)</script>", "\x00", "\ud800", "\ufffe", "]]>", "👨‍👩‍👧", "مدرسة."])


def drawing_of(attention, **options):
    return ElementTree.fromstring(svg(attention, **options))


def texts_of(drawing):
    return ["".join(each.itertext()) for each in drawing.iter(f"{SPACE}text")]


def elements(drawing, name):
    return list(drawing.iter(SPACE + name))


def example():
    return Attention.of(SOURCE, TARGET, WEIGHTS)


@given(source=st.lists(anything | hostile, max_size=5), target=st.lists(anything | hostile, max_size=5))
def test_any_words_make_a_drawing(source, target):
    attention = Attention.of(source, target, numpy.full((len(target), len(source)), 1 / max(len(source), 1)))
    drawing = drawing_of(attention)
    assert not elements(drawing, "script")
    shown = texts_of(drawing)
    for name in (name for side in Sheet(attention).names for name in side):
        assert clean(isolated(name)) in shown


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_what_is_drawn_can_be_read_again(tmp_path, view):
    attention = random_attention(**view)
    again = Attention.load(attention.plot().save(tmp_path / "a.svg"))
    assert (again.source, again.target, again.shows) == (attention.source, attention.target, attention.shows)
    assert numpy.allclose(again.weights, attention.weights, atol=1e-4)


def test_hostile_words_come_back_too(tmp_path):
    words = ["</metadata>", "\ud800", "\x00\x1b", "\ufffe", "\u2028", "&lt;"]
    attention = Attention.of(words, words, numpy.eye(len(words)))
    assert Attention.load(attention.plot().save(tmp_path / "a.svg")).source == tuple(words)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_every_weight_from_a_tenth_on_is_printed(view):
    attention = random_attention(**view)
    cells = [each for each in elements(drawing_of(attention), "text") if each.find(f"{SPACE}title") is not None]
    wanted = [short(weight) for weight in attention.weights.ravel() if weight >= PRINTED]
    assert [each.findtext(f"{SPACE}tspan") for each in cells] == wanted


def test_a_bare_map_has_the_same_cells_and_words_and_nothing_around_them():
    attention = random_attention()
    alone, whole = (ElementTree.fromstring(draw(attention)) for draw in (bare, svg))
    assert {*attention.source, *attention.target} <= {*texts_of(alone)} <= {*texts_of(whole)}
    assert len(elements(alone, "circle")) == len(attention.target)
    assert float(alone.get("height")) < float(whole.get("height"))
    assert not {"entropy", "coverage"} & {*texts_of(alone)}


def test_numbers_are_short_and_never_round_to_more_than_they_are():
    assert [short(weight) for weight in (0.1, 0.104, 0.83, 0.994, 0.996, 1.0)] == [".10", ".10", ".83", ".99", "1", "1"]


def test_each_row_has_one_ring_on_its_largest():
    sheet = Sheet(example())
    rings = [(float(each.get("cx")), float(each.get("cy"))) for each in elements(drawing_of(example()), "circle")[:-1]]
    tops = enumerate(example().weights.argmax(axis=1))
    wanted = [(sheet.columns.middle(column), sheet.rows.middle(row)) for row, column in tops]
    assert numpy.allclose(rings, wanted, atol=0.06)


def test_a_row_that_looked_nowhere_has_no_ring():
    assert len(elements(drawing_of(Attention.of(["a"], ["x", "y"], [[0], [1]])), "circle")) == 2  # one is the legend's


def test_gold_links_are_outlined_where_they_belong():
    sheet, gold = Sheet(example()), Alignment.parse("0-0 2-1 1-2 0p2")
    groups = [each for each in elements(drawing_of(example(), gold=gold), "g") if each.get("stroke") == GOLD]
    sure, possible = ([frame_place(rect) for rect in each] for each in groups)
    place = lambda source, target: (sheet.columns.places[source] + 1.5, sheet.rows.places[target] + 1.5)  # noqa: E731
    assert numpy.allclose(sure, [place(0, 0), place(1, 2), place(2, 1)], atol=0.06)
    assert numpy.allclose(possible, [place(0, 2)], atol=0.06)
    assert groups[1].get("stroke-dasharray")
    assert not groups[0].get("stroke-dasharray")


def frame_place(rect):
    return float(rect.get("x")), float(rect.get("y"))


def test_gold_without_links_changes_only_the_legend():
    assert "gold" in texts_of(drawing_of(example(), gold=Alignment()))
    assert "gold" not in texts_of(drawing_of(example()))


@pytest.mark.parametrize("change", ["subwords", "encoder", "decoder"])
def test_gold_belongs_to_words_of_two_sentences(change):
    with pytest.raises(UsageError, match="words of source and output"):
        svg(getattr(random_attention(), change)(), gold=Alignment())


@pytest.mark.parametrize("link", ["3-0", "0-3"])
def test_gold_of_another_sentence_is_refused(link):
    with pytest.raises(UsageError, match=f"the gold link {link} is not between the 3 words of the source and 3 of"):
        svg(example(), gold=Alignment.parse(link))


def test_margins_hold_entropy_and_coverage():
    shown = texts_of(drawing_of(example()))
    for number in [*example().entropy(), *example().coverage()]:
        assert f"{abs(number):.2f}" in shown


def test_nothing_is_loaded_and_it_has_a_name():
    drawing = svg(example())
    assert not re.findall(r"href|url\(|@import|<style|<script|<image", drawing)
    assert re.findall(r"https?://[^\"' ]*", drawing) == ["http://www.w3.org/2000/svg"]
    root = ElementTree.fromstring(drawing)
    assert root.get("role") == "img"
    assert root[0].text == "Attention: I read books → 저는 책을 읽어요"
    assert "책을 ← books 0.70" in root[1].text


def test_a_long_sentence_stays_small():
    rows = numpy.random.default_rng(0).dirichlet(numpy.full(300, 0.05), 300)
    attention = Attention.of(["word"] * 300, ["word"] * 300, rows)
    assert len(svg(attention)) - len(attention.to_json()) < 1_000_000


def test_weights_of_ones_own_say_what_they_are_about():
    drawing = drawing_of(example(), about="three questions to a dictionary")
    written = " ".join(texts_of(drawing))
    assert "three questions to a dictionary" in written
    assert "query ↓ key →" in written
    assert "predict" not in written
    assert "source:" not in written
    assert "three questions" in drawing.find(f"{SPACE}desc").text
    assert {"coverage", "weight"} <= {*texts_of(drawing)}


def test_rows_that_are_no_queries_say_what_they_are_and_are_not_summed():
    written = texts_of(drawing_of(example(), about="three kinds of layer", sides=("layer", "word")))
    assert {"layer ↓ word →", "share", "entropy"} <= {*written}
    assert not {"coverage", "weight"} & {*written}


@pytest.mark.parametrize(("links", "shown"), [("0-0", False), ("0-0 1p1", True)])
def test_the_sign_of_possible_links_stands_only_where_there_are_some(links, shown):
    written = texts_of(drawing_of(example(), gold=Alignment.parse(links)))
    assert ("gold, possible" in written) is shown

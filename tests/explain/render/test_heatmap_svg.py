"""The heat map is valid SVG for any words, contains all numbers, can be loaded again, and nothing in it overlaps."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maps import random_attention
from softgaze.errors import UsageError
from softgaze.explain import Alignment, Attention
from softgaze.explain.render.heatmap_svg import (
    MARGIN,
    MARK_SPACING,
    MAX_LABEL,
    MIN_PRINTED,
    NOTE_SIZE,
    CellAxis,
    HeatmapLayout,
    draw_bare_heatmap,
    draw_heatmap,
    short_weight,
)
from softgaze.explain.render.svg import GOLD
from softgaze.explain.render.text_layout import clean, isolate, text_width
from softgaze.explain.word_spans import EOS_MARK, TokenizedText

SVG = "{http://www.w3.org/2000/svg}"
VIEWS = {
    "cross": {},
    "subwords": {"unit": "subwords"},
    "encoder": {"kind": "encoder"},
    "decoder": {"kind": "decoder"},
    "reading": {"rows": "reading"},
    "rollout": {"measure": "rollout"},
}
SOURCE, TARGET = ["I", "read", "books", EOS_MARK], ["저는", "책을", "읽어요", EOS_MARK]
WEIGHTS = [[0.9, 0.05, 0.05, 0], [0, 0.3, 0.7, 0], [0, 0.6, 0.3, 0.1], [0, 0, 0.01, 0.99]]
any_text = st.text(st.characters(exclude_categories=()), max_size=30)
hostile = st.sampled_from(["</text><script>alert(1)</script>", "\x00", "\ud800", "\ufffe", "]]>", "👨‍👩‍👧", "مدرسة."])


def draw(attention, **options):
    return ElementTree.fromstring(draw_heatmap(attention, **options))


def texts_of(drawing):
    return ["".join(item.itertext()) for item in drawing.iter(f"{SVG}text")]


def elements(drawing, name):
    return list(drawing.iter(SVG + name))


def example():
    return Attention.of(SOURCE, TARGET, WEIGHTS)


@given(source=st.lists(any_text | hostile, max_size=5), target=st.lists(any_text | hostile, max_size=5))
def test_any_words_make_valid_svg(source, target):
    attention = Attention.of(source, target, np.full((len(target), len(source)), 1 / max(len(source), 1)))
    drawing = draw(attention)
    assert not elements(drawing, "script")
    shown = texts_of(drawing)
    for name in (name for side in HeatmapLayout(attention).names for name in side):
        assert clean(isolate(name)) in shown


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_figure_can_be_loaded(tmp_path, view):
    attention = random_attention(**view)
    again = Attention.load(attention.plot().save(tmp_path / "a.svg"))
    assert (again.source, again.target, again.description) == (
        attention.source,
        attention.target,
        attention.description,
    )
    assert np.allclose(again.weights, attention.weights, atol=1e-4)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_every_weight_of_at_least_a_tenth_is_printed(view):
    attention = random_attention(**view)
    cells = [item for item in elements(draw(attention), "text") if item.find(f"{SVG}title") is not None]
    wanted = [short_weight(weight) for weight in attention.weights.ravel() if weight >= MIN_PRINTED]
    assert [item.findtext(f"{SVG}tspan") for item in cells] == wanted


def test_bare_map_has_cells_and_labels_only():
    attention = random_attention()
    alone, whole = (ElementTree.fromstring(render(attention)) for render in (draw_bare_heatmap, draw_heatmap))
    assert {*attention.source, *attention.target} <= {*texts_of(alone)} <= {*texts_of(whole)}
    assert len(elements(alone, "circle")) == len(attention.target)
    assert float(alone.get("height")) < float(whole.get("height"))
    assert not {"entropy", "coverage"} & {*texts_of(alone)}


def test_each_row_has_a_ring_on_its_largest_weight():
    layout = HeatmapLayout(example())
    rings = [(float(item.get("cx")), float(item.get("cy"))) for item in elements(draw(example()), "circle")[:-1]]
    tops = enumerate(example().weights.argmax(axis=1))
    wanted = [(layout.columns.middle(column), layout.rows.middle(row)) for row, column in tops]
    assert np.allclose(rings, wanted, atol=0.06)


def test_a_row_of_zeros_has_no_ring():
    assert len(elements(draw(Attention.of(["a"], ["x", "y"], [[0], [1]])), "circle")) == 2  # one is the legend's


def test_gold_links_are_outlined():
    layout, gold = HeatmapLayout(example()), Alignment.parse("0-0 2-1 1-2 0p2")
    groups = [item for item in elements(draw(example(), gold=gold), "g") if item.get("stroke") == GOLD]
    sure, possible = ([corner(rect) for rect in item] for item in groups)
    cell = lambda source, target: (layout.columns.offsets[source] + 1.5, layout.rows.offsets[target] + 1.5)  # noqa: E731
    assert np.allclose(sure, [cell(0, 0), cell(1, 2), cell(2, 1)], atol=0.06)
    assert np.allclose(possible, [cell(0, 2)], atol=0.06)
    assert {"gold", "gold, possible"} <= {*texts_of(draw(example(), gold=gold))}
    assert not {"gold", "gold, possible"} & {*texts_of(draw(example()))}
    assert groups[1].get("stroke-dasharray")
    assert not groups[0].get("stroke-dasharray")


def corner(rect):
    return float(rect.get("x")), float(rect.get("y"))


@pytest.mark.parametrize("change", ["subwords", "encoder", "decoder"])
def test_gold_needs_a_map_of_words(change):
    with pytest.raises(UsageError, match="source and output words"):
        draw_heatmap(getattr(random_attention(), change)(), gold=Alignment())


@pytest.mark.parametrize("link", ["3-0", "0-3"])
def test_gold_of_another_sentence_is_rejected(link):
    with pytest.raises(UsageError, match=f"gold link {link} .* 3 source words and 3 output"):
        draw_heatmap(example(), gold=Alignment.parse(link))


def test_margins_show_entropy_and_coverage():
    shown = texts_of(draw(example()))
    for number in [*example().entropy(), *example().coverage()]:
        assert f"{abs(number):.2f}" in shown


def test_figure_loads_nothing_and_has_a_title():
    drawing = draw_heatmap(example())
    assert not re.findall(r"href|url\(|@import|<style|<script|<image", drawing)
    assert re.findall(r"https?://[^\"' ]*", drawing) == ["http://www.w3.org/2000/svg"]
    root = ElementTree.fromstring(drawing)
    assert root.get("role") == "img"
    assert root[0].text == "Attention: I read books → 저는 책을 읽어요"
    assert "책을 ← books 0.70" in root[1].text


def test_figure_of_a_long_sentence_is_small():
    rows = np.random.default_rng(0).dirichlet(np.full(300, 0.05), 300)
    attention = Attention.of(["word"] * 300, ["word"] * 300, rows)
    assert len(draw_heatmap(attention)) - len(attention.to_json()) < 1_000_000


def test_custom_weights_show_their_description():
    drawing = draw(example(), about="three questions to a dictionary")
    texts = " ".join(texts_of(drawing))
    assert "three questions to a dictionary" in texts
    assert "query ↓ key →" in texts
    assert "predict" not in texts
    assert "source:" not in texts
    assert "three questions" in drawing.find(f"{SVG}desc").text
    assert {"coverage", "weight"} <= {*texts_of(drawing)}


def test_custom_sides_have_no_coverage():
    texts = texts_of(draw(example(), about="three kinds of layer", sides=("layer", "word")))
    assert {"layer ↓ word →", "share", "entropy"} <= {*texts}
    assert not {"coverage", "weight"} & {*texts}


# --- layout

label_lists = st.lists(
    st.sampled_from(["a", "school", "학교에", "internationalisation", "日本", EOS_MARK]), max_size=14
)


def uniform(source, target):
    return Attention.of(source, target, np.full((len(target), len(source)), 1 / max(len(source), 1)))


@given(source=label_lists, target=label_lists)
def test_labels_and_cells_fit_without_overlap(source, target):
    layout = HeatmapLayout(uniform(source, target))
    font_size = layout.sizes.label
    assert all(text_width(name, font_size) <= layout.columns.start - MARGIN for name in layout.names[0])
    for axis, end in ((layout.columns, layout.width), (layout.rows, layout.height)):
        assert all(previous + axis.size <= label for previous, label in pairwise(axis.offsets))
        assert axis.end <= end - MARGIN
    if not layout.is_slanted:
        assert all(text_width(name, font_size) <= layout.columns.size for name in layout.names[1])
    assert all(text_width(line, NOTE_SIZE) <= layout.width - 2 * MARGIN for line in layout.footer)


@given(labels=label_lists)
def test_marks_are_set_apart_and_runs_are_adjacent(labels):
    axis = CellAxis(TokenizedText.from_words(labels).token_labels(), 5, 10)
    spacings = [label - previous - 10 for previous, label in pairwise(axis.offsets)]
    assert spacings == [
        MARK_SPACING * ((previous == EOS_MARK) != (label == EOS_MARK)) for previous, label in pairwise(labels)
    ]
    edges = [edge for run in axis.runs() for edge in run[:-1]]
    assert edges == axis.offsets


def test_figure_grows_with_the_sentence():
    sizes = [
        (layout.width, layout.height)
        for layout in (HeatmapLayout(uniform(["word"] * n, ["word"] * n)) for n in (12, 30, 60))
    ]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == 3


def test_long_labels_are_truncated():
    long, endless = (HeatmapLayout(uniform(["a"], ["b" * length])) for length in (20, 2000))
    assert long.names[0] == ["b" * 20]
    assert text_width(endless.names[0][0]) <= MAX_LABEL

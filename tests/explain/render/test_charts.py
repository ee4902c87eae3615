"""Line charts: axes span their values, names never overlap, and any series stays inside its panel."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgaze.explain.render.charts import (
    LEFT,
    LINE_HEIGHT,
    MAX_MARKERS,
    TOP,
    Axis,
    ChartPoint,
    Panel,
    Series,
    line_chart,
    spread_labels,
)

SVG = "{http://www.w3.org/2000/svg}"
values = st.lists(st.floats(-50, 100), min_size=1, max_size=6)


def chart(*panels, **options):
    return ElementTree.fromstring(line_chart(panels, title="title", description="description", **options))


def panel(lines, y_axis=None, **options):
    series = [
        Series(name, [ChartPoint(x, y) for x, y in enumerate(ys)], style) for style, (name, ys) in enumerate(lines)
    ]
    every = [y for _, ys in lines for y in ys]
    x_axis = Axis.from_zero_to(max(len(ys) for _, ys in lines))
    return Panel("panel", series, x_axis, y_axis or Axis.linear(every), "x", **options)


def positions(polyline):
    return [tuple(map(float, position.split(","))) for position in polyline.get("points").split()]


@given(values, st.booleans(), st.sampled_from([1e-6, 1.0]))
def test_a_linear_axis_spans_all_values_between_few_ticks(numbers, from_zero, min_span):
    axis = Axis.linear(numbers, from_zero=from_zero, min_span=min_span)
    assert axis.low <= min(numbers) + 1e-6
    assert axis.high >= max(numbers) - 1e-6
    assert 2 <= len(axis.ticks) <= 9
    assert axis.ticks == sorted(axis.ticks)
    if from_zero:
        assert axis.low <= 0


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=6))
def test_a_logarithmic_axis_spans_all_values(numbers):
    axis = Axis.logarithmic(numbers)
    assert all(-1e-9 <= axis.fraction(number) <= 1 for number in numbers)


@given(st.floats(0, 1e4), st.sampled_from([1e-6, 1.0]))
def test_an_axis_from_zero_ends_where_it_is_told_to(end, min_step):
    axis = Axis.from_zero_to(end, min_step=min_step)
    assert axis.high == (end or 1.0)
    assert axis.ticks[0] == 0
    assert axis.ticks[-1] <= axis.high * (1 + 1e-6)
    assert len(axis.ticks) <= 13


@given(st.lists(st.floats(40, 250), min_size=1, max_size=20).map(sorted))
def test_names_never_overlap_and_stay_near(heights):
    placed = spread_labels(heights, 40, 250)
    assert all(other - one >= LINE_HEIGHT - 1e-6 for one, other in pairwise(placed))
    assert placed[0] >= 40 - 1e-6
    if LINE_HEIGHT * (len(heights) - 1) <= 210:
        assert placed[-1] <= 250


@settings(deadline=None, max_examples=30)
@given(names=st.lists(st.text(max_size=40), min_size=1, max_size=7, unique=True), ys=values, columns=st.integers(1, 2))
def test_any_series_is_drawn_inside_its_panel(names, ys, columns):
    plot = panel([(name, ys) for name in names])
    svg = chart(plot, plot, plot, columns=columns)
    lines = list(svg.iter(f"{SVG}polyline"))
    assert len(lines) == 3 * len(names)
    for x, y in (position for line in lines for position in positions(line)):
        assert LEFT - 0.1 <= x <= plot.right + 0.1
        assert TOP - 0.1 <= y <= plot.bottom + 0.1


def test_only_the_lowest_panel_of_each_column_names_the_lower_axis():
    plot = panel([("a", [1, 2])])
    for count, columns, labels in ((3, 1, 1), (3, 2, 2), (4, 2, 2)):
        svg = chart(*[plot] * count, columns=columns)
        assert [text.text for text in svg.iter(f"{SVG}text")].count("x") == labels


@pytest.mark.parametrize("length", [MAX_MARKERS, MAX_MARKERS + 1])
def test_a_long_line_has_one_marker(length):
    svg = chart(panel([("a", list(range(length)))]))
    markers = [shape for shape in svg.iter(f"{SVG}polygon") if "marker" in shape.get("class")]
    assert len(markers) == 1 + (length if length <= MAX_MARKERS else 1)  # one stands next to the name


def test_notes_fit_below_the_panels():
    plot = panel([("a", [1, 2])])
    notes = ["word " * 100, "last"]
    for columns in (1, 2):
        svg = chart(plot, notes=notes, columns=columns)
        last = list(svg.iter(f"{SVG}text"))[-1]
        assert last.text == "last"
        assert float(last.get("y")) < float(svg.get("height"))

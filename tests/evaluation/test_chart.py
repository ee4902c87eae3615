"""The chart has every system's line, band, marker and name where they belong, whatever the systems are called."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgaze.evaluation.chart import BEYOND, LABEL, apart, length_chart, value_axis
from softgaze.evaluation.lengths import Curve, Point
from softgaze.evaluation.significance import Estimate
from softgaze.gaze.colours import SERIES

SPACE = "{http://www.w3.org/2000/svg}"


def curve(name, scores, start=1, is_beyond=False):
    """Buckets of five lengths each."""
    lows = [start + 5 * number for number in range(len(scores))]
    points = [
        Point(low, low + 4, low + 2.0, 100 + low, Estimate(score, score * 0.9, min(100, score * 1.1)))
        for low, score in zip(lows, scores, strict=True)
    ]
    return Curve(name, tuple(points), is_beyond)


def drawn(*curves, **more):
    return ElementTree.fromstring(length_chart({"bleu": curves, **more}))


def of(tree, tag, **wanted):
    return [each for each in tree.iter(SPACE + tag) if all(each.get(key) == value for key, value in wanted.items())]


def words(tree):
    return [each.text for each in tree.iter(SPACE + "text")]


def test_every_system_has_a_line_a_band_markers_and_its_name():
    tree = drawn(curve("rnn", [50, 40, 10]), curve("transformer", [52, 51, 50]))
    for number, name in enumerate(["rnn", "transformer"]):
        assert len(of(tree, "polyline", stroke=SERIES[number])) == 1
        assert len(of(tree, "polygon", fill=SERIES[number])) == 1 + 3 + 1  # band, markers, marker of the name
        assert name in words(tree)
    assert {"BLEU", "101", "106", "111"} <= set(words(tree))
    assert BEYOND not in words(tree)


def places(line):
    return [tuple(map(float, place.split(","))) for place in line.get("points").split()]


def test_higher_scores_are_higher_and_longer_sentences_further_right():
    tree = drawn(curve("a", [10, 20, 30]))
    found = places(of(tree, "polyline")[0])
    assert all(one[0] < other[0] and one[1] > other[1] for one, other in pairwise(found))


def test_a_bucket_of_one_length_has_that_length_in_its_middle():
    points = tuple(Point(length, length, length, 40, Estimate(50, 40, 60)) for length in range(1, 9))
    tree = drawn(Curve("a", points))
    rulers = [(float(each.get("x1")), float(each.get("x2"))) for each in of(tree, "line", **{"class": "ruler"})]
    middles = [(start + end) / 2 for start, end in rulers]
    assert middles == pytest.approx([across for across, _ in places(of(tree, "polyline")[0])], abs=0.1)


def test_a_line_runs_inside_its_band():
    tree = drawn(curve("a", [10, 60, 30, 90]))
    line = places(of(tree, "polyline")[0])
    band = places(of(tree, "polygon", **{"fill-opacity": "0.14"})[0])
    for (across, down), lower, upper in zip(line, band[:4], reversed(band[4:]), strict=True):
        assert across == lower[0] == upper[0]
        assert upper[1] <= down <= lower[1]


def test_what_lies_beyond_is_dashed_shaded_and_said():
    tree = drawn(curve("a", [50, 40]), curve("a", [30, 20], start=41, is_beyond=True))
    lines = of(tree, "polyline", stroke=SERIES[0])
    assert [each.get("stroke-dasharray") is not None for each in lines] == [False, True]
    (area,) = of(tree, "rect", **{"class": "beyond"})
    left = float(area.get("x"))
    assert max(across for across, _ in places(lines[0])) < left < min(across for across, _ in places(lines[1]))
    assert BEYOND in words(tree)
    assert words(tree).count("a") == 1


def test_a_system_has_its_colour_in_every_panel():
    tree = drawn(curve("a", [50]), curve("b", [40]), chrf=[curve("b", [70]), curve("a", [60])])
    assert [each.get("stroke") for each in of(tree, "polyline")] == [SERIES[0], SERIES[1], SERIES[1], SERIES[0]]
    assert {"BLEU", "chrF"} <= set(words(tree))


@settings(deadline=None, max_examples=30)
@given(
    names=st.lists(st.text(max_size=40), min_size=1, max_size=7, unique=True),
    scores=st.lists(st.floats(0, 100), min_size=1, max_size=4),
)
def test_any_names_and_scores_can_be_drawn(names, scores):
    tree = drawn(*(curve(name, scores) for name in names))
    width, height = (float(tree.get(key)) for key in ("width", "height"))
    for line in of(tree, "polyline"):
        assert all(0 <= across <= width and 0 <= down <= height for across, down in places(line))
    assert len(of(tree, "polyline")) == len(names)


@given(st.lists(st.floats(40, 250), min_size=1, max_size=20).map(sorted))
def test_names_never_touch_and_stay_near(lines):
    found = apart(lines, 40, 250)
    assert all(other - one >= LABEL - 1e-6 for one, other in pairwise(found))
    assert found[0] >= 40 - 1e-6
    if LABEL * (len(lines) - 1) <= 210:
        assert found[-1] <= 250


@given(scores=st.lists(st.floats(0, 100), min_size=1, max_size=6))
def test_the_axis_holds_all_bands(scores):
    axis, points = value_axis([curve("a", scores)]), curve("a", scores).points
    assert axis[0] <= min(point.estimate.low for point in points)
    assert axis[-1] >= max(point.estimate.high for point in points) * (1 - 1e-6)
    assert 2 <= len(axis) <= 9


def test_one_far_too_long_sentence_does_not_squeeze_the_rest():
    long = Curve("a", (*curve("a", [50, 40]).points, Point(11, 5000, 12.0, 30, Estimate(30, 20, 40))))
    assert max(across for across, _ in places(of(drawn(long), "polyline")[0])) > 300


def test_a_chart_that_stands_alone_tells_its_signatures_below_everything_else():
    curves = {"bleu": [curve("rnn", [50, 40])]}
    plain, signed = (
        ElementTree.fromstring(length_chart(curves, signatures=own)) for own in (None, {"bleu": "nrefs:1|tok:13a"})
    )
    *above, last = signed.iter(SPACE + "text")
    assert words(plain) == [each.text for each in above]
    assert last.text == "BLEU nrefs:1|tok:13a"
    lowest = max(float(each.get("y")) for each in above)
    assert lowest + LABEL <= float(last.get("y")) < float(signed.get("height"))


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="nothing to draw"):
        length_chart({"bleu": [Curve("a", ())]})

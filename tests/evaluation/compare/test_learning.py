from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from softgaze.evaluation.compare.learning import Learning, learning_chart

SPACE = "{http://www.w3.org/2000/svg}"
values = st.lists(st.floats(0, 100), min_size=1, max_size=6)


@given(st.lists(values, min_size=1, max_size=7), st.text(max_size=40))
def test_every_validation_of_every_model_has_its_place_in_both_panels(found, name):
    lines = [
        Learning(f"{number} {name}", [0.5 * (place + 1) for place in range(len(each))], {"bleu": each, "loss": each})
        for number, each in enumerate(found)
    ]
    drawing = ElementTree.fromstring(learning_chart(lines))
    curves = [each.get("points").split() for each in drawing.iter(f"{SPACE}polyline")]
    assert [len(curve) for curve in curves] == 2 * [len(each) for each in found]
    for curve in curves:
        across = [float(point.split(",")[0]) for point in curve]
        assert across == sorted(across)
    for curve, each in zip(curves, found, strict=False):
        down = [float(point.split(",")[1]) for point in curve]
        assert each.index(max(each)) == down.index(min(down)) or max(each) - each[down.index(min(down))] < 0.5


def test_a_chart_that_stands_alone_tells_its_signature():
    lines = [Learning("one", [0.1], {"bleu": [2.0], "loss": [5.0]})]
    assert "BLEU nrefs:1|tok:13a" in learning_chart(lines, signature="nrefs:1|tok:13a")
    assert "BLEU nrefs" not in learning_chart(lines)


def test_a_model_that_never_scored_is_drawn_too():
    assert "<svg" in learning_chart([Learning("none", [0.1], {"bleu": [0.0], "loss": [5.0]})])

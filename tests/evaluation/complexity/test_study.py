"""The complexity study: every measurement is there, exponents are fitted, and a planted difference is found."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.errors import UsageError
from softgaze.evaluation.complexity.layers import LAYERS, LocalAttentionLayer, RecurrentLayer, SelfAttentionLayer
from softgaze.evaluation.complexity.report import study_chart, study_crossings, study_text, timing_warning
from softgaze.evaluation.complexity.study import (
    QUANTITIES,
    Measurement,
    Study,
    check_sizes,
    find_crossing,
    fit_exponent,
    run_study,
    study_sizes,
    study_steps,
)
from softgaze.explain.render.charts import short_number

LENGTHS, WIDTHS = (16, 64, 48), (16, 8)


@pytest.fixture(scope="module")
def small():
    done = []
    found = run_study(LENGTHS, WIDTHS, rounds=2, advance=lambda: done.append(1))
    assert len(done) == study_steps(LENGTHS, WIDTHS, 2)
    return found


def test_every_layer_is_measured_at_every_length_and_width(small):
    assert study_sizes(LENGTHS, WIDTHS) == [(16, 8), (48, 8), (64, 8), (64, 16)]
    for kind in LAYERS:
        assert [point.length for point in small.along(kind, "n")] == [16, 48, 64]
        assert [point.width for point in small.along(kind, "d")] == [8, 16]
    assert all(min(point.times) > 0 and point.bytes > 0 and len(point.times) == 2 for point in small.measurements)


def test_a_repeated_size_is_measured_once():
    done = []
    asked = (32, 16, 16), (8, 16, 16)
    found = run_study(*asked, rounds=1, advance=lambda: done.append(1))
    assert (found.lengths, found.widths, found.width) == ((16, 32), (8, 16), 8)
    assert len(done) == study_steps(*asked, 1)
    assert study_text(found).count("n=16") == len(QUANTITIES)
    assert ElementTree.fromstring(study_chart(found)) is not None


def test_counts_are_reproducible(small):
    again = run_study(LENGTHS, WIDTHS, rounds=1)
    for one, other in zip(small.measurements, again.measurements, strict=True):
        assert replace(one, times=()) == replace(other, times=())


def test_json_can_be_written_and_read(small):
    record = json.loads(json.dumps(small.to_dict(), allow_nan=False))
    assert len(record["points"]) == len(LAYERS) * 4
    assert len(record["growth"]) == len(LAYERS) * 8  # five quantities by length, three of them by width


def ideal(times=lambda kind, n, d: kind.theory.operations.value(n, d)):
    """A study in which everything is as theory has it, but for the times that are given."""
    points = [
        Measurement(
            kind,
            n,
            d,
            {"convolution": int(1e6 * kind.theory.operations.value(n, d))},
            int(1e6 * kind.theory.sequential.value(n, d)),
            int(1e6 * kind.theory.path.value(n, d)),
            tuple(1e-6 * factor * times(kind, n, d) for factor in (0.9, 1.0, 1.1)),
            int(1e6 * kind.theory.memory.value(n, d)),
        )
        for kind in LAYERS
        for n, d in study_sizes((64, 128, 256), (8, 16))
    ]
    return Study(tuple(points), (64, 128, 256), (8, 16), 3)


def differing(study):
    return {(growth.layer, growth.quantity.key, growth.variable) for growth in study.growths() if growth.differs}


def test_a_study_that_follows_the_theory_has_no_differences():
    assert differing(ideal()) == set()


def test_a_planted_difference_is_found_with_its_exponent():
    study = ideal(lambda kind, n, d: n**1.5 if kind is RecurrentLayer else kind.theory.operations.value(n, d))
    assert differing(study) == {(RecurrentLayer, "seconds", variable) for variable in "nd"}
    fitted = {growth.variable: growth.exponent for growth in study.growths() if growth.differs}
    assert fitted == pytest.approx({"n": 1.5, "d": 0.0})


def test_times_that_follow_the_theory_in_one_round_do_not_differ():
    base = ideal()
    points = tuple(
        replace(point, times=(point.seconds, point.seconds * point.length, point.seconds * point.length))
        for point in base.measurements
    )
    assert differing(replace(base, measurements=points)) == set()


def test_a_busy_machine_gives_a_warning():
    base = ideal()
    busy = tuple(replace(point, times=(point.seconds, 4 * point.seconds)) for point in base.measurements)
    assert timing_warning(base) == []
    assert "4.0 times as long" in study_text(replace(base, measurements=busy))


def test_attention_differs_from_the_theory_by_its_products_with_learned_matrices(small):
    """The paper does not count them; at lengths near the width they are most of the operations."""
    layers = {layer for layer, quantity, variable in differing(small) if (quantity, variable) == ("operations", "d")}
    assert layers == {SelfAttentionLayer, LocalAttentionLayer}
    assert "products with learned matrices" in study_text(small)


def test_self_attention_and_recurrence_cross_where_length_is_width(small):
    """8·n·d² + 4·n²·d = 12·n·d² at n = d: the paper's "n smaller than d", from counts."""
    crossing = run_study((8, 16, 32), (16, 32), rounds=1)
    assert study_crossings(crossing)["operations"] == pytest.approx(16)
    assert study_crossings(small)["operations"] is None  # lengths of 16 and more, at d = 8


def test_the_text_has_every_number(small):
    text = study_text(small)
    for kind in LAYERS:
        assert text.count(f"\n  {kind.name}  ") >= 1 + len(QUANTITIES)
    for point in small.measurements:
        assert f" {short_number(point.operations / 1e6)}" in text
        assert f" {point.sequential_operations:,}" in text
        assert f" {point.longest_path:,}" in text
    assert all(quantity.meaning in " ".join(text.split()) for quantity in QUANTITIES)


def test_the_chart_has_a_line_for_every_layer_in_every_panel(small):
    root = ElementTree.fromstring(study_chart(small))
    lines = root.findall(".//{*}polyline")
    solid = [line for line in lines if "stroke-dasharray" not in line.attrib]
    differing = [growth for growth in small.growths() if growth.differs and growth.variable == "n"]
    assert len(solid) == len(LAYERS) * len(QUANTITIES)
    assert len(lines) - len(solid) == len(differing)


@pytest.mark.parametrize(
    ("lengths", "widths", "expected"),
    [
        ((64,), (64, 128), "at least two different lengths"),
        ((64, 128), (64, 64), "at least two different widths"),
        ((1, 128), (64, 128), "lengths must be at least 2, got 1"),
        ((64, 128), (64, 66), "66 is not divisible by the 4 heads"),
    ],
)
def test_sizes_that_cannot_be_fitted_or_built_are_rejected(lengths, widths, expected):
    with pytest.raises(UsageError, match=expected):
        check_sizes(lengths, widths)


# --- power laws


@given(power=st.floats(-2, 3), factor=st.floats(0.01, 100))
def test_the_exponent_of_a_power_is_that_power(power, factor):
    sizes = [64, 128, 256, 700]
    assert fit_exponent(sizes, [factor * size**power for size in sizes]) == pytest.approx(power, abs=1e-6)


def test_only_the_largest_points_are_fitted():
    assert fit_exponent([1, 2, 4, 8], [9, 2, 4, 8]) == pytest.approx(1)


@given(place=st.floats(70, 900))
def test_two_powers_cross_where_they_are_equal(place):
    sizes = [64, 128, 256, 512, 1024]
    found = find_crossing(sizes, [size**2 / place for size in sizes], sizes)
    assert found == pytest.approx(place)


def test_curves_that_never_change_their_order_do_not_cross():
    assert find_crossing([1, 2, 4], [1, 2, 3], [2, 3, 4]) is None
    assert find_crossing([1, 2, 4], [5, 6, 7], [2, 3, 4]) is None


def test_a_curve_that_comes_down_again_is_above_from_no_size_on():
    assert find_crossing([1, 2, 4], [1, 3, 1], [2, 2, 2]) is None
    assert find_crossing([1, 2, 4], [3, 1, 3], [2, 2, 2]) is None
    assert find_crossing([1, 2, 4], [3, 1, 1], [2, 2, 2]) is None

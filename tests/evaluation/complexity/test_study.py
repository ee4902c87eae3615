"""The complexity study: every measurement is there, exponents are fitted, and a planted difference is found."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.errors import UsageError
from softgaze.evaluation.complexity.layers import LAYERS, LocalAttentionLayer, RecurrentLayer, SelfAttentionLayer
from softgaze.evaluation.complexity.report import (
    study_chart,
    study_crossings,
    study_differences,
    study_text,
    timing_warning,
)
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


def test_every_kind_is_there_at_every_length_and_at_every_width(small):
    assert study_sizes(LENGTHS, WIDTHS) == [(16, 8), (48, 8), (64, 8), (64, 16)]
    for kind in LAYERS:
        assert [point.length for point in small.along(kind, "n")] == [16, 48, 64]
        assert [point.width for point in small.along(kind, "d")] == [8, 16]
    assert all(min(point.times) > 0 and point.peak_bytes > 0 and len(point.times) == 2 for point in small.measurements)


def test_a_size_named_twice_is_measured_once():
    done = []
    asked = (32, 16, 16), (8, 16, 16)
    found = run_study(*asked, rounds=1, advance=lambda: done.append(1))
    assert (found.lengths, found.widths, found.width) == ((16, 32), (8, 16), 8)
    assert len(done) == study_steps(*asked, 1)
    assert study_text(found).count("n=16") == len(QUANTITIES)
    assert ElementTree.fromstring(study_chart(found)) is not None


def test_what_is_counted_does_not_change(small):
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


def test_where_all_is_as_theory_has_it_nothing_differs():
    assert study_differences(ideal()) == []
    assert "differences" not in study_text(ideal())


def test_a_planted_difference_is_told_with_its_exponent():
    found = study_differences(
        ideal(lambda kind, n, d: n**1.5 if kind is RecurrentLayer else kind.theory.operations.value(n, d))
    )
    assert len(found) == 2
    assert found[0].startswith("recurrence, time: n^1.50, theory n^1.00")
    assert found[1].startswith("recurrence, time: d^0.00, theory d^2.00")


def test_times_that_theory_had_in_some_round_do_not_differ_from_it():
    base = ideal()
    points = tuple(
        replace(point, times=(point.seconds, point.seconds * point.length, point.seconds * point.length))
        for point in base.measurements
    )
    assert study_differences(replace(base, measurements=points)) == []


def test_a_busy_machine_is_told_and_a_quiet_one_is_not():
    base = ideal()
    busy = tuple(replace(point, times=(point.seconds, 4 * point.seconds)) for point in base.measurements)
    assert timing_warning(base) == []
    assert "4.0 times as long" in study_text(replace(base, measurements=busy))


def test_the_real_layers_differ_from_theory_where_the_paper_leaves_something_out(small):
    """The paper counts no products with learned matrices; at lengths near the width they are most of all."""
    told = [line for line in study_differences(small) if ", operations: " in line]
    for kind in (SelfAttentionLayer, LocalAttentionLayer):
        assert any(line.startswith(f"{kind.name}, operations: d^") for line in told)
    assert not any(line.startswith("recurrence") for line in told)
    assert all("products with learned matrices" in line for line in told)


def test_self_attention_and_recurrence_cross_where_length_is_width(small):
    """8·n·d² + 4·n²·d = 12·n·d² at n = d: the paper's "n smaller than d", from counts."""
    found = run_study((8, 16, 32), (16, 32), rounds=1)
    assert "up to n ≈ 16 (d = 16)" in study_crossings(found)[0]
    assert "at no measured length" in study_crossings(small)[0]  # 16 and more, at d = 8


def timed(attention, recurrence):
    """Return the conclusion about the time of both layers at lengths 64, 128 and 256."""
    times = {SelfAttentionLayer: attention, RecurrentLayer: recurrence}
    taken = ideal(lambda kind, n, d: times[kind][(64, 128, 256).index(n)] if kind in times else 1)
    return study_crossings(taken)[1]


@pytest.mark.parametrize(
    ("attention", "recurrence", "expected"),
    [
        ((0.7, 0.7, 0.8), (0.6, 1.0, 8.1), "only at n = 128, 256 (d = 8)"),
        ((1, 3, 1), (2, 2, 2), "only at n = 64, 256 (d = 8)"),
        ((3, 1, 3), (2, 2, 2), "only at n = 128 (d = 8)"),
        ((1, 1, 1), (2, 2, 2), "at every measured length (d = 8)"),
        ((3, 3, 3), (2, 2, 2), "at no measured length (d = 8)"),
        ((2, 2, 2), (2, 2, 2), "at no measured length (d = 8)"),
        ((1, 1, 4), (2, 2, 2), "up to n ≈ 181 (d = 8)"),
    ],
)
def test_lengths_are_named_at_which_attention_takes_less(attention, recurrence, expected):
    assert timed(attention, recurrence).endswith(expected)


def test_the_text_has_every_number(small):
    text = study_text(small)
    for kind in LAYERS:
        assert text.count(f"\n  {kind.name}  ") >= 1 + len(QUANTITIES)
    for point in small.measurements:
        assert f" {short_number(point.operations / 1e6)}" in text
        assert f" {point.sequential:,}" in text
        assert f" {point.path:,}" in text
    assert all(quantity.meaning in " ".join(text.split()) for quantity in QUANTITIES)


def test_the_picture_has_a_line_for_every_kind_in_every_panel(small):
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
def test_sizes_that_cannot_be_fitted_or_built_are_refused(lengths, widths, expected):
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


def test_curves_that_never_change_places_do_not_cross():
    assert find_crossing([1, 2, 4], [1, 2, 3], [2, 3, 4]) is None
    assert find_crossing([1, 2, 4], [5, 6, 7], [2, 3, 4]) is None


def test_a_curve_that_comes_down_again_is_above_from_no_size_on():
    assert find_crossing([1, 2, 4], [1, 3, 1], [2, 2, 2]) is None
    assert find_crossing([1, 2, 4], [3, 1, 3], [2, 2, 2]) is None
    assert find_crossing([1, 2, 4], [3, 1, 1], [2, 2, 2]) is None

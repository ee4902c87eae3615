"""The table: every cell is there, sentences are made of its numbers, and a planted difference is told."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from softgaze.errors import UsageError
from softgaze.evaluation.why.chart import study_chart
from softgaze.evaluation.why.findings import caution, crossings, differences, short
from softgaze.evaluation.why.layers import KINDS, Recurrence, SelfAttention, WindowedAttention
from softgaze.evaluation.why.study import QUANTITIES, Point, Study, check_sizes, sizes, steps, study
from softgaze.evaluation.why.text import study_text

LENGTHS, WIDTHS = (16, 64, 48), (16, 8)


@pytest.fixture(scope="module")
def small():
    done = []
    found = study(LENGTHS, WIDTHS, rounds=2, advance=lambda: done.append(1))
    assert len(done) == steps(LENGTHS, WIDTHS, 2)
    return found


def test_every_kind_is_there_at_every_length_and_at_every_width(small):
    assert sizes(LENGTHS, WIDTHS) == [(16, 8), (48, 8), (64, 8), (64, 16)]
    for kind in KINDS:
        assert [point.length for point in small.along(kind, "n")] == [16, 48, 64]
        assert [point.width for point in small.along(kind, "d")] == [8, 16]
    assert all(min(point.times) > 0 and point.held > 0 and len(point.times) == 2 for point in small.points)


def test_a_size_named_twice_is_measured_once():
    done = []
    asked = (32, 16, 16), (8, 16, 16)
    found = study(*asked, rounds=1, advance=lambda: done.append(1))
    assert (found.lengths, found.widths, found.width) == ((16, 32), (8, 16), 8)
    assert len(done) == steps(*asked, 1)
    assert study_text(found).count("n=16") == len(QUANTITIES)
    assert ElementTree.fromstring(study_chart(found)) is not None


def test_what_is_counted_does_not_change(small):
    again = study(LENGTHS, WIDTHS, rounds=1)
    for one, other in zip(small.points, again.points, strict=True):
        assert replace(one, times=()) == replace(other, times=())


def test_json_can_be_written_and_read(small):
    record = json.loads(json.dumps(small.to_dict(), allow_nan=False))
    assert len(record["points"]) == len(KINDS) * 4
    assert len(record["growth"]) == len(KINDS) * 8  # five quantities by length, three of them by width


def ideal(times=lambda kind, n, d: kind.theory.operations.value(n, d)):
    """A study in which everything is as theory has it, but for the times that are given."""
    points = [
        Point(
            kind,
            n,
            d,
            {"convolution": int(1e6 * kind.theory.operations.value(n, d))},
            int(1e6 * kind.theory.sequential.value(n, d)),
            int(1e6 * kind.theory.path.value(n, d)),
            tuple(1e-6 * factor * times(kind, n, d) for factor in (0.9, 1.0, 1.1)),
            int(1e6 * kind.theory.memory.value(n, d)),
        )
        for kind in KINDS
        for n, d in sizes((64, 128, 256), (8, 16))
    ]
    return Study(tuple(points), (64, 128, 256), (8, 16), 3)


def test_where_all_is_as_theory_has_it_nothing_differs():
    assert differences(ideal()) == []
    assert "differ" not in study_text(ideal())


def test_a_planted_difference_is_told_with_its_exponent():
    found = differences(ideal(lambda kind, n, d: n**1.5 if kind is Recurrence else kind.theory.operations.value(n, d)))
    assert len(found) == 2
    assert found[0].startswith("recurrence, time: n^1.50, theory n^1.00 — ")
    assert found[1].startswith("recurrence, time: d^0.00, theory d^2.00 — ")


def test_times_that_theory_had_in_some_round_do_not_differ_from_it():
    base = ideal()
    points = tuple(
        replace(point, times=(point.seconds, point.seconds * point.length, point.seconds * point.length))
        for point in base.points
    )
    assert differences(replace(base, points=points)) == []


def test_a_busy_machine_is_told_and_a_quiet_one_is_not():
    base = ideal()
    busy = tuple(replace(point, times=(point.seconds, 4 * point.seconds)) for point in base.points)
    assert caution(base) == []
    assert "4.0 times as long" in study_text(replace(base, points=busy))


def test_the_real_layers_differ_from_theory_where_the_paper_leaves_something_out(small):
    """The paper counts no products with learned matrices; at lengths near the width they are most of all."""
    told = [line for line in differences(small) if ", operations: " in line]
    for kind in (SelfAttention, WindowedAttention):
        assert any(line.startswith(f"{kind.name}, operations: d^") for line in told)
    assert not any(line.startswith("recurrence") for line in told)
    assert all("products with learned matrices" in line for line in told)


def test_self_attention_and_recurrence_cross_where_length_is_width(small):
    """8·n·d² + 4·n²·d = 12·n·d² at n = d: the paper's "n smaller than d", from counts."""
    found = study((8, 16, 32), (16, 32), rounds=1)
    assert crossings(found)[0] == "self-attention needs fewer operations than recurrence up to n ≈ 16 (d = 16)"
    assert "at no length measured" in crossings(small)[0]  # 16 and more, at d = 8


def timed(attention, recurrence):
    """What is said of the time that the two take at lengths of 64, 128 and 256."""
    times = {SelfAttention: attention, Recurrence: recurrence}
    taken = ideal(lambda kind, n, d: times[kind][(64, 128, 256).index(n)] if kind in times else 1)
    return crossings(taken)[1]


@pytest.mark.parametrize(
    ("attention", "recurrence", "expected"),
    [
        ((0.7, 0.7, 0.8), (0.6, 1.0, 8.1), "at n = 128, 256 and not at n = 64 (d = 8)"),
        ((1, 3, 1), (2, 2, 2), "at n = 64, 256 and not at n = 128 (d = 8)"),
        ((3, 1, 3), (2, 2, 2), "at n = 128 and not at n = 64, 256 (d = 8)"),
        ((1, 1, 1), (2, 2, 2), "at every length measured (d = 8)"),
        ((3, 3, 3), (2, 2, 2), "at no length measured (d = 8)"),
        ((2, 2, 2), (2, 2, 2), "at no length measured (d = 8)"),
        ((1, 1, 4), (2, 2, 2), "up to n ≈ 181 (d = 8)"),
    ],
)
def test_lengths_are_named_at_which_attention_takes_less(attention, recurrence, expected):
    assert timed(attention, recurrence) == f"self-attention needs less time than recurrence {expected}"


def test_the_text_has_every_number(small):
    text = study_text(small)
    for kind in KINDS:
        assert text.count(f"\n{kind.name}  ") >= 1 + len(QUANTITIES)
    for point in small.points:
        assert f" {short(point.operations / 1e6)}" in text
        assert f" {point.chain:,}" in text
        assert f" {point.path:,}" in text
    assert all(quantity.meaning in text for quantity in QUANTITIES)


def test_the_picture_has_a_line_for_every_kind_in_every_panel(small):
    root = ElementTree.fromstring(study_chart(small))
    lines = root.findall(".//{*}polyline")
    solid = [line for line in lines if "stroke-dasharray" not in line.attrib]
    differing = [growth for growth in small.growths() if growth.differs and growth.letter == "n"]
    assert len(solid) == len(KINDS) * len(QUANTITIES)
    assert len(lines) - len(solid) == len(differing)


def test_everything_drawn_lies_inside_the_picture(small):
    root = ElementTree.fromstring(study_chart(small))
    for panel in root.findall(".//{*}g[@transform]"):
        for line in panel.findall("{*}polyline"):
            places = [tuple(map(float, place.split(","))) for place in line.attrib["points"].split()]
            assert all(48 - 0.1 <= across <= 348.1 and 44 - 0.1 <= down <= 244.1 for across, down in places)


@pytest.mark.parametrize(
    ("lengths", "widths", "expected"),
    [
        ((64,), (64, 128), "at least two different lengths, not 1"),
        ((64, 128), (64, 64), "at least two different widths, not 1"),
        ((1, 128), (64, 128), "lengths start at 2, not 1"),
        ((64, 128), (64, 66), "a width of 66 cannot be divided among the 4 heads"),
    ],
)
def test_sizes_that_cannot_be_fitted_or_built_are_refused(lengths, widths, expected):
    with pytest.raises(UsageError, match=expected):
        check_sizes(lengths, widths)

"""Boxes: how much of a grid they cover, compared with counted pixels, and the pointing of a uniform map."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.data.boxes import Box, coverage, pointing, share

PIXELS = 24  # boxes of whole pixels can be counted


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    left, right = sorted(draw(st.tuples(st.integers(0, PIXELS), st.integers(0, PIXELS))))
    top, bottom = sorted(draw(st.tuples(st.integers(0, PIXELS), st.integers(0, PIXELS))))
    return Box(left / PIXELS, top / PIXELS, right / PIXELS, bottom / PIXELS)


def counted(several: list[Box]) -> np.ndarray:
    inside = np.zeros((PIXELS, PIXELS))
    for box in several:
        left, top, right, bottom = (round(edge * PIXELS) for edge in box)
        inside[top:bottom, left:right] = 1
    return inside


@given(
    several=st.lists(boxes(), max_size=4), rows=st.sampled_from([1, 2, 3, 6]), columns=st.sampled_from([1, 4, 8, 12])
)
def test_coverage_equals_counted_pixels(several, rows, columns):
    expected = counted(several).reshape(rows, PIXELS // rows, columns, PIXELS // columns).mean(axis=(1, 3))
    assert coverage(several, rows, columns) == pytest.approx(expected)


@given(several=st.lists(boxes(), max_size=4), rows=st.integers(1, 9), columns=st.integers(1, 9))
def test_a_uniform_map_points_by_the_area_of_the_boxes(several, rows, columns):
    even = np.full((rows, columns), 1 / (rows * columns))
    assert pointing(even, several) == pytest.approx(share(several)) == pytest.approx(counted(several).mean())


@given(box=boxes(), weights=st.lists(st.floats(0, 1), min_size=12, max_size=12).filter(sum))
def test_a_box_and_the_area_around_it_share_all_weight(box, weights):
    gaze = np.reshape(weights, (3, 4)) / sum(weights)
    around = [
        Box(0, 0, 1, box.top),
        Box(0, box.bottom, 1, 1),
        Box(0, box.top, box.left, box.bottom),
        Box(box.right, box.top, 1, box.bottom),
    ]
    assert pointing(gaze, [box]) + pointing(gaze, around) == pytest.approx(1)


@given(box=boxes(), width=st.integers(1, 5000), height=st.integers(1, 5000))
def test_pixels_and_back(box, width, height):
    size = (width, height)
    assert Box.of_pixels(*box.pixels(size), size=size) == pytest.approx(box)
    assert box.area == pytest.approx(share([box]))


def test_boxes_are_clipped_to_the_image():
    assert Box.of_pixels(-10, 5, 30, 100, (40, 50)) == Box(0, 0.1, 0.5, 1)
    assert Box.of_pixels(50, 5, 30, 10, (40, 50)).area == 0

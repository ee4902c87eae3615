"""Boxes in pictures, in shares of the picture's width and height: no size of a photo, view or grid changes them.

How much of an attention lies in the right boxes is `pointing`; what a gaze that knows nothing gets is `share`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy
import numpy.typing

Array = numpy.typing.NDArray[Any]


class Box(NamedTuple):
    """A rectangle of a picture: edges from 0 to 1, from the left and from the top."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def of_pixels(cls, left: float, top: float, width: float, height: float, size: tuple[float, float]) -> "Box":
        """From pixels of a picture of `size` (width, height); what lies outside the picture is cut off."""
        edges = (left / size[0], top / size[1], (left + width) / size[0], (top + height) / size[1])
        return cls(*(min(max(edge, 0.0), 1.0) for edge in edges))

    def pixels(self, size: tuple[float, float]) -> tuple[float, float, float, float]:
        """Left, top, width and height in a picture of `size` (width, height), as COCO writes them."""
        width, height = size
        return self.left * width, self.top * height, (self.right - self.left) * width, (self.bottom - self.top) * height

    @property
    def area(self) -> float:
        """The share of the picture that it covers; 0 for a box that was cut away."""
        return max(self.right - self.left, 0.0) * max(self.bottom - self.top, 0.0)


def coverage(boxes: Sequence[Box], rows: int, columns: int) -> Array:
    """How much of each cell of a grid (rows, columns) lies in at least one of the boxes, from 0 to 1; exact."""
    across = _edges([(box.left, box.right) for box in boxes], columns)
    down = _edges([(box.top, box.bottom) for box in boxes], rows)
    x, y = (across[1:] + across[:-1]) / 2, (down[1:] + down[:-1]) / 2
    inside = numpy.zeros((len(y), len(x)), dtype=bool)
    for box in boxes:
        inside |= numpy.outer((box.top < y) & (y < box.bottom), (box.left < x) & (x < box.right))
    areas = inside * numpy.outer(numpy.diff(down), numpy.diff(across)) * rows * columns
    of_row, of_column = (y * rows).astype(int), (x * columns).astype(int)
    cells = numpy.zeros((rows, columns))
    numpy.add.at(cells, (of_row[:, None], of_column[None, :]), areas)
    return cells


def _edges(spans: Iterable[tuple[float, float]], cells: int) -> Array:
    """Where along one side anything begins or ends: cells or boxes."""
    return numpy.unique([*(numpy.arange(cells + 1) / cells), *(edge for span in spans for edge in span)])


def pointing(weights: Array, boxes: Sequence[Box]) -> float:
    """How much of an attention (rows, columns) that sums to 1 lies in the boxes; a cell's weight is spread evenly."""
    return float((weights * coverage(boxes, *weights.shape)).sum())


def share(boxes: Sequence[Box]) -> float:
    """The share of the picture that the boxes cover: the pointing of an attention that is the same everywhere."""
    return float(coverage(boxes, 1, 1)[0, 0])

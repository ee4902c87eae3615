"""Boxes in images as shares of width and height, and how much of an attention map lies in them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Box(NamedTuple):
    """A rectangle with edges from 0 to 1, measured from the left and from the top."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def of_pixels(cls, left: float, top: float, width: float, height: float, size: tuple[float, float]) -> "Box":
        """Create a box from pixels of an image of `size` (width, height), clipped to the image."""
        edges = (left / size[0], top / size[1], (left + width) / size[0], (top + height) / size[1])
        return cls(*(min(max(edge, 0.0), 1.0) for edge in edges))

    def pixels(self, size: tuple[float, float]) -> tuple[float, float, float, float]:
        """Return left, top, width and height in an image of `size` (width, height), as in COCO files."""
        width, height = size
        return self.left * width, self.top * height, (self.right - self.left) * width, (self.bottom - self.top) * height

    @property
    def area(self) -> float:
        """Return the share of the image that the box covers."""
        return max(self.right - self.left, 0.0) * max(self.bottom - self.top, 0.0)


def coverage(boxes: Sequence[Box], rows: int, columns: int) -> Array:
    """Return the exact share of each cell of a grid (rows, columns) that lies in at least one box."""
    x_edges = _edges([(box.left, box.right) for box in boxes], columns)
    y_edges = _edges([(box.top, box.bottom) for box in boxes], rows)
    x, y = (x_edges[1:] + x_edges[:-1]) / 2, (y_edges[1:] + y_edges[:-1]) / 2
    inside = np.zeros((len(y), len(x)), dtype=bool)
    for box in boxes:
        inside |= np.outer((box.top < y) & (y < box.bottom), (box.left < x) & (x < box.right))
    areas = inside * np.outer(np.diff(y_edges), np.diff(x_edges)) * rows * columns
    cells = np.zeros((rows, columns))
    np.add.at(cells, ((y * rows).astype(int)[:, None], (x * columns).astype(int)[None, :]), areas)
    return cells


def _edges(spans: Iterable[tuple[float, float]], cells: int) -> Array:
    """Return all coordinates along one side where a cell or a box starts or ends."""
    return np.unique([*(np.arange(cells + 1) / cells), *(edge for span in spans for edge in span)])


def pointing(weights: Array, boxes: Sequence[Box]) -> float:
    """Return how much of an attention map (rows, columns) lies in the boxes; a cell's weight is spread evenly."""
    return float((weights * coverage(boxes, *weights.shape)).sum())


def share(boxes: Sequence[Box]) -> float:
    """Return the share of the image that the boxes cover: the `pointing` of a uniform attention map."""
    return float(coverage(boxes, 1, 1)[0, 0])

"""A scene as pixels, and the box of each thing: the smallest that holds every pixel the thing has touched.

An outline is a rule for points of a plane whose unit is the thing's radius, x to the right and y down: inside or not.
Each pixel asks sixteen points, so that edges are smooth. Knows nothing of words but the names of shapes.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import numpy.typing

from softgaze.data.boxes import Box
from softgaze.data.scenes.things import Scene, Thing

Array = numpy.typing.NDArray[Any]
Outline = Callable[[Array, Array], Any]  # points inside or not

SIDE = 64
_SAMPLES = 4  # points across a pixel, and down it


class Drawing(NamedTuple):
    """A picture (side, side, 3) of bytes, and a box for each thing in the order of mention."""

    pixels: Array
    boxes: tuple[Box, ...]


def _circle(x: Array, y: Array) -> Any:
    return x**2 + y**2 <= 0.92**2


def _square(x: Array, y: Array) -> Any:
    return numpy.maximum(abs(x), abs(y)) <= 0.70


def _triangle(x: Array, y: Array) -> Any:
    return (y <= 0.5) & (math.sqrt(3) * abs(x) <= 1 + y)


def _star(x: Array, y: Array) -> Any:
    """Five points: folded into half of one, its edge runs from the tip straight to the dent."""
    fifth = 2 * math.pi / 5
    angle = abs((numpy.arctan2(x, -y) + fifth / 2) % fifth - fifth / 2)
    dent = 0.45 * math.cos(fifth / 2), 0.45 * math.sin(fifth / 2)
    reach = dent[1] / (numpy.sin(angle) * (1 - dent[0]) + numpy.cos(angle) * dent[1])
    return x**2 + y**2 <= reach**2


def _heart(x: Array, y: Array) -> Any:
    x, y = 1.25 * x, 0.25 - 1.25 * y
    beyond = x**2 + y**2 - 1
    return beyond**2 * beyond <= x**2 * y**2 * y


def _cross(x: Array, y: Array) -> Any:
    return (numpy.minimum(abs(x), abs(y)) <= 0.27) & (numpy.maximum(abs(x), abs(y)) <= 0.92)


def _ring(x: Array, y: Array) -> Any:
    return abs(numpy.hypot(x, y) - 0.73) <= 0.22


def _moon(x: Array, y: Array) -> Any:
    return (x**2 + y**2 <= 0.96**2) & ((x - 0.46) ** 2 + (y + 0.12) ** 2 > 0.76**2)


OUTLINES: dict[str, Outline] = {
    "circle": _circle,
    "square": _square,
    "triangle": _triangle,
    "star": _star,
    "heart": _heart,
    "cross": _cross,
    "ring": _ring,
    "moon": _moon,
}


def draw(scene: Scene, side: int = SIDE) -> Drawing:
    """The picture of a scene, and the boxes of its things."""
    pixels = numpy.empty((side, side, 3))
    pixels[:] = scene.paper
    boxes = tuple(_paint(pixels, thing) for thing in scene.things)
    return Drawing(numpy.rint(pixels).astype(numpy.uint8), boxes)


def _paint(pixels: Array, thing: Thing) -> Box:
    """Put a thing on the picture; its box."""
    side = len(pixels)
    left, top = math.floor((thing.x - thing.radius) * side), math.floor((thing.y - thing.radius) * side)
    ink = _ink(thing, left, top, side)
    rows, columns = slice(top, top + len(ink)), slice(left, left + ink.shape[1])
    pixels[rows, columns] += ink[:, :, None] * (numpy.array(thing.colour.rgb) - pixels[rows, columns])
    across, down = (numpy.flatnonzero(ink.max(axis=axis)).tolist() for axis in (0, 1))
    width, height = across[-1] - across[0] + 1, down[-1] - down[0] + 1
    return Box.of_pixels(left + across[0], top + down[0], width, height, (side, side))


def _ink(thing: Thing, left: int, top: int, side: int) -> Array:
    """How much of each pixel around a thing it covers, from 0 to 1."""
    right, bottom = math.ceil((thing.x + thing.radius) * side), math.ceil((thing.y + thing.radius) * side)
    x = (_points(left, right) / side - thing.x) / thing.radius
    y = (_points(top, bottom)[:, None] / side - thing.y) / thing.radius
    cosine, sine = math.cos(thing.turn), math.sin(thing.turn)
    inside = OUTLINES[thing.shape.english](cosine * x + sine * y, cosine * y - sine * x)
    covered: Array = inside.reshape(bottom - top, _SAMPLES, right - left, _SAMPLES).mean(axis=(1, 3))
    return covered


def _points(start: int, stop: int) -> Array:
    """Where along one side the pixels from `start` to `stop` are asked."""
    return start + (numpy.arange((stop - start) * _SAMPLES) + 0.5) / _SAMPLES

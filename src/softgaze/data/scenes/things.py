"""What a scene is made of, before anything is drawn or said. Lengths are shares of the picture's side."""

from dataclasses import dataclass

from softgaze.data.scenes.lexicon import Colour, Shape, Size


@dataclass(frozen=True, slots=True)
class Thing:
    """A shape at its place: (x, y) is the middle of the circle around it, from the left and from the top."""

    size: Size
    colour: Colour
    shape: Shape
    x: float
    y: float
    radius: float
    turn: float  # in radians, clockwise


@dataclass(frozen=True, slots=True)
class Scene:
    """Rows of things on paper: in a row from left to right, and the rows from top to bottom."""

    rows: tuple[tuple[Thing, ...], ...]
    paper: tuple[int, int, int]

    @property
    def things(self) -> tuple[Thing, ...]:
        """All of them in the order of mention."""
        return tuple(thing for row in self.rows for thing in row)

"""The words of the built-in pictures in both languages, with what they look like where a number can say it.

Eight colours and eight shapes: the square of combinations that `squares` deals out.
"""

from typing import NamedTuple


class Colour(NamedTuple):
    """A colour: its words and its red, green and blue."""

    english: str
    korean: str
    rgb: tuple[int, int, int]


class Shape(NamedTuple):
    """A shape: its words; `drawing` knows its outline by the English one."""

    english: str
    korean: str


class Size(NamedTuple):
    """A size: its words, none for the middle one, and the radius as a share of the picture's side."""

    english: str
    korean: str
    radius: float


# Told apart by hue or by lightness; every one stands out from light paper.
COLOURS = (
    Colour("red", "빨간", (214, 40, 40)),
    Colour("orange", "주황색", (247, 133, 18)),
    Colour("yellow", "노란", (245, 205, 20)),
    Colour("green", "초록색", (38, 148, 74)),
    Colour("blue", "파란", (33, 94, 200)),
    Colour("purple", "보라색", (124, 58, 168)),
    Colour("pink", "분홍색", (245, 140, 185)),
    Colour("black", "검은", (34, 34, 38)),
)
SHAPES = (
    Shape("circle", "동그라미"),
    Shape("square", "네모"),
    Shape("triangle", "세모"),
    Shape("star", "별"),
    Shape("heart", "하트"),
    Shape("cross", "십자가"),
    Shape("ring", "고리"),
    Shape("moon", "초승달"),
)
SIZES = (Size("small", "작은", 0.115), Size("", "", 0.155), Size("big", "큰", 0.205))

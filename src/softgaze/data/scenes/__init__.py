"""The built-in pictures: a few coloured shapes on paper, a caption that follows from the picture, and known boxes.

A scene has one or two rows of shapes and is read like a page: "left of" leads along a row, "above" to the next. So a
picture has exactly one caption, in English and in Korean, and the order of mention is fixed. Dev and test show shapes
in colours that train never has them in, though it has every shape and every colour. Nothing here needs torch or a
network; everything follows from the seed. Only `write` needs pillow.

    lexicon → things                      the words, and shapes with their colour, size and place
    layout → splits                       scenes at random, and which split may show what
    wording                               the caption, and which of its words name which shape
    drawing → writing                     pixels and boxes, and all of it as files
"""

from softgaze.data.scenes.drawing import SIDE, Drawing, draw
from softgaze.data.scenes.lexicon import COLOURS, SHAPES, SIZES
from softgaze.data.scenes.splits import LIMIT, SPLITS, Scenes, chance, generate, scene
from softgaze.data.scenes.things import Scene, Thing
from softgaze.data.scenes.wording import LANGUAGES, Caption, caption
from softgaze.data.scenes.writing import write

__all__ = [
    "COLOURS",
    "LANGUAGES",
    "LIMIT",
    "SHAPES",
    "SIDE",
    "SIZES",
    "SPLITS",
    "Caption",
    "Drawing",
    "Scene",
    "Scenes",
    "Thing",
    "caption",
    "chance",
    "draw",
    "generate",
    "scene",
    "write",
]

"""Generate the scene corpus: random scenes of coloured shapes, and their captions in English and Korean.

A scene has one or two rows of shapes that never overlap, and its caption follows reading order, so every image has
exactly one caption. Everything follows from the seed.
"""

import random
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

from softgaze.data.corpora.scenes import SHAPES, SPLITS, Scene, SceneObject


class Colour(NamedTuple):
    """A colour word in both languages."""

    english: str
    korean: str
    rgb: tuple[int, int, int]


class Size(NamedTuple):
    """A size word in both languages, empty for medium; the radius is a share of the image side."""

    english: str
    korean: str
    radius: float


# All colours differ in hue or lightness and contrast with a light background.
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
SIZES = (Size("small", "작은", 0.115), Size("", "", 0.155), Size("big", "큰", 0.205))

# Number of objects per row → relative frequency.
LAYOUTS = {(1,): 14, (2,): 23, (1, 1): 23, (1, 2): 20, (2, 1): 20}
MARGIN, GAP = 0.03, 0.05  # free space at the border and between objects
RADIUS_JITTER = 0.06
MAX_ANGLE = 0.25  # radians
BACKGROUND = range(232, 256)

Kind = tuple[Colour, str]  # a colour and the English name of a shape


class Item(NamedTuple):
    """An object before it has a position."""

    size: Size
    colour: Colour
    shape: str
    radius: float
    angle: float


def generate(split: str, count: int, seed: int) -> list[Scene]:
    """Return the first `count` scenes of a split."""
    return [compose(random.Random(f"softgaze scenes {seed} {split} {index}"), split) for index in range(count)]


def compose(rng: random.Random, split: str) -> Scene:
    """Draw one scene; in dev and test at least one object has a combination that train lacks."""
    (layout,) = rng.choices(list(LAYOUTS), list(LAYOUTS.values()))
    chosen = [rng.choice(kinds(split))]
    chosen += rng.sample([kind for kind in kinds("train", split) if kind != chosen[0]], sum(layout) - 1)
    rng.shuffle(chosen)
    sized = iter([(*kind, rng.choice(SIZES)) for kind in chosen])
    rows = [[_item(rng, *next(sized)) for _ in range(columns)] for columns in layout]
    background = (rng.choice(BACKGROUND), rng.choice(BACKGROUND), rng.choice(BACKGROUND))
    return Scene(_arrange(rng, rows), background, {language: caption(rows, language) for language in ("en", "ko")})


@cache
def kinds(*splits: str) -> tuple[Kind, ...]:
    """Return every combination of colour and shape that belongs to one of the splits."""
    grid = product(enumerate(COLOURS), enumerate(SHAPES))
    return tuple((colour, shape) for (row, colour), (column, shape) in grid if split_of(row, column) in splits)


def split_of(row: int, column: int) -> str:
    """Return the split of a combination: each colour and each shape has one held-out partner of eight."""
    if (column - row) % len(COLOURS) != 3:
        return "train"
    return "dev" if row % 2 else "test"


def _item(rng: random.Random, colour: Colour, shape: str, size: Size) -> Item:
    radius = size.radius * (1 + rng.uniform(-RADIUS_JITTER, RADIUS_JITTER))
    return Item(size, colour, shape, radius, rng.uniform(-MAX_ANGLE, MAX_ANGLE))


def _arrange(rng: random.Random, rows: Sequence[Sequence[Item]]) -> tuple[SceneObject, ...]:
    """Position the rows below each other and the items of a row next to each other."""
    heights = [2 * max(item.radius for item in row) for row in rows]
    objects = []
    for row, top, height in zip(rows, _spread(rng, heights), heights, strict=True):
        lefts = _spread(rng, [2 * item.radius for item in row])
        for item, left in zip(row, lefts, strict=True):
            y = top + item.radius + rng.random() * (height - 2 * item.radius)
            objects.append(SceneObject(item.shape, item.colour.rgb, left + item.radius, y, item.radius, item.angle))
    return tuple(objects)


def _spread(rng: random.Random, lengths: Sequence[float]) -> list[float]:
    """Return the start of each length, in order, with the free space distributed at random."""
    free = 1 - 2 * MARGIN - GAP * (len(lengths) - 1) - sum(lengths)
    before = sorted(rng.random() * free for _ in lengths)
    return [MARGIN + space + GAP * index + sum(lengths[:index]) for index, space in enumerate(before)]


def caption(rows: Sequence[Sequence[Item]], language: str) -> str:
    """Return the caption: objects in reading order, joined by the position of the next one."""
    # Korean names the position of the next object ("to its right"), so both languages mention objects in one order.
    in_row, below, again = {"en": ("left of", "above", ""), "ko": ("오른쪽에", "아래에", ", 그")}[language]
    text, mentioned = "", 0
    for row in rows:
        for column, item in enumerate(row):
            if mentioned:
                text += f"{again if mentioned > 1 else ''} {in_row if column else below} "
            text += _describe(item, language)
            mentioned += 1
    return text


def _describe(item: Item, language: str) -> str:
    if language == "ko":
        return " ".join(filter(None, (item.size.korean, item.colour.korean, SHAPES[item.shape])))
    words = " ".join(filter(None, (item.size.english, item.colour.english, item.shape)))
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def generate_all(seed: int) -> list[Scene]:
    """Return the scenes of all splits in shipped order."""
    return [scene for split, count in SPLITS.items() for scene in generate(split, count, seed)]

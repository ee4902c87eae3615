"""Scenes at random: what is in them, and where. Rows never overlap in height, nor things of a row in width."""

import random
from collections.abc import Sequence
from functools import cache
from itertools import product

from softgaze.data.scenes.lexicon import COLOURS, SHAPES, SIZES, Colour, Shape, Size
from softgaze.data.scenes.things import Scene, Thing
from softgaze.data.squares import sparing_owner

Kind = tuple[Colour, Shape]

# Things in each row, and of a hundred scenes how many are so.
LAYOUTS = {(1,): 14, (2,): 23, (1, 1): 23, (1, 2): 20, (2, 1): 20}
MARGIN, GAP = 0.03, 0.05  # free space at the edge and between things
_UNEVEN = 0.06  # by how much of it a radius may differ from its size's
_TURN = 0.25  # how far, in radians, a thing may be turned from upright
_PAPER = range(232, 256)


@cache
def kinds(*splits: str) -> tuple[Kind, ...]:
    """Every colour with every shape that one of the splits owns."""
    square = product(enumerate(COLOURS), enumerate(SHAPES))
    return tuple((colour, shape) for (row, colour), (column, shape) in square if sparing_owner(row, column) in splits)


def compose(dice: random.Random, split: str) -> Scene:
    """One scene; in dev and test at least one thing is of a kind that train never shows."""
    (layout,) = dice.choices(list(LAYOUTS), list(LAYOUTS.values()))
    chosen = _choose(dice, split, sum(layout))
    things = iter([(*kind, dice.choice(SIZES)) for kind in chosen])
    rows = [[_sized(dice, *next(things)) for _ in range(count)] for count in layout]
    paper = tuple(dice.choice(_PAPER) for _ in range(3))
    return Scene(_placed(dice, rows), (paper[0], paper[1], paper[2]))


def _choose(dice: random.Random, split: str, count: int) -> list[Kind]:
    """Different kinds, the split's own one at any place among them."""
    chosen = [dice.choice(kinds(split))]
    others = [kind for kind in kinds("train", split) if kind != chosen[0]]
    chosen += dice.sample(others, count - 1)
    dice.shuffle(chosen)
    return chosen


def _sized(dice: random.Random, colour: Colour, shape: Shape, size: Size) -> Thing:
    """A thing that has no place yet."""
    radius = size.radius * (1 + dice.uniform(-_UNEVEN, _UNEVEN))
    return Thing(size, colour, shape, 0.0, 0.0, radius, dice.uniform(-_TURN, _TURN))


def _placed(dice: random.Random, rows: Sequence[Sequence[Thing]]) -> tuple[tuple[Thing, ...], ...]:
    """The rows one below the other, each thing within the height of its row."""
    heights = [2 * max(thing.radius for thing in row) for row in rows]
    tops = _spread(dice, heights)
    return tuple(_row(dice, row, top, height) for row, top, height in zip(rows, tops, heights, strict=True))


def _row(dice: random.Random, row: Sequence[Thing], top: float, height: float) -> tuple[Thing, ...]:
    """The things of a row beside each other."""
    lefts = _spread(dice, [2 * thing.radius for thing in row])
    return tuple(
        _at(thing, left + thing.radius, top + thing.radius + dice.random() * (height - 2 * thing.radius))
        for thing, left in zip(row, lefts, strict=True)
    )


def _at(thing: Thing, x: float, y: float) -> Thing:
    """The thing at a place."""
    return Thing(thing.size, thing.colour, thing.shape, x, y, thing.radius, thing.turn)


def _spread(dice: random.Random, lengths: Sequence[float]) -> list[float]:
    """Where each of some lengths begins, in this order, with the space that is left dealt out at random."""
    free = 1 - 2 * MARGIN - GAP * (len(lengths) - 1) - sum(lengths)
    before = sorted(dice.random() * free for _ in lengths)
    return [MARGIN + space + GAP * place + sum(lengths[:place]) for place, space in enumerate(before)]

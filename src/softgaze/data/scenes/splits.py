"""The pictures in their parts: dev and test show shapes in colours that train never has them in."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from softgaze.data.boxes import share
from softgaze.data.scenes.drawing import SIDE, draw
from softgaze.data.scenes.layout import compose
from softgaze.data.scenes.things import Scene
from softgaze.errors import DataError

LIMIT = 1_000_000
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class Scenes:
    """The scenes in their three parts."""

    train: tuple[Scene, ...]
    dev: tuple[Scene, ...]
    test: tuple[Scene, ...]


def scene(split: str, number: int, seed: int = 0) -> Scene:
    """Scene `number` of a split: the same wherever and whenever it is asked for, however many there are."""
    if split not in SPLITS:
        raise ValueError(f"no split {split!r}; there are {', '.join(SPLITS)}")
    return compose(random.Random(f"softgaze scenes {seed} {split} {number}"), split)


def generate(pictures: int = 10_000, seed: int = 0) -> Scenes:
    """So many scenes to train on, and about 500 each (fewer for small sets) of dev and test.

    The same `seed` gives the same scenes everywhere, and fewer of them are the first of more.
    """
    if not 1 <= pictures <= LIMIT:
        raise DataError(f"scenes: {pictures:,} pictures asked for; ask for 1 to {LIMIT:,}")
    held_out = min(500, pictures // 20)
    sizes = {"train": pictures, "dev": held_out, "test": held_out}
    return Scenes(
        **{split: tuple(scene(split, number, seed) for number in range(size)) for split, size in sizes.items()}
    )


def chance(scenes: Sequence[Scene], side: int = SIDE) -> float:
    """How much of an attention that is the same everywhere lies in the right box, over all things of all scenes."""
    shares = [share([box]) for scene in scenes for box in draw(scene, side).boxes]
    return sum(shares) / len(shares)

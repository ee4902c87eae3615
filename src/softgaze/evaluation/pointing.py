"""Pointing: how much of the look of a word that names a thing lies on the thing, beside what a blind look would get."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from softgaze.data.boxes import Box, pointing, share
from softgaze.gaze.attention import Attention


class Pointed(NamedTuple):
    """One word, or the mean of many."""

    mass: float  # the share of the look that lies in the right boxes
    chance: float  # the share of the picture that they cover: what a look gets that is the same everywhere
    nouns: int = 1

    def __str__(self) -> str:
        return f"{self.mass:.1%} of the look of {self.nouns:,} nouns lies in the right box (chance {self.chance:.1%})"


def pointed(attention: Attention, word: int, boxes: Sequence[Box]) -> Pointed:
    """Of one output word, counted from 0; boxes are in shares of what the model saw."""
    rows = [row for row, label in enumerate(attention.words().row_labels) if label.word == word]
    return Pointed(pointing(attention.words().tile(rows[0]), boxes), share(boxes))


def average(found: Iterable[Pointed]) -> Pointed | None:
    """Of many words; None of none."""
    every = list(found)
    if not every:
        return None
    masses, chances = ([getattr(each, name) for each in every] for name in ("mass", "chance"))
    return Pointed(sum(masses) / len(every), sum(chances) / len(every), len(every))

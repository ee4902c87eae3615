"""Where everything stands in a picture of attention: it grows with the sentence and with its words. Draws nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from softgaze.gaze.alignment import Alignment
from softgaze.gaze.attention import Attention
from softgaze.gaze.lettering import cut, isolated, width_of, wrapped
from softgaze.gaze.words import Label

MARGIN, PAD = 16, 8
MARK_GAP = 8  # between words and the marks of begin and end
LONGEST = 24  # em of a label; whoever wants more of a word has it in the numbers
WIDEST, ROW_OF_WORDS = 84, 760  # a label and a line of labels that need not be turned
BAR, FOOT = 40, 18  # the longest bars of entropy and of coverage
LEAST_WIDTH = 420  # for legend and footer under the smallest map
SLANT = 0.7072  # sine and cosine of 45°
NOTE, NOTE_LINE = 12, 17  # letters and lines of legend and footer
SCALE, SIGN, LEGEND_LINE = 140, 18, 26  # signs of the legend
SIDES = {"cross": ("output", "source"), "encoder": ("source", "source"), "decoder": ("output", "output")}
ASKED = ("query", "key")  # sides of weights of one's own
NUMBERS = {"weights": "weight", "norms": "weight × length", "rollout": "rollout"}  # what a cell holds, by measure


class Sizes(NamedTuple):
    """Of cells and letters."""

    cell: float
    letter: float
    number: float
    line: float  # how thick a ring is
    digits: int  # of the numbers under the columns


ROOMY, DENSE = Sizes(30, 14, 10.5, 1.2, 2), Sizes(19, 11, 8, 0.8, 1)
MANY = 40  # rows or columns that are drawn smaller


@dataclass(frozen=True)
class Axis:
    """Rows from top to bottom or columns from left to right."""

    labels: Sequence[Label]
    start: float
    size: float  # of one cell

    @cached_property
    def places(self) -> list[float]:
        """Where each begins; marks stand a little apart."""
        places = [self.start] if self.labels else []
        for one, other in pairwise(self.labels):
            apart = MARK_GAP if (one.word is None) != (other.word is None) else 0
            places.append(places[-1] + self.size + apart)
        return places

    @property
    def end(self) -> float:
        """Where the last one ends."""
        return self.places[-1] + self.size if self.places else self.start

    def middle(self, number: int) -> float:
        """Of one row or column."""
        return self.places[number] + self.size / 2

    def runs(self) -> Iterator[list[float]]:
        """The edges of all cells that stand together."""
        run: list[float] = []
        for place in self.places:
            if run and place > run[-1] + 1e-6:
                yield run
                run = []
            run = [*(run or [place]), place + self.size]
        if run:
            yield run


@dataclass(frozen=True)
class Sheet:
    """What is drawn, and where."""

    attention: Attention
    gold: Alignment | None = None
    about: str = ""  # what weights of one's own are; else which map of a model this is
    sides: tuple[str, str] = ASKED  # of rows and columns of one's own
    is_narrow: bool = False  # beside others, so that cells are no wider than high

    @cached_property
    def sizes(self) -> Sizes:
        """Long sentences are drawn smaller."""
        return DENSE if max(self.attention.weights.shape) > MANY else ROOMY

    @cached_property
    def names(self) -> tuple[list[str], list[str]]:
        """The words of rows and columns as they are written."""
        attention = self.attention
        rows, columns = ([cut(word, LONGEST) for word in side] for side in (attention.target, attention.source))
        return rows, columns

    @cached_property
    def widest(self) -> float:
        """Of the column labels."""
        return max((width_of(name, self.sizes.letter) for name in self.names[1]), default=0.0)

    @cached_property
    def is_turned(self) -> bool:
        """Whether the column labels stand slanted, because side by side they would take too much room."""
        across = len(self.names[1]) * (self.widest + PAD)
        has_room = not self.is_narrow and self.widest <= WIDEST and across <= ROW_OF_WORDS
        return not (has_room or self.widest + PAD <= self.sizes.cell)

    @cached_property
    def columns(self) -> Axis:
        """With room for row labels at the left."""
        size = self.sizes.cell if self.is_turned else max(self.sizes.cell, self.widest + PAD)
        widths = [width_of(name, self.sizes.letter) for name in self.names[0]]
        widths += [width_of(name, self.sizes.number) for name in (self.corner, *["coverage"] * self.is_covered)]
        return Axis(self.attention.column_labels, MARGIN + max(widths) + PAD, size)

    @cached_property
    def rows(self) -> Axis:
        """With room for column labels above."""
        above = self.widest * SLANT + self.sizes.letter if self.is_turned else self.sizes.letter * 1.3
        return Axis(self.attention.row_labels, MARGIN + above + PAD / 2, self.sizes.cell)

    @property
    def corner(self) -> str:
        """What stands at the left and what on top."""
        return "{} ↓ {} →".format(*(self.sides if self.about else SIDES[self.attention.view.kind]))

    @property
    def is_covered(self) -> bool:
        """Whether rows look at the same columns, so that a sum over rows means something."""
        return self.sides == ASKED

    @cached_property
    def reach(self) -> float:
        """Where cells and column labels end."""
        ends = [self.columns.end]
        if self.is_turned:
            slanted = [width_of(name, self.sizes.letter) * SLANT for name in self.names[1]]
            ends += [self.columns.middle(number) + each + self.sizes.letter for number, each in enumerate(slanted)]
        return max(ends)

    @cached_property
    def width(self) -> float:
        """Of the whole drawing."""
        bars = self.columns.end + PAD + width_of("0.00", self.sizes.number) + PAD / 2 + BAR
        return round(max(self.reach, bars, LEAST_WIDTH)) + MARGIN

    @property
    def below(self) -> float:
        """Where the numbers under the columns stand."""
        return self.rows.end + PAD + FOOT + self.sizes.number

    @property
    def foot(self) -> float:
        """Where legend and footer begin."""
        return self.below + 3 * PAD

    @cached_property
    def legend(self) -> list[list[tuple[str, str]]]:
        """Lines of (sign, meaning) that fit side by side."""
        signs = [("scale", NUMBERS[self.attention.view.measure] if self.is_covered else "share")]
        signs += [("ring", "most of its row")]
        if self.gold is not None:
            signs += [("sure", "gold")]
            signs += [("possible", "gold, possible")] * any(link not in self.gold.links for link in self.gold)
        lines: list[list[tuple[str, str]]] = [[]]
        for sign in signs:
            taken = sum(width_of_sign(*each) for each in [*lines[-1], sign])
            if lines[-1] and taken > self.width - 2 * MARGIN:
                lines.append([])
            lines[-1].append(sign)
        return lines

    @cached_property
    def footer(self) -> list[str]:
        """What exactly is shown, and of which sentences."""
        texts = [f"{side}: {said}" for side, said in sentences(self.attention).items()]
        room = (self.width - 2 * MARGIN) / NOTE
        paragraphs = [self.about] if self.about else [*texts, self.attention.shows]
        return [line for paragraph in paragraphs for line in wrapped(paragraph, room)]

    @property
    def height(self) -> float:
        """Of the whole drawing."""
        return round(self.foot + LEGEND_LINE * (len(self.legend) - 1) + NOTE_LINE * (len(self.footer) + 1) + MARGIN)


def width_of_sign(sign: str, meaning: str) -> float:
    """Of one entry of the legend, with what keeps it from the next."""
    return (SCALE if sign == "scale" else SIGN) + PAD / 2 + width_of(meaning, NOTE) + 2 * PAD


def sentences(attention: Attention) -> dict[str, str]:
    """What is looked at, and what looks, as one reads it."""
    said = {"source": attention.recording.source.text, "output": attention.recording.target.text}
    return {side: isolated(said[side]) or "(empty)" for side in reversed(SIDES[attention.view.kind])}

"""A heat map in plain text that lines up, whatever the width and the direction of its characters."""

import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len

from softgaze.gaze.attention import Attention
from softgaze.gaze.lettering import LEFT_TO_RIGHT, clean, isolated, runs_right_to_left
from softgaze.gaze.recording import Matrix
from softgaze.gaze.words import Label

SHADES = " ░▒▓█"
EDGES = (0.08, 0.25, 0.45, 0.7)  # where one shade gives way to the next
CELLS = {shade: 2 * shade for shade in SHADES} | {" ": "· "}  # of a picture, whose edges must be seen
GAP, MARK_GAP = "  ", "    "  # between words; between words and the marks of begin and end
LEGEND = "  ".join(f"{shade} ≥ {edge:.2f}" for shade, edge in zip(SHADES[1:], EDGES, strict=True))


class Column(NamedTuple):
    """A word on top."""

    number: int
    word: str
    gap: str  # what keeps it from the one before

    @property
    def width(self) -> int:
        """In cells of the terminal; Hangul takes two a syllable, an accent none."""
        return cell_len(self.word)


def heat_map(attention: Attention, width: int | None = None) -> str:
    """Source words on top, one line an output word; a long sentence goes on below in further blocks.

    Under it stands what the shades mean, and which map this is. What looks at a picture is drawn as pictures.
    """
    limit = width or shutil.get_terminal_size().columns
    if attention.grid is not None:
        return small_pictures(attention, limit)
    margin = max((cell_len(clean(word)) for word in attention.target), default=0)
    blocks = [block(attention, columns, margin) for columns in fitting(columns_of(attention), limit - margin)]
    return "\n\n".join([*blocks, "\n".join([LEGEND, *filled(clean(attention.shows), limit)])])


def block(attention: Attention, columns: Sequence[Column], margin: int) -> str:
    """What stands side by side; the rows of marks a line apart."""
    lines = [line(" " * margin, [(column.gap, isolated(column.word)) for column in columns])]
    for row, (label, is_apart) in enumerate(set_apart(attention.row_labels)):
        shades = [(column.gap, shade(attention.weights[row, column.number]) * column.width) for column in columns]
        lines += [""] * is_apart
        lines.append(line(pad_to(clean(label.text), margin), shades))
    return "\n".join(lines)


def line(start: str, cells: Sequence[tuple[str, str]]) -> str:
    """One line from left to right, even where a terminal turns lines around that begin with Arabic."""
    text = (start + "".join(gap + cell for gap, cell in cells)).rstrip()
    return LEFT_TO_RIGHT + text if runs_right_to_left(text) else text


def columns_of(attention: Attention) -> list[Column]:
    """The words on top; marks stand apart."""
    return [
        Column(number, clean(label.text), MARK_GAP if is_apart else GAP)
        for number, (label, is_apart) in enumerate(set_apart(attention.column_labels))
    ]


def set_apart(labels: Sequence[Label]) -> Iterator[tuple[Label, bool]]:
    """Each label, and whether it is a mark after a word or a word after a mark."""
    for before, label in pairwise([*labels[:1], *labels]):
        yield label, (before.word is None) != (label.word is None)


def fitting(columns: Sequence[Column], limit: int) -> list[list[Column]]:
    """Those that fit side by side, at least one in each block."""
    blocks: list[list[Column]] = [[]]
    used = 0
    for column in columns:
        needed = len(column.gap) + column.width
        if blocks[-1] and used + needed > limit:
            blocks.append([])
            used = 0
        blocks[-1].append(column)
        used += needed
    return blocks


def shade(weight: float) -> str:
    """The darker the more was looked."""
    return SHADES[sum(weight >= edge for edge in EDGES)]


def filled(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells, but for words that are wider."""
    lines: list[str] = []
    for word in text.split():
        if lines and cell_len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def pad_to(word: str, width: int) -> str:
    """Spaces until `width` cells are filled."""
    return isolated(word) + " " * (width - cell_len(word))


# --- looks at a picture -----------------------------------------------------------------------------------------


def small_pictures(attention: Attention, limit: int) -> str:
    """Under each word the cells it looked at, as many side by side as fit."""
    words = [row for row, label in enumerate(attention.row_labels) if label.word is not None]
    blocks = [small_picture(clean(attention.target[row]), attention.tiles[row]) for row in words]
    wide = max((cell_len(line) for lines in blocks for line in lines), default=1)
    count = max(1, (limit + len(GAP)) // (wide + len(GAP)))
    rows = [side_by_side(blocks[start : start + count], wide) for start in range(0, len(blocks), count)]
    legend = [f"{LEGEND} of the most looked-at cell of each word", clean(attention.shows)]
    return "\n\n".join([*rows, "\n".join(line for text in legend for line in filled(text, limit))])


def small_picture(word: str, tile: Matrix) -> list[str]:
    """The word, and a line for each row of cells, which are about as wide as high."""
    most = max(float(tile.max()), 1e-12)
    return [word, *("".join(CELLS[shade(weight / most)] for weight in row) for row in tile)]


def side_by_side(blocks: Sequence[Sequence[str]], wide: int) -> str:
    """Blocks of the same height, each so wide."""
    return "\n".join(line("", [(GAP, pad_to(each, wide)) for each in lines]) for lines in zip(*blocks, strict=True))

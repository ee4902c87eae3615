"""An attention map as plain text, aligned for any width and direction of characters."""

import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len

from softgaze.explain.attention_map import Attention
from softgaze.explain.render.text_layout import LEFT_TO_RIGHT_MARK, clean, is_right_to_left, isolate
from softgaze.explain.word_spans import Label

SHADES = " ░▒▓█"
THRESHOLDS = (0.08, 0.25, 0.45, 0.7)  # of each shade but the first
IMAGE_CELLS = {shade: 2 * shade for shade in SHADES} | {" ": "· "}  # dots make the edges of an image visible
SPACING, MARK_SPACING = "  ", "    "  # between words; between words and BOS or EOS
LEGEND = "  ".join(f"{shade} ≥ {least:.2f}" for shade, least in zip(SHADES[1:], THRESHOLDS, strict=True))


class Column(NamedTuple):
    position: int
    word: str
    spacing: str  # before it

    @property
    def width(self) -> int:
        return cell_len(self.word)


def text_heatmap(attention: Attention, width: int | None = None) -> str:
    """Return a text map: source words on top, one line for each output word, split into blocks that fit `width`.

    A map over an image is drawn as one small image for each word.
    """
    width = width or shutil.get_terminal_size().columns
    if attention.grid is not None:
        return _image_heatmap(attention, width)
    margin = max((cell_len(clean(word)) for word in attention.target), default=0)
    columns = [
        Column(position, clean(label.text), MARK_SPACING if is_apart else SPACING)
        for position, (label, is_apart) in enumerate(_with_boundaries(attention.column_labels))
    ]
    blocks = []
    for block in _split_columns(columns, width - margin):
        lines = [_line(" " * margin, [column.spacing + isolate(column.word) for column in block])]
        for row, (label, is_apart) in enumerate(_with_boundaries(attention.row_labels)):
            weights = attention.weights[row]
            cells = [column.spacing + _shade(weights[column.position]) * column.width for column in block]
            lines += [*[""] * is_apart, _line(pad_to(clean(label.text), margin), cells)]
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, "\n".join([LEGEND, *wrap_cells(clean(attention.description), width)])])


def _with_boundaries(labels: Sequence[Label]) -> Iterator[tuple[Label, bool]]:
    """Yield each label, and whether it is a word after a mark or a mark after a word."""
    for previous, label in pairwise([*labels[:1], *labels]):
        yield label, (previous.word is None) != (label.word is None)


def _split_columns(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """Split the columns into blocks of at most `width` cells, with at least one column each."""
    blocks: list[list[Column]] = [[]]
    used = 0
    for column in columns:
        needed = len(column.spacing) + column.width
        if blocks[-1] and used + needed > width:
            blocks.append([])
            used = 0
        blocks[-1].append(column)
        used += needed
    return blocks


def _line(start: str, cells: Sequence[str]) -> str:
    """Join one line; the mark keeps a terminal from reversing a line that starts right-to-left."""
    line = (start + "".join(cells)).rstrip()
    return LEFT_TO_RIGHT_MARK + line if is_right_to_left(line) else line


def _shade(weight: float) -> str:
    return SHADES[sum(weight >= least for least in THRESHOLDS)]


def wrap_cells(text: str, width: int) -> list[str]:
    """Break into lines of at most `width` terminal cells; longer words get a line of their own."""
    lines: list[str] = []
    for word in text.split():
        if lines and cell_len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def pad_to(word: str, width: int) -> str:
    """Pad with spaces to `width` terminal cells."""
    return isolate(word) + " " * (width - cell_len(word))


def _image_heatmap(attention: Attention, width: int) -> str:
    blocks = []
    for row, label in enumerate(attention.row_labels):
        if label.word is not None:
            tile = attention.tiles[row]
            most = max(float(tile.max()), 1e-12)
            cells = ["".join(IMAGE_CELLS[_shade(weight / most)] for weight in line) for line in tile]
            blocks.append([clean(label.text), *cells])
    block_width = max((cell_len(line) for block in blocks for line in block), default=1)
    per_row = max(1, (width + len(SPACING)) // (block_width + len(SPACING)))
    rows = [
        "\n".join(
            _line("", [SPACING + pad_to(cells, block_width) for cells in lines])
            for lines in zip(*blocks[start : start + per_row], strict=True)
        )
        for start in range(0, len(blocks), per_row)
    ]
    legend = [f"{LEGEND} of the largest weight of each word", clean(attention.description)]
    return "\n\n".join([*rows, "\n".join(line for text in legend for line in wrap_cells(text, width))])

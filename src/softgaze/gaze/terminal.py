"""A heat map in plain text that lines up with double-width characters."""

import shutil

from rich.cells import cell_len

from softgaze.gaze.attention import Attention

SHADES = " ░▒▓█"
EDGES = (0.08, 0.25, 0.45, 0.7)  # where one shade gives way to the next
GAP = "  "


def heat_map(attention: Attention, width: int | None = None) -> str:
    """Source words on top, one line an output word; a long sentence goes on below in further blocks."""
    limit = width or shutil.get_terminal_size().columns
    margin = max(cell_len(word) for word in attention.target)
    blocks = []
    for columns in fitting(attention.source, limit - margin):
        top = " " * margin + "".join(GAP + attention.source[column] for column in columns)
        rows = [
            pad_to(word, margin) + "".join(GAP + cell(attention, row, column) for column in columns)
            for row, word in enumerate(attention.target)
        ]
        blocks.append("\n".join(line.rstrip() for line in (top, *rows)))
    return "\n\n".join(blocks)


def fitting(words: tuple[str, ...], limit: int) -> list[list[int]]:
    """Numbers of the words that fit side by side, at least one in each block."""
    blocks: list[list[int]] = [[]]
    used = 0
    for number, word in enumerate(words):
        needed = len(GAP) + cell_len(word)
        if blocks[-1] and used + needed > limit:
            blocks.append([])
            used = 0
        blocks[-1].append(number)
        used += needed
    return blocks


def cell(attention: Attention, row: int, column: int) -> str:
    """A block as wide as the word above it, the darker the more was looked."""
    weight = float(attention.weights[row, column])
    shade = SHADES[sum(weight >= edge for edge in EDGES)]
    return shade * cell_len(attention.source[column])


def pad_to(word: str, width: int) -> str:
    """Spaces until `width` cells are filled; Hangul takes two a syllable."""
    return word + " " * (width - cell_len(word))

"""Tables of numbers, as text and as HTML. Knows no scores."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from shutil import get_terminal_size

from rich.cells import cell_len

from softgaze.gaze.lettering import clean
from softgaze.gaze.terminal import filled, pad_to

GAP = "  "  # between columns


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header; the first column says what a row is about."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def text(self) -> str:
        """For a terminal; numbers stand on the right."""
        lines = [[clean(cell) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        body = [GAP.join(map(padded, row, widths, range(len(row)))).rstrip() for row in lines]
        note = filled(clean(self.note), get_terminal_size().columns - len(GAP))
        return "\n".join([clean(self.title), *(GAP + line for line in (*body, *note))])

    def html(self) -> str:
        """For a page."""
        head = "".join(f'<th scope="col">{html.escape(clean(cell))}</th>' for cell in self.header)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(clean(cell))}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        note = f'<p class="faint">{html.escape(self.note)}</p>' if self.note else ""
        return (
            f'<h2>{html.escape(clean(self.title))}</h2>\n<div class="wide"><table class="scores"><thead><tr>{head}'
            f"</tr></thead><tbody>{rows}</tbody></table></div>{note}"
        )


def padded(cell: str, size: int, column: int) -> str:
    """The first column on the left, all others on the right."""
    return " " * (size - cell_len(cell)) + cell if column else pad_to(cell, size)

"""A table of text cells with three writers: text for a terminal, Markdown and HTML."""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from shutil import get_terminal_size

from rich.cells import cell_len

from softgaze.explain.render.terminal import pad_to
from softgaze.explain.render.text_layout import clean, wrap

COLUMN_SPACE = "  "  # between columns of text


def escape(text: str) -> str:
    return html.escape(clean(text))


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header; the first column names the row, the others are right-aligned."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def text(self) -> str:
        """Return aligned columns; the note is wrapped to the terminal."""
        lines = [[clean(cell) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        body = [
            COLUMN_SPACE.join(
                [pad_to(first, widths[0])]
                + [" " * (width - cell_len(cell)) + cell for cell, width in zip(rest, widths[1:], strict=True)]
            )
            for first, *rest in lines
        ]
        note = wrap(clean(self.note), get_terminal_size().columns - len(COLUMN_SPACE), cell_len)
        return "\n".join([clean(self.title), *(f"{COLUMN_SPACE}{line}".rstrip() for line in (*body, *note))])

    def markdown(self, level: int = 2) -> str:
        rows = [f"| {' | '.join(map(escape_markdown, row))} |" for row in (self.header, *self.rows)]
        rows.insert(1, "|---|" + "--:|" * (len(self.header) - 1))
        blocks = [f"{'#' * level} {self.title}" if self.title else "", "\n".join(rows), self.note]
        return "\n\n".join(filter(None, blocks))

    def html(self, *, folded: bool = False, row_name: Callable[[str], str] = escape) -> str:
        """Return a heading, or a closed <details>, with the table and its note; `row_name` writes first cells."""
        head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in self.header)
        rows = "\n".join(
            f'<tr><th scope="row">{row_name(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
            for first, *cells in self.rows
        )
        note = f'<p class="faint">{escape(self.note)}</p>' if self.note else ""
        table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>{note}'
        title = escape(self.title)
        return f"<details><summary>{title}</summary>{table}</details>" if folded else f"<h2>{title}</h2>\n{table}"


def escape_markdown(text: str) -> str:
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text)

"""An attention map as an SVG figure: source on top, output at the left, one hue on a fixed scale from 0 to 1.

Text stays text, nothing is loaded, and the figure contains the JSON that `Attention.load` reads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from softgaze.errors import UsageError
from softgaze.explain.alignment import Alignment
from softgaze.explain.attention_map import Attention
from softgaze.explain.render.svg import (
    BLACK,
    FAINT,
    GOLD,
    GREY,
    INK,
    LINE,
    WHITE,
    element,
    escape_text,
    format_number,
    ink_on,
    shade,
    svg_document,
    text,
)
from softgaze.explain.render.text_layout import isolate, text_width, truncate, wrap
from softgaze.explain.serialization import svg_element
from softgaze.explain.word_spans import Label

MARGIN, PAD = 16, 8
MARK_SPACING = 8  # between words and BOS or EOS
MAX_LABEL = 24  # em
MAX_UPRIGHT_LABEL, MAX_UPRIGHT_ROW = 84, 760  # widest column label, and row of column labels, that stay upright
ENTROPY_BAR, COVERAGE_BAR = 40, 18  # longest bars
MIN_WIDTH = 420  # for legend and footer under a small map
SIN_45 = 0.7072
NOTE_SIZE, NOTE_LINE = 12, 17  # font size and line height of legend and footer
BOLD_WIDTH = 1.1  # of text, relative to that of regular weight
SCALE_WIDTH, SIGN_WIDTH, LEGEND_LINE = 140, 18, 26
DENSE_FROM = 40  # maps with more rows or columns are drawn smaller
SHADES = 100  # levels of the scale: cells of one level are drawn as one path
MIN_PRINTED = 0.10  # smallest weight with its number in the cell
BASELINE = 0.36  # from the middle of a line to its baseline, in em

SIDES = {"cross": ("output", "source"), "encoder": ("source", "source"), "decoder": ("output", "output")}
CUSTOM_SIDES = ("query", "key")  # default rows and columns of weights that come from no model
MEASURE_NAMES = {"weights": "weight", "norms": "weight × norm", "rollout": "rollout"}
SURE: dict[str, str | float] = {"fill": "none", "stroke": GOLD, "stroke_width": 2.2}
OUTLINES = {
    "background": SURE | {"stroke": WHITE, "stroke_width": 4.4},  # makes outlines visible on dark cells
    "sure": SURE,
    "possible": SURE | {"stroke_dasharray": "4 3"},
}

# --- layout -----------------------------------------------------------------------------------------------------


class Sizes(NamedTuple):
    cell: float
    label: float
    number: float
    stroke: float
    coverage_digits: int


ROOMY, DENSE = Sizes(30, 14, 10.5, 1.2, 2), Sizes(19, 11, 8, 0.8, 1)


@dataclass(frozen=True)
class CellAxis:
    """The rows from top to bottom, or the columns from left to right."""

    labels: Sequence[Label]
    start: float
    size: float  # of one cell

    @cached_property
    def offsets(self) -> list[float]:
        """The start of each cell; BOS and EOS are set apart from words."""
        offsets = [self.start] if self.labels else []
        for previous, label in pairwise(self.labels):
            spacing = MARK_SPACING if (previous.word is None) != (label.word is None) else 0
            offsets.append(offsets[-1] + self.size + spacing)
        return offsets

    @property
    def end(self) -> float:
        return self.offsets[-1] + self.size if self.offsets else self.start

    def middle(self, index: int) -> float:
        return self.offsets[index] + self.size / 2

    def runs(self) -> Iterator[list[float]]:
        """Yield the cell edges of each run of adjacent cells."""
        run: list[float] = []
        for offset in self.offsets:
            if run and offset > run[-1] + 1e-6:
                yield run
                run = []
            run = [*(run or [offset]), offset + self.size]
        if run:
            yield run


@dataclass(frozen=True)
class HeatmapLayout:
    """The content of a figure and the position of everything in it, which follows from the words."""

    attention: Attention
    gold: Alignment | None = None
    about: str = ""  # description of weights that come from no model
    sides: tuple[str, str] = CUSTOM_SIDES  # names of their rows and columns
    is_narrow: bool = False  # keep cells square, for several maps next to each other

    @cached_property
    def sizes(self) -> Sizes:
        return DENSE if max(self.attention.weights.shape) > DENSE_FROM else ROOMY

    @cached_property
    def names(self) -> tuple[list[str], list[str]]:
        """The row and column labels as drawn."""
        rows, columns = (
            [truncate(word, MAX_LABEL) for word in words] for words in (self.attention.target, self.attention.source)
        )
        return rows, columns

    @cached_property
    def column_label_width(self) -> float:
        return max((text_width(name, self.sizes.label) for name in self.names[1]), default=0.0)

    @cached_property
    def is_slanted(self) -> bool:
        """Whether the column labels are slanted because upright ones need too much space."""
        widest = self.column_label_width
        total = len(self.names[1]) * (widest + PAD)
        fits = not self.is_narrow and widest <= MAX_UPRIGHT_LABEL and total <= MAX_UPRIGHT_ROW
        return not (fits or widest + PAD <= self.sizes.cell)

    @cached_property
    def columns(self) -> CellAxis:
        size = self.sizes.cell if self.is_slanted else max(self.sizes.cell, self.column_label_width + PAD)
        widths = [text_width(name, self.sizes.label) for name in self.names[0]]
        widths += [text_width(name, self.sizes.number) for name in (self.corner, *["coverage"] * self.has_coverage)]
        return CellAxis(self.attention.column_labels, MARGIN + max(widths) + PAD, size)

    @cached_property
    def rows(self) -> CellAxis:
        height = self.column_label_width * SIN_45 + self.sizes.label if self.is_slanted else self.sizes.label * 1.3
        return CellAxis(self.attention.row_labels, MARGIN + height + PAD / 2, self.sizes.cell)

    @property
    def corner(self) -> str:
        return "{} ↓ {} →".format(*(self.sides if self.about else SIDES[self.attention.view.kind]))

    @property
    def has_coverage(self) -> bool:
        """Whether a sum over rows is meaningful: named rows are no queries of one model."""
        return self.sides == CUSTOM_SIDES

    @cached_property
    def map_right(self) -> float:
        """The right end of cells and column labels."""
        ends = [self.columns.end]
        if self.is_slanted:
            ends += [
                self.columns.middle(column) + text_width(name, self.sizes.label) * SIN_45 + self.sizes.label
                for column, name in enumerate(self.names[1])
            ]
        return max(ends)

    @cached_property
    def width(self) -> float:
        bars = self.columns.end + PAD + text_width("0.00", self.sizes.number) + PAD / 2 + ENTROPY_BAR
        return round(max(self.map_right, bars, MIN_WIDTH)) + MARGIN

    @property
    def coverage_y(self) -> float:
        """The baseline of the numbers under the columns."""
        return self.rows.end + PAD + (COVERAGE_BAR if self.has_coverage else 0) + self.sizes.number

    @property
    def legend_y(self) -> float:
        return self.coverage_y + 3 * PAD

    @property
    def footer_y(self) -> float:
        return self.legend_y + LEGEND_LINE * (len(self.legend) - 1) + 2 * NOTE_LINE

    @property
    def height(self) -> float:
        return round(self.footer_y + NOTE_LINE * (len(self.footer) - 1) + MARGIN)

    @cached_property
    def legend(self) -> list[list[tuple[str, str]]]:
        """Lines of (sign, meaning)."""
        entries = [("scale", MEASURE_NAMES[self.attention.view.measure] if self.has_coverage else "share")]
        entries += [("ring", "largest of its row")]
        if self.gold is not None:
            entries += [("sure", "gold")]
            entries += [("possible", "gold, possible")] * any(link not in self.gold.links for link in self.gold)
        lines: list[list[tuple[str, str]]] = [[]]
        for entry in entries:
            width = sum(legend_width(*other) for other in [*lines[-1], entry])
            if lines[-1] and width > self.width - 2 * MARGIN:
                lines.append([])
            lines[-1].append(entry)
        return lines

    @cached_property
    def footer(self) -> list[str]:
        """The lines under the legend: the warning if there is one, both texts and the description of the map."""
        texts = [f"{side}: {sentence}" for side, sentence in sentences(self.attention).items()]
        paragraphs = [self.about] if self.about else [*texts, self.attention.details]
        width = (self.width - 2 * MARGIN) / NOTE_SIZE
        return [*self.warning, *(line for paragraph in paragraphs for line in wrap(paragraph, width))]

    @cached_property
    def warning(self) -> list[str]:
        """The first lines of the footer if the map should not be relied on."""
        return [] if self.about else wrap(self.attention.warning, (self.width - 2 * MARGIN) / NOTE_SIZE / BOLD_WIDTH)


def legend_width(sign: str, meaning: str) -> float:
    """Return the width of a legend entry with the space after it."""
    return (SCALE_WIDTH if sign == "scale" else SIGN_WIDTH) + PAD / 2 + text_width(meaning, NOTE_SIZE) + 2 * PAD


def sentences(attention: Attention) -> dict[str, str]:
    """Return the texts of columns and rows by side."""
    texts = {"source": attention.recording.source.text, "output": attention.recording.target.text}
    return {side: isolate(texts[side]) or "(empty)" for side in reversed(SIDES[attention.view.kind])}


# --- figures ----------------------------------------------------------------------------------------------------


def draw_heatmap(
    attention: Attention,
    *,
    gold: Alignment | None = None,
    about: str = "",
    sides: tuple[str, str] = CUSTOM_SIDES,
    with_data: bool = True,
) -> str:
    """Return the figure as SVG with `gold` links outlined; see `Attention.plot` for `about` and `sides`."""
    layout = HeatmapLayout(attention, gold, about, sides)
    draw = (*MAP_PARTS, _draw_outlines, _draw_entropies, _draw_coverages, _draw_legend)
    lines = draw_notes(layout.footer, layout.footer_y, warnings=len(layout.warning))
    content = [svg_element(attention) if with_data else "", *(part(layout) for part in draw)]
    content.append(_group(lines, font_size=NOTE_SIZE, fill=FAINT))
    return _document(layout, layout.width, layout.height, content) + "\n"


def draw_notes(lines: Sequence[str], y: float, *, warnings: int) -> list[str]:
    """Draw lines of text; the first ones are `warnings`."""
    bold: dict[str, str | float] = {"fill": GOLD, "font_weight": 600}
    return [
        text(MARGIN, y + NOTE_LINE * index, line, **(bold if index < warnings else {}))
        for index, line in enumerate(lines)
    ]


def draw_bare_heatmap(attention: Attention) -> str:
    """Return only the cells and their labels, for pages with many maps."""
    layout = HeatmapLayout(attention, is_narrow=True)
    content = [part(layout) for part in MAP_PARTS]
    return _document(layout, layout.map_right + MARGIN, layout.rows.end + PAD, content)


def _document(layout: HeatmapLayout, width: float, height: float, parts: Sequence[str]) -> str:
    """Return the drawing with the map in words, for screen readers."""
    attention, content = layout.attention, "\n".join(filter(None, parts))
    title = f"Attention: {' → '.join(sentences(attention).values())}"
    tops = [f"{isolate(word)} ← {isolate(top[0][0])} {top[0][1]:.2f}" for word, top in attention.top() if top]
    description = f"{layout.about or attention.description}. {'; '.join(tops)}"
    return svg_document(width, height, content, title=title, description=description)


def _group(parts: Sequence[str], **attributes: str | float) -> str:
    return element("g", "\n".join(parts), **attributes) if parts else ""


# --- the map ----------------------------------------------------------------------------------------------------


def _draw_grid(layout: HeatmapLayout) -> str:
    lines = []
    for ys in layout.rows.runs():
        for xs in layout.columns.runs():
            lines += [f"M{format_number(xs[0])} {format_number(y)}H{format_number(xs[-1])}" for y in ys]
            lines += [f"M{format_number(x)} {format_number(ys[0])}V{format_number(ys[-1])}" for x in xs]
    width = layout.sizes.stroke * 0.6
    return element("path", d="".join(lines), stroke=LINE, stroke_width=width, fill="none") if lines else ""


def _draw_cells(layout: HeatmapLayout) -> str:
    """Draw the cells of one shade as one path: 300 words have 90,000 cells."""
    levels = np.rint(layout.attention.weights.clip(0, 1) * SHADES).astype(int)
    width, height = format_number(layout.columns.size - 1), format_number(layout.rows.size - 1)
    paths = []
    for level in range(1, SHADES + 1):
        path = "".join(
            f"M{format_number(layout.columns.offsets[column] + 0.5)} {format_number(layout.rows.offsets[row] + 0.5)}"
            f"h{width}v{height}h-{width}z"
            for row, column in np.argwhere(levels == level)
        )
        if path:
            paths.append(element("path", d=path, fill=shade(level / SHADES)))
    return "\n".join(paths)


def short_weight(weight: float) -> str:
    """Format with two decimals and no leading zero."""
    return f"{weight:.2f}".removeprefix("0") if weight < 0.995 else "1"


def _draw_numbers(layout: HeatmapLayout) -> str:
    """Draw the larger weights in their cells, with a tooltip."""
    weights, (rows, columns) = layout.attention.weights, layout.names
    numbers = []
    for row, column in np.argwhere(weights >= MIN_PRINTED):
        weight = float(weights[row, column])
        x, y = layout.columns.middle(column), layout.rows.middle(row) + layout.sizes.number * BASELINE
        tooltip = element("title", escape_text(f"{isolate(rows[row])} ← {isolate(columns[column])} {weight:.3f}"))
        number = element("tspan", short_weight(weight))
        numbers.append(element("text", tooltip + number, x=x, y=y, fill=ink_on(min(weight, 1.0))))
    return _group(numbers, text_anchor="middle", font_size=layout.sizes.number)


def _draw_rings(layout: HeatmapLayout) -> str:
    """Draw a ring on the largest weight of each row."""
    rings = []
    for row, weights in enumerate(layout.attention.weights):
        if weights.any():
            column = int(weights.argmax())
            center = {"cx": layout.columns.middle(column), "cy": layout.rows.middle(row)}
            ink = ink_on(min(float(weights[column]), 1.0))
            rings.append(element("circle", **center, r=layout.sizes.cell * 0.37, stroke=ink))
    return _group(rings, fill="none", stroke_width=layout.sizes.stroke)


def _draw_outlines(layout: HeatmapLayout) -> str:
    """Outline gold links: sure ones solid, possible ones dashed."""
    if layout.gold is None:
        return ""
    view = layout.attention.view
    if view.kind != "cross" or view.unit != "words":
        raise UsageError('gold links need a map of source and output words: view kind "cross", unit "words"')
    rows, columns = (
        {label.word: index for index, label in enumerate(axis.labels) if label.word is not None}
        for axis in (layout.rows, layout.columns)
    )
    size = {"width": layout.columns.size - 3, "height": layout.rows.size - 3}
    outlines: dict[str, list[str]] = {name: [] for name in OUTLINES}
    for source, target in layout.gold:
        if source not in columns or target not in rows:
            counts = f"{len(columns)} source words and {len(rows)} output words"
            raise UsageError(f"gold link {source}-{target} does not exist: there are {counts}, counted from 0")
        x, y = layout.columns.offsets[columns[source]] + 1.5, layout.rows.offsets[rows[target]] + 1.5
        for name in ("background", "sure" if (source, target) in layout.gold.links else "possible"):
            outlines[name].append(element("rect", x=x, y=y, **size))
    return "".join(_group(rects, **OUTLINES[name]) for name, rects in outlines.items())


def _draw_row_labels(layout: HeatmapLayout) -> str:
    x, baseline = layout.columns.start - PAD, layout.sizes.label * BASELINE
    labels = [
        text(x, layout.rows.middle(row) + baseline, name, "end", fill=FAINT if label.word is None else INK)
        for row, (name, label) in enumerate(zip(layout.names[0], layout.rows.labels, strict=True))
    ]
    return _group(labels, font_size=layout.sizes.label)


def _draw_column_labels(layout: HeatmapLayout) -> str:
    y = layout.rows.start - PAD
    labels = [text(layout.columns.start - PAD, y, layout.corner, "end", fill=FAINT, font_size=layout.sizes.number)]
    for column, (name, label) in enumerate(zip(layout.names[1], layout.columns.labels, strict=True)):
        x, fill = layout.columns.middle(column), FAINT if label.word is None else INK
        if layout.is_slanted and label.word is not None:
            rotation = f"rotate(-45 {format_number(x)} {format_number(y)})"
            labels.append(text(x, y, name, "start", fill=fill, transform=rotation))
        else:
            labels.append(text(x, y, name, "middle", fill=fill))
    return _group(labels, font_size=layout.sizes.label)


MAP_PARTS = (_draw_grid, _draw_cells, _draw_numbers, _draw_rings, _draw_row_labels, _draw_column_labels)

# --- margins, legend and footer ---------------------------------------------------------------------------------


def _draw_entropies(layout: HeatmapLayout) -> str:
    """Draw the entropy of each row; a full bar is uniform attention."""
    left, most = layout.columns.end + PAD, float(np.log(max(len(layout.columns.labels), 2)))
    bars = left + text_width("0.00", layout.sizes.number) + PAD / 2
    parts = [text(left, layout.coverage_y, "entropy")]
    for row, entropy in enumerate(layout.attention.entropy()):
        middle, length = layout.rows.middle(row), ENTROPY_BAR * min(max(float(entropy) / most, 0.0), 1.0)
        parts.append(text(left, middle + layout.sizes.number * BASELINE, f"{abs(entropy):.2f}"))
        parts.append(element("rect", x=bars, y=middle - 3, width=length, height=6, fill=GREY))
    return _group(parts, font_size=layout.sizes.number, fill=FAINT)


def _draw_coverages(layout: HeatmapLayout) -> str:
    if not layout.has_coverage:
        return ""
    coverage = layout.attention.coverage()
    top, most = layout.rows.end + PAD / 2, max(1.0, float(coverage.max(initial=0)))
    parts = [text(layout.columns.start - PAD, layout.coverage_y, "coverage", "end")]
    for column, amount in enumerate(coverage):
        middle, height = layout.columns.middle(column), COVERAGE_BAR * float(amount) / most
        parts.append(element("rect", x=middle - 3, y=top, width=6, height=height, fill=GREY))
        parts.append(text(middle, layout.coverage_y, f"{amount:.{layout.sizes.coverage_digits}f}", "middle"))
    return _group(parts, font_size=layout.sizes.number, fill=FAINT)


def _draw_legend(layout: HeatmapLayout) -> str:
    parts = []
    for line_number, line in enumerate(layout.legend):
        x, middle = float(MARGIN), layout.legend_y + LEGEND_LINE * line_number
        for sign, meaning in line:
            end = x + legend_width(sign, meaning)
            label_x = end - 2 * PAD - text_width(meaning, NOTE_SIZE)
            parts += [_draw_sign(sign, x, middle), text(label_x, middle + NOTE_SIZE * BASELINE, meaning)]
            x = end
    return _group(parts, font_size=NOTE_SIZE, fill=INK)


def _draw_sign(sign: str, x: float, middle: float) -> str:
    if sign == "ring":
        return element("circle", cx=x + 7, cy=middle, r=7, fill="none", stroke=BLACK, stroke_width=1.2)
    if sign != "scale":
        return element("rect", x=x, y=middle - 7, width=14, height=14, **OUTLINES[sign])
    left, right = x + 12, x + SCALE_WIDTH - 12
    step, baseline, box = (right - left) / 11, middle + NOTE_SIZE * BASELINE, {"y": middle - 6, "height": 12}
    shades = [element("rect", x=left + step * i, width=step, fill=shade(i / 10), **box) for i in range(11)]
    border = element("rect", x=left, width=right - left, fill="none", stroke=GREY, **box)
    ends = text(x, baseline, "0", fill=FAINT), text(right + 5, baseline, "1", fill=FAINT)
    return ends[0] + "".join(shades) + border + ends[1]

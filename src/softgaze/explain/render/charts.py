"""Line charts as SVG: one or more panels with axes, confidence intervals, lines, markers and a name at each line's end.

A series has the same colour and marker in every panel. All text stays text, and every part has a class, so that a page
can recolour the chart for a dark background.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from softgaze.explain.render.svg import (
    FAINT,
    INK,
    LINE,
    SERIES,
    element,
    escape_text,
    format_number,
    svg_document,
    text,
    ticks,
)
from softgaze.explain.render.text_layout import text_width, wrap

LEFT, TOP, BELOW = 64, 40, 26  # around a plot: tick labels, title, ticks of the lower axis
RULER = 30  # from the lower axis to the bucket sizes
X_LABEL = 20
NAMES = 16  # from the plot to the names of its lines
FONT_SIZE, SMALL = 12, 10.5
LINE_HEIGHT = 16
MARKER = 4.0
MAX_MARKERS = 40  # a longer line has a marker at its end only
ROUNDING = 1e-9
SHADE = "#f1f1ee"

Coordinates = tuple[float, float]

OCTAGON = [(1.0, 0.4), (0.4, 1.0), (-0.4, 1.0), (-1.0, 0.4), (-1.0, -0.4), (-0.4, -1.0), (0.4, -1.0), (1.0, -0.4)]
MARKERS: list[list[Coordinates]] = [
    OCTAGON,
    [(-0.95, -0.95), (0.95, -0.95), (0.95, 0.95), (-0.95, 0.95)],
    [(0, -1.25), (1.15, 0.85), (-1.15, 0.85)],
    [(0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)],
    [(0, 1.25), (1.15, -0.85), (-1.15, -0.85)],
]


class ChartPoint(NamedTuple):
    """A point of a line, optionally with a confidence interval and a tooltip."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    tooltip: str = ""


@dataclass(frozen=True)
class Series:
    """One line of a panel; `style` selects its colour and marker."""

    name: str
    points: Sequence[ChartPoint]
    style: int = 0
    dashed: bool = False
    guide: Sequence[Coordinates] = ()  # a thin dashed line for comparison


class Interval(NamedTuple):
    """A bucket on the ruler below the lower axis."""

    low: float
    high: float
    size: int


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic scale with its ticks."""

    low: float
    high: float
    ticks: Sequence[float]
    is_log: bool = False

    @classmethod
    def linear(cls, values: Sequence[float], *, min_span: float = 1e-6, from_zero: bool = True) -> "Axis":
        """Span all values between round ticks; without `from_zero`, values in the upper half start above zero."""
        low, high = min(values), max(values)
        if from_zero or low <= high / 2:
            low = min(low, 0.0)
        step = ticks(max(high - low, -low, min_span))[1]
        first, last = math.floor(low / step + ROUNDING), math.ceil(high / step - ROUNDING)
        marks = [round(index * step, 9) for index in range(first, max(last, first + 1) + 1)]
        return cls(marks[0], marks[-1], marks)

    @classmethod
    def from_zero_to(cls, end: float, *, min_step: float = 0.0) -> "Axis":
        """Span zero to exactly `end`, with about ten ticks."""
        end = end if end > 0 else 1.0
        step = max(min_step, ticks(end / 2)[1])
        return cls(0.0, end, [round(index * step, 9) for index in range(int(end / step + ROUNDING) + 1)])

    @classmethod
    def logarithmic(cls, values: Sequence[float]) -> "Axis":
        """Span all values; ticks are powers of ten, with 2 and 5 between them if there are few."""
        low, high = min(values), max(values) if max(values) > min(values) else 2 * max(values)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        factors = (1, 2, 5) if high / low < 200 else (1,)
        marks = [factor * 10.0**power for power in powers for factor in factors]
        inside = [mark for mark in marks if low * (1 - ROUNDING) <= mark <= high * (1 + ROUNDING)]
        return cls(low, high, inside, is_log=True)

    def fraction(self, value: float) -> float:
        """Map a value to 0…1; values above the axis end with it."""
        low, high, value = (math.log(v) if self.is_log else v for v in (self.low, self.high, min(value, self.high)))
        return (value - low) / (high - low)


@dataclass(frozen=True)
class Panel:
    """A plot: axes and series, and optionally a shaded range and a ruler of buckets."""

    title: str
    series: Sequence[Series]
    x: Axis
    y: Axis
    x_label: str
    shaded_from: float | None = None
    shaded_label: str = ""
    ruler: Sequence[Interval] = ()
    width: float = 560
    height: float = 210

    @property
    def right(self) -> float:
        return LEFT + self.width

    @property
    def bottom(self) -> float:
        return TOP + self.height

    def locate(self, x: float, y: float) -> Coordinates:
        """Return the position of a point, from the panel's upper left corner."""
        return LEFT + self.width * self.x.fraction(x), self.bottom - self.height * self.y.fraction(y)


def line_chart(
    panels: Sequence[Panel],
    *,
    title: str,
    description: str,
    heading: str = "",
    notes: Sequence[str] = (),
    columns: int = 1,
) -> str:
    """Return an SVG with the panels in rows of `columns`, and the notes in the cell after the last panel."""
    names = max(text_width(series.name, FONT_SIZE) for panel in panels for series in panel.series)
    column_width = max(panel.right for panel in panels) + NAMES + 18 + names
    row_height = max(panel.bottom + BELOW + (RULER if panel.ruler else 0) for panel in panels)
    top = 30 if heading else 0
    parts = [text(LEFT, 22, heading, font_weight="600", font_size=FONT_SIZE + 3)] if heading else []
    for index, panel in enumerate(panels):
        row, column = divmod(index, columns)
        is_lowest = index + columns >= len(panels)
        corner = f"translate({format_number(column * column_width)} {format_number(top + row * row_height)})"
        parts.append(element("g", _draw_panel(panel, is_lowest=is_lowest), transform=corner))
    rows = -(-len(panels) // columns)
    bottom = top + rows * row_height + X_LABEL
    spare = len(panels) % columns
    left = spare * column_width + LEFT
    start = top + (rows - 1) * row_height + TOP if spare else bottom + SMALL
    lines = [line for note in notes for line in wrap(note, (columns * column_width - left) / SMALL)]
    for index, line in enumerate(lines):
        parts.append(text(left, start + index * LINE_HEIGHT, line, fill=FAINT, class_="quiet", font_size=SMALL))
    height = max(bottom, start + len(lines) * LINE_HEIGHT - SMALL) + 6
    content = element("g", "".join(parts), font_size=FONT_SIZE, fill=INK)
    return svg_document(columns * column_width, height, content, title=title, description=description)


def _draw_panel(panel: Panel, *, is_lowest: bool) -> str:
    """Draw the axes, then all intervals, then all lines, so that no interval hides a line."""
    parts = [_draw_axes(panel), *(_draw_interval(panel, series) for series in panel.series)]
    parts += [*(_draw_line(panel, series) for series in panel.series), _draw_names(panel)]
    if is_lowest:
        y = panel.bottom + BELOW + (RULER if panel.ruler else 0) + 10
        parts.append(text(LEFT + panel.width / 2, y, panel.x_label, "middle", fill=FAINT, class_="quiet"))
    return "".join(parts)


def _draw_axes(panel: Panel) -> str:
    """Draw both axes, and each bucket of the ruler below, with its number of sentences where that fits."""
    quiet = {"fill": FAINT, "class_": "quiet"}
    parts = [text(LEFT, TOP - 14, panel.title, font_weight="600")]
    if panel.shaded_from is not None:
        start, _ = panel.locate(panel.shaded_from, panel.y.low)
        area = {"x": start, "y": TOP, "width": panel.right - start, "height": panel.height}
        parts.append(element("rect", **area, fill=SHADE, class_="beyond"))
        parts.append(text(panel.right, TOP - 14, panel.shaded_label, "end", **quiet, font_size=SMALL))
    for value in panel.y.ticks:
        _, y = panel.locate(panel.x.low, value)
        parts.append(element("line", x1=LEFT, x2=panel.right, y1=y, y2=y, stroke=LINE, class_="grid"))
        parts.append(text(LEFT - 8, y + 4, short_number(value), "end", **quiet))
    for value in panel.x.ticks:
        x, _ = panel.locate(value, panel.y.low)
        parts.append(text(x, panel.bottom + 17, short_number(value), "middle", **quiet))
    y = panel.bottom + RULER
    if panel.ruler:
        parts.append(text(LEFT - 8, y + 4, "sentences", "end", **quiet, font_size=SMALL - 1))
    for low, high, size in panel.ruler:
        start, end = (panel.locate(max(edge, 0), panel.y.low)[0] for edge in (low, high))
        parts.append(element("line", x1=start + 1, x2=end - 1, y1=y - 7, y2=y - 7, stroke=FAINT, class_="ruler"))
        label = f"{size:,}"
        if text_width(label, SMALL) <= end - start + 2:
            parts.append(text((start + end) / 2, y + 6, label, "middle", **quiet, font_size=SMALL))
    return "".join(parts)


def _draw_interval(panel: Panel, series: Series) -> str:
    """Draw the confidence interval as an area; of a single point, as a bar."""
    bounds = [
        (point.x, point.low, point.high) for point in series.points if point.low is not None and point.high is not None
    ]
    if not any(low < high for _, low, high in bounds):
        return ""
    lower = [panel.locate(x, low) for x, low, _ in bounds]
    upper = [panel.locate(x, high) for x, _, high in reversed(bounds)]
    if len(bounds) == 1:
        [(x, low)], [(_, high)] = lower, upper
        lower, upper = [(x - 3, low), (x + 3, low)], [(x + 3, high), (x - 3, high)]
    outline = _polyline_points([*lower, *upper])
    return element(
        "polygon", points=outline, fill=_color(series.style), fill_opacity="0.14", class_=_css_class(series.style)
    )


def _draw_line(panel: Panel, series: Series) -> str:
    positions = [panel.locate(point.x, point.y) for point in series.points]
    attributes = {"fill": "none", "stroke": _color(series.style), "class_": _css_class(series.style)}
    parts = []
    if series.guide:
        guide = _polyline_points([panel.locate(*point) for point in series.guide])
        parts.append(element("polyline", points=guide, stroke_width="1.2", stroke_dasharray="4 4", **attributes))
    dashes = {"stroke_dasharray": "6 4"} if series.dashed else {}
    parts.append(element("polyline", points=_polyline_points(positions), stroke_width=2, **dashes, **attributes))
    marked = list(zip(positions, series.points, strict=True))
    for (x, y), point in marked if len(marked) <= MAX_MARKERS else marked[-1:]:
        parts.append(marker(series.style, x, y, point.tooltip))
    return "".join(parts)


def _draw_names(panel: Panel) -> str:
    """Draw each name next to the end of its last line, moved apart where names would overlap."""
    ends = {series.name: (panel.locate(*series.points[-1][:2])[1], series.style) for series in panel.series}
    names = sorted(ends, key=lambda name: ends[name])
    heights = spread_labels([ends[name][0] for name in names], TOP, panel.bottom)
    x, parts = panel.right + NAMES, []
    for name, y in zip(names, heights, strict=True):
        style = ends[name][1]
        parts.append(marker(style, x, y))
        parts.append(text(x + 10, y + 4, name, fill=_color(style), class_=_css_class(style)))
    return "".join(parts)


def spread_labels(heights: Sequence[float], top: float, bottom: float) -> list[float]:
    """Move sorted label positions at least a line apart, and above `bottom` if they fit."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + LINE_HEIGHT if placed else top))
    limit = max(bottom, top + LINE_HEIGHT * (len(heights) - 1))
    for index in reversed(range(len(placed))):
        placed[index] = min(placed[index], limit)
        limit = placed[index] - LINE_HEIGHT
    return placed


def marker(style: int, x: float, y: float, tooltip: str = "") -> str:
    """Draw the shape of a style: colour alone must not distinguish series."""
    outline = [(x + MARKER * dx, y + MARKER * dy) for dx, dy in MARKERS[style % len(MARKERS)]]
    name = element("title", escape_text(tooltip)) if tooltip else ""
    css_class = f"marker {_css_class(style)}"
    attributes = {"fill": _color(style), "stroke": "#ffffff", "stroke_width": "0.8", "class_": css_class}
    return element("polygon", name, points=_polyline_points(outline), **attributes)


def _color(style: int) -> str:
    return SERIES[style % len(SERIES)]


def _css_class(style: int) -> str:
    return f"series series-{style % len(SERIES)}"


def _polyline_points(positions: Sequence[Coordinates]) -> str:
    return " ".join(f"{format_number(x)},{format_number(y)}" for x, y in positions)


def short_number(number: float) -> str:
    """Format with three digits, or as a whole number: 0.0042, 1.27, 34.5, 9,219."""
    return f"{number:,.0f}" if abs(number) >= 100 or number == int(number) else f"{number:.3g}"

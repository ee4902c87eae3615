"""Quality against length as a picture: for each score a panel, in it a line with its band for each system.

A line's colour and marker are its system's in every panel. What lies beyond the trained lengths is shaded, and its
lines are dashed. Text stays text; a page recolours everything by its classes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from softgaze.evaluation.counts import TITLES
from softgaze.evaluation.lengths import Curve, Point
from softgaze.gaze.colours import FAINT, INK, LINE, SERIES
from softgaze.gaze.drawing import element, picture, spelled, text, ticks, written
from softgaze.gaze.lettering import cut, width_of

WIDTH, HEIGHT, LEFT, TOP, GAP = 560, 210, 64, 40, 64  # of one panel, and the room around it
LETTER, SMALL, LABEL = 12, 10.5, 16  # sizes of text; labels are at least so far apart
LONGEST = 22  # em of a system's name
MARKER = 4.0
STRIP = 30  # from the axis down to the counts of sentences
ROOM, HALF = 1.04, 0.5  # beyond the longest sentences, and how far a bucket reaches beyond its longest
BEYOND = "beyond the trained lengths"


@dataclass(frozen=True)
class Panel:
    """One score's axes: where a length and a value stand."""

    score: str
    curves: Sequence[Curve]
    top: float
    across: float  # the length at the right edge
    values: Sequence[float]  # round ones, from the bottom to the top

    @property
    def bottom(self) -> float:
        """Where the axis of lengths is."""
        return self.top + HEIGHT

    def x(self, length: float) -> float:
        """From left to right; what is longer than the axis ends with it."""
        return LEFT + WIDTH * min(length, self.across) / self.across

    def y(self, value: float) -> float:
        """From bottom to top."""
        low, high = self.values[0], self.values[-1]
        return self.bottom - HEIGHT * (value - low) / (high - low)


def length_chart(
    scores: Mapping[str, Sequence[Curve]],
    title: str = "Quality against source length",
    signatures: Mapping[str, str] | None = None,
) -> str:
    """An SVG of some curves by each score (bleu, chrf); curves of one name are one system.

    A chart that will stand alone tells the signatures of its scores.
    """
    if not any(curve.points for curves in scores.values() for curve in curves):
        raise ValueError("there is nothing to draw: no curve has a point")
    panels = lay_out(scores)
    systems = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    width = LEFT + WIDTH + 34 + max(label_width(panel) for panel in panels)
    foot = panels[-1].bottom + STRIP + 24
    height = foot + 10 + LABEL * len(signatures or ())
    drawn = "".join(draw_panel(panel, systems) for panel in panels)
    drawn += text(LEFT + WIDTH / 2, foot, "words of the source sentence", "middle", fill=FAINT, class_="quiet")
    for number, (score, signature) in enumerate((signatures or {}).items(), start=1):
        words = f"{TITLES.get(score, score)} {signature}"
        drawn += text(LEFT, foot + LABEL * number, words, fill=FAINT, class_="quiet", font_size=SMALL - 1)
    content = element("g", drawn, font_size=LETTER, fill=INK, class_="length-chart")
    return picture(width, height, content, title=title, description=described(panels))


def lay_out(scores: Mapping[str, Sequence[Curve]]) -> list[Panel]:
    """One panel below the other, over the same lengths."""
    shown = {score: [curve for curve in curves if curve.points] for score, curves in scores.items()}
    longest = max(point.length for curves in shown.values() for curve in curves for point in curve.points)
    ends = [point.high for curves in shown.values() for curve in curves for point in curve.points]
    end = min(max(ends), 1.5 * longest)
    across = max(end * ROOM, end + HALF)
    return [
        Panel(score, curves, TOP + number * (HEIGHT + GAP + STRIP), across, value_axis(curves))
        for number, (score, curves) in enumerate((score, curves) for score, curves in shown.items() if curves)
    ]


def value_axis(curves: Sequence[Curve]) -> list[float]:
    """Round numbers around all bands: from zero, unless the upper half would be all that is used."""
    low = min(point.estimate.low for curve in curves for point in curve.points)
    high = max(point.estimate.high for curve in curves for point in curve.points)
    if low <= high / 2:
        return ticks(max(high, 1.0))
    step = ticks(max(high - low, 1.0))[1]
    first, last = math.floor(low / step), math.ceil(high / step - 1e-9)
    return [round(number * step, 9) for number in range(first, max(last, first + 1) + 1)]


def draw_panel(panel: Panel, systems: Sequence[str]) -> str:
    """Axes, then bands, then lines, so that no band hides a line."""
    numbered = [(systems.index(curve.name), curve) for curve in panel.curves]
    return "".join(
        [
            shaded(panel),
            axes(panel),
            strip(panel),
            *(band(panel, number, curve) for number, curve in numbered),
            *(line(panel, number, curve) for number, curve in numbered),
            labels(panel, systems),
        ]
    )


# --- axes -------------------------------------------------------------------------------------------------------


def axes(panel: Panel) -> str:
    """Round numbers on both, and what is measured."""
    parts = [text(LEFT, panel.top - 14, TITLES.get(panel.score, panel.score), font_weight="600")]
    for value in panel.values:
        down = panel.y(value)
        parts.append(element("line", x1=LEFT, x2=LEFT + WIDTH, y1=down, y2=down, stroke=LINE, class_="grid"))
        parts.append(text(LEFT - 8, down + 4, f"{value:g}", "end", fill=FAINT, class_="quiet"))
    for length in round_lengths(panel.across):
        parts.append(text(panel.x(length), panel.bottom + 17, f"{length:g}", "middle", fill=FAINT, class_="quiet"))
    return "".join(parts)


def round_lengths(end: float) -> list[float]:
    """From 0 to the last one on the axis; closer together than values are, since the axis is longer."""
    step = max(1.0, ticks(end / 2)[1])
    return [number * step for number in range(int(end / step) + 1)]


def shaded(panel: Panel) -> str:
    """Where nothing was trained, if something is measured there."""
    starts = [point.low for curve in panel.curves if curve.is_beyond for point in curve.points]
    if not starts:
        return ""
    start = panel.x(min(starts) - 0.5)
    area = element(
        "rect", x=start, y=panel.top, width=LEFT + WIDTH - start, height=HEIGHT, fill="#f1f1ee", class_="beyond"
    )
    return area + text(LEFT + WIDTH, panel.top - 14, BEYOND, "end", fill=FAINT, class_="quiet", font_size=SMALL)


def strip(panel: Panel) -> str:
    """The buckets as a ruler under the axis, each with its number of sentences where that fits."""
    down = panel.bottom + STRIP
    buckets = sorted({(point.low, point.high, point.sentences) for curve in panel.curves for point in curve.points})
    parts = [text(LEFT - 8, down + 4, "sentences", "end", fill=FAINT, class_="quiet", font_size=SMALL - 1)]
    for low, high, sentences in buckets:
        start, end = panel.x(max(low - HALF, 0)) + 1, panel.x(high + HALF) - 1
        words = f"{sentences:,}"
        parts.append(element("line", x1=start, x2=end, y1=down - 7, y2=down - 7, stroke=FAINT, class_="ruler"))
        if width_of(words, SMALL) <= end - start + 4:
            parts.append(
                text((start + end) / 2, down + 6, words, "middle", fill=FAINT, class_="quiet", font_size=SMALL)
            )
    return "".join(parts)


# --- curves -----------------------------------------------------------------------------------------------------


def band(panel: Panel, number: int, curve: Curve) -> str:
    """The 95 % band; of a single bucket a bar."""
    points = curve.points if len(curve.points) > 1 else (*curve.points, *curve.points)
    wide = 0 if len(curve.points) > 1 else 3
    lower = [(panel.x(point.length) - wide, panel.y(point.estimate.low)) for point in points]
    upper = [(panel.x(point.length) + wide, panel.y(point.estimate.high)) for point in reversed(points)]
    return element(
        "polygon", points=corners([*lower, *upper]), fill=colour(number), fill_opacity="0.14", class_=series(number)
    )


def line(panel: Panel, number: int, curve: Curve) -> str:
    """A line with a marker at each bucket, dashed beyond what was trained."""
    places = [(panel.x(point.length), panel.y(point.estimate.score)) for point in curve.points]
    dashes = {"stroke_dasharray": "6 4"} if curve.is_beyond else {}
    return stroke(number, places, **dashes) + "".join(
        marker(number, across, down, told(curve, point))
        for (across, down), point in zip(places, curve.points, strict=True)
    )


def told(curve: Curve, point: Point) -> str:
    """A point in words, for whoever rests on it or cannot see it."""
    each = point.estimate
    return f"{curve.name}, {point.low}–{point.high} words: {each.score:.1f} ({each.low:.1f}–{each.high:.1f})"


def marker(number: int, across: float, down: float, words: str = "") -> str:
    """A shape for each system, so that colour alone tells nothing apart."""
    shape = SHAPES[number % len(SHAPES)]
    place = corners([(across + MARKER * right, down + MARKER * below) for right, below in shape])
    name = element("title", spelled(words)) if words else ""
    return element(
        "polygon",
        name,
        points=place,
        fill=colour(number),
        stroke="#ffffff",
        stroke_width="0.8",
        class_=f"marker {series(number)}",
    )


OCTAGON = [(1.0, 0.4), (0.4, 1.0), (-0.4, 1.0), (-1.0, 0.4), (-1.0, -0.4), (-0.4, -1.0), (0.4, -1.0), (1.0, -0.4)]
SHAPES: list[list[tuple[float, float]]] = [
    OCTAGON,
    [(-0.95, -0.95), (0.95, -0.95), (0.95, 0.95), (-0.95, 0.95)],
    [(0, -1.25), (1.15, 0.85), (-1.15, 0.85)],
    [(0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)],
    [(0, 1.25), (1.15, -0.85), (-1.15, -0.85)],
]


def colour(number: int) -> str:
    """Of a system."""
    return SERIES[number % len(SERIES)]


def series(number: int) -> str:
    """The class of whatever belongs to a system."""
    return f"series series-{number % len(SERIES)}"


def stroke(number: int, places: Sequence[tuple[float, float]], **more: str) -> str:
    """The line of a system through its places."""
    return element(
        "polyline",
        points=corners(places),
        fill="none",
        stroke=colour(number),
        stroke_width=2,
        **more,
        class_=series(number),
    )


def corners(places: Sequence[tuple[float, float]]) -> str:
    """As SVG writes them."""
    return " ".join(f"{written(across)},{written(down)}" for across, down in places)


# --- names ------------------------------------------------------------------------------------------------------


def labels(panel: Panel, systems: Sequence[str]) -> str:
    """Each system's name beside the end of its line, pushed apart where they would touch."""
    last = {curve.name: panel.y(curve.points[-1].estimate.score) for curve in panel.curves}
    names = sorted(last, key=lambda name: last[name])
    start = LEFT + WIDTH + 16
    parts = []
    for name, down in zip(names, apart([last[name] for name in names], panel.top, panel.bottom), strict=True):
        number = systems.index(name)
        parts.append(marker(number, start, down))
        parts.append(text(start + 10, down + 4, cut(name, LONGEST), fill=colour(number), class_=series(number)))
    return "".join(parts)


def apart(places: Sequence[float], top: float, bottom: float) -> list[float]:
    """Places in the same order, at least a line of text between them, and none below the panel if that can be."""
    down: list[float] = []
    for place in places:
        down.append(max(place, down[-1] + LABEL if down else top))
    limit = max(bottom, top + LABEL * (len(places) - 1))
    for number in reversed(range(len(down))):
        down[number] = min(down[number], limit)
        limit = down[number] - LABEL
    return down


def label_width(panel: Panel) -> float:
    """Of the longest name."""
    return max(width_of(cut(curve.name, LONGEST), LETTER) for curve in panel.curves)


def described(panels: Sequence[Panel]) -> str:
    """The picture in words."""
    return "; ".join(
        f"{TITLES.get(panel.score, panel.score)} of {curve.name}{', ' + BEYOND if curve.is_beyond else ''}: "
        + ", ".join(f"{point.low}–{point.high} words {point.estimate.score:.1f}" for point in curve.points)
        for panel in panels
        for curve in panel.curves
    )

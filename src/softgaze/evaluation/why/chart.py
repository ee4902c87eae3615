"""The findings as pictures: a panel for each quantity or measure, a line for each layer or model. Text stays text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from softgaze.evaluation.chart import apart, colour, corners, marker
from softgaze.evaluation.why.dependence import MEASURES, Dependence, Stretch
from softgaze.evaluation.why.findings import caution, short
from softgaze.evaluation.why.layers import HEADS, KERNEL, REACH, Layer
from softgaze.evaluation.why.study import QUANTITIES, Quantity, Study
from softgaze.evaluation.why.text import banded, has_others, named, notes_of, pairs_of, powers
from softgaze.gaze.colours import FAINT, INK, LINE
from softgaze.gaze.drawing import element, picture, text, ticks
from softgaze.gaze.lettering import width_of, wrapped

MARGIN, GAP = 24, 56  # around everything, and between panels
LEFT, ACROSS, HEIGHT, NAMES = 48, 300, 200, 14  # room for values, the axes of a panel, and where names begin
TOP = 44  # above a panel, for its title
LETTER, SMALL, NOTE_LINE = 12, 11, 17
MANY = 200  # times as much as the least: powers of ten are enough on the axis
NEAR = 1e-9  # rounding


class Mark(NamedTuple):
    """A point of a line, and the band around it."""

    across: float
    up: float
    low: float
    high: float


class Line(NamedTuple):
    """One layer or model."""

    name: str
    number: int  # of its colour and marker
    marks: Sequence[Mark]
    theory: float | None = None  # the exponent it should have, if that is another


@dataclass(frozen=True)
class Axis:
    """From one value to another, with round numbers on the way; logarithmic or not."""

    low: float
    high: float
    marks: Sequence[float]
    is_log: bool = False

    @classmethod
    def linear(cls, high: float, low: float = 0.0) -> "Axis":
        """From zero, or from as far below it as there are values."""
        step = ticks(max(high, -low))[1]
        first, last = math.floor(min(low, 0.0) / step + NEAR), max(math.ceil(high / step - NEAR), 0)
        marks = [round(number * step, 9) for number in range(first, max(last, first + 1) + 1)]
        return cls(marks[0], marks[-1], marks)

    @classmethod
    def logarithmic(cls, values: Sequence[float]) -> "Axis":
        """As far as there are values; powers of ten, with 2 and 5 between them where there are few."""
        low, high = min(values), max(values) if max(values) > min(values) else 2 * max(values)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        factors = (1, 2, 5) if high / low < MANY else (1,)
        marks = [factor * 10.0**power for power in powers for factor in factors]
        return cls(low, high, [mark for mark in marks if low * (1 - NEAR) <= mark <= high * (1 + NEAR)], is_log=True)

    def share(self, value: float) -> float:
        """Where a value stands, from 0 to 1."""
        low, high, own = (math.log(each) if self.is_log else each for each in (self.low, self.high, value))
        return (own - low) / (high - low)


@dataclass(frozen=True)
class Panel:
    """Axes and what is drawn between them."""

    title: str
    lines: Sequence[Line]
    across: Axis
    up: Axis
    foot: str  # what the lower axis is

    def place(self, across: float, up: float) -> tuple[float, float]:
        """In the drawing, from the panel's own corner."""
        return LEFT + ACROSS * self.across.share(across), TOP + HEIGHT * (1 - self.up.share(up))

    @property
    def width(self) -> float:
        """With the names beside it."""
        names = [width_of(line.name, LETTER) for line in self.lines]
        return LEFT + ACROSS + NAMES + 12 + max(names)


def study_chart(study: Study) -> str:
    """An SVG of everything against the length."""
    panels = [study_panel(study, quantity) for quantity in QUANTITIES]
    low, *_, high = study.widths
    notes = [
        f"one layer of each kind: width d = {study.width:,}, {HEADS} heads, kernel {KERNEL}, reach {REACH}",
        "both axes are logarithmic: a power of n is a straight line, its exponent the slope",
        f"n^… is fitted to the longest lengths, d^… to widths {low:,} to {high:,} at n = {max(study.lengths):,}",
        "dashed, and ≠: theory has another slope than the one that was found",
        *(f"{quantity.name}: {quantity.meaning}" for quantity in QUANTITIES),
        f"measured on {study.threads} {'thread' if study.threads == 1 else 'threads'} in {study.rounds} rounds",
        *caution(study),
    ]
    return drawing(panels, notes, "What a layer costs, and how far a signal travels in it")


def study_panel(study: Study, quantity: Quantity) -> Panel:
    """One quantity; the name of a layer says how it grows."""
    lines = [study_line(study, quantity, kind, number) for number, kind in enumerate(study.kinds)]
    values = [mark.up for line in lines for mark in line.marks]
    across = Axis(min(study.lengths), max(study.lengths), study.lengths, is_log=True)
    return Panel(quantity.titled(), lines, across, Axis.logarithmic(values), "length n")


def study_line(study: Study, quantity: Quantity, kind: type[Layer], number: int) -> Line:
    """What was found; where theory is another, the line knows its slope."""
    growth, points = study.growth(kind, quantity, "n"), study.along(kind, "n")
    values = [quantity.value(point) * quantity.scale for point in points]
    marks = [Mark(point.length, value, value, value) for point, value in zip(points, values, strict=True)]
    return Line(
        f"{kind.name}  {powers(study, kind, quantity)}", number, marks, growth.theory if growth.differs else None
    )


def dependence_chart(found: Sequence[Dependence], sentences: int, left_out: int = 0) -> str:
    """An SVG of both measures against the distance."""
    panels = [dependence_panel([each for each in found if each.measure == measure], measure) for measure in MEASURES]
    notes = [
        f"{pairs_of(sentences, left_out)}; bands hold 95 % of resampled sets of them",
        "beside each name: far ÷ near" + (", then that as a share of the first's" if has_others(found) else ""),
        *(f"{name}: {meaning}" for name, meaning in notes_of(found).items()),
    ]
    # Names are long here: side by side, panels would stand far apart.
    return drawing(panels, notes, "How strongly output words depend on source words, by distance", abreast=1)


def dependence_panel(found: Sequence[Dependence], measure: str) -> Panel:
    """One measure, a line for each model."""
    lines = [
        Line(labelled(each), number, [stretch_mark(one) for one in each.stretches]) for number, each in enumerate(found)
    ]
    lowest = min(mark.low for line in lines for mark in line.marks)
    highest = max(mark.high for line in lines for mark in line.marks)
    farthest = max(mark.across for line in lines for mark in line.marks)
    return Panel(measure, lines, Axis.linear(farthest), Axis.linear(highest, lowest), "distance, words")


def labelled(dependence: Dependence) -> str:
    """The name of a model, its share and, of a further one, that share held against the first model's."""
    share = dependence.far_to_near
    if share is None:
        return f"{named(dependence)}  {banded(share, dependence.lacking)}"
    told = f"{named(dependence)}  {share.score:z.2f}"
    against = banded(dependence.to_first, dependence.lacking_to_first)
    return f"{told}; of the first's {against}" if dependence.first else told


def stretch_mark(stretch: Stretch) -> Mark:
    """A stretch with its band."""
    return Mark(stretch.distance, stretch.strength.score, stretch.strength.low, stretch.strength.high)


# --- drawing ----------------------------------------------------------------------------------------------------


def drawing(panels: Sequence[Panel], notes: Sequence[str], title: str, abreast: int = 2) -> str:
    """Panels so many in a row, the notes in the place after the last."""
    column = max(panel.width for panel in panels) + GAP / 2
    row = TOP + HEIGHT + GAP
    width, top = MARGIN + abreast * column, MARGIN + 14
    places = [divmod(number, abreast) for number in range(len(panels) + 1)]
    corners_of = [(MARGIN + aside * column, top + below * row) for below, aside in places]
    parts = [text(MARGIN, MARGIN + 10, title, font_weight="600", font_size=LETTER + 3)]
    for panel, (across, down) in zip(panels, corners_of, strict=False):
        parts.append(element("g", drawn(panel), transform=f"translate({across:.1f} {down:.1f})"))
    is_beside = len(panels) % abreast > 0
    across, down = corners_of[-1]
    room = (column if is_beside else abreast * column) - MARGIN
    lines = [line for note in notes for line in wrapped(note, room / SMALL)]
    first = down + (TOP if is_beside else NOTE_LINE)
    for number, line in enumerate(lines):
        parts.append(text(across, first + number * NOTE_LINE, line, fill=FAINT, font_size=SMALL))
    below = max(first + len(lines) * NOTE_LINE, top + -(-len(panels) // abreast) * row)
    content = element("g", "".join(parts), font_size=LETTER, fill=INK)
    return picture(width, below + MARGIN / 2, content, title=title, description=" ".join(notes)) + "\n"


def drawn(panel: Panel) -> str:
    """Axes, then bands, then lines, then names."""
    parts = [text(LEFT, TOP - 12, panel.title, font_weight="600"), axes(panel)]
    parts += [band(panel, line) for line in panel.lines if any(mark.low < mark.high for mark in line.marks)]
    parts += [each(panel, line) for line in panel.lines for each in (guide, curve)]
    return "".join([*parts, names(panel)])


def axes(panel: Panel) -> str:
    """Round numbers on both."""
    parts = []
    for value in panel.up.marks:
        _, down = panel.place(panel.across.low, value)
        parts.append(element("line", x1=LEFT, x2=LEFT + ACROSS, y1=down, y2=down, stroke=LINE))
        parts.append(text(LEFT - 7, down + 4, short(value), "end", fill=FAINT, font_size=SMALL))
    for value in panel.across.marks:
        across, _ = panel.place(value, panel.up.low)
        parts.append(text(across, TOP + HEIGHT + 16, short(value), "middle", fill=FAINT, font_size=SMALL))
    parts.append(text(LEFT + ACROSS / 2, TOP + HEIGHT + 33, panel.foot, "middle", fill=FAINT, font_size=SMALL))
    return "".join(parts)


def band(panel: Panel, line: Line) -> str:
    """Where the line may lie."""
    lower = [panel.place(mark.across, mark.low) for mark in line.marks]
    upper = [panel.place(mark.across, mark.high) for mark in reversed(line.marks)]
    return element("polygon", points=corners([*lower, *upper]), fill=colour(line.number), fill_opacity="0.12")


def curve(panel: Panel, line: Line) -> str:
    """A line with its markers."""
    spots = [panel.place(mark.across, mark.up) for mark in line.marks]
    path = element("polyline", points=corners(spots), fill="none", stroke=colour(line.number), stroke_width=2)
    return path + "".join(marker(line.number, *spot) for spot in spots)


def guide(panel: Panel, line: Line) -> str:
    """The slope of the theory, dashed, through the last point and back until it leaves the panel."""
    if line.theory is None:
        return ""
    end = line.marks[-1]
    across = panel.across.low
    if line.theory > 0:
        across = max(across, end.across * (panel.up.low / end.up) ** (1 / line.theory))
    start = panel.place(across, end.up * (across / end.across) ** line.theory)
    look = {"stroke_width": "1.2", "stroke_dasharray": "4 4"}
    last = panel.place(end.across, end.up)
    return element("polyline", points=corners([start, last]), fill="none", stroke=colour(line.number), **look)


def names(panel: Panel) -> str:
    """Each line's name beside its end, pushed apart where they would touch."""
    ends = sorted((panel.place(line.marks[-1].across, line.marks[-1].up)[1], line) for line in panel.lines)
    heights = apart([end for end, _ in ends], TOP, TOP + HEIGHT)
    start = LEFT + ACROSS + NAMES
    return "".join(
        marker(line.number, start, down) + text(start + 10, down + 4, line.name, fill=colour(line.number))
        for down, (_, line) in zip(heights, ends, strict=True)
    )

"""How models learn, as a picture: score and loss on held-out text against minutes of training, a line for each model.

Colours and markers are those of the chart of quality against length.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from softgaze.evaluation.chart import LABEL, LETTER, LONGEST, SMALL, apart, colour, marker, series, stroke
from softgaze.gaze.colours import FAINT, INK, LINE
from softgaze.gaze.drawing import element, picture, text, ticks
from softgaze.gaze.lettering import cut, width_of

WIDTH, HEIGHT, LEFT, TOP, GAP = 560, 210, 52, 40, 56  # of one panel, and the room around it
LEAST = 0.01  # at the top of an axis: a score below it is none
TITLES = {"bleu": "BLEU on held-out text", "loss": "loss a token on held-out text"}


@dataclass(frozen=True)
class Learning:
    """What one model's validations found."""

    name: str
    minutes: Sequence[float]
    values: dict[str, Sequence[float]]  # by score


@dataclass(frozen=True)
class Panel:
    """One score's axes."""

    score: str
    lines: Sequence[Learning]
    top: float

    @property
    def end(self) -> float:
        """Of the axis of minutes."""
        return max(minute for line in self.lines for minute in line.minutes)

    @property
    def marks(self) -> list[float]:
        """Round values from zero up."""
        return ticks(max(LEAST, *(value for line in self.lines for value in line.values[self.score])))

    def place(self, minute: float, value: float) -> tuple[float, float]:
        """Where a point stands."""
        return LEFT + WIDTH * minute / self.end, self.top + HEIGHT * (1 - value / self.marks[-1])


def learning_chart(lines: Sequence[Learning], title: str = "Learning curves", signature: str = "") -> str:
    """An SVG with a panel for each score, over the same minutes; where it will stand alone, with BLEU's signature."""
    panels = [Panel(score, lines, TOP + number * (HEIGHT + GAP)) for number, score in enumerate(TITLES)]
    names = max(width_of(cut(line.name, LONGEST), LETTER) for line in lines)
    foot = panels[-1].top + HEIGHT + 36
    height = foot + 8 + (LABEL if signature else 0)
    content = "".join(map(drawn, panels))
    content += text(LEFT + WIDTH / 2, foot, "minutes of training", "middle", fill=FAINT, class_="quiet")
    if signature:
        content += text(LEFT, foot + LABEL, f"BLEU {signature}", fill=FAINT, class_="quiet", font_size=SMALL - 1)
    whole = element("g", content, font_size=LETTER, fill=INK, class_="learning-chart")
    return picture(LEFT + WIDTH + 34 + names, height, whole, title=title, description=described(lines))


def drawn(panel: Panel) -> str:
    """Axes, lines and names."""
    curves = [curve(panel, number, line) for number, line in enumerate(panel.lines)]
    return axes(panel) + "".join(curves) + labels(panel)


def axes(panel: Panel) -> str:
    """Round numbers on both, and what is measured."""
    parts = [text(LEFT, panel.top - 14, TITLES[panel.score], font_weight="600")]
    for value in panel.marks:
        down = panel.place(0, value)[1]
        parts.append(element("line", x1=LEFT, x2=LEFT + WIDTH, y1=down, y2=down, stroke=LINE, class_="grid"))
        parts.append(text(LEFT - 8, down + 4, f"{value:g}", "end", fill=FAINT, class_="quiet"))
    for minute in ticks(panel.end):
        if minute <= panel.end:
            across = panel.place(minute, 0)[0]
            parts.append(text(across, panel.top + HEIGHT + 17, f"{minute:g}", "middle", fill=FAINT, class_="quiet"))
    return "".join(parts)


def curve(panel: Panel, number: int, line: Learning) -> str:
    """A line with a marker at each validation."""
    places = [panel.place(*point) for point in zip(line.minutes, line.values[panel.score], strict=True)]
    path = stroke(number, places)
    told = [
        f"{line.name}, {minute:.1f} min: {value:.3g}"
        for minute, value in zip(line.minutes, line.values[panel.score], strict=True)
    ]
    return path + "".join(marker(number, *place, words) for place, words in zip(places, told, strict=True))


def labels(panel: Panel) -> str:
    """Each name beside the end of its line, pushed apart where they would touch."""
    ends = [panel.place(line.minutes[-1], line.values[panel.score][-1])[1] for line in panel.lines]
    order = sorted(range(len(ends)), key=lambda number: ends[number])
    start, parts = LEFT + WIDTH + 16, []
    for number, down in zip(order, apart([ends[each] for each in order], panel.top, panel.top + HEIGHT), strict=True):
        name = cut(panel.lines[number].name, LONGEST)
        parts.append(marker(number, start, down))
        parts.append(text(start + 10, down + 4, name, fill=colour(number), class_=series(number)))
    return "".join(parts)


def described(lines: Sequence[Learning]) -> str:
    """The picture in words."""
    return "; ".join(
        f"{line.name}: BLEU "
        + ", ".join(
            f"{value:.1f} after {minute:.1f} min"
            for minute, value in zip(line.minutes, line.values["bleu"], strict=True)
        )
        for line in lines
    )

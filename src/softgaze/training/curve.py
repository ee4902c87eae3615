"""The course of a run as a picture: loss above, BLEU and chrF below, against minutes. Our own SVG, text stays text."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from softgaze.files import write_text
from softgaze.gaze.drawing import element, picture, text, ticks
from softgaze.training.journal import read_journal

WIDTH, HEIGHT, LEFT, RIGHT, TOP, GAP = 720, 190, 56, 130, 28, 46
LABEL = 15  # lines of text are this far apart
FAINT = "#57606a"

Points = Sequence[tuple[float, float]]


class Line(NamedTuple):
    """One curve."""

    name: str
    colour: str
    points: Points


def write_curve(journal: Path, path: Path) -> None:
    """Draw what the journal holds; nothing to draw, no file."""
    entries = read_journal(journal)
    updates = [entry for entry in entries if entry["kind"] == "update"]
    validations = [entry for entry in entries if entry["kind"] == "validation"]
    if not validations:
        return
    loss = [
        Line("training loss", "#9aa5b1", [(entry["elapsed"] / 60, entry["loss"]) for entry in updates]),
        Line("dev loss", "#1f6feb", [(entry["elapsed"] / 60, entry["loss"]) for entry in validations]),
    ]
    quality = [
        Line("dev BLEU", "#1a7f37", [(entry["elapsed"] / 60, entry["bleu"]) for entry in validations]),
        Line("dev chrF", "#8250df", [(entry["elapsed"] / 60, entry["chrf"]) for entry in validations]),
    ]
    end = max(entry["elapsed"] for entry in entries) / 60
    top = panel(loss, TOP, end, "loss a token")
    bottom = panel(quality, TOP + HEIGHT + GAP, end, "score on held-out text")
    height = TOP + 2 * HEIGHT + GAP + 44
    minutes = text(LEFT + (WIDTH - LEFT - RIGHT) / 2, height - 6, "minutes of training", "middle")
    panels = element("g", top + bottom + minutes, font_size=12, fill=FAINT)
    write_text(path, picture(WIDTH, height, panels, title="the course of a training run") + "\n")


def panel(lines: Sequence[Line], top: float, end: float, title: str) -> str:
    """Axes and curves from zero up; the names stand where the curves end, pushed apart if they would touch."""
    shown = [line for line in lines if line.points]
    values, minutes = ticks(max(value for line in shown for _, value in line.points)), ticks(end)

    def place(minute: float, value: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - RIGHT) * minute / max(minutes[-1], end)
        return across, top + HEIGHT * (1 - value / values[-1])

    parts = [text(LEFT, top - 9, title, "start", font_weight="600")]
    for value in values:
        down = place(0, value)[1]
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=down, y2=down, stroke="#e5e7eb"))
        parts.append(text(LEFT - 8, down + 4, f"{value:g}", "end"))
    parts += [text(place(minute, 0)[0], top + HEIGHT + 16, f"{minute:g}", "middle") for minute in minutes]
    label = top - LABEL
    for line in sorted(shown, key=lambda line: -line.points[-1][1]):
        corners = " ".join(f"{across:.1f},{down:.1f}" for across, down in (place(*point) for point in line.points))
        parts.append(element("polyline", points=corners, fill="none", stroke=line.colour, stroke_width=2))
        across, down = place(*line.points[-1])
        parts.append(element("circle", cx=across, cy=down, r=3, fill=line.colour))
        label = max(down, label + LABEL)
        words = f"{line.name} {line.points[-1][1]:.3g}"
        parts.append(text(WIDTH - RIGHT + 8, label + 4, words, "start", fill=line.colour))
    return "".join(parts)

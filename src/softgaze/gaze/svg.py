"""A map of attention as a picture for a paper: our own SVG, in which text stays text and the numbers come along.

Source on top, output at the left, one hue on a fixed scale from 0 to 1. It grows with the sentence, prints in grey,
loads nothing, and holds the JSON that `Attention.load` reads.
"""

from collections.abc import Callable, Sequence

import numpy

from softgaze.errors import UsageError
from softgaze.gaze.alignment import Alignment
from softgaze.gaze.attention import Attention
from softgaze.gaze.colours import BLACK, FAINT, GOLD, GREY, INK, LINE, WHITE, ink_on, shade
from softgaze.gaze.drawing import element, picture, spelled, text, written
from softgaze.gaze.lettering import isolated, width_of
from softgaze.gaze.sheet import (
    ASKED,
    BAR,
    FOOT,
    LEGEND_LINE,
    MARGIN,
    NOTE,
    NOTE_LINE,
    PAD,
    SCALE,
    Sheet,
    sentences,
    width_of_sign,
)
from softgaze.gaze.stored import svg_element
from softgaze.gaze.words import Label

SHADES = 100  # steps of the scale: fewer than an eye can tell, few enough to draw all cells of one together
PRINTED = 0.10  # weights from here on are printed
SURE: dict[str, str | float] = {"fill": "none", "stroke": GOLD, "stroke_width": 2.2}
FRAMES = {
    "white": SURE | {"stroke": WHITE, "stroke_width": 4.4},
    "sure": SURE,
    "possible": SURE | {"stroke_dasharray": "4 3"},
}
LOWER = 0.36  # from the middle of a line down to where its letters stand, in em


def svg(attention: Attention, *, gold: Alignment | None = None, about: str = "", sides: tuple[str, str] = ASKED) -> str:
    """The picture as SVG; `gold` links, words of the source to words of the output, are outlined.

    Beneath it stands which map of a model it is, or what it is `about`, with `sides` of its own.
    """
    return drawn(Sheet(attention, gold, about, sides), svg_element(attention))


def drawn(sheet: Sheet, numbers: str = "") -> str:
    """The picture with or without the numbers inside."""
    parts = [numbers, grid(sheet), cells(sheet), printed(sheet), rings(sheet), outlines(sheet)]
    parts += [row_labels(sheet), column_labels(sheet), entropies(sheet), coverages(sheet), legend(sheet), footer(sheet)]
    return (
        picture(
            sheet.width,
            sheet.height,
            "\n".join(filter(None, parts)),
            title=title(sheet.attention),
            description=description(sheet),
        )
        + "\n"
    )


def bare(attention: Attention) -> str:
    """The map and its words alone, for a page of many that says once what they mean."""
    sheet = Sheet(attention, is_narrow=True)
    parts = [grid(sheet), cells(sheet), printed(sheet), rings(sheet), row_labels(sheet), column_labels(sheet)]
    return picture(
        sheet.reach + MARGIN,
        sheet.rows.end + PAD,
        "\n".join(filter(None, parts)),
        title=title(attention),
        description=description(sheet),
    )


# --- the map ----------------------------------------------------------------------------------------------------


def grid(sheet: Sheet) -> str:
    """Faint lines, so that a row can be followed over cells that hold nothing."""
    lines = []
    for down in sheet.rows.runs():
        for across in sheet.columns.runs():
            lines += [f"M{written(across[0])} {written(each)}H{written(across[-1])}" for each in down]
            lines += [f"M{written(each)} {written(down[0])}V{written(down[-1])}" for each in across]
    thin = sheet.sizes.line * 0.6
    return element("path", d="".join(lines), stroke=LINE, stroke_width=thin, fill="none") if lines else ""


def cells(sheet: Sheet) -> str:
    """All cells, those of one shade as one shape: 300 words have 90,000 of them."""
    steps = numpy.rint(sheet.attention.weights.clip(0, 1) * SHADES).astype(int)
    size = f"h{written(sheet.columns.size - 1)}v{written(sheet.rows.size - 1)}h-{written(sheet.columns.size - 1)}z"
    shapes = []
    for step in range(1, SHADES + 1):
        found = numpy.argwhere(steps == step)
        corners = ((sheet.columns.places[column] + 0.5, sheet.rows.places[row] + 0.5) for row, column in found)
        outline = "".join(f"M{written(across)} {written(down)}{size}" for across, down in corners)
        if outline:
            shapes.append(element("path", d=outline, fill=shade(step / SHADES)))
    return "\n".join(shapes)


def short(weight: float) -> str:
    """Two digits without the zero in front."""
    return f"{weight:.2f}".removeprefix("0") if weight < 0.995 else "1"


def printed(sheet: Sheet) -> str:
    """The numbers of all cells that have one; a mouse that rests on it is told the words."""
    weights, (rows, columns) = sheet.attention.weights, sheet.names
    numbers = []
    for row, column in numpy.argwhere(weights >= PRINTED):
        weight = float(weights[row, column])
        across, down = sheet.columns.middle(column), sheet.rows.middle(row) + sheet.sizes.number * LOWER
        words = element("title", spelled(f"{isolated(rows[row])} ← {isolated(columns[column])} {weight:.3f}"))
        number = element("tspan", short(weight))
        numbers.append(element("text", words + number, x=across, y=down, fill=ink_on(min(weight, 1.0))))
    return group(numbers, text_anchor="middle", font_size=sheet.sizes.number)


def rings(sheet: Sheet) -> str:
    """One around the largest weight of each row that looked anywhere."""
    found = []
    for row, weights in enumerate(sheet.attention.weights):
        if weights.any():
            column = int(weights.argmax())
            place = {"cx": sheet.columns.middle(column), "cy": sheet.rows.middle(row)}
            found.append(
                element("circle", **place, r=sheet.sizes.cell * 0.37, stroke=ink_on(min(float(weights[column]), 1.0)))
            )
    return group(found, fill="none", stroke_width=sheet.sizes.line)


def outlines(sheet: Sheet) -> str:
    """Gold links: sure ones solid, possible ones dashed; white beneath, so that they stand out of dark cells."""
    if sheet.gold is None:
        return ""
    rows, columns = numbers_of(sheet.attention.row_labels), numbers_of(sheet.attention.column_labels)
    check_gold(sheet, rows, columns)
    size = {"width": sheet.columns.size - 3, "height": sheet.rows.size - 3}
    frames: dict[str, list[str]] = {"white": [], "sure": [], "possible": []}
    for source, target in sheet.gold:
        x, y = sheet.columns.places[columns[source]] + 1.5, sheet.rows.places[rows[target]] + 1.5
        for kind in ("white", "sure" if (source, target) in sheet.gold.links else "possible"):
            frames[kind].append(element("rect", x=x, y=y, **size))
    return "".join(group(found, **FRAMES[kind]) for kind, found in frames.items())


def numbers_of(labels: Sequence[Label]) -> dict[int, int]:
    """Where each word stands."""
    return {label.word: place for place, label in enumerate(labels) if label.word is not None}


def check_gold(sheet: Sheet, rows: dict[int, int], columns: dict[int, int]) -> None:
    """Gold says which words mean which, so there must be two sentences, and all the words it names."""
    view = sheet.attention.view
    if view.kind != "cross" or view.unit != "words":
        raise UsageError(
            "gold links words of source and output: a picture of subwords, or of one of them alone, cannot show it"
        )
    for source, target in sheet.gold or ():
        if source not in columns or target not in rows:
            words = f"{len(columns)} words of the source and {len(rows)} of the output"
            raise UsageError(f"the gold link {source}-{target} is not between the {words}, counted from 0")


# --- around the map ---------------------------------------------------------------------------------------------


def group(parts: Sequence[str], **attributes: str | float) -> str:
    """Elements that share attributes."""
    return element("g", "\n".join(parts), **attributes) if parts else ""


def tone(label: Label) -> str:
    """Marks are fainter than words."""
    return FAINT if label.word is None else INK


def row_labels(sheet: Sheet) -> str:
    """The output, from top to bottom."""
    across, lower = sheet.columns.start - PAD, sheet.sizes.letter * LOWER
    labels = [
        text(across, sheet.rows.middle(row) + lower, name, "end", fill=tone(label))
        for row, (name, label) in enumerate(zip(sheet.names[0], sheet.rows.labels, strict=True))
    ]
    return group(labels, font_size=sheet.sizes.letter)


def column_labels(sheet: Sheet) -> str:
    """The source, from left to right."""
    down = sheet.rows.start - PAD
    labels = [text(sheet.columns.start - PAD, down, sheet.corner, "end", fill=FAINT, font_size=sheet.sizes.number)]
    for column, (name, label) in enumerate(zip(sheet.names[1], sheet.columns.labels, strict=True)):
        across = sheet.columns.middle(column)
        if sheet.is_turned and label.word is not None:
            turn = {"transform": f"rotate(-45 {written(across)} {written(down)})"}
            labels.append(text(across, down, name, "start", fill=tone(label), **turn))
        else:
            labels.append(text(across, down, name, "middle", fill=tone(label)))
    return group(labels, font_size=sheet.sizes.letter)


def entropies(sheet: Sheet) -> str:
    """At the right of each row: how widely it looked; a full bar is everywhere alike."""
    left, most = sheet.columns.end + PAD, float(numpy.log(max(len(sheet.columns.labels), 2)))
    bars = left + width_of("0.00", sheet.sizes.number) + PAD / 2
    parts = [text(left, sheet.below, "entropy")]
    for row, entropy in enumerate(sheet.attention.entropy()):
        middle, length = sheet.rows.middle(row), BAR * min(max(float(entropy) / most, 0.0), 1.0)
        parts.append(text(left, middle + sheet.sizes.number * LOWER, f"{abs(entropy):.2f}"))
        parts.append(element("rect", x=bars, y=middle - 3, width=length, height=6, fill=GREY))
    return group(parts, font_size=sheet.sizes.number, fill=FAINT)


def coverages(sheet: Sheet) -> str:
    """Under each column: how much all words together looked at it; one that stays at 0 was not used."""
    if not sheet.is_covered:
        return ""
    covered = sheet.attention.coverage()
    top, most = sheet.rows.end + PAD / 2, max(1.0, float(covered.max(initial=0)))
    parts = [text(sheet.columns.start - PAD, sheet.below, "coverage", "end")]
    for column, amount in enumerate(covered):
        middle, height = sheet.columns.middle(column), FOOT * float(amount) / most
        parts.append(element("rect", x=middle - 3, y=top, width=6, height=height, fill=GREY))
        parts.append(text(middle, sheet.below, f"{amount:.{sheet.sizes.digits}f}", "middle"))
    return group(parts, font_size=sheet.sizes.number, fill=FAINT)


# --- legend and footer ------------------------------------------------------------------------------------------


def legend(sheet: Sheet) -> str:
    """What shades and outlines mean."""
    parts = []
    for number, line in enumerate(sheet.legend):
        across, middle = float(MARGIN), sheet.foot + LEGEND_LINE * number
        for sign, meaning in line:
            end = across + width_of_sign(sign, meaning)
            words = end - 2 * PAD - width_of(meaning, NOTE)
            parts += [SIGNS[sign](across, middle), text(words, middle + NOTE * LOWER, meaning)]
            across = end
    return group(parts, font_size=NOTE, fill=INK)


def scale(across: float, middle: float) -> str:
    """From 0 to 1 in eleven shades."""
    left, right = across + 12, across + SCALE - 12
    step = (right - left) / 11
    down, place = middle + NOTE * LOWER, {"y": middle - 6, "height": 12}
    shades = [
        element("rect", x=left + step * number, width=step, fill=shade(number / 10), **place) for number in range(11)
    ]
    border = element("rect", x=left, width=right - left, fill="none", stroke=GREY, **place)
    return text(across, down, "0", fill=FAINT) + "".join(shades) + border + text(right + 5, down, "1", fill=FAINT)


def ring_sign(across: float, middle: float) -> str:
    """As on a light cell."""
    return element("circle", cx=across + 7, cy=middle, r=7, fill="none", stroke=BLACK, stroke_width=1.2)


def sure_sign(across: float, middle: float) -> str:
    """As on the map."""
    return element("rect", x=across, y=middle - 7, width=14, height=14, **FRAMES["sure"])


def possible_sign(across: float, middle: float) -> str:
    """As on the map."""
    return element("rect", x=across, y=middle - 7, width=14, height=14, **FRAMES["possible"])


SIGNS: dict[str, Callable[[float, float], str]] = {
    "scale": scale,
    "ring": ring_sign,
    "sure": sure_sign,
    "possible": possible_sign,
}


def footer(sheet: Sheet) -> str:
    """Line by line."""
    top = sheet.foot + LEGEND_LINE * (len(sheet.legend) - 1) + 2 * NOTE_LINE
    lines = [text(MARGIN, top + NOTE_LINE * number, line) for number, line in enumerate(sheet.footer)]
    return group(lines, font_size=NOTE, fill=FAINT)


def title(attention: Attention) -> str:
    """One line."""
    return f"Attention: {' → '.join(sentences(attention).values())}"


def description(sheet: Sheet) -> str:
    """What is seen, for whoever cannot see it."""
    tops = sheet.attention.top()
    looked = [f"{isolated(word)} ← {isolated(top[0][0])} {top[0][1]:.2f}" for word, top in tops if top]
    return f"{sheet.about or sheet.attention.shows}. {'; '.join(looked)}"

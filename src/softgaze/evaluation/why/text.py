"""The findings as a terminal shows them. Counts nothing and fits nothing."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from textwrap import wrap

from softgaze.evaluation.significance import Estimate
from softgaze.evaluation.why.dependence import MEASURES, Dependence
from softgaze.evaluation.why.findings import caution, crossings, differences, short
from softgaze.evaluation.why.layers import HEADS, KERNEL, REACH, Layer
from softgaze.evaluation.why.study import QUANTITIES, Growth, Point, Quantity, Study
from softgaze.gaze.lettering import clean, cut

DIFFERS = "≠"
WIDTH = 110  # of sentences; the tables are about as wide
LONGEST = 30  # em of a model's name

Rows = Sequence[Sequence[str]]


def study_text(study: Study) -> str:
    """The paper's table with what was found, all numbers, what the columns mean, and where theory does not hold."""
    blocks = [heading(study), columns(summary(study))]
    blocks += [columns([header(study, quantity), *rows(study, quantity)]) for quantity in QUANTITIES]
    blocks.append(meanings())
    differing = differences(study)
    if differing:
        lines = [wrap(line, WIDTH, initial_indent="  ", subsequent_indent="    ") for line in differing]
        blocks.append("\n".join(["Where theory and fit differ", *(each for line in lines for each in line)]))
    return "\n\n".join([*blocks, "\n".join([*crossings(study), *caution(study)])])


def heading(study: Study) -> str:
    """What was looked at, and how."""
    threads = f"{study.threads} {'thread' if study.threads == 1 else 'threads'}"
    return (
        f"One layer of each kind: n positions of width d; {HEADS} heads (h), kernel {KERNEL} (k), reach {REACH} (r)\n"
        f"{threads}, {study.rounds} rounds; left of │ d = {study.width:,}, right of it n = {max(study.lengths):,}\n"
        f"exponents are fitted to the largest sizes; {DIFFERS} where theory has another"
    )


def summary(study: Study) -> Rows:
    """Two lines a kind: how each quantity grows, and how it should."""
    lines = [["", *(quantity.name for quantity in QUANTITIES)]]
    for kind in study.kinds:
        lines.append([kind.name, *(powers(study, kind, quantity) for quantity in QUANTITIES)])
        lines.append(["  theory", *(quantity.law(kind).formula for quantity in QUANTITIES)])
    return lines


def powers(study: Study, kind: type[Layer], quantity: Quantity) -> str:
    """`n^1.66≠ d^1.21≠`."""
    return " ".join(power(study.growth(kind, quantity, letter)) for letter in "nd"[: 1 + quantity.by_width])


def power(growth: Growth) -> str:
    """One exponent; not −0.00."""
    return f"{growth.letter}^{growth.found + 0.0:.2f}{DIFFERS if growth.differs else ''}"


def header(study: Study, quantity: Quantity) -> list[str]:
    """Lengths, then widths."""
    line = [quantity.titled(), *(f"n={length:,}" for length in study.lengths)]
    return [*line, "│", *(f"d={width:,}" for width in study.widths)] if quantity.by_width else line


def rows(study: Study, quantity: Quantity) -> Rows:
    """A line a kind; what stands left is at the middle width, right at the longest length."""

    def numbers(points: Sequence[Point]) -> list[str]:
        return [short(quantity.value(point) * quantity.scale) for point in points]

    lines = []
    for kind in study.kinds:
        line = [kind.name, *numbers(study.along(kind, "n"))]
        lines.append([*line, "│", *numbers(study.along(kind, "d"))] if quantity.by_width else line)
    return lines


def meanings() -> str:
    """A line for each quantity."""
    return columns([[quantity.name, quantity.meaning] for quantity in QUANTITIES], right=False)


def columns(lines: Rows, *, right: bool = True) -> str:
    """Cells under each other, numbers to the right."""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            f"{cell:>{width}}" if right and place else f"{cell:<{width}}"
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


# --- trained models ---------------------------------------------------------------------------------------------


def dependence_text(found: Sequence[Dependence], sentences: int, left_out: int = 0) -> str:
    """For each measure a table: models down, distances across."""
    title = "How strongly output words depend on source words, by how far apart they are"
    blocks = [
        "\n".join(wrap(f"{title} ({pairs_of(sentences, left_out)})", WIDTH)),
        *(measured(found, measure) for measure in MEASURES),
        explained(notes_of(found)),
    ]
    return "\n\n".join(blocks)


def pairs_of(sentences: int, left_out: int = 0) -> str:
    """So many."""
    told = f"{sentences:,} sentence {'pair' if sentences == 1 else 'pairs'}"
    return f"{told}; {left_out:,} left out, which the models have in different words" if left_out else told


FAR, TO_FIRST = "far ÷ near", "÷ the first's"
NOTES = {
    **MEASURES,
    "distance": "words from a source word to its output word, the output written after the source",
    "its output word": "the one that depends on it most, if on nothing else more: for all models together and by the "
    "other measure, so that no number chooses where it is taken; the same words for every model",
    FAR: "the farthest stretch as a share of the nearest, with its 95 % band; words that matter much are not spread "
    "evenly, so 1 is not expected even where distance does not matter: compare models",
}
NOTE_TO_FIRST = (
    "far ÷ near as a share of the first model's, with its 95 % band, the same sentences resampled for both; "
    "1: distance matters no more to it than to that model; below 1 it does"
)


def notes_of(found: Sequence[Dependence]) -> dict[str, str]:
    """What the words of tables and pictures mean."""
    return {**NOTES, TO_FIRST: NOTE_TO_FIRST} if has_others(found) else NOTES


def has_others(found: Sequence[Dependence]) -> bool:
    """Whether a model is held against the first."""
    return any(each.first for each in found)


def explained(notes: dict[str, str]) -> str:
    """Names and what they mean, in lines that are not too long."""
    room = WIDTH - max(map(len, notes)) - 2
    return columns(
        [
            [name if number == 0 else "", line]
            for name, meaning in notes.items()
            for number, line in enumerate(wrap(meaning, room))
        ],
        right=False,
    )


def measured(found: Sequence[Dependence], measure: str) -> str:
    """One measure."""
    own = [each for each in found if each.measure == measure]
    lines = [[f"{measure}, by distance", *ranges(own[0].edges), FAR, TO_FIRST]]
    for each in own:
        strengths = [""] * (len(each.edges) + 1)  # a model may have no word in a stretch
        for stretch in each.stretches:
            strengths[bisect_left(each.edges, stretch.low)] = f"{stretch.strength.score:z.2f}"
        against = banded(each.to_first, each.lacking_to_first) if each.first else ""
        lines.append([named(each), *strengths, banded(each.far_to_near, each.lacking), against])
    return columns(lines if has_others(own) else [line[:-1] for line in lines])


def banded(share: Estimate | None, lacking: str) -> str:
    """A number with its band, or why there is none."""
    return f"{share.score:z.2f} ({share.low:z.2f}–{share.high:z.2f})" if share else f"– ({lacking})"


def ranges(edges: Sequence[int]) -> list[str]:
    """`1–5`, `6–10`, `11+`."""
    closed = [f"{before + 1}–{edge}" if edge > before + 1 else f"{edge}" for before, edge in pairwise([0, *edges])]
    return [*closed, f"{edges[-1] + 1}+"]


def named(dependence: Dependence) -> str:
    """A model with its arch."""
    name = clean(cut(dependence.model, LONGEST))
    return name if name == dependence.arch else f"{name} ({dependence.arch})"

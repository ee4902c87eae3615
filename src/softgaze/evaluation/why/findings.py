"""What the table says in sentences: where theory and what was found differ and why, and where two kinds change places.

Every reason is made of numbers of the study.
"""

from collections.abc import Sequence

from softgaze.evaluation.why.growth import crossing, exponent
from softgaze.evaluation.why.layers import HEADS, Recurrence, SelfAttention
from softgaze.evaluation.why.study import QUANTITIES, Growth, Point, Quantity, Study, size_of

FLOAT = 4  # bytes
CALM = 1.5  # times as long as in another round, which happens anywhere


def differences(study: Study) -> list[str]:
    """A sentence for each exponent that is not the one of the theory."""
    return [told(study, growth) for growth in study.growths() if growth.differs]


def told(study: Study, growth: Growth) -> str:
    """What differs, by how much, and what the numbers say about it."""
    points = study.along(growth.kind, growth.letter)
    names = f"{growth.kind.name}, {growth.quantity.name}"
    power, theory = (f"{growth.letter}^{number:.2f}" for number in (growth.found, growth.theory))
    reason = REASONS.get(growth.quantity.key, by_ends)
    return f"{names}: {power}, theory {theory} — {reason(points, growth)}"


def by_part(points: list[Point], growth: Growth) -> str:
    """Operations: which share of them grows how."""
    last, letter = points[-1], growth.letter
    shares = [
        f"{100 * number / last.operations:.0f} % are {name} ({letter}^{part_power(points, name, letter):.2f})"
        for name, number in last.parts.items()
    ]
    return f"at {place(last, letter)}, " + " and ".join(shares)


def part_power(points: list[Point], name: str, letter: str) -> float:
    """How one part of the operations grows."""
    return exponent([size_of(point, letter) for point in points], [point.parts[name] for point in points])


def by_rate(points: list[Point], growth: Growth) -> str:
    """Time: how the operations grow, and how long a million of them takes."""
    first, last = points[0], points[-1]
    counted = exponent([size_of(point, growth.letter) for point in points], [point.operations for point in points])
    rates = [f"{1e9 * each.seconds / each.operations:.3g} ms at {place(each, growth.letter)}" for each in (first, last)]
    return f"the counted operations grow as {growth.letter}^{counted:.2f}, and a million takes {' and '.join(rates)}"


def by_weights(points: list[Point], growth: Growth) -> str:
    """Memory: whether the weights of every position for every other can have been there at all."""
    last = points[-1]
    weights = HEADS * last.length**2 * FLOAT
    if growth.kind is not SelfAttention or weights < last.held:
        return by_ends(points, growth)
    return (
        f"{HEADS} × n × n weights would be {weights / 2**20:,.1f} MiB at n = {last.length:,}, and no more than "
        f"{last.held / 2**20:,.1f} MiB were held: the fused kernel never has them all"
    )


def by_ends(points: list[Point], growth: Growth) -> str:
    """The smallest and the largest, and what would be left of a straight line through the last two at size 0."""
    quantity = growth.quantity
    ends = [f"{amount(quantity, each)} at {place(each, growth.letter)}" for each in (points[0], points[-1])]
    (narrow, low), (wide, high) = ((size_of(each, growth.letter), quantity.value(each)) for each in points[-2:])
    fixed = low - narrow * (high - low) / (wide - narrow)
    rest = f"; about {written(quantity, fixed)} of it do not grow with {growth.letter}" if fixed > 0 else ""
    return f"from {' to '.join(ends)}{rest}"


REASONS = {"operations": by_part, "seconds": by_rate, "bytes": by_weights}


def place(point: Point, letter: str) -> str:
    """Where on its row a point stands."""
    return f"{letter} = {size_of(point, letter):,}"


def amount(quantity: Quantity, point: Point) -> str:
    """What a point has of a quantity."""
    return written(quantity, quantity.value(point))


def written(quantity: Quantity, value: float) -> str:
    """A value with its unit."""
    return f"{short(value * quantity.scale)} {quantity.unit}".strip()


def short(number: float) -> str:
    """Three digits, or all of a whole number: 0.0042, 1.27, 34.5, 9,219."""
    return f"{number:,.0f}" if abs(number) >= 100 or number == int(number) else f"{number:.3g}"


def caution(study: Study) -> list[str]:
    """Whether something else kept the machine busy meanwhile."""
    if study.unrest <= CALM:
        return []
    return [
        f"the same layer took up to {study.unrest:.1f} times as long in one round as in another: the machine was busy, "
        "and times are rough; run it again when nothing else runs"
    ]


def crossings(study: Study) -> list[str]:
    """From which length on self-attention costs more than recurrence, in operations and in time."""
    return [crossed(study, quantity) for quantity in QUANTITIES if quantity.key in ("operations", "seconds")]


def crossed(study: Study, quantity: Quantity) -> str:
    """One of them."""
    attention, recurrence = (
        [quantity.value(point) for point in study.along(kind, "n")] for kind in (SelfAttention, Recurrence)
    )
    name = {"operations": "fewer operations", "seconds": "less time"}[quantity.key]
    found = crossing(study.lengths, attention, recurrence)
    if found is not None:
        return f"self-attention needs {name} than recurrence up to n ≈ {found:,.0f} (d = {study.width:,})"
    less = [mine < theirs for mine, theirs in zip(attention, recurrence, strict=True)]
    return f"self-attention needs {name} than recurrence {where(study.lengths, less)} (d = {study.width:,})"


def where(lengths: Sequence[int], holds: Sequence[bool]) -> str:
    """At which of the lengths something holds; each is named unless all are alike."""
    if all(holds) or not any(holds):
        return "at every length measured" if holds[0] else "at no length measured"
    there, elsewhere = (
        ", ".join(f"{length:,}" for length, held in zip(lengths, holds, strict=True) if held is wanted)
        for wanted in (True, False)
    )
    return f"at n = {there} and not at n = {elsewhere}"

"""The table: every kind of layer at several lengths and widths, and how each quantity grows with them.

Lengths are gone through at the middle width, widths at the longest length.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from statistics import median
from typing import Any, NamedTuple

import torch

from softgaze.errors import UsageError
from softgaze.evaluation.why.growth import exponent
from softgaze.evaluation.why.layers import HEADS, KERNEL, KINDS, REACH, Law, Layer
from softgaze.evaluation.why.measuring import Advance, most_held, seconds, training_pass
from softgaze.evaluation.why.operations import count, longest_chain, parts
from softgaze.evaluation.why.paths import longest_path

LENGTHS, WIDTHS = (64, 128, 256, 512, 1024), (64, 128, 256)
ROUNDS = 5
TOLERANCE = 0.1  # an exponent that is further from theory differs from it


@dataclass(frozen=True)
class Point:
    """One kind of layer at one length and width."""

    kind: type[Layer]
    length: int
    width: int
    parts: dict[str, int]  # operations, by what is multiplied with what
    chain: int
    path: int
    times: tuple[float, ...]  # seconds, one of each round
    held: int  # bytes

    @property
    def operations(self) -> int:
        """All of them."""
        return sum(self.parts.values())

    @property
    def seconds(self) -> float:
        """The middle of all rounds."""
        return median(self.times)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "layer": self.kind.name,
            "length": self.length,
            "width": self.width,
            "operations": self.operations,
            "operations_by_part": self.parts,
            "sequential_operations": self.chain,
            "longest_path": self.path,
            "seconds": self.seconds,
            "seconds_of_rounds": list(self.times),
            "bytes": self.held,
        }


class Quantity(NamedTuple):
    """A column of the table."""

    key: str
    name: str
    unit: str
    scale: float  # from the value to the unit
    value: Callable[[Point], float]
    law: Callable[[type[Layer]], Law]
    meaning: str
    by_width: bool = True  # whether it can grow with the width at all

    def titled(self) -> str:
        """With its unit."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


QUANTITIES = (
    Quantity(
        "operations",
        "operations",
        "millions",
        1e-6,
        lambda point: point.operations,
        lambda kind: kind.theory.operations,
        "multiplications and additions in matrix products, counted as the layer runs forward; of a window 3·r keys",
    ),
    Quantity(
        "sequential_operations",
        "sequential operations",
        "",
        1,
        lambda point: point.chain,
        lambda kind: kind.theory.sequential,
        "the longest chain, in the graph of the run, of operations that wait for one another",
        by_width=False,
    ),
    Quantity(
        "longest_path",
        "longest path",
        "",
        1,
        lambda point: point.path,
        lambda kind: kind.theory.path,
        "layers (of a recurrence: cells) that a change of the first position crosses before the last one changes",
        by_width=False,
    ),
    Quantity(
        "seconds",
        "time",
        "ms",
        1e3,
        lambda point: point.seconds,
        lambda kind: kind.theory.operations,
        "one sequence forward and back; all layers take turns, the median of the rounds; theory: as the operations",
    ),
    Quantity(
        "bytes",
        "memory",
        "MiB",
        2**-20,
        lambda point: point.held,
        lambda kind: kind.theory.memory,
        "the most held at once on the way forward and back, beyond the layer's own matrices and their gradients",
    ),
)


class Growth(NamedTuple):
    """How one quantity of one kind grows with the length n or the width d."""

    kind: type[Layer]
    quantity: Quantity
    letter: str
    found: float
    low: float  # the least and the most of any round; for what is counted, all three are one
    high: float
    theory: float  # of the formula, fitted at the same sizes

    @property
    def differs(self) -> bool:
        """Whether theory lies outside of what was found."""
        return not self.low - TOLERANCE <= self.theory <= self.high + TOLERANCE

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "layer": self.kind.name,
            "quantity": self.quantity.key,
            "with": {"n": "length", "d": "width"}[self.letter],
            "exponent": self.found,
            "exponent_of_rounds": [self.low, self.high],
            "theory": self.quantity.law(self.kind).formula,
            "theory_exponent": self.theory,
            "differs": self.differs,
        }


@dataclass(frozen=True)
class Study:
    """Everything that was found."""

    points: tuple[Point, ...]
    lengths: tuple[int, ...]
    widths: tuple[int, ...]
    rounds: int
    threads: int = field(default_factory=torch.get_num_threads)

    @property
    def width(self) -> int:
        """At which lengths are gone through."""
        return middle(self.widths)

    @cached_property
    def kinds(self) -> list[type[Layer]]:
        """In the order of the table."""
        return list(dict.fromkeys(point.kind for point in self.points))

    @property
    def unrest(self) -> float:
        """How many times as long the slowest round of a usual point took as its quickest: 1 on a quiet machine."""
        return median(max(point.times) / min(point.times) for point in self.points)

    def along(self, kind: type[Layer], letter: str) -> list[Point]:
        """The points of a kind from short to long ("n"), or from narrow to wide ("d")."""
        own = [point for point in self.points if point.kind is kind]
        if letter == "n":
            return sorted((point for point in own if point.width == self.width), key=lambda point: point.length)
        return sorted((point for point in own if point.length == max(self.lengths)), key=lambda point: point.width)

    def growth(self, kind: type[Layer], quantity: Quantity, letter: str) -> Growth:
        """Fitted, and the same of each round alone where there are rounds."""
        points = self.along(kind, letter)
        sizes = [size_of(point, letter) for point in points]
        law = quantity.law(kind)
        rounds = [[quantity.value(point) for point in points]]
        if quantity.key == "seconds":
            rounds += [list(times) for times in zip(*(point.times for point in points), strict=True)]
        found, *each = [exponent(sizes, values) for values in rounds]
        theory = exponent(sizes, [law.value(point.length, point.width) for point in points])
        return Growth(kind, quantity, letter, found, min(each or [found]), max(each or [found]), theory)

    def growths(self) -> list[Growth]:
        """All of them, in the order of the table."""
        return [
            self.growth(kind, quantity, letter)
            for kind in self.kinds
            for quantity in QUANTITIES
            for letter in ("n", "d")[: 1 + quantity.by_width]
        ]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "lengths": list(self.lengths),
            "widths": list(self.widths),
            "heads": HEADS,
            "kernel": KERNEL,
            "reach": REACH,
            "rounds": self.rounds,
            "threads": self.threads,
            "unrest": self.unrest,
            "torch": torch.__version__,
            "points": [point.to_dict() for point in self.points],
            "growth": [growth.to_dict() for growth in self.growths()],
        }


def distinct(sizes: Sequence[int]) -> list[int]:
    """From small to large; what is named twice is measured once."""
    return sorted(set(sizes))


def size_of(point: Point, letter: str) -> int:
    """The length or the width."""
    return point.length if letter == "n" else point.width


def middle(widths: Sequence[int]) -> int:
    """The one that has as many below as above; of two, the smaller."""
    return sorted(widths)[(len(widths) - 1) // 2]


def sizes(lengths: Sequence[int], widths: Sequence[int]) -> list[tuple[int, int]]:
    """Every length at the middle width, and every width at the longest length."""
    chosen = [(length, middle(widths)) for length in sorted(lengths)]
    return list(dict.fromkeys([*chosen, *((max(lengths), width) for width in sorted(widths))]))


def steps(lengths: Sequence[int], widths: Sequence[int], rounds: int) -> int:
    """How often `study` says that it is further: for each path, each point that is counted and each time measured."""
    lengths, widths = distinct(lengths), distinct(widths)
    return len(KINDS) * (len(lengths) + len(sizes(lengths, widths)) * (1 + rounds))


def study(
    lengths: Sequence[int] = LENGTHS,
    widths: Sequence[int] = WIDTHS,
    rounds: int = ROUNDS,
    advance: Advance = lambda: None,
) -> Study:
    """Count, find and measure everything; `advance` is called `steps` times."""
    check_sizes(lengths, widths)
    lengths, widths = distinct(lengths), distinct(widths)
    torch.manual_seed(1)  # what is drawn changes no number but the last digits of time
    cases = [(kind, length, width) for kind in KINDS for length, width in sizes(lengths, widths)]
    layers = [kind(width, 1) for kind, _, width in cases]
    inputs = [torch.randn(1, length, width, requires_grad=True) for _, length, width in cases]
    paths = all_paths(lengths, advance)
    counted = []
    for layer, vectors in zip(layers, inputs, strict=True):
        with torch.no_grad():
            operations = parts(count(partial(layer, vectors)))
        counted.append((operations, longest_chain(layer, vectors), most_held(layer, vectors)))
        advance()
    passes = [partial(training_pass, *each) for each in zip(layers, inputs, strict=True)]
    times = seconds(passes, rounds, advance)
    points = tuple(
        Point(kind, length, width, operations, chain, paths[kind, length], tuple(own), held)
        for (kind, length, width), (operations, chain, held), own in zip(cases, counted, times, strict=True)
    )
    return Study(points, tuple(lengths), tuple(widths), rounds)


def all_paths(lengths: Sequence[int], advance: Advance) -> dict[tuple[type[Layer], int], int]:
    """For each kind and length; no path depends on the width."""
    found = {}
    for kind in KINDS:
        for length in lengths:
            found[kind, length] = longest_path(kind, length)
            advance()
    return found


def check_sizes(lengths: Sequence[int], widths: Sequence[int]) -> None:
    """What cannot be built or fitted is refused."""
    for name, sizes, least in (("lengths", lengths, 2), ("widths", widths, HEADS)):
        if len(set(sizes)) < 2:
            raise UsageError(f"an exponent is fitted through at least two different {name}, not {len(set(sizes))}")
        if min(sizes) < least:
            raise UsageError(f"{name} start at {least}, not {min(sizes)}")
    for width in widths:
        if width % HEADS:
            raise UsageError(f"a width of {width} cannot be divided among the {HEADS} heads of self-attention")

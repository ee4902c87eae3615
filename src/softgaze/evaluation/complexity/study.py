"""The complexity study: every layer type at several lengths and widths, and how each quantity grows.

Lengths are measured at the middle width, widths at the longest length.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from statistics import linear_regression, median
from typing import Any, NamedTuple

import torch

from softgaze.errors import UsageError
from softgaze.evaluation.complexity.layers import (
    HEADS,
    KERNEL,
    LAYERS,
    WINDOW,
    Law,
    Layer,
    count_flops,
    group_flops,
    longest_path,
    measure_times,
    peak_bytes,
    sequential_operations,
    training_pass,
)

LENGTHS, WIDTHS = (64, 128, 256, 512, 1024), (64, 128, 256)
ROUNDS = 5
FITTED = 3  # largest sizes that an exponent is fitted to; smaller ones are mostly fixed cost
TOLERANCE = 0.1  # of exponents


def fit_exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Fit a power law: the least-squares slope of the logarithms of the largest sizes."""
    x, y = ([math.log(max(number, 1e-9)) for number in numbers[-FITTED:]] for numbers in (sizes, values))
    return linear_regression(x, y).slope


def find_crossing(sizes: Sequence[float], one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the size from which `one` stays above `other`, interpolated between logarithms; None if there is none."""
    ratios = [math.log(value / other_value) for value, other_value in zip(one, other, strict=True)]
    above = [ratio > 0 for ratio in ratios]
    first = above.count(False)
    if not 0 < first < len(sizes) or above != sorted(above):
        return None
    before, after = ratios[first - 1], ratios[first]
    share = -before / (after - before)
    return math.exp(math.log(sizes[first - 1]) * (1 - share) + math.log(sizes[first]) * share)


@dataclass(frozen=True)
class Measurement:
    """One layer type at one length and width."""

    layer: type[Layer]
    length: int
    width: int
    flops: dict[str, int]  # by kind of product
    sequential_operations: int
    longest_path: int
    times: tuple[float, ...]  # seconds of each round
    bytes: int

    @property
    def operations(self) -> int:
        return sum(self.flops.values())

    @property
    def seconds(self) -> float:
        return median(self.times)

    def size(self, variable: str) -> int:
        """Return the length ("n") or the width ("d")."""
        return self.length if variable == "n" else self.width

    def to_dict(self) -> dict[str, Any]:
        return {
            "layer": self.layer.name,
            "length": self.length,
            "width": self.width,
            **{quantity.key: getattr(self, quantity.key) for quantity in QUANTITIES},
            "operations_by_part": self.flops,
            "seconds_of_rounds": list(self.times),
        }


class Quantity(NamedTuple):
    key: str  # attribute of a Measurement
    law_name: str  # attribute of a Theory
    name: str
    unit: str
    scale: float  # from value to unit
    variables: str  # that it can depend on
    meaning: str

    def titled(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name

    def value(self, measured: Measurement) -> float:
        return float(getattr(measured, self.key))

    def law(self, layer: type[Layer]) -> Law:
        law: Law = getattr(layer.theory, self.law_name)
        return law


OPERATIONS_MEANING = (
    "multiplications and additions of matrix products in the forward pass; local attention has 3·r keys per query"
)
CHAIN_MEANING = "longest chain of operations that wait for one another, in the graph of the run"
PATH_MEANING = "layers (of a recurrence: cells) between a change of the first position and that of the last one"
TIME_MEANING = "forward and backward pass of one sequence, median of the rounds; theory: as the operations"
MEMORY_MEANING = (
    "peak of forward and backward pass, without parameters and gradients; a fused kernel never stores all n × n weights"
)
QUANTITIES = (
    Quantity("operations", "operations", "operations", "millions", 1e-6, "nd", OPERATIONS_MEANING),
    Quantity("sequential_operations", "sequential", "sequential operations", "", 1, "n", CHAIN_MEANING),
    Quantity("longest_path", "path", "longest path", "", 1, "n", PATH_MEANING),
    Quantity("seconds", "operations", "time", "ms", 1e3, "nd", TIME_MEANING),
    Quantity("bytes", "memory", "memory", "MiB", 2**-20, "nd", MEMORY_MEANING),
)


@dataclass(frozen=True)
class Growth:
    """The exponent with which a quantity of a layer type grows."""

    layer: type[Layer]
    quantity: Quantity
    variable: str  # n or d
    exponent: float
    low: float  # over single rounds
    high: float
    theory: float

    @property
    def differs(self) -> bool:
        """Whether the theory is outside of all rounds by more than the tolerance."""
        return not self.low - TOLERANCE <= self.theory <= self.high + TOLERANCE

    def to_dict(self) -> dict[str, Any]:
        return {
            "layer": self.layer.name,
            "quantity": self.quantity.key,
            "with": {"n": "length", "d": "width"}[self.variable],
            "exponent": self.exponent,
            "exponent_of_rounds": [self.low, self.high],
            "theory": self.quantity.law(self.layer).formula,
            "theory_exponent": self.theory,
            "differs": self.differs,
        }


@dataclass(frozen=True)
class Study:
    measurements: tuple[Measurement, ...]
    lengths: tuple[int, ...]
    widths: tuple[int, ...]
    rounds: int
    threads: int = field(default_factory=torch.get_num_threads)

    @property
    def width(self) -> int:
        """Width at which lengths are measured."""
        return middle_width(self.widths)

    @cached_property
    def layers(self) -> list[type[Layer]]:
        """Layer types in the order of the table."""
        return list(dict.fromkeys(measured.layer for measured in self.measurements))

    @property
    def timing_spread(self) -> float:
        """Slowest over fastest round, median of all measurements; 1 on an idle machine."""
        return median(max(measured.times) / min(measured.times) for measured in self.measurements)

    def along(self, layer: type[Layer], variable: str) -> list[Measurement]:
        """Return the measurements of a layer type by increasing length ("n") or width ("d")."""
        fixed = {"n": ("width", self.width), "d": ("length", max(self.lengths))}[variable]
        chosen = [item for item in self.measurements if item.layer is layer and getattr(item, fixed[0]) == fixed[1]]
        return sorted(chosen, key=lambda measured: measured.size(variable))

    def growth(self, layer: type[Layer], quantity: Quantity, variable: str) -> Growth:
        """Fit the exponent; that of time also for every single round."""
        measurements, law = self.along(layer, variable), quantity.law(layer)
        sizes = [measured.size(variable) for measured in measurements]
        exponent = fit_exponent(sizes, [quantity.value(measured) for measured in measurements])
        rounds = [exponent]
        if quantity.key == "seconds":
            times = zip(*(measured.times for measured in measurements), strict=True)
            rounds = [fit_exponent(sizes, round_times) for round_times in times]
        theory = fit_exponent(sizes, [law.value(measured.length, measured.width) for measured in measurements])
        return Growth(layer, quantity, variable, exponent, min(rounds), max(rounds), theory)

    def growths(self) -> list[Growth]:
        """Return all exponents in the order of the table."""
        return [
            self.growth(layer, quantity, variable)
            for layer in self.layers
            for quantity in QUANTITIES
            for variable in quantity.variables
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "lengths": list(self.lengths),
            "widths": list(self.widths),
            "heads": HEADS,
            "kernel": KERNEL,
            "window": WINDOW,
            "rounds": self.rounds,
            "threads": self.threads,
            "timing_spread": self.timing_spread,
            "torch": torch.__version__,
            "points": [measured.to_dict() for measured in self.measurements],
            "growth": [growth.to_dict() for growth in self.growths()],
        }


def middle_width(widths: Sequence[int]) -> int:
    """Return the median width; of two, the smaller one."""
    return sorted(widths)[(len(widths) - 1) // 2]


def study_sizes(lengths: Sequence[int], widths: Sequence[int]) -> list[tuple[int, int]]:
    """Return every length at the middle width, and every width at the longest length."""
    lengths, widths = sorted(set(lengths)), sorted(set(widths))
    chosen = [(length, middle_width(widths)) for length in lengths]
    return list(dict.fromkeys([*chosen, *((max(lengths), width) for width in widths)]))


def study_steps(lengths: Sequence[int], widths: Sequence[int], rounds: int) -> int:
    """Return how often `run_study` calls `advance`."""
    return len(LAYERS) * (len(set(lengths)) + len(study_sizes(lengths, widths)) * (1 + rounds))


def run_study(
    lengths: Sequence[int] = LENGTHS,
    widths: Sequence[int] = WIDTHS,
    rounds: int = ROUNDS,
    advance: Callable[[], object] = lambda: None,
) -> Study:
    """Measure all layer types; `advance` is called `study_steps` times."""
    check_sizes(lengths, widths)
    lengths, widths = sorted(set(lengths)), sorted(set(widths))
    torch.manual_seed(1)  # the drawn values only change the last digits of times
    cases = [(layer, length, width) for layer in LAYERS for length, width in study_sizes(lengths, widths)]
    layers = [layer(width, 1) for layer, _, width in cases]
    inputs = [torch.randn(1, length, width, requires_grad=True) for _, length, width in cases]
    paths = {}
    for layer_type in LAYERS:
        for length in lengths:
            paths[layer_type, length] = longest_path(layer_type, length)
            advance()
    counts = []
    for layer, vectors in zip(layers, inputs, strict=True):
        with torch.no_grad():
            flops = group_flops(count_flops(partial(layer, vectors)))
        counts.append((flops, sequential_operations(layer, vectors), peak_bytes(layer, vectors)))
        advance()
    passes = [partial(training_pass, *case) for case in zip(layers, inputs, strict=True)]
    times = measure_times(passes, rounds, advance)
    measurements = tuple(
        Measurement(layer_type, length, width, flops, sequential, paths[layer_type, length], tuple(seconds), peak)
        for (layer_type, length, width), (flops, sequential, peak), seconds in zip(cases, counts, times, strict=True)
    )
    return Study(measurements, tuple(lengths), tuple(widths), rounds)


def check_sizes(lengths: Sequence[int], widths: Sequence[int]) -> None:
    """Reject sizes that cannot be built or fitted."""
    for name, sizes, least in (("lengths", lengths, 2), ("widths", widths, HEADS)):
        if len(set(sizes)) < 2:
            raise UsageError(f"expected at least two different {name} to fit an exponent, got {len(set(sizes))}")
        if min(sizes) < least:
            raise UsageError(f"{name} must be at least {least}, got {min(sizes)}")
    for width in widths:
        if width % HEADS:
            raise UsageError(f"width {width} is not divisible by the {HEADS} heads of self-attention")

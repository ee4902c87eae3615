"""What runs a bundle: one small interface, whatever is behind it. Knows ids and numbers, never text, and no torch."""

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy

from softgaze.bundle import Bundle
from softgaze.data.batches import cut_by_budget
from softgaze.errors import ResourceError
from softgaze.gaze.passages import Eyes
from softgaze.search.hypothesis import Hypothesis
from softgaze.search.settings import Search

if TYPE_CHECKING:
    from softgaze.gaze.edits import Edit

Ids = tuple[int, ...]
Tell = Callable[[Sequence[int]], None]  # told the tokens so far
Items = Sequence[Any]  # of a source: ids, or vectors, as its reader gives them
Found = Iterator[tuple[int, list[Hypothesis]]]  # the number of a reading, and its hypotheses, best first

SHORTEST = 16  # tokens that a reading counts as: every step makes logits of the whole vocabulary, however short it is


class Reading(NamedTuple):
    """One source on its way to the model."""

    ids: Items  # as the model reads them, END included where there is one
    prefix: Ids = ()  # what its translation must begin with
    edits: tuple["Edit", ...] = ()  # how the model is made to look elsewhere; only torch can


class Engine(Eyes):
    """A model that is ready to translate. Holds no state between calls."""

    name: ClassVar[str]
    precision: str  # of its weights: float32, int8, …
    device: str
    batch_tokens: ClassVar = 4096  # padded source tokens × hypotheses at once: less waits for Python, more for memory
    places: int | None  # how many tokens the model has places for; None: any number

    @classmethod
    @abstractmethod
    def open(cls, bundle: Bundle, device: str = "auto") -> Self:
        """From a bundle whose files were checked; its packages are installed."""

    @abstractmethod
    def search(self, readings: Sequence[Reading], search: Search) -> Found:
        """Hypotheses of every reading, as soon as they are there and so in any order.

        All are given at once, so that an engine can sort them by length, batch them by `search.batch_tokens` and keep
        its workers busy. What is found depends on a reading alone, never on its neighbours.
        """

    def search_on(self, windows: Iterable[Sequence[Reading]], search: Search) -> Iterator[tuple[int, Found]]:
        """One window of readings after another: its number and something that is found of it, at least once for each.

        An engine with workers of its own may ask for the next window while they are at the last batches of this one.
        """
        for place, readings in enumerate(windows):
            yield place, self.search(readings, search)

    @abstractmethod
    def search_aloud(self, reading: Reading, search: Search, tell: Tell) -> list[Hypothesis]:
        """Hypotheses of one reading, searched with a beam of 1; `tell` is told of each token as it is written."""


def check_apart(package: str) -> None:
    """Refuse to load an engine beside the other's package: a process with both may never end."""
    if package in sys.modules:
        raise ResourceError("ONNX Runtime and CTranslate2 do not share a process (it never ends); run them apart")


def by_length(readings: Sequence[Reading], budget: int) -> Iterator[list[int]]:
    """Numbers of readings in batches of about the same length, each within a budget of padded tokens."""
    order = sorted(range(len(readings)), key=lambda number: len(readings[number].ids))
    lengths = numpy.array([max(len(readings[number].ids), SHORTEST) for number in order])
    if order:
        for start, end in pairwise([0, *cut_by_budget(lengths, budget), len(order)]):
            yield order[start:end]

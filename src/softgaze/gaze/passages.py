"""A source and what was written of it, in the parts a model has them in; and who can look at it once more.

Knows nothing of torch: an engine without it is asked in the same words.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy

from softgaze.bundle import Tokenizers
from softgaze.data.batches import cut_by_budget
from softgaze.data.readers import Reader
from softgaze.errors import DataError
from softgaze.gaze.attention import Attention, sharpest
from softgaze.gaze.recording import Matrix, Part, Recording
from softgaze.gaze.view import Choice
from softgaze.gaze.words import Side

if TYPE_CHECKING:
    from softgaze.gaze.edits import Edit
    from softgaze.models.base import Seq2Seq

TOKENS = 2048  # padded tokens of one side at once: weights of all layers are kept until they are cut apart

Ids = Sequence[int]


class Spoken(NamedTuple):
    """What a model reads and writes in one go, without BEGIN and END, and how it is made to look elsewhere."""

    source: Ids
    target: Ids
    edits: "tuple[Edit, ...]" = ()


@dataclass(frozen=True)
class Passage:
    """A source and an output: the texts, and the parts in which a model has them."""

    source: str
    target: str
    parts: tuple[Spoken, ...]
    note: str = ""  # what the edits of its parts are, in words

    @classmethod
    def of(cls, source: str, target: str, tokenizers: Tokenizers) -> "Passage":
        """Of a sentence pair, as it stands; no parts if one of the two is empty, since nothing looks at nothing."""
        [read], [written] = tokenizers.source.encode([source]), tokenizers.target.encode([target])
        return cls(source, target, (Spoken(read, written),) if len(read) and written else ())

    def sides(self, tokenizers: Tokenizers) -> tuple[Side, Side]:
        """The words of both."""
        written = Side.of(self.target, [tokenizers.target.pieces(part.target) for part in self.parts])
        return self.read(tokenizers.source), written

    def read(self, reader: Reader) -> Side:
        """The words of the source; where it has none, what each of its items is called."""
        pieces = [reader.pieces(part.source) for part in self.parts]
        if reader.spells:
            return Side.of(self.source, pieces)
        grids = [reader.grid(part.source) or () for part in self.parts]
        return Side.plain([name for names in pieces for name in names], *grids)


def check_places(passage: Passage, places: int | None) -> None:
    """A model that has learnt a vector for each place has only so many; BEGIN or END takes one."""
    for name in ("source", "target"):
        longest = max((len(getattr(part, name)) for part in passage.parts), default=0)
        if places is not None and longest >= places:
            text = getattr(passage, name)
            raise DataError(
                f"the {name} {text[:40]!r}… has {longest} subwords, and the model has places for {places - 1}; "
                "give it in shorter pieces"
            )


class Eyes(ABC):
    """Whoever can run a model once more over given texts: torch, or an engine that tells what it can."""

    note = ""  # which map a recording is, where it is not all of them

    @abstractmethod
    def record(self, parts: Sequence[Spoken]) -> list[Part]:
        """What the model looks at while it writes each part, in order; batched."""

    @abstractmethod
    def log_probabilities(self, parts: Sequence[Spoken]) -> list[Matrix]:
        """(T,) of each token of each target, in order; of END only where it is given."""


def eyes_of(model: "Seq2Seq | Eyes", tokenizers: Tokenizers) -> Eyes:
    """An engine looks by itself; a model of torch is watched."""
    if isinstance(model, Eyes):
        return model
    from softgaze.gaze.watching import Watched

    return Watched(model, tokenizers)


def record(model: "Seq2Seq | Eyes", tokenizers: Tokenizers, passages: Sequence[Passage]) -> list[Recording]:
    """Everything the model looks at while it writes each passage, in order; batched, in one pass over each part."""
    eyes = eyes_of(model, tokenizers)
    parts = iter(eyes.record([part for passage in passages for part in passage.parts]))
    return [
        Recording(
            *passage.sides(tokenizers),
            tuple(islice(parts, len(passage.parts))),
            ", ".join(filter(None, (passage.note, eyes.note))),
        )
        for passage in passages
    ]


def shown(recording: Recording, choice: Choice | None) -> Attention | None:
    """The map to show first: the one that was chosen for the model; None for a model that never looks at the source."""
    if "cross" not in recording.kinds:
        return None
    return Attention(recording, choice.view if choice else sharpest(recording), choice)


def batches(parts: Sequence[Spoken], tokens: int = TOKENS) -> Iterator[list[int]]:
    """Numbers of parts of about the same length that fit into one batch."""
    lengths = numpy.array([max(len(part.source), len(part.target)) + 1 for part in parts], dtype=numpy.int64)
    order = lengths.argsort(kind="stable")
    if len(order):
        for start, end in pairwise([0, *cut_by_budget(lengths[order], tokens), len(order)]):
            yield order[start:end].tolist()

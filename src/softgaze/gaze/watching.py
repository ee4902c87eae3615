"""Record attention by running a model once more, in parallel, over its own output. Never changes a translation.

A text that was translated in parts is recorded part by part. Every engine can be recorded, since only ids are needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

import numpy
import torch
from torch import Tensor

from softgaze.bundle import Tokenizers
from softgaze.data.batches import cut_by_budget
from softgaze.errors import DataError
from softgaze.gaze.attention import Attention, sharpest
from softgaze.gaze.edited import edited
from softgaze.gaze.edits import Edit
from softgaze.gaze.recording import Part, Recording, Stack
from softgaze.gaze.view import Choice
from softgaze.gaze.words import Side
from softgaze.models.base import Place, Seq2Seq, Source
from softgaze.symbols import BEGIN, END, PAD

TOKENS = 2048  # padded tokens of one side at once: weights of all layers are kept until they are cut apart

Ids = Sequence[int]


class Spoken(NamedTuple):
    """What a model reads and writes in one go, without BEGIN and END, and how it is made to look elsewhere."""

    source: Ids
    target: Ids
    edits: tuple[Edit, ...] = ()


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
        return cls(source, target, (Spoken(read, written),) if read and written else ())

    def sides(self, tokenizers: Tokenizers) -> tuple[Side, Side]:
        """The words of both."""
        return (
            Side.of(self.source, [tokenizers.source.pieces(part.source) for part in self.parts]),
            Side.of(self.target, [tokenizers.target.pieces(part.target) for part in self.parts]),
        )


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


class Recorder:
    """A watch that keeps what it sees of a batch and changes nothing."""

    def __init__(self) -> None:
        self.weights: dict[tuple[str, int], list[Tensor]] = {}
        self.norms: dict[tuple[str, int], Tensor] = {}

    def __call__(self, place: Place, weights: Tensor, values: Tensor) -> Tensor:
        """Remember the rows of each attention in order; a decoder that steps shows the same values again and again."""
        key = place.kind, place.layer
        self.weights.setdefault(key, []).append(weights.detach().float().cpu())
        self.norms[key] = values.detach().float().norm(dim=-1).expand(weights.shape[0], weights.shape[1], -1).cpu()
        return weights

    def stack(self, kind: str, row: int, queries: int, keys: int) -> Stack | None:
        """All layers of a kind for one row of the batch, without its padding; None if the model has no such kind."""
        places = sorted(key for key in self.weights if key[0] == kind)
        if not places:
            return None
        weights = [torch.cat([part[row] for part in self.weights[key]], 1)[:, :queries, :keys] for key in places]
        norms = [self.norms[key][row, :, :keys] for key in places]
        return Stack(torch.stack(weights).numpy(), torch.stack(norms).numpy())  # (L, H, Q, K), (L, H, K)

    def part(self, row: int, spoken: Spoken) -> Part:
        """Everything of one row."""
        read, written = len(spoken.source) + 1, len(spoken.target) + 1
        return Part(
            self.stack("cross", row, written, read),
            self.stack("encoder", row, read, read),
            self.stack("decoder", row, written, written),
        )


def record(model: Seq2Seq, tokenizers: Tokenizers, passages: Sequence[Passage]) -> list[Recording]:
    """Everything the model looks at while it writes each passage, in order; batched, in one pass over each part."""
    parts = iter(record_parts(model, tokenizers, [part for passage in passages for part in passage.parts]))
    return [
        Recording(*passage.sides(tokenizers), tuple(islice(parts, len(passage.parts))), passage.note)
        for passage in passages
    ]


@torch.no_grad()
def record_parts(model: Seq2Seq, tokenizers: Tokenizers, parts: Sequence[Spoken]) -> list[Part]:
    """One recording for each part, in order."""
    found: list[Part] = [Part()] * len(parts)
    for numbers in batches(parts):
        recorder, batch = Recorder(), [parts[number] for number in numbers]
        looking = edited(model, tokenizers.target, [part.edits for part in batch])
        looking(*as_tensors(batch, device_of(model)), recorder)
        for row, number in enumerate(numbers):
            found[number] = recorder.part(row, parts[number])
    return found


def batches(parts: Sequence[Spoken], tokens: int = TOKENS) -> Iterator[list[int]]:
    """Numbers of parts of about the same length that fit into one batch."""
    lengths = numpy.array([max(len(part.source), len(part.target)) + 1 for part in parts], dtype=numpy.int64)
    order = lengths.argsort(kind="stable")
    if len(order):
        for start, end in pairwise([0, *cut_by_budget(lengths[order], tokens), len(order)]):
            yield order[start:end].tolist()


def as_tensors(parts: Sequence[Spoken], device: torch.device) -> tuple[Source, Tensor]:
    """A padded source, and targets (B, T) as a decoder reads them; what it does after a target's end is cut off."""
    longest = max(len(part.target) for part in parts)
    rows = [[BEGIN, *part.target] + [PAD] * (longest - len(part.target)) for part in parts]
    return Source.of([[*part.source, END] for part in parts], device), torch.tensor(rows, device=device)


def device_of(model: Seq2Seq) -> torch.device:
    """Where the model is; one without parameters is on the CPU."""
    return next((value.device for value in model.parameters()), torch.device("cpu"))


def shown(recording: Recording, choice: Choice | None) -> Attention | None:
    """The map to show first: the one that was chosen for the model; None for a model that never looks at the source."""
    if "cross" not in recording.kinds:
        return None
    return Attention(recording, choice.view if choice else sharpest(recording), choice)

"""Record attention by running a model once more, in parallel, over its own output. Never changes a translation.

A text that was translated in parts is recorded part by part. Every engine can be recorded, since only ids are needed.
"""

from collections.abc import Sequence

import numpy
import torch
from torch import Tensor

from softgaze.bundle import Tokenizers
from softgaze.data.readers import Reader
from softgaze.gaze.edited import edited
from softgaze.gaze.passages import Eyes, Spoken, batches
from softgaze.gaze.recording import Matrix, Part, Stack
from softgaze.models.base import Place, Seq2Seq, Source
from softgaze.symbols import BEGIN, PAD


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

    def part(self, row: int, read: int, written: int) -> Part:
        """Everything of one row, which has so many keys and queries."""
        return Part(
            self.stack("cross", row, written, read),
            self.stack("encoder", row, read, read),
            self.stack("decoder", row, written, written),
        )


class Watched(Eyes):
    """A model of torch, watched: all layers and heads."""

    def __init__(self, model: Seq2Seq, tokenizers: Tokenizers) -> None:
        self.model, self.tokenizers = model, tokenizers

    @torch.no_grad()
    def record(self, parts: Sequence[Spoken]) -> list[Part]:
        """One recording for each part, in order."""
        found: list[Part] = [Part()] * len(parts)
        for numbers in batches(parts):
            recorder, batch = Recorder(), [parts[number] for number in numbers]
            source, target = self.as_tensors(batch)
            self.changed(batch)(source, target, recorder)
            for row, number in enumerate(numbers):
                found[number] = recorder.part(row, int(source.lengths[row]), len(parts[number].target) + 1)
        return found

    @torch.no_grad()
    def log_probabilities(self, parts: Sequence[Spoken]) -> list[Matrix]:
        """Of each token of each target."""
        found: list[Matrix] = [numpy.zeros(0)] * len(parts)
        for numbers in batches(parts):
            batch = [parts[number] for number in numbers]
            source, target = self.as_tensors(batch)
            asked = max(target.shape[1] - 1, 1)  # what follows the last token is not; models want at least BEGIN
            logits = self.changed(batch)(source, target[:, :asked]).float()  # (B, T, V)
            chosen = logits.gather(-1, target[:, 1:, None]).squeeze(-1) - logits.logsumexp(-1)
            for number, row in zip(numbers, chosen.cpu().double().numpy(), strict=True):
                found[number] = row[: len(parts[number].target)]
        return found

    def as_tensors(self, parts: Sequence[Spoken]) -> tuple[Source, Tensor]:
        """What the model reads."""
        return as_tensors(parts, self.tokenizers.source, device_of(self.model))

    def changed(self, batch: Sequence[Spoken]) -> Seq2Seq:
        """The model as the parts of one batch ask for."""
        return edited(self.model, self.tokenizers.target, [part.edits for part in batch])


def as_tensors(parts: Sequence[Spoken], reader: Reader, device: torch.device) -> tuple[Source, Tensor]:
    """A padded source, and targets (B, T) as a decoder reads them; what it does after a target's end is cut off."""
    longest = max(len(part.target) for part in parts)
    rows = [[BEGIN, *part.target] + [PAD] * (longest - len(part.target)) for part in parts]
    return Source.of([reader.closed(part.source) for part in parts], device), torch.tensor(rows, device=device)


def device_of(model: Seq2Seq) -> torch.device:
    """Where the model is; one without parameters is on the CPU."""
    return next((value.device for value in model.parameters()), torch.device("cpu"))

"""The engine of training: torch itself, on any device. The only one that can be made to look elsewhere."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import torch

from softgaze.bundle import Bundle, Description, Tokenizers
from softgaze.devices import pick_device, side_by_side
from softgaze.engines.base import Engine, Found, Reading, Tell, by_length
from softgaze.gaze.edited import edited
from softgaze.gaze.watching import Watched
from softgaze.models import MODELS, Seq2Seq, Source, options
from softgaze.search import Hypothesis, Rules, Search, beam_search, sample
from softgaze.search.beam import Witness, first_of_each_step
from softgaze.speed import tune_allocator


class TorchEngine(Watched, Engine):
    """A model with its tokenizers, on a device."""

    name: ClassVar = "torch"
    precision = "float32"
    batch_tokens: ClassVar = 8192

    def __init__(self, model: Seq2Seq, tokenizers: Tokenizers, device: torch.device, places: int | None = None) -> None:
        super().__init__(model, tokenizers)
        self.where, self.device, self.places = device, str(device), places

    @classmethod
    def open(cls, bundle: Bundle, device: str = "auto") -> Self:
        """The weights as they were trained."""
        chosen = pick_device(device)
        if chosen.type == "cpu":
            tune_allocator()  # every step makes logits for the whole vocabulary, and lets them go
        return cls(bundle.model(str(chosen)), bundle.tokenizers, chosen, position_limit(bundle.description))

    def search(self, readings: Sequence[Reading], search: Search) -> Found:
        """Batch by batch, long ones first: on a CPU as many side by side as there are threads."""
        batches = [*by_length(readings, search.budget(self.batch_tokens))][::-1]

        def run(numbers: list[int]) -> list[list[Hypothesis]]:
            return self.run([readings[number] for number in numbers], search)

        for numbers, found in zip(batches, side_by_side(run, batches, self.where), strict=True):
            yield from zip(numbers, found, strict=True)

    def search_aloud(self, reading: Reading, search: Search, tell: Tell) -> list[Hypothesis]:
        """Of what is considered after each token, the first is the best."""
        [found] = self.run([reading], search, first_of_each_step(tell))
        return found

    def run(self, batch: Sequence[Reading], search: Search, witness: Witness | None = None) -> list[list[Hypothesis]]:
        """One batch through the model; a `witness` is told what a beam search considers."""
        model = edited(self.model, self.tokenizers.target, [each.edits for each in batch])
        source = Source.of([each.ids for each in batch], self.where)
        prefixes = [each.prefix for each in batch]
        rules = Rules(search.min_length, search.max_length, prefixes, search.no_repeat, self.places)
        if search.sampling is not None:
            drawn = vars(search.sampling) | {"samples": search.nbest, "length_penalty": search.length_penalty}
            return sample(model, source, rules=rules, **drawn)
        ranking: dict[str, Any] = {name: getattr(search, name) for name in ("beam", "nbest", "length_penalty")}
        return beam_search(model, source, rules=rules, witness=witness, **ranking)


def position_limit(description: Description) -> int | None:
    """How many tokens a model has places for; None where there is no such limit."""
    chosen = {name: each.default for name, each in options(MODELS[description.arch]).items()} | description.options
    return int(chosen["max_length"]) if chosen.get("positions") == "learned" else None

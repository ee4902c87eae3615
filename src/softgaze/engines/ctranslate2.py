"""The engine for Transformers in production: CTranslate2, float32 or int8, no torch.

One worker of one thread for each core: int8 with two threads in one worker is slower than float32. Batches are handed
over before the workers need them, and what comes back is spelled out while they go on.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy

from softgaze.bundle import Bundle, Tokenizers
from softgaze.devices import threads
from softgaze.engines.base import Engine, Found, Reading, Tell, by_length, check_apart
from softgaze.errors import DataError, UsageError
from softgaze.gaze.passages import Spoken, batches
from softgaze.gaze.recording import Matrix, Part, Stack
from softgaze.search.hypothesis import Hypothesis, hypothesis
from softgaze.search.settings import Search
from softgaze.symbols import BEGIN, END, PAD, UNKNOWN

NAME = "ctranslate2"  # of the engine, of its package, and of the directory in a bundle
WHOLE = {"max_input_length": 0}  # it silently cuts sources at 1,024 tokens unless told not to
AHEAD = 2  # batches for each worker: what was handed over cannot be taken back, and whoever interrupts waits for it

Thing = TypeVar("Thing")


class Batch(NamedTuple):
    """Readings that are with the workers."""

    numbers: list[int]
    limit: int  # tokens written at most
    results: Sequence[Any]  # promised


class Written(NamedTuple):
    """What was found for one reading, best first; asked for once, since CTranslate2 makes new strings each time."""

    pieces: list[list[str]]
    scores: list[float]


class CTranslate2Engine(Engine):
    """A Transformer that was exported."""

    name: ClassVar = NAME

    def __init__(self, translator: Any, tokenizers: Tokenizers, facts: dict[str, Any], device: str) -> None:
        self.translator, self.tokenizers, self.device = translator, tokenizers, device
        self.precision, self.places, self.note = facts["precision"], facts["places"], facts["note"]

    @classmethod
    def open(cls, bundle: Bundle, device: str = "auto") -> Self:
        """Its files were checked when the bundle was opened: CTranslate2 itself loads damaged ones silently."""
        check_apart("onnxruntime")
        import ctranslate2

        chosen = device_named(device, ctranslate2.get_cuda_device_count())
        kind, _, number = chosen.partition(":")
        workers = {"inter_threads": threads(), "intra_threads": 1} if kind == "cpu" else {}
        try:
            translator = ctranslate2.Translator(
                str(bundle.path / NAME), kind, device_index=int(number or 0), max_queued_batches=-1, **workers
            )
        except (RuntimeError, ValueError) as error:
            raise DataError(f"{bundle.path / NAME}: CTranslate2 cannot load it: {error}") from error
        return cls(translator, bundle.tokenizers, bundle.engine, chosen)

    # --- words: CTranslate2 is spoken to in pieces

    def read(self, ids: Sequence[int]) -> list[str]:
        """Pieces of a source."""
        return self.tokenizers.source.pieces(ids)

    def write(self, ids: Sequence[int]) -> list[str]:
        """Pieces of a target."""
        return self.tokenizers.target.pieces(ids)

    def written(self, pieces: Iterable[str]) -> list[int]:
        """Ids of a target."""
        ids = self.tokenizers.target.ids
        return [ids[piece] for piece in pieces]

    @cached_property
    def special(self) -> frozenset[str]:
        """Pieces that belong to no text."""
        return frozenset(self.write([PAD, UNKNOWN, BEGIN]))

    # --- searching

    def search(self, readings: Sequence[Reading], search: Search) -> Found:
        """One window of them."""
        for _, found in self.search_on([readings], search):
            yield from found

    def search_on(self, windows: Iterable[Sequence[Reading]], search: Search) -> Iterator[tuple[int, Found]]:
        """Batch by batch, the next always waiting: no worker is idle between two windows."""
        if search.sampling is not None:
            raise UsageError("CTranslate2 cannot draw the same text twice; to sample, use the model this was made from")
        begun = (
            (place, readings, self.begin(numbers, readings, search))
            for place, readings in enumerate(windows)
            for numbers in self.batches(readings, search)
        )
        for place, readings, batch in ahead(begun, AHEAD * self.translator.num_translators):
            yield place, self.finished(batch, readings, search)

    def search_aloud(self, reading: Reading, search: Search, tell: Tell) -> list[Hypothesis]:
        """Where a token was written that is none, what is found at last is another text than was told."""
        so_far: list[int] = []

        def callback(step: Any) -> bool:
            [token] = self.written([step.token])
            if token != END:
                so_far.append(token)
                tell(so_far)
            return False

        batch = self.begin([0], [reading], search, callback=callback)
        [(_, found)] = self.finished(batch, [reading], search)
        return found

    def batches(self, readings: Sequence[Reading], search: Search) -> list[list[int]]:
        """Numbers of readings that are searched together, long ones first: no worker is left with much at the end.

        CTranslate2 wants a prefix for all of them or for none. Where nothing is read, there is one empty batch.
        """
        if any(reading.edits for reading in readings):
            raise UsageError("only torch can be made to look elsewhere")
        return list(by_length(readings, search.budget(self.batch_tokens)))[::-1] or [[]]

    def begin(self, numbers: list[int], readings: Sequence[Reading], search: Search, **more: Any) -> Batch:
        """Hand a batch to the workers."""
        batch = [readings[number] for number in numbers]
        limit = max((self.limit(each, search) for each in batch), default=1)
        prefixes = [self.write(each.prefix) for each in batch]
        results = self.translator.translate_batch(
            [self.read(each.ids) for each in batch],
            prefixes if any(prefixes) else None,
            asynchronous=True,
            beam_size=search.beam,
            num_hypotheses=search.beam,
            length_penalty=search.length_penalty,
            no_repeat_ngram_size=search.no_repeat,
            min_decoding_length=min(search.min_length, limit),
            max_decoding_length=limit,
            return_scores=True,
            return_end_token=True,
            **WHOLE,
            **more,
        )
        return Batch(numbers, limit, results)

    def limit(self, reading: Reading, search: Search) -> int:
        """After how many tokens this one is cut."""
        return search.longest(len(reading.ids), len(reading.prefix), self.places)

    def finished(self, batch: Batch, readings: Sequence[Reading], search: Search) -> Found:
        """What a batch came to. A batch has one limit; who came to the own one before is searched again with it."""
        again: dict[int, list[int]] = {}
        for number, promised in zip(batch.numbers, batch.results, strict=True):
            result, own = promised.result(), self.limit(readings[number], search)
            found = Written(result.hypotheses, result.scores)
            if own < batch.limit and max(map(len, found.pieces)) >= own:
                again.setdefault(own, []).append(number)
            else:
                yield number, self.hypotheses(readings[number], found, search)
        for one in [self.begin(numbers, readings, search) for numbers in again.values()]:
            yield from self.finished(one, readings, search)

    def hypotheses(self, reading: Reading, found: Written, search: Search) -> list[Hypothesis]:
        """The best, with the scores that every engine gives."""
        forced = bool(reading.prefix or search.min_length or search.no_repeat)
        best = found.pieces if forced else found.pieces[: search.nbest]
        if not all(map(self.special.isdisjoint, best)):
            return self.without_special(reading, search)
        if forced:
            return self.ranked(reading, best, search)
        return [
            hypothesis(self.written(pieces), score * len(pieces) ** search.length_penalty, search.length_penalty)
            for pieces, score in zip(best, found.scores, strict=False)
        ]

    def without_special(self, reading: Reading, search: Search) -> list[Hypothesis]:
        """Searched again where a token was written that is none; to forbid them always would change all scores."""
        never = [[piece] for piece in self.write([PAD, BEGIN])]
        batch = self.begin([0], [reading], search, disable_unk=True, suppress_sequences=never)
        return self.ranked(reading, batch.results[0].result().hypotheses, search)

    def ranked(self, reading: Reading, written: Sequence[Sequence[str]], search: Search) -> list[Hypothesis]:
        """By the model's own log-probabilities: CTranslate2 leaves out what was forced, and what is forbidden."""
        found = [self.written(pieces) for pieces in written]
        totals = self.totals(reading, found)
        every = [hypothesis(*each, search.length_penalty) for each in zip(found, totals, strict=True)]
        return sorted(every, key=lambda each: -each.score)[: search.nbest]

    def totals(self, reading: Reading, found: Sequence[Sequence[int]]) -> list[float]:
        """Log-probabilities of what was written, END among it where it ended."""
        parts = [Spoken(reading.ids[:-1], written) for written in found]
        return [float(each.sum()) for each in self.log_probabilities(parts)]

    # --- looking once more

    def log_probabilities(self, parts: Sequence[Spoken]) -> list[Matrix]:
        """Of each token of each target."""
        check_unchanged(parts)
        found: list[Matrix] = [numpy.zeros(0)] * len(parts)
        waiting = [(numbers, self.scored([parts[number] for number in numbers])) for numbers in batches(parts)]
        for numbers, results in waiting:
            for number, promised in zip(numbers, results, strict=True):
                found[number] = numpy.array(promised.result().log_probs)[: len(parts[number].target)]
        return found

    def scored(self, batch: Sequence[Spoken]) -> Sequence[Any]:
        """Promised scores; CTranslate2 adds the END to each target itself."""
        sources = [self.read((*part.source, END)) for part in batch]
        targets = [self.write(without_end(part.target)) for part in batch]
        promised: Sequence[Any] = self.translator.score_batch(sources, targets, asynchronous=True, **WHOLE)
        return promised

    def record(self, parts: Sequence[Spoken]) -> list[Part]:
        """The one map that CTranslate2 tells, while it is made to write each target."""
        check_unchanged(parts)
        found: list[Part] = [Part()] * len(parts)
        waiting = [(numbers, self.forced([parts[number] for number in numbers])) for numbers in batches(parts)]
        for numbers, results in waiting:
            for number, promised in zip(numbers, results, strict=True):
                rows = promised.result().attention[0][: len(parts[number].target) + 1]
                weights = numpy.array(rows, numpy.float32)[None, None]  # (1, 1, Q, K)
                found[number] = Part(cross=Stack(weights, numpy.ones_like(weights[:, :, 0])))
        return found

    def forced(self, batch: Sequence[Spoken]) -> Sequence[Any]:
        """Targets as prefixes; one more token is written after each, while the map of END is drawn."""
        promised: Sequence[Any] = self.translator.translate_batch(
            [self.read((*part.source, END)) for part in batch],
            [self.write(part.target) for part in batch],
            asynchronous=True,
            beam_size=1,
            max_decoding_length=max(len(part.target) for part in batch) + 1,
            return_end_token=True,
            return_attention=True,
            **WHOLE,
        )
        return promised


def ahead(stream: Iterable[Thing], count: int) -> Iterator[Thing]:
    """The same things; whenever one is given out, `count` more of them are made already."""
    made: deque[Thing] = deque()
    for each in stream:
        made.append(each)
        if len(made) > count:
            yield made.popleft()
    while made:
        yield made.popleft()


def without_end(target: Sequence[int]) -> Sequence[int]:
    """A target whose END somebody else adds."""
    return target[:-1] if target and target[-1] == END else target


def check_unchanged(parts: Iterable[Spoken]) -> None:
    """CTranslate2 looks where it looks."""
    if any(part.edits for part in parts):
        raise UsageError("only torch can be made to look elsewhere")


def device_named(name: str, gpus: int) -> str:
    """CTranslate2's name of a device of ours; auto takes a GPU if there is one."""
    if name == "auto":
        return "cuda" if gpus else "cpu"
    kind, _, number = name.partition(":")
    there = {"cpu": 1, "cuda": gpus}.get(kind, 0)
    if not (number or "0").isdecimal() or int(number or 0) >= there:
        raise UsageError(f"device {name} is not available to CTranslate2; here there is cpu and {gpus} of cuda")
    return name

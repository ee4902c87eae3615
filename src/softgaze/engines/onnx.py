"""The engine for RNNs and captioners in production: ONNX Runtime, no torch, with the same search as torch.

A batch is searched by one thread; as many batches as there are cores are searched side by side. A step gives the
weights of every look at the source, so a `record` has them all; how a source or a text looks at itself is not told.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy
import numpy.typing

from softgaze.bundle import Bundle
from softgaze.data.readers import Reader
from softgaze.devices import pooled, threads
from softgaze.engines.base import Engine, Found, Items, Reading, Tell, by_length, check_apart
from softgaze.errors import DataError, UsageError
from softgaze.gaze.passages import Spoken, batches
from softgaze.gaze.recording import Matrix, Part, Stack
from softgaze.search.beam import Witness, check_beam, first_of_each_step, search_beams
from softgaze.search.hypothesis import Hypothesis
from softgaze.search.rules import Rules
from softgaze.search.sampling import draw_samples
from softgaze.search.settings import Search
from softgaze.search.steps import ArrayChances
from softgaze.symbols import BEGIN, PAD

NAME = "onnx"  # of the engine, and of the directory in a bundle
ENCODER, STEP = "encoder", "step"  # the graphs

Array = numpy.typing.NDArray[Any]
Session = Any  # onnxruntime.InferenceSession


class OnnxEngine(Engine):
    """A model that was exported."""

    name: ClassVar = NAME
    device = "cpu"

    def __init__(self, encoder: Session, step: Session, reader: Reader, facts: dict[str, Any]) -> None:
        self.encoder, self.step, self.reader = encoder, step, reader
        self.precision, self.places, self.note = facts["precision"], facts["places"], facts["note"]

    @classmethod
    def open(cls, bundle: Bundle, device: str = "auto") -> Self:
        """Its files were checked when the bundle was opened."""
        if device not in ("auto", "cpu"):
            raise UsageError(f"device {device} is not available to ONNX Runtime here, only cpu")
        check_apart("ctranslate2")
        return cls(session(bundle, ENCODER), session(bundle, STEP), bundle.tokenizers.source, bundle.engine)

    # --- searching

    def search(self, readings: Sequence[Reading], search: Search) -> Found:
        """Long ones first, so that no thread is left with much at the end."""
        if any(reading.edits for reading in readings):
            raise UsageError("only torch can be made to look elsewhere")
        every = [*by_length(readings, search.budget(self.batch_tokens))][::-1]

        def run(numbers: list[int]) -> list[list[Hypothesis]]:
            return self.run([readings[number] for number in numbers], search)

        for numbers, found in zip(every, pooled(run, every, threads()), strict=True):
            yield from zip(numbers, found, strict=True)

    def search_aloud(self, reading: Reading, search: Search, tell: Tell) -> list[Hypothesis]:
        """Of what is considered after each token, the first is the best."""
        [found] = self.run([reading], search, first_of_each_step(tell))
        return found

    def run(self, batch: Sequence[Reading], search: Search, witness: Witness | None = None) -> list[list[Hypothesis]]:
        """One batch; a `witness` is told what a beam search considers."""
        steps = self.steps([each.ids for each in batch])
        prefixes = [each.prefix for each in batch]
        rules = Rules(search.min_length, search.max_length, prefixes, search.no_repeat, self.places)
        if search.sampling is not None:
            drawn = vars(search.sampling)
            return draw_samples(steps, search.nbest, **drawn, length_penalty=search.length_penalty, rules=rules)
        check_beam(search.beam, search.nbest, search.length_penalty)
        return search_beams(steps, search.beam, search.nbest, search.length_penalty, rules, witness)

    def steps(self, sources: Sequence[Items]) -> "OnnxSteps":
        """The graphs at work on one batch."""
        lengths = numpy.array([len(each) for each in sources])
        return OnnxSteps(self.encoder, self.step, padded(sources, self.reader.vectors or "int64"), lengths)

    # --- looking once more

    def log_probabilities(self, parts: Sequence[Spoken]) -> list[Matrix]:
        """Of each token of each target."""
        found: list[Matrix] = [numpy.zeros(0)] * len(parts)

        def keep(number: int, place: int, steps: "OnnxSteps", row: int) -> None:
            target = parts[number].target
            if place < len(target):
                found[number][place] = steps.chances[row, target[place]]

        for number, part in enumerate(parts):
            found[number] = numpy.zeros(len(part.target))
        self.tell(parts, keep)
        return found

    def record(self, parts: Sequence[Spoken]) -> list[Part]:
        """All the looks at the source there are; none if the model never looks."""
        rows: list[list[Array]] = [[] for _ in parts]
        norms: dict[int, Array] = {}

        def keep(number: int, place: int, steps: "OnnxSteps", row: int) -> None:
            size = steps.lengths[row]
            if steps.weights is not None and place <= len(parts[number].target):
                rows[number].append(steps.weights[row, ..., :size])
                norms[number] = steps.norms[row, ..., :size]

        self.tell(parts, keep)
        return [
            Part(cross=Stack(numpy.stack(own, axis=2), norms[number])) if own else Part()
            for number, own in enumerate(rows)
        ]

    def tell(self, parts: Sequence[Spoken], keep: "Callable[[int, int, OnnxSteps, int], None]") -> None:
        """Make the model write each target; `keep` is called for every part (its number) at every place."""
        if any(part.edits for part in parts):
            raise UsageError("only torch can be made to look elsewhere")
        for numbers in batches(parts):
            steps = self.steps([self.reader.closed(parts[number].source) for number in numbers])
            targets = padded([(BEGIN, *parts[number].target) for number in numbers])
            for place, tokens in enumerate(targets.T):
                steps.read(numpy.arange(len(numbers))[:, None], tokens[:, None])
                for row, number in enumerate(numbers):
                    keep(number, place, steps, row)


class OnnxSteps:
    """The graphs at work on one batch, as a search wants it."""

    def __init__(self, encoder: Session, step: Session, sources: Array, lengths: Array) -> None:
        self.session, self.sources, self.lengths = step, sources, lengths
        names = [each.name for each in encoder.get_outputs()]
        made = encoder.run(None, {"source": self.sources, "lengths": self.lengths})
        self.known: dict[str, Array] = dict(zip(names, made, strict=True))
        self.hidden: Array = self.known.pop("hidden")
        self.wanted = {each.name for each in step.get_inputs()}
        self.given = [each.name for each in step.get_outputs()]
        self.place = 0
        self.chances: Array = self.hidden
        self.weights: Array | None = None  # (R, layers, heads, S), if the model looks

    def read(self, rows: Array, tokens: Array) -> ArrayChances:
        """Go on with some of the rows there are and read one more token in each, both (N, W)."""
        width = len(self.hidden) // len(next(iter(self.known.values())))
        if len(rows) != len(next(iter(self.known.values()))):
            self.known = {name: each[rows[:, 0] // width] for name, each in self.known.items()}
        all_inputs = {
            **self.known,
            "rows": rows.ravel(),
            "token": tokens.ravel(),
            "hidden": self.hidden,
            "position": numpy.array([self.place]),
        }
        inputs = {name: each for name, each in all_inputs.items() if name in self.wanted}
        found = dict(zip(self.given, self.session.run(None, inputs), strict=True))
        self.place += 1
        self.hidden, self.chances = found["after"], found["chances"]
        if "weights" in found:
            self.weights = found["weights"].reshape(len(self.hidden), *self.heads, -1)
        return ArrayChances(self.chances)

    @property
    def heads(self) -> tuple[int, ...]:
        """Layers and heads that look; what has but one look has no axes for them."""
        return self.known["memory"].shape[1:-2] or (1, 1)

    @cached_property
    def norms(self) -> Array:
        """(N, layers, heads, S) lengths of what is looked at, of the sources there are when first asked."""
        lengths: Array = numpy.linalg.norm(self.known["memory"], axis=-1)
        return lengths.reshape(len(lengths), *self.heads, -1)


def session(bundle: Bundle, name: str) -> Session:
    """A graph, ready to run by one thread at a time of its own."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    path = bundle.path / NAME / f"{name}.onnx"
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # whatever it raises has no common class but this
        raise DataError(f"{path}: ONNX Runtime cannot load it: {str(error).splitlines()[0]}") from error


def padded(rows: Sequence[Items], kind: str = "int64") -> Array:
    """Ids (S,) or vectors (S, …) as one array."""
    arrays = [numpy.asarray(row, kind) for row in rows]
    joined = numpy.full((len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), PAD, kind)
    for place, array in zip(joined, arrays, strict=True):
        place[: len(array)] = array
    return joined

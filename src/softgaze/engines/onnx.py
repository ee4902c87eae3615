"""The engine for RNNs in production: ONNX Runtime, no torch, with the same search as torch.

A batch is searched by one thread; as many batches as there are cores are searched side by side. Their `record` is
everything there is to see: an RNN has one attention, and a step gives its weights.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy
import numpy.typing

from softgaze.bundle import Bundle
from softgaze.devices import pooled, threads
from softgaze.engines.base import Engine, Found, Reading, Tell, by_length
from softgaze.errors import DataError, ResourceError, UsageError
from softgaze.gaze.passages import Spoken, batches
from softgaze.gaze.recording import Matrix, Part, Stack
from softgaze.search.beam import Witness, check_beam, first_of_each_step, search_beams
from softgaze.search.hypothesis import Hypothesis
from softgaze.search.rules import Rules
from softgaze.search.sampling import draw_samples
from softgaze.search.settings import Search
from softgaze.search.steps import ArrayChances
from softgaze.symbols import BEGIN, END, PAD

NAME = "onnx"  # of the engine, and of the directory in a bundle
ENCODER, STEP = "encoder", "step"  # the graphs

Array = numpy.typing.NDArray[Any]
Session = Any  # onnxruntime.InferenceSession


class OnnxEngine(Engine):
    """An RNN that was exported."""

    name: ClassVar = NAME
    device = "cpu"

    def __init__(self, encoder: Session, step: Session, facts: dict[str, Any]) -> None:
        self.encoder, self.step = encoder, step
        self.precision, self.places, self.note = facts["precision"], facts["places"], facts["note"]

    @classmethod
    def open(cls, bundle: Bundle, device: str = "auto") -> Self:
        """Its files were checked when the bundle was opened."""
        if device not in ("auto", "cpu"):
            raise UsageError(f"device {device} is not available to ONNX Runtime here, only cpu")
        if "ctranslate2" in sys.modules:
            raise ResourceError("ONNX Runtime and CTranslate2 do not share a process (it never ends); run them apart")
        return cls(session(bundle, ENCODER), session(bundle, STEP), bundle.engine)

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

    def steps(self, sources: Sequence[Sequence[int]]) -> "OnnxSteps":
        """The graphs at work on one batch."""
        return OnnxSteps(self.encoder, self.step, sources)

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
        """All the weights there are; none if the model never looks."""
        rows: list[list[Array]] = [[] for _ in parts]
        norms: dict[int, Array] = {}

        def keep(number: int, place: int, steps: "OnnxSteps", row: int) -> None:
            size = len(parts[number].source) + 1
            if steps.weights is not None and place <= len(parts[number].target):
                rows[number].append(steps.weights[row, 0, :size])
                norms[number] = numpy.linalg.norm(steps.known["memory"][row, :size], axis=-1)

        self.tell(parts, keep)
        return [
            Part(cross=Stack(numpy.stack(own)[None, None], norms[number][None, None])) if own else Part()
            for number, own in enumerate(rows)
        ]

    def tell(self, parts: Sequence[Spoken], keep: "Callable[[int, int, OnnxSteps, int], None]") -> None:
        """Make the model write each target; `keep` is called for every part (its number) at every place."""
        if any(part.edits for part in parts):
            raise UsageError("only torch can be made to look elsewhere")
        for numbers in batches(parts):
            steps = self.steps([(*parts[number].source, END) for number in numbers])
            targets = padded([(BEGIN, *parts[number].target) for number in numbers])
            for place, tokens in enumerate(targets.T):
                steps.read(numpy.arange(len(numbers))[:, None], tokens[:, None])
                for row, number in enumerate(numbers):
                    keep(number, place, steps, row)


class OnnxSteps:
    """The graphs at work on one batch, as a search wants it."""

    def __init__(self, encoder: Session, step: Session, sources: Sequence[Sequence[int]]) -> None:
        self.session = step
        self.sources, self.lengths = padded(sources), numpy.array([len(each) for each in sources])
        names = [each.name for each in encoder.get_outputs()]
        made = encoder.run(None, {"source": self.sources, "lengths": self.lengths})
        self.known: dict[str, Array] = dict(zip(names, made, strict=True))
        self.hidden: Array = self.known.pop("hidden")
        self.wanted = {each.name for each in step.get_inputs()}
        self.given = [each.name for each in step.get_outputs()]
        self.place = 0
        self.chances: Array = self.hidden
        self.weights: Array | None = None  # (N, W, S), if the model looks

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
        self.hidden, self.chances, self.weights = found["after"], found["chances"], found.get("weights")
        return ArrayChances(self.chances)


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


def padded(rows: Sequence[Sequence[int]]) -> Array:
    """Lists of ids as one array."""
    size = max(map(len, rows))
    return numpy.array([[*row] + [PAD] * (size - len(row)) for row in rows], dtype=numpy.int64)

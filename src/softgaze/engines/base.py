"""The interface of an engine: token ids in, hypotheses out. It handles no text and needs no torch."""

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from softgaze.bundle import Bundle, Tokenizers
from softgaze.data.batching import batch_by_length
from softgaze.errors import ResourceError, UsageError
from softgaze.search import Hypothesis, SearchOptions

if TYPE_CHECKING:
    from softgaze.explain.interventions import Intervention
    from softgaze.explain.recording import Matrix, PartAttention
    from softgaze.explain.scoring import IdPair
    from softgaze.search.beam import TraceCallback
    from softgaze.search.terms import SourceTerm

Ids = tuple[int, ...]
Items = Sequence[Any]  # of a source: ids or feature vectors
MAX_POSITIONS = "places"  # key in the facts of an exported model, part of the bundle format
NEEDS_VNNI = "needs_vnni"  # key in the same facts: sums of its int8 products overflow on other processors
OnBatch = Callable[[Sequence["EncodedSource"]], None]  # called with the sources of a finished batch
DecodeBatch = Callable[[Sequence["EncodedSource"], SearchOptions], list[list[Hypothesis]]]

MIN_LENGTH = 16  # a source counts as this many tokens at least: each step computes logits of the whole vocabulary


class EncodedSource(NamedTuple):
    ids: Items  # EOS included where the model has one
    prefix: Ids = ()  # forced beginning of the target
    part: int = 0  # index among the parts of its text
    interventions: tuple["Intervention", ...] = ()  # torch only
    terms: tuple["SourceTerm", ...] = ()


class EngineFiles(NamedTuple):
    """The files of a converted model, and the facts its engine needs."""

    directory: Path
    facts: dict[str, Any]

    @classmethod
    def of(cls, bundle: Bundle) -> "EngineFiles":
        return cls(bundle.path / bundle.engine["name"], bundle.engine)


class Engine(ABC):
    """A model that is ready to translate, score and record attention. It keeps no state between calls."""

    name: str
    precision: str  # of the weights: float32, int8, …
    device: str
    facts: Mapping[str, Any] = {}  # recorded by the export
    decode_exactly: DecodeBatch | None = None  # of torch, for sources whose search this engine cannot finish as torch
    records_all_maps: ClassVar = True  # every layer and head of the cross-attention, with the norms of the values
    batch_tokens: ClassVar = 4096  # padded source tokens × hypotheses in one batch
    num_positions: int | None  # rows of the model's position table; None: unlimited
    tokenizers: Tokenizers

    @classmethod
    @abstractmethod
    def open(cls, bundle: Bundle, device: str = "auto", files: EngineFiles | None = None) -> Self:
        """Load the model of a bundle, or its conversion in `files`; all of them were verified."""

    @property
    def max_positions(self) -> int | None:
        """Most tokens of a text, EOS included; language tokens take positions, too. None: unlimited."""
        return None if self.num_positions is None else self.num_positions - self.tokenizers.extra_tokens

    def supports(self, options: SearchOptions) -> bool:
        """Whether a search with these options finds what the torch search finds."""
        return True

    def with_tokenizers(self, tokenizers: Tokenizers) -> Self:
        """Return this engine with the tokenizers of another language pair; the model is shared."""
        engine = copy.copy(self)
        vars(engine).pop("_scorer", None)  # a cached property that has the tokenizers
        engine.tokenizers = tokenizers
        return engine

    def search(
        self, windows: Iterable[Sequence[EncodedSource]], options: SearchOptions, on_batch: OnBatch | None = None
    ) -> Iterator[list[list[Hypothesis]]]:
        """Yield the hypotheses of all sources of each window, best first, in order.

        The sources of a window are batched by length. A result depends on its source alone, never on its batch.
        """
        for sources in windows:
            results: list[list[Hypothesis]] = [[] for _ in sources]
            batches = length_batches(sources, options.batch_budget(self.batch_tokens))
            decoded = self.decode_batches([[sources[index] for index in indices] for indices in batches], options)
            for indices, hypotheses in zip(batches, decoded, strict=True):
                for index, best in zip(indices, hypotheses, strict=True):
                    results[index] = best
                if on_batch is not None:
                    on_batch([sources[index] for index in indices])
            yield results

    def search_stream(
        self, source: EncodedSource, options: SearchOptions, on_tokens: Callable[[Sequence[int]], None]
    ) -> list[Hypothesis]:
        """Search greedily and call `on_tokens` with the tokens so far after each step."""
        from softgaze.search.beam import stream_tokens

        return self.decode_batch([source], options, stream_tokens(on_tokens))[0]

    def decode_batches(
        self, batches: Sequence[Sequence[EncodedSource]], options: SearchOptions
    ) -> Iterator[list[list[Hypothesis]]]:
        """Decode batches, several at the same time where the engine can."""
        return (self.decode_batch(batch, options) for batch in batches)

    def decode_batch(
        self, batch: Sequence[EncodedSource], options: SearchOptions, on_candidate: "TraceCallback | None" = None
    ) -> list[list[Hypothesis]]:
        """Decode one batch; `on_candidate` is called with every candidate of a beam search."""
        raise NotImplementedError

    # --- the interface of `explain.scoring.Scorer`

    note = ""  # which map a recording contains, if not all layers and heads

    @property
    def cross_attention_shape(self) -> tuple[int, int]:
        """Layers and heads of the cross-attention that `record` returns; (0, 0) if the model has none."""
        return 1, 1

    @abstractmethod
    def record(self, pairs: "Sequence[IdPair]") -> "list[PartAttention]":
        """Return the attention of each pair, in order; batched."""

    @abstractmethod
    def log_probs(self, pairs: "Sequence[IdPair]") -> "list[Matrix]":
        """Return (T,) log-probabilities of the tokens of each target, in order; of EOS only if it is given."""


def check_not_loaded(package: str) -> None:
    """Reject loading an engine when the other's package is loaded: a process with both may never end."""
    if package in sys.modules:
        raise ResourceError(
            "ONNX Runtime and CTranslate2 cannot share a process, which would never end; use two processes"
        )


def reject_interventions(sources: Iterable[Any]) -> None:
    """Raise if attention interventions are requested: only the torch engine supports them."""
    if any(source.interventions for source in sources):
        raise UsageError("attention interventions need the torch engine")


def length_batches(sources: Sequence[EncodedSource], budget: int) -> list[list[int]]:
    """Return indices of sources in batches of similar length within a budget of padded tokens, long ones first.

    With the long ones first no worker is left with a long batch at the end.
    """
    batches = batch_by_length([len(source.ids) for source in sources], budget, MIN_LENGTH)
    return [batch.tolist() for batch in batches][::-1]

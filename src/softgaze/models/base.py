"""The protocol every model speaks: encode → Memory, start → State, step → Step. Search and training know only this.

A model implements three methods: `encode`, `start` and `advance`. `advance` reads any number of target tokens from any
state, so one token (a search step) and a whole sentence (teacher forcing) are the same code; the rest is written here.

Letters: B batch, S source length, T target length, D width, V vocabulary, H heads.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from softgaze.attention import Look
from softgaze.remembered import KeysValues
from softgaze.symbols import PAD, SPECIAL

ITEMS = {(1, "i"): "int64", (1, "u"): "int64", (2, "u"): "uint8", (2, "f"): "float32"}  # by dimensions and kind


class Source(NamedTuple):
    """A padded batch of whatever a model reads: items in a row, each an id or a vector."""

    values: Tensor  # (B, S) token ids, or (B, S, W) vectors
    lengths: Tensor  # (B,) how many of them are real

    @classmethod
    def of(cls, sources: Sequence[Sequence[Any]], device: torch.device | str | None = None) -> "Source":
        """Pad token ids (S,), or vectors (S, W), to one length."""
        if len(sources) == 0:
            raise ValueError("a batch needs at least one source")
        rows = [items_of(each) for each in sources]
        lengths = torch.tensor([len(row) for row in rows])
        source = cls(pad_sequence(rows, batch_first=True, padding_value=PAD), lengths)
        check_source(source)
        return cls(source.values.to(device), source.lengths.to(device))


def items_of(source: Sequence[Any]) -> Tensor:
    """One source as a tensor: ids (S,), or vectors (S, W) of bytes or floats."""
    try:
        values = numpy.asarray(source) if len(source) else numpy.empty(0, dtype=numpy.int64)
    except (TypeError, ValueError):
        values = numpy.empty(())  # ragged, or no sequence at all
    kind = ITEMS.get((values.ndim, values.dtype.kind))
    if kind is None:
        raise ValueError("sources are sentences, each a sequence of token ids (whole numbers), or arrays of vectors")
    return torch.from_numpy(values.astype(kind))


class Memory(NamedTuple):
    """What the encoder understood: a set of vectors to look at."""

    values: Tensor  # (B, S, D)
    mask: Tensor  # (B, 1, 1, S), True = may look
    extra: tuple[Tensor, ...] = ()  # batch-first tensors of the model's own, such as an RNN's last state


class State(Protocol):
    """Where a decoder stands: the memory, and what it has read of the target so far.

    A memory may serve several rows that stand side by side: R rows, N memories, R / N rows for each.
    """

    def reorder(self, index: Tensor) -> Self:
        """The same state with batch rows chosen by `index`. All that search needs.

        (R',): any rows (dropped, repeated, permuted). (N', W): each line has rows of one memory, and the lines keep the
        order of their memories, so that these need not be copied for every row, nor at all as long as none leaves.
        """


class Step(NamedTuple):
    """What the decoder says after one more token."""

    logits: Tensor  # (B, V)
    state: Any  # the model's own State
    weights: Tensor | None  # (B, H, S) of the last cross-attention, H = 0 in a model without; None: nobody asked


class Advance(NamedTuple):
    """What the decoder says after T more tokens, before the output layer."""

    features: Tensor  # (B, T, D)
    state: Any
    weights: Tensor | None  # (B, H, T, S) of the last cross-attention, when asked for


class Place(NamedTuple):
    """Which attention a watch is looking at."""

    kind: str  # "encoder", "decoder" or "cross"
    layer: int
    first: int  # the target position of the first query row: 0 in a parallel pass, t at step t


class Watch(Protocol):
    """The seam between models and whoever wants to see, or change, where they look."""

    def __call__(self, place: Place, weights: Tensor, values: Tensor) -> Tensor:
        """Shown weights (B, H, Q, K) over values (B, H, K, D), return the weights to use: the same ones to leave it."""


class OneWatch(NamedTuple):
    """A watch of one attention; all others keep the fast path."""

    kind: str
    layer: int
    watch: Watch

    def __call__(self, place: Place, weights: Tensor, values: Tensor) -> Tensor:
        """Only ever called there."""
        return self.watch(place, weights, values)


def look_at(watch: Watch | None, kind: str, layer: int, first: Tensor | int = 0) -> Look | None:
    """The `look` of one attention; None when nobody watches it, which keeps the fast path.

    Only then is `first` turned into a number, since asking a tensor for its number waits for the device.
    """
    if watch is None or (isinstance(watch, OneWatch) and (kind, layer) != watch[:2]):
        return None
    return partial(watch, Place(kind, layer, int(first)))


class Seq2Seq(nn.Module, ABC):
    """A model that reads a source and writes a target, one token at a time or all at once."""

    sizes: ClassVar[dict[str, dict[str, int]]]
    few: ClassVar[int] = len(SPECIAL) + 1  # as source vocabulary, or numbers of an item, that any options can do with
    reads_vectors: ClassVar[bool] = False  # sources of vectors, not of ids
    output: nn.Module  # features (…, D) -> logits (…, V)

    @abstractmethod
    def encode(self, source: Source, watch: Watch | None = None) -> Memory:
        """Read the source."""

    @abstractmethod
    def start(self, memory: Memory) -> Any:
        """The state before the first target token."""

    @abstractmethod
    def advance(self, tokens: Tensor, state: Any, watch: Watch | None = None, *, need_weights: bool = False) -> Advance:
        """Read target `tokens` (B, T) on from `state`."""

    def example(self) -> Source:
        """The smallest source the model can read."""
        return Source.of([[len(SPECIAL)]])

    def step(self, token: Tensor, state: Any, watch: Watch | None = None, *, need_weights: bool = True) -> Step:
        """One more token (B,). Where weights are needed, the last cross-attention takes the plain path."""
        if token.ndim != 1:
            raise ValueError(f"a step reads one token a row, (B,), not {tuple(token.shape)}")
        features, state, weights = self.advance(token[:, None], state, watch, need_weights=need_weights)
        shown = weights[:, :, 0] if need_weights and weights is not None else None
        return Step(self.output(features[:, 0]), state, shown)

    def decode(self, memory: Memory, target: Tensor, watch: Watch | None = None) -> Tensor:
        """Features (B, T, D) for every prefix of `target` (B, T): teacher forcing, all steps at once."""
        return self.advance(target, self.start(memory), watch).features

    def forward(self, source: Source, target: Tensor, watch: Watch | None = None) -> Tensor:
        """Logits (B, T, V) of the token that follows each prefix of `target` (B, T), which starts with BEGIN."""
        logits: Tensor = self.output(self.decode(self.encode(source, watch), target, watch))
        return logits


def choose(tree: Any, index: Tensor) -> Any:
    """Choose batch rows of every tensor in nested (named) tuples: what each State's `reorder` does."""
    if isinstance(tree, Tensor):
        return tree.index_select(0, index.flatten())
    if isinstance(tree, KeysValues):
        return tree.choose(index.flatten())
    parts = [choose(part, index) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def choose_memories(tree: Any, index: Tensor, memories: int, rows: int) -> Any:
    """The memories of the rows that `index` chooses among R rows: see `State.reorder`."""
    if index.ndim == 2 and index.shape[0] == memories:
        return tree
    return choose(tree, (index if index.ndim == 1 else index[:, 0]) // (rows // memories))


def check_source(source: Source, vocabulary: int | None = None) -> None:
    """Refuse what no encoder can read: nothing, an empty sentence, an id outside the vocabulary."""
    if torch.compiler.is_compiling():  # data-dependent questions cannot be asked while a graph is traced
        return
    values, lengths = source
    if values.ndim < 2 or lengths.shape != values.shape[:1] or lengths.is_floating_point():
        raise ValueError(
            f"a source is (B, S) with (B,) whole lengths, not {tuple(values.shape)} with {tuple(lengths.shape)} "
            f"of {lengths.dtype}"
        )
    if values.shape[0] == 0:
        raise ValueError("a batch needs at least one source")
    if bool((lengths < 1).any()):
        empty = int((lengths < 1).nonzero()[0])
        raise ValueError(f"source {empty} of the batch is empty; every source needs at least one token")
    if int(lengths.max()) > values.shape[1]:
        raise ValueError(f"a length of {int(lengths.max())} exceeds the {values.shape[1]} tokens that are there")
    if vocabulary is not None:
        check_tokens("source", values, vocabulary)


def check_tokens(side: str, tokens: Tensor, vocabulary: int, rows: int | None = None) -> None:
    """Ids must lie inside the vocabulary, and there must be a row for each row of the state."""
    if torch.compiler.is_compiling():
        return
    if tokens.dtype != torch.long or tokens.ndim != 2:
        raise ValueError(f"{side} tokens are (B, N) of torch.long, not {tuple(tokens.shape)} of {tokens.dtype}")
    if rows is not None and tokens.shape[0] != rows:
        raise ValueError(f"{rows} sources need as many {side}s, not {tokens.shape[0]}")
    if tokens.shape[1] == 0:
        raise ValueError(f"the {side} has no tokens")
    low, high = (int(edge) for edge in tokens.aminmax())
    if low < 0 or high >= vocabulary:
        wrong = low if low < 0 else high
        raise ValueError(f"{side} token {wrong} is outside the vocabulary of {vocabulary}")

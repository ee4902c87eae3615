"""The protocol of every model: encode → Memory, start → State, step → Step. Search and training use only this.

A model implements three methods: `encode`, `start` and `advance`. `advance` reads any number of target tokens from any
state, so one token (a search step) and a whole sentence (teacher forcing) share their code; the rest is written here.

Shapes: B batch, S source length, T target length, D width, V vocabulary, H heads.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from softgaze.attention import WeightsHook
from softgaze.kv_cache import KVCache
from softgaze.special_tokens import PAD, SPECIAL_TOKENS

SOURCE_DTYPES = {(1, "i"): "int64", (1, "u"): "int64", (2, "u"): "uint8", (2, "f"): "float32"}  # by ndim and kind


class Source(NamedTuple):
    """A padded batch of model inputs: token ids or feature vectors."""

    values: Tensor  # (B, S) token ids, or (B, S, W) vectors
    lengths: Tensor  # (B,) without padding

    @classmethod
    def of(cls, sources: Sequence[Sequence[Any]], device: torch.device | str | None = None) -> "Source":
        """Pad token ids (S,), or vectors (S, W), to one length."""
        if len(sources) == 0:
            raise ValueError("a batch needs at least one source")
        rows = [source_tensor(source) for source in sources]
        lengths = torch.tensor([len(row) for row in rows])
        source = cls(pad_sequence(rows, batch_first=True, padding_value=PAD), lengths)
        check_source(source)
        return cls(source.values.to(device), source.lengths.to(device))


def source_tensor(source: Sequence[Any]) -> Tensor:
    """Convert one source to a tensor: ids (S,), or vectors (S, W) of bytes or floats."""
    try:
        values = np.asarray(source) if len(source) else np.empty(0, dtype=np.int64)
    except (TypeError, ValueError):
        values = np.empty(())  # ragged, or not a sequence
    dtype = SOURCE_DTYPES.get((values.ndim, values.dtype.kind))
    if dtype is None:
        raise ValueError("expected each source to be a sequence of token ids (integers) or an array of vectors")
    return torch.from_numpy(values.astype(dtype))


class Memory(NamedTuple):
    """The encoder output."""

    values: Tensor  # (B, S, D)
    mask: Tensor  # (B, 1, 1, S), True = may attend
    extra: tuple[Tensor, ...] = ()  # further batch-first tensors, such as the last state of an RNN


class State(Protocol):
    """The decoder state: the memory and everything kept of the target so far.

    Consecutive rows (the hypotheses of one source) may share a memory: R rows, N memories, R / N rows for each.
    """

    def reorder(self, index: Tensor) -> Self:
        """Return the state of the batch rows `index`.

        (R',): any rows, dropped, repeated or permuted. (N', W): row i lists hypotheses of source i, sources in order.
        Memories are then stored once per source and copied only when a source finishes.
        """


class Step(NamedTuple):
    """The decoder output after one more token."""

    logits: Tensor  # (B, V)
    state: Any  # the model's own State
    weights: Tensor | None  # (B, H, S) of the last cross-attention, H = 0 without attention; None unless requested


class Advance(NamedTuple):
    """The decoder output after T more tokens, before the output layer."""

    features: Tensor  # (B, T, D)
    state: Any
    weights: Tensor | None  # (B, H, T, S) of the last cross-attention, if requested


SearchStep = Callable[[Tensor, Any], tuple[Tensor, Any]]  # token (B,), state -> logits (B, V), next state


class AttentionSite(NamedTuple):
    """Which attention a hook is called for."""

    kind: str  # "encoder", "decoder" or "cross"
    layer: int
    step: int  # the target position of the first query: 0 in a parallel pass, t at step t


class AttentionHook(Protocol):
    """A callback that may inspect or replace attention weights."""

    def __call__(self, site: AttentionSite, weights: Tensor, values: Tensor, /) -> Tensor:
        """Given weights (B, H, Q, K) and values (B, H, K, D), return the weights to use."""


class SingleSiteHook(NamedTuple):
    """A hook for one attention; all others keep the fast path."""

    kind: str
    layer: int
    hook: AttentionHook

    def __call__(self, site: AttentionSite, weights: Tensor, values: Tensor) -> Tensor:
        return self.hook(site, weights, values)


def hook_for(hook: AttentionHook | None, kind: str, layer: int, step: Tensor | int = 0) -> WeightsHook | None:
    """Return the hook of one attention, or None, which keeps the fast path.

    `step` is converted to an integer only if there is a hook, because reading a tensor waits for the device.
    """
    if hook is None or (isinstance(hook, SingleSiteHook) and (kind, layer) != hook[:2]):
        return None
    return partial(hook, AttentionSite(kind, layer, int(step)))


class Seq2Seq(nn.Module, ABC):
    """A model that reads a source and writes a target, one token at a time or all at once."""

    sizes: ClassVar[dict[str, dict[str, int]]]
    min_source_size: ClassVar[int] = len(SPECIAL_TOKENS) + 1  # smallest source vocabulary or feature width
    reads_features: ClassVar[bool] = False  # sources are vectors, not token ids
    has_cross_attention: bool = True
    exports_to: tuple[str, ...] = ()  # engines besides torch
    renamed_parameters: ClassVar[Mapping[str, str]] = {}  # dotted parts of names in older files -> today's
    max_positions: int | None = None  # of a learned position table
    output: nn.Module  # features (…, D) -> logits (…, V)

    @abstractmethod
    def encode(self, source: Source, hook: AttentionHook | None = None) -> Memory:
        """Encode the source."""

    @abstractmethod
    def start(self, memory: Memory) -> Any:
        """Return the state before the first target token."""

    @abstractmethod
    def advance(
        self, tokens: Tensor, state: Any, hook: AttentionHook | None = None, *, need_weights: bool = False
    ) -> Advance:
        """Read target `tokens` (B, T) from `state`."""

    @property
    def cross_attention_shape(self) -> tuple[int, int]:
        """Layers and heads of the cross-attention."""
        return (1, 1) if self.has_cross_attention else (0, 0)

    def example(self) -> Source:
        """Return the smallest source the model can read."""
        return Source.of([[len(SPECIAL_TOKENS)]])

    def step(self, token: Tensor, state: Any, hook: AttentionHook | None = None, *, need_weights: bool = True) -> Step:
        """Read one more token (B,). Requesting weights disables the fused kernel in the last cross-attention."""
        if token.ndim != 1:
            raise ValueError(f"expected one token per row, (B,), got shape {tuple(token.shape)}")
        features, state, weights = self.advance(token[:, None], state, hook, need_weights=need_weights)
        weights = weights[:, :, 0] if need_weights and weights is not None else None
        return Step(self.output(features[:, 0]), state, weights)

    def search_step(self) -> SearchStep:
        """Return `step` without hook and weights, for one search in inference mode; a model may have a faster form."""
        return lambda token, state: self.step(token, state, need_weights=False)[:2]

    def decode(self, memory: Memory, target: Tensor, hook: AttentionHook | None = None) -> Tensor:
        """Return features (B, T, D) for every prefix of `target` (B, T): teacher forcing, all steps at once."""
        return self.advance(target, self.start(memory), hook).features

    def forward(self, source: Source, target: Tensor, hook: AttentionHook | None = None) -> Tensor:
        """Return logits (B, T, V) of the token after each prefix of `target` (B, T), which starts with BOS."""
        logits: Tensor = self.output(self.decode(self.encode(source, hook), target, hook))
        return logits

    @classmethod
    def current_name(cls, name: str) -> str:
        """Return today's name of a parameter that may have been saved under an earlier one."""
        return ".".join(cls.renamed_parameters.get(part, part) for part in name.split("."))


# --- decoder states ---------------------------------------------------------------------------------------------


def select_rows(tree: Any, index: Tensor) -> Any:
    """Select batch rows of every tensor in nested (named) tuples."""
    if isinstance(tree, Tensor):
        return tree.index_select(0, index.flatten())
    if isinstance(tree, KVCache):
        return tree.select_rows(index.flatten())
    parts = [select_rows(part, index) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def select_memory_rows(tree: Any, index: Tensor, memories: int, rows: int) -> Any:
    """Select the memories of the rows `index` among `rows` rows: see `State.reorder`."""
    if index.ndim == 2 and index.shape[0] == memories:
        return tree
    return select_rows(tree, (index if index.ndim == 1 else index[:, 0]) // (rows // memories))


def repeat_rows(tree: Any, rows: int) -> Any:
    """Repeat the N batch rows of every tensor for the `rows` rows that share them: (N, …) -> (R, …)."""
    if isinstance(tree, Tensor):
        return tree if tree.shape[0] == rows else tree.repeat_interleave(rows // tree.shape[0], 0)
    parts = [repeat_rows(part, rows) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def group_rows(queries: Tensor, memories: int) -> Tensor:
    """Join the queries of rows that share a memory: (R, Q, …) -> (N, R/N · Q, …). Nothing of the memory is copied."""
    return queries if queries.shape[0] == memories else queries.reshape(memories, -1, *queries.shape[2:])


def ungroup_weights(weights: Tensor | None, rows: int) -> Tensor | None:
    """Undo `group_rows` for attention weights: (N, H, R/N · Q, K) -> (R, H, Q, K)."""
    if weights is None or weights.shape[0] == rows:
        return weights
    memories, heads, _, keys = weights.shape
    return weights.reshape(memories, heads, rows // memories, -1, keys).transpose(1, 2).flatten(0, 1)


# --- input checks -----------------------------------------------------------------------------------------------


def check_source(source: Source, vocabulary: int | None = None) -> None:
    """Raise unless every source of the batch has tokens, all within the vocabulary."""
    if torch.compiler.is_compiling():  # data-dependent checks cannot be traced
        return
    values, lengths = source
    if values.ndim < 2 or lengths.shape != values.shape[:1] or lengths.is_floating_point():
        raise ValueError(
            f"expected a source of shape (B, S) with integer lengths (B,), got {tuple(values.shape)} with "
            f"{tuple(lengths.shape)} of {lengths.dtype}"
        )
    if values.shape[0] == 0:
        raise ValueError("a batch needs at least one source")
    if bool((lengths < 1).any()):
        raise ValueError(f"source {int((lengths < 1).nonzero()[0])} of the batch is empty")
    if int(lengths.max()) > values.shape[1]:
        raise ValueError(f"a length of {int(lengths.max())} exceeds the {values.shape[1]} tokens of the batch")
    if vocabulary is not None:
        check_tokens("source", values, vocabulary)


def check_tokens(side: str, tokens: Tensor, vocabulary: int, rows: int | None = None) -> None:
    """Raise unless token ids are within the vocabulary, one row of them for each row of the state."""
    if torch.compiler.is_compiling():
        return
    if tokens.dtype != torch.long or tokens.ndim != 2:
        raise ValueError(f"expected {side} tokens (B, N) of torch.long, got {tuple(tokens.shape)} of {tokens.dtype}")
    if rows is not None and tokens.shape[0] != rows:
        raise ValueError(f"expected {rows} rows of {side} tokens, one per source, got {tokens.shape[0]}")
    if tokens.shape[1] == 0:
        raise ValueError(f"the {side} has no tokens")
    low, high = (int(edge) for edge in tokens.aminmax())
    if low < 0 or high >= vocabulary:
        wrong = low if low < 0 else high
        raise ValueError(f"{side} token {wrong} is outside the vocabulary of {vocabulary}")

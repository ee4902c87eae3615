"""The interface between a search and a model: one decoder step, the next-token log-probabilities, and constraints.

A search keeps NumPy arrays only, so that one implementation serves every engine. Arrays as large as the vocabulary
stay on the engine's device, behind `NextTokenLogProbs`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from softgaze.search.options import SearchOptions
from softgaze.special_tokens import BOS, EOS, PAD, SPECIAL_TOKENS, UNK

Array = NDArray[Any]
Prefixes = Sequence[Sequence[int]]

IMPOSSIBLE = -np.inf  # log-probability of a forbidden token
MIN_LOG_PROB = -1e6  # floor of the model's log-probabilities, so that a forced token is never impossible
NEVER_GENERATED = np.array([PAD, UNK, BOS])
BLOCK = 64  # tokens per block of the two-level top-k


class NextTokenLogProbs(Protocol):
    """Log-probabilities (R, V) of the next token of each row; forbidden tokens are at −inf."""

    vocabulary: int

    def forbid(self, tokens: Array) -> None:
        """Forbid these tokens in every row."""

    def forbid_in(self, rows: Array, tokens: Array) -> None:
        """Forbid token i in row i of the two lists."""

    def force(self, rows: Array, tokens: Array) -> None:
        """Forbid all but token i in row i of the two lists."""

    def forbid_rows(self, rows: Array) -> None:
        """Forbid every token in these rows."""

    def gather(self, rows: Array, tokens: Array) -> Array:
        """Return the log-probability of token i in row i of the two lists."""

    def count_others(self, token: int) -> Array:
        """Return (R,) how many tokens other than this one are allowed."""

    def topk(self, totals: Array, count: int) -> tuple[Array, Array]:
        """Return the `count` best continuations of each sentence, best first, when its rows stand at `totals` (N, W).

        Their new totals (N, C), and their indices (N, C) into the W · V continuations.
        """

    def array(self) -> Array:
        """Return all of them as a NumPy array."""


class Decoder(Protocol):
    """A model that decodes one batch of sources."""

    sources: Array  # (N, S) source tokens or features
    lengths: Array  # (N,) source lengths without padding
    start: int  # the token that the first step reads
    forced: int  # language tokens that a target starts with; they are not part of hypotheses, but of their length
    attention: Array | None  # (R, S) attention of the last step to the source, if it was requested

    def step(self, rows: Array, tokens: Array) -> NextTokenLogProbs:
        """Continue `rows` of the step before, (N, W), with one more token each, (N, W).

        Before the first call there is one row for each source. The W rows of a line belong to one source. Sources may
        leave the batch, but never change their order.
        """


class ArrayLogProbs:
    """Next-token log-probabilities in a NumPy array, changed in place."""

    def __init__(self, log_probs: Array) -> None:
        self.values = np.maximum(log_probs, MIN_LOG_PROB, out=log_probs)  # (R, V)
        self.vocabulary = self.values.shape[1]

    def forbid(self, tokens: Array) -> None:
        self.values[:, tokens] = IMPOSSIBLE

    def forbid_in(self, rows: Array, tokens: Array) -> None:
        self.values[rows, tokens] = IMPOSSIBLE

    def force(self, rows: Array, tokens: Array) -> None:
        forced = self.values[rows, tokens]
        self.values[rows] = IMPOSSIBLE
        self.values[rows, tokens] = forced

    def forbid_rows(self, rows: Array) -> None:
        self.values[rows] = IMPOSSIBLE

    def gather(self, rows: Array, tokens: Array) -> Array:
        gathered: Array = self.values[rows, tokens]
        return gathered

    def count_others(self, token: int) -> Array:
        allowed = self.values > IMPOSSIBLE
        others: Array = allowed.sum(1) - allowed[:, token]
        return others

    def topk(self, totals: Array, count: int) -> tuple[Array, Array]:
        scores = (self.values.reshape(*totals.shape, -1) + totals[..., None]).reshape(len(totals), -1)  # (N, W · V)
        indices = self._block_topk(scores, count)
        selected = np.take_along_axis(scores, indices, 1)
        order = np.argsort(-selected, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(selected, order, 1), np.take_along_axis(indices, order, 1)

    def _block_topk(self, scores: Array, count: int) -> Array:
        """Return indices (N, …) that contain the top `count`: all of the best blocks, and the rest that fills none.

        The top `count` lie in the `count` blocks with the highest maxima; sorting everything costs more.
        """
        blocks = scores.shape[1] // BLOCK
        if blocks <= count:
            return np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
        blocked = blocks * BLOCK
        maxima = scores[:, :blocked].reshape(len(scores), blocks, BLOCK).max(-1)  # (N, b)
        best_blocks = np.argpartition(maxima, -count, axis=1)[:, -count:]  # (N, C)
        inside = (best_blocks[..., None] * BLOCK + np.arange(BLOCK)).reshape(len(scores), -1)
        rest = np.arange(blocked, scores.shape[1])
        return np.concatenate([inside, np.broadcast_to(rest, (len(scores), len(rest)))], 1)

    def array(self) -> Array:
        return self.values


# --- constraints ------------------------------------------------------------------------------------------------


class Constraint(Protocol):
    """Restricts the next token of each row."""

    def apply(self, log_probs: NextTokenLogProbs, tokens: Array, forced: Array) -> None:
        """Forbid tokens that may not follow `tokens` (R, t); `forced` (R,) is the prefix token at t, or −1."""


class ForcedPrefix:
    """Generate the prefix of each sentence first."""

    def apply(self, log_probs: NextTokenLogProbs, tokens: Array, forced: Array) -> None:
        if forced.max() >= log_probs.vocabulary:
            raise ValueError(f"prefix token {forced.max()} is outside the vocabulary of {log_probs.vocabulary}")
        rows = np.flatnonzero(forced >= 0)
        if len(rows):
            log_probs.force(rows, forced[rows])


class NoRepeatNgram(NamedTuple):
    """Never complete an n-gram that the hypothesis already contains; a forced prefix may repeat itself."""

    size: int

    def apply(self, log_probs: NextTokenLogProbs, tokens: Array, forced: Array) -> None:
        if tokens.shape[1] < self.size:
            return
        ngrams = sliding_window_view(tokens, self.size, axis=1)  # (R, windows, n)
        tail = tokens[:, tokens.shape[1] - self.size + 1 :]  # (R, n − 1)
        repeated = (ngrams[..., :-1] == tail[:, None]).all(-1) & (forced < 0)[:, None]  # (R, windows)
        rows, windows = repeated.nonzero()
        log_probs.forbid_in(rows, ngrams[rows, windows, -1])


class MinLength(NamedTuple):
    """Forbid EOS before `length` tokens, except where no other token is allowed."""

    length: int
    eos_may_be_last: bool  # whether another constraint can leave EOS as the only allowed token

    def apply(self, log_probs: NextTokenLogProbs, tokens: Array, forced: Array) -> None:
        if tokens.shape[1] >= self.length:
            return
        if not self.eos_may_be_last:
            log_probs.forbid(np.array([EOS]))
            return
        rows = np.flatnonzero(log_probs.count_others(EOS))
        log_probs.forbid_in(rows, np.full(len(rows), EOS))


class Constraints:
    """All constraints of one search over one batch, and its length limits."""

    def __init__(
        self,
        options: SearchOptions,
        lengths: Array,
        prefixes: Prefixes | None = None,
        max_positions: int | None = None,
    ) -> None:
        self.prefixes = prefix_table(prefixes, len(lengths))  # (N, P), −1 where free
        sizes = (self.prefixes >= 0).sum(1)
        self.limits = np.array(  # (N,) most tokens of each sentence
            [
                options.length_limit(source, prefix, max_positions)
                for source, prefix in zip(lengths.tolist(), sizes.tolist(), strict=True)
            ]
        )
        ngram = options.no_repeat_ngram_size
        self.active: list[Constraint] = [ForcedPrefix()] * bool(self.prefixes.shape[1])
        self.active += [NoRepeatNgram(ngram)] * bool(ngram)
        self.active += [MinLength(options.min_length, eos_may_be_last=bool(ngram))] * bool(options.min_length)

    def apply(self, log_probs: NextTokenLogProbs, tokens: Array, prefixes: Array) -> None:
        """Apply all constraints to rows with `tokens` (R, t) and `prefixes` (R, P)."""
        log_probs.forbid(NEVER_GENERATED)
        if not self.active:
            return
        position = tokens.shape[1]
        forced = prefixes[:, position] if position < prefixes.shape[1] else np.full(len(tokens), -1)
        for constraint in self.active:
            constraint.apply(log_probs, tokens, forced)


def prefix_table(prefixes: Prefixes | None, sentences: int) -> Array:
    """Return the prefix token ids of each sentence as (N, P), −1 where free."""
    if prefixes is None:
        prefixes = [()] * sentences
    if not isinstance(prefixes, Sequence) or not all(isinstance(prefix, Sequence) for prefix in prefixes):
        raise ValueError("prefixes must be one sequence of token ids for each sentence")
    tokens = [token for prefix in prefixes for token in prefix]
    if any(not isinstance(token, int) or token < 0 or token in SPECIAL_TOKENS for token in tokens):
        raise ValueError("a prefix must contain ids of ordinary tokens only: no special tokens, none below zero")
    if len(prefixes) != sentences:
        raise ValueError(f"expected {sentences} prefixes, one for each sentence, got {len(prefixes)}")
    size = max(map(len, prefixes), default=0)
    rows = [[*prefix] + [-1] * (size - len(prefix)) for prefix in prefixes]
    return np.array(rows, dtype=np.int64).reshape(sentences, size)

"""What a search knows of a model, wherever the model runs: it reads one more token in each row, and says what follows.

All numbers a search keeps are NumPy's, so that one search serves every engine. Only what is as large as the vocabulary
stays where it was computed, behind `Chances`.
"""

from typing import Any, Protocol

import numpy
from numpy.typing import NDArray

Array = NDArray[Any]

NEVER = -numpy.inf
BLOCK = 64  # tokens of which only the best is looked at first
UNLIKELY = -1e6  # the least a model's own log-probability counts for: a forced or only choice is never impossible


class Chances(Protocol):
    """Log-probabilities (R, V) of the token that follows in each row. What may not follow is at −inf."""

    vocabulary: int

    def forbid(self, tokens: Array) -> None:
        """These may follow in no row."""

    def forbid_in(self, rows: Array, tokens: Array) -> None:
        """Token i may not follow in row i of the two lists."""

    def force(self, rows: Array, tokens: Array) -> None:
        """Nothing but token i may follow in row i of the two lists."""

    def others(self, token: int) -> Array:
        """(R,) how many tokens but this one may follow."""

    def best(self, totals: Array, count: int) -> tuple[Array, Array]:
        """The `count` best continuations of each sentence, best first, when its rows stand at `totals` (N, W).

        Their new totals (N, C), and their places (N, C) among the W · V there are.
        """

    def array(self) -> Array:
        """All of them."""


class Steps(Protocol):
    """A model at work on one batch."""

    sources: Array  # (N, S) what it reads
    lengths: Array  # (N,) how much of that is real

    def read(self, rows: Array, tokens: Array) -> Chances:
        """Go on with some of the rows there are and read one more token in each, both (N, W).

        Before the first call there is one row for each source. The W rows of a line belong to one source; sources
        may leave, but never change their order.
        """


class ArrayChances:
    """Chances in plain memory, which are changed in place."""

    def __init__(self, log_probabilities: Array) -> None:
        self.values = numpy.maximum(log_probabilities, UNLIKELY, out=log_probabilities)  # (R, V)
        self.vocabulary = self.values.shape[1]

    def forbid(self, tokens: Array) -> None:
        """These may follow in no row."""
        self.values[:, tokens] = NEVER

    def forbid_in(self, rows: Array, tokens: Array) -> None:
        """Token i may not follow in row i of the two lists."""
        self.values[rows, tokens] = NEVER

    def force(self, rows: Array, tokens: Array) -> None:
        """Nothing but token i may follow in row i of the two lists."""
        kept = self.values[rows, tokens]
        self.values[rows] = NEVER
        self.values[rows, tokens] = kept

    def others(self, token: int) -> Array:
        """(R,) how many tokens but this one may follow."""
        possible = self.values > NEVER
        others: Array = possible.sum(1) - possible[:, token]
        return others

    def best(self, totals: Array, count: int) -> tuple[Array, Array]:
        """The `count` best continuations of each sentence: their totals and places, (N, C)."""
        scores = (self.values.reshape(*totals.shape, -1) + totals[..., None]).reshape(len(totals), -1)  # (N, W · V)
        places = self.promising(scores, count)
        found = numpy.take_along_axis(scores, places, 1)
        order = numpy.argsort(-found, axis=1, kind="stable")[:, :count]
        return numpy.take_along_axis(found, order, 1), numpy.take_along_axis(places, order, 1)

    def promising(self, scores: Array, count: int) -> Array:
        """Places (N, …) among which are the `count` best: of the best blocks, and of the rest that fills no block."""
        blocks = scores.shape[1] // BLOCK
        if blocks <= count:
            return numpy.broadcast_to(numpy.arange(scores.shape[1]), scores.shape)
        whole = blocks * BLOCK
        heads = scores[:, :whole].reshape(len(scores), blocks, BLOCK).max(-1)  # (N, b)
        chosen = numpy.argpartition(heads, -count, axis=1)[:, -count:]  # (N, C)
        near = (chosen[..., None] * BLOCK + numpy.arange(BLOCK)).reshape(len(scores), -1)
        rest = numpy.arange(whole, scores.shape[1])
        return numpy.concatenate([near, numpy.broadcast_to(rest, (len(scores), len(rest)))], 1)

    def array(self) -> Array:
        """All of them."""
        return self.values

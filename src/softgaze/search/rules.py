"""What a search may write: lengths, a forced beginning, no repeated n-grams, and never a special token."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.lib.stride_tricks import sliding_window_view

from softgaze.search.settings import check_lengths, longest
from softgaze.search.steps import Array, Chances
from softgaze.symbols import BEGIN, END, PAD, SPECIAL, UNKNOWN

NEVER_WRITTEN = numpy.array([PAD, UNKNOWN, BEGIN])


@dataclass(frozen=True)
class Rules:
    """Limits on what is written."""

    min_length: int = 0  # so many tokens before END may follow
    max_length: int | None = None  # after so many, END counted, a sentence is cut; None: twice the source and 20 more
    prefixes: Sequence[Sequence[int]] | None = None  # one for each sentence of the batch; empty = free
    no_repeat: int = 0  # n: no n-gram is written twice
    places: int | None = None  # how many tokens the model has places for; None: any number

    def __post_init__(self) -> None:
        check_lengths(self.min_length, self.max_length, self.no_repeat)
        prefixes = self.prefixes if self.prefixes is not None else ()
        if not isinstance(prefixes, Sequence) or not all(isinstance(prefix, Sequence) for prefix in prefixes):
            raise ValueError("prefixes are one sequence of token ids for each sentence")
        tokens = [token for prefix in prefixes for token in prefix]
        if any(not isinstance(token, int) or token < 0 or token in SPECIAL for token in tokens):
            raise ValueError("a prefix holds ids of ordinary tokens: no special ones, none below zero")

    def longest(self, lengths: Array) -> Array:
        """After how many tokens each sentence is cut."""
        prefixes = (self.forced(len(lengths)) >= 0).sum(1)
        limits = [
            longest(source, prefix, self.min_length, self.max_length, self.places)
            for source, prefix in zip(lengths.tolist(), prefixes.tolist(), strict=True)
        ]
        return numpy.array(limits)

    def forced(self, sentences: int) -> Array:
        """(N, P) prefix tokens, −1 where free."""
        prefixes = self.prefixes if self.prefixes is not None else [()] * sentences
        if len(prefixes) != sentences:
            raise ValueError(f"{len(prefixes)} prefixes for {sentences} sentences")
        size = max(len(prefix) for prefix in prefixes)
        rows = [[*prefix] + [-1] * (size - len(prefix)) for prefix in prefixes]
        return numpy.array(rows, dtype=numpy.int64).reshape(sentences, size)

    def apply(self, chances: Chances, written: Array, forced: Array) -> None:
        """Forbid what may not follow `written` (R, t); `forced` is (R, P)."""
        place = written.shape[1]
        chances.forbid(NEVER_WRITTEN)
        free = numpy.ones(len(written), dtype=bool)
        if place < forced.shape[1]:
            free = forced[:, place] < 0
            force(chances, forced[:, place])
        if self.no_repeat:
            forbid_repeats(chances, written, self.no_repeat, free)
        if place < self.min_length:
            forbid_the_end(chances, certainly=not self.no_repeat)


def force(chances: Chances, tokens: Array) -> None:
    """Where a token is forced (not −1), nothing else can follow."""
    if tokens.max() >= chances.vocabulary:
        raise ValueError(f"prefix token {tokens.max()} is outside the vocabulary of {chances.vocabulary}")
    rows = numpy.flatnonzero(tokens >= 0)
    chances.force(rows, tokens[rows])


def forbid_repeats(chances: Chances, written: Array, size: int, free: Array) -> None:
    """A token that would complete an n-gram already there cannot follow, in rows that are `free` (R,)."""
    if written.shape[1] < size:
        return
    grams = sliding_window_view(written, size, axis=1)  # (R, windows, n)
    tail = written[:, written.shape[1] - size + 1 :]  # (R, n − 1)
    again = (grams[..., :-1] == tail[:, None]).all(-1) & free[:, None]  # (R, windows)
    rows, windows = again.nonzero()
    chances.forbid_in(rows, grams[rows, windows, -1])


def forbid_the_end(chances: Chances, certainly: bool) -> None:
    """Where anything else may follow, as it `certainly` does without other rules; if not, a sentence ends too soon."""
    if certainly:
        chances.forbid(numpy.array([END]))
        return
    rows = numpy.flatnonzero(chances.others(END))
    chances.forbid_in(rows, numpy.full(len(rows), END))

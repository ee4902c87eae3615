"""What a search may write: lengths, a forced beginning, no repeated n-grams, and never a special token."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from softgaze.symbols import BEGIN, END, PAD, SPECIAL, UNKNOWN

NEVER = -torch.inf


@dataclass(frozen=True)
class Rules:
    """Limits on what is written. Lengths count tokens without END."""

    min_length: int = 0
    max_length: int | None = None  # None: twice the source and twenty more
    prefixes: Sequence[Sequence[int]] | None = None  # one for each sentence of the batch; empty = free
    no_repeat: int = 0  # n: no n-gram is written twice

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 1:
            raise ValueError(f"max_length is {self.max_length}; a search needs room for at least one token")
        if self.min_length < 0 or self.no_repeat < 0:
            raise ValueError("min_length and no_repeat cannot be negative")
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is above max_length {self.max_length}")
        if any(token in SPECIAL for prefix in self.prefixes or () for token in prefix):
            raise ValueError("a prefix cannot hold special tokens")

    def longest(self, lengths: Tensor) -> Tensor:
        """How many tokens each sentence may have: its own source decides, never its neighbours."""
        free = 2 * lengths + 20 if self.max_length is None else torch.full_like(lengths, self.max_length)
        return torch.maximum(free, (self.forced(len(lengths), lengths.device) >= 0).sum(1) + 1)

    def forced(self, sentences: int, device: torch.device) -> Tensor:
        """(N, P) prefix tokens, −1 where free."""
        prefixes = self.prefixes if self.prefixes is not None else [()] * sentences
        if len(prefixes) != sentences:
            raise ValueError(f"{len(prefixes)} prefixes for {sentences} sentences")
        size = max(len(prefix) for prefix in prefixes)
        rows = [[*prefix] + [-1] * (size - len(prefix)) for prefix in prefixes]
        return torch.tensor(rows, dtype=torch.long, device=device).view(sentences, size)

    def apply(self, log_probabilities: Tensor, written: Tensor, forced: Tensor) -> Tensor:
        """Log-probabilities (R, V) after `written` (R, t), with what may not follow at −inf; `forced` is (R, P)."""
        scores = log_probabilities.clone()
        scores[:, [PAD, UNKNOWN, BEGIN]] = NEVER
        place = written.shape[1]
        if self.no_repeat:
            forbid_repeats(scores, written, self.no_repeat)
        if place < self.min_length:
            scores[:, END] = NEVER
        stuck = scores.isneginf().all(1)  # nothing may follow: then the sentence ends, whatever its length
        scores[stuck, END] = log_probabilities[stuck, END]
        if place < forced.shape[1]:
            force(scores, log_probabilities, forced[:, place])
        return scores


def forbid_repeats(scores: Tensor, written: Tensor, size: int) -> None:
    """In place: a token that would complete an n-gram already there cannot follow."""
    if written.shape[1] < size:
        return
    grams = written.unfold(1, size, 1)  # (R, windows, n)
    tail = written[:, written.shape[1] - size + 1 :]  # (R, n − 1)
    again = (grams[..., :-1] == tail[:, None]).all(-1)  # (R, windows)
    rows, windows = again.nonzero(as_tuple=True)
    scores[rows, grams[rows, windows, -1]] = NEVER


def force(scores: Tensor, log_probabilities: Tensor, tokens: Tensor) -> None:
    """In place: where a token is forced (not −1), nothing else can follow."""
    rows = (tokens >= 0).nonzero().flatten()
    chosen = tokens[rows]
    scores[rows] = NEVER
    scores[rows, chosen] = log_probabilities[rows, chosen]

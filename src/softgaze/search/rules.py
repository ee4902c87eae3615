"""What a search may write: lengths, a forced beginning, no repeated n-grams, and never a special token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from softgaze.models.base import Seq2Seq
from softgaze.symbols import BEGIN, END, PAD, SPECIAL, UNKNOWN

NEVER = -torch.inf
UNLIKELY = -1e6  # the least a model's own log-probability counts for: a forced or only choice is never impossible


def check_whole(least: int, **numbers: Any) -> None:
    """Counts must be whole numbers, and not below `least`."""
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} is a whole number from {least} up, not {value!r}")


def check_ready(model: Seq2Seq) -> None:
    """A model in training mode drops out at random: every search would find something else."""
    if model.training:
        raise ValueError("the model is in training mode, where dropout is random; call model.eval() before a search")


@dataclass(frozen=True)
class Rules:
    """Limits on what is written."""

    min_length: int = 0  # so many tokens before END may follow
    max_length: int | None = None  # after so many, END counted, a sentence is cut; None: twice the source and 20 more
    prefixes: Sequence[Sequence[int]] | None = None  # one for each sentence of the batch; empty = free
    no_repeat: int = 0  # n: no n-gram is written twice

    def __post_init__(self) -> None:
        check_whole(0, min_length=self.min_length, no_repeat=self.no_repeat)
        if self.max_length is not None:
            check_whole(1, max_length=self.max_length)
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is above max_length {self.max_length}")
        prefixes = self.prefixes if self.prefixes is not None else ()
        if not isinstance(prefixes, Sequence) or not all(isinstance(prefix, Sequence) for prefix in prefixes):
            raise ValueError("prefixes are one sequence of token ids for each sentence")
        tokens = [token for prefix in prefixes for token in prefix]
        if any(not isinstance(token, int) or token < 0 or token in SPECIAL for token in tokens):
            raise ValueError("a prefix holds ids of ordinary tokens: no special ones, none below zero")

    def longest(self, lengths: Tensor) -> Tensor:
        """After how many tokens each sentence is cut: its own source decides, never its neighbours.

        There is always room for one token after a forced prefix.
        """
        if self.max_length is None:
            free = (2 * lengths + 20).clamp(min=self.min_length + 1)
        else:
            free = torch.full_like(lengths, self.max_length)
        return torch.maximum(free, (self.forced(len(lengths), lengths.device) >= 0).sum(1) + 1)

    def forced(self, sentences: int, device: torch.device) -> Tensor:
        """(N, P) prefix tokens, −1 where free."""
        prefixes = self.prefixes if self.prefixes is not None else [()] * sentences
        if len(prefixes) != sentences:
            raise ValueError(f"{len(prefixes)} prefixes for {sentences} sentences")
        size = max(len(prefix) for prefix in prefixes)
        rows = [[*prefix] + [-1] * (size - len(prefix)) for prefix in prefixes]
        return torch.tensor(rows, dtype=torch.long, device=device).view(sentences, size)

    def apply(self, logits: Tensor, written: Tensor, forced: Tensor) -> Tensor:
        """Log-probabilities (R, V) after `written` (R, t), with what may not follow at −inf; `forced` is (R, P)."""
        log_probabilities = logits.float().log_softmax(-1).clamp(min=UNLIKELY)
        if bool(log_probabilities.isnan().any()):
            raise ValueError("the model's logits are not numbers: its parameters are broken, or it overflowed")
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
    if int(tokens.max()) >= scores.shape[1]:
        raise ValueError(f"prefix token {int(tokens.max())} is outside the vocabulary of {scores.shape[1]}")
    rows = (tokens >= 0).nonzero().flatten()
    chosen = tokens[rows]
    scores[rows] = NEVER
    scores[rows, chosen] = log_probabilities[rows, chosen]

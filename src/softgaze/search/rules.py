"""What a search may write: lengths, a forced beginning, no repeated n-grams, and never a special token."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from softgaze.models.base import Seq2Seq
from softgaze.search.settings import check_lengths, longest
from softgaze.symbols import BEGIN, END, PAD, SPECIAL, UNKNOWN

NEVER = -torch.inf
UNLIKELY = -1e6  # the least a model's own log-probability counts for: a forced or only choice is never impossible


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
    places: int | None = None  # how many tokens the model has places for; None: any number

    def __post_init__(self) -> None:
        check_lengths(self.min_length, self.max_length, self.no_repeat)
        prefixes = self.prefixes if self.prefixes is not None else ()
        if not isinstance(prefixes, Sequence) or not all(isinstance(prefix, Sequence) for prefix in prefixes):
            raise ValueError("prefixes are one sequence of token ids for each sentence")
        tokens = [token for prefix in prefixes for token in prefix]
        if any(not isinstance(token, int) or token < 0 or token in SPECIAL for token in tokens):
            raise ValueError("a prefix holds ids of ordinary tokens: no special ones, none below zero")

    def longest(self, lengths: Tensor) -> Tensor:
        """After how many tokens each sentence is cut."""
        prefixes = (self.forced(len(lengths), lengths.device) >= 0).sum(1)
        limits = [
            longest(source, prefix, self.min_length, self.max_length, self.places)
            for source, prefix in zip(lengths.tolist(), prefixes.tolist(), strict=True)
        ]
        return torch.tensor(limits, device=lengths.device)

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

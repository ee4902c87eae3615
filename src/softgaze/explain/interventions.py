"""Interventions in the attention weights of a model, and a model that applies them.

An intervention moves weight and never creates it: a row keeps its sum (1, except for Luong's local-p), and a row with
nothing left to attend to becomes zero. Source positions and target words are counted from 0 within one part of a text.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from softgaze.data.tokenizer import Tokenizer
from softgaze.explain.recording import HeadSelector
from softgaze.explain.word_spans import WORD_START, words_by_character, words_by_space
from softgaze.models.base import Advance, AttentionHook, AttentionSite, Memory, Seq2Seq, Source, Step, select_rows
from softgaze.special_tokens import SPECIAL_TOKENS


@dataclass(frozen=True)
class Intervention(ABC):
    """One change of the weights of some heads."""

    heads: tuple[HeadSelector, ...]

    def heads_at(self, site: AttentionSite, count: int) -> list[int]:
        heads = [name.head for name in self.heads if name.kind == site.kind and name.layer in (None, site.layer)]
        return list(range(count)) if None in heads else sorted({head for head in heads if head is not None})

    def apply(self, site: AttentionSite, weights: Tensor, words: Tensor) -> Tensor:
        """Return weights (B, H, Q, K) with the selected heads changed; `words` (B, Q) are the words being generated."""
        heads = self.heads_at(site, weights.shape[1])
        if not heads:
            return weights
        changed = weights.clone()
        changed[:, heads] = self.change(weights[:, heads], words)
        return changed

    def without(self, removed: Sequence[int]) -> Self:
        """Return the same intervention for a source without the tokens at these positions."""
        return self

    @abstractmethod
    def change(self, weights: Tensor, words: Tensor) -> Tensor:
        """Return the changed weights (B, H', Q, K)."""


@dataclass(frozen=True)
class MaskTokens(Intervention):
    """Set the weights of some positions to zero and rescale the others, which equals masking before the softmax."""

    positions: tuple[int, ...]

    def change(self, weights: Tensor, words: Tensor) -> Tensor:
        masked = weights.clone()
        masked[..., self.positions] = 0.0
        return _rescale(masked, weights)

    def without(self, removed: Sequence[int]) -> Self:
        return replace(self, positions=shift_positions(self.positions, removed))


@dataclass(frozen=True)
class ForceAttention(Intervention):
    """Put all weight on given positions while a word is generated, in their old proportions, or evenly if all were 0.

    A step belongs to the word of its token; EOS belongs to the last word.
    """

    targets: tuple[tuple[int, tuple[int, ...]], ...]  # (word, positions)
    is_spaced: bool = True  # whether a space starts a word, or every token does

    def change(self, weights: Tensor, words: Tensor) -> Tensor:
        for word, positions in self.targets:
            forced = torch.zeros_like(weights)
            forced[..., positions] = weights[..., positions]
            is_zero = forced.sum(-1, keepdim=True) == 0
            forced[..., positions] += is_zero.to(weights.dtype)
            is_word = (words == word)[:, None, :, None]  # (B, 1, Q, 1)
            weights = torch.where(is_word, _rescale(forced, weights), weights)
        return weights

    def without(self, removed: Sequence[int]) -> Self:
        shifted = ((word, shift_positions(positions, removed)) for word, positions in self.targets)
        return replace(self, targets=tuple(target for target in shifted if target[1]))


@dataclass(frozen=True)
class Sharpen(Intervention):
    """Raise weights to a power, which equals multiplying the scores: above 1 sharper, below 1 flatter."""

    factor: float

    def change(self, weights: Tensor, words: Tensor) -> Tensor:
        largest = weights.amax(-1, keepdim=True)  # relative to the largest, a power does not underflow
        return _rescale((weights / torch.where(largest > 0, largest, 1.0)) ** self.factor, weights)


@dataclass(frozen=True)
class AblateHeads(Intervention):
    """Set all weights of the heads to zero, so that their context is zero."""

    def change(self, weights: Tensor, words: Tensor) -> Tensor:
        return torch.zeros_like(weights)


def _rescale(weights: Tensor, like: Tensor) -> Tensor:
    """Scale rows to the sums of `like`; a row of zeros stays zero."""
    totals = weights.sum(-1, keepdim=True)
    return weights / torch.where(totals > 0, totals, 1.0) * like.sum(-1, keepdim=True)


def shift_positions(positions: Sequence[int], removed: Sequence[int]) -> tuple[int, ...]:
    """Return the positions after others were removed."""
    remaining = (position for position in positions if position not in removed)
    return tuple(position - sum(other < position for other in removed) for position in remaining)


# --- a model with interventions ---------------------------------------------------------------------------------

Interventions = Sequence[tuple[Intervention, ...]]  # of each row of a batch


def apply_interventions(model: Seq2Seq, tokenizer: Tokenizer, interventions: Interventions) -> Seq2Seq:
    """Return the model with these interventions for the rows of one batch; the model itself if there are none."""
    return IntervenedModel(model, tokenizer, interventions) if any(interventions) else model


class IntervenedState(NamedTuple):
    """The decoder state. While it is open whether the next token starts a word, there is one for each case."""

    branches: tuple[Any, ...]  # if the word continues; if the next one starts
    starts: Tensor  # (B, V) tokens that start the next word; (B, 0) with one branch
    tokens: Tensor  # (B, t) read so far, BOS first
    sentence: Tensor  # (B,) index in the batch

    def reorder(self, index: Tensor) -> Self:
        rows = select_rows(self._replace(branches=()), index)
        reordered: Self = rows._replace(branches=tuple(branch.reorder(index) for branch in self.branches))
        return reordered

    def after(self, token: Tensor) -> Any:
        """Return the inner state of the branch that predicted `token`."""
        if len(self.branches) == 1:
            return self.branches[0]
        return _where(self.starts.gather(1, token[:, None]).squeeze(1), self.branches[1], self.branches[0])


class IntervenedModel(Seq2Seq):
    """A model with interventions in its attention. The parameters are shared, and all context is in the state.

    The word of the next token is known only after the token is chosen. If it matters, a step is computed twice: as if
    the word continued, and as if the next one started. The first gives the probability that the word ends, the second
    the token that starts the next word, and each token continues from the branch that predicted it.
    """

    def __init__(self, model: Seq2Seq, tokenizer: Tokenizer, interventions: Interventions) -> None:
        super().__init__()
        self.model, self.tokenizer, self.interventions = model, tokenizer, interventions
        self.training, self.output = model.training, model.output
        self.forced = [[change for change in row if isinstance(change, ForceAttention)] for row in interventions]

    def encode(self, source: Source, hook: AttentionHook | None = None) -> Memory:
        sentence = torch.arange(len(self.interventions), device=source.values.device)
        no_word = torch.full(source.values.shape[:2], -1, device=source.values.device)
        return self.model.encode(source, InterventionHook(self.interventions, sentence, no_word, 0, hook))

    def start(self, memory: Memory) -> IntervenedState:
        sentence = torch.arange(len(self.interventions), device=memory.values.device)
        empty = sentence[:, None][:, :0]
        return IntervenedState((self.model.start(memory),), empty, empty, sentence)

    def advance(
        self, tokens: Tensor, state: IntervenedState, hook: AttentionHook | None = None, *, need_weights: bool = False
    ) -> Advance:
        """Read target `tokens` (B, T); the next token of each step is known, so its word is too."""
        read, first = torch.cat([state.tokens, tokens], 1), state.tokens.shape[1]
        words = self._words(read, state.sentence)[:, first:]
        intervening = InterventionHook(self.interventions, state.sentence, words, first, hook)
        inner = state.after(tokens[:, 0])
        features, inner, weights = self.model.advance(tokens, inner, intervening, need_weights=need_weights)
        return Advance(features, IntervenedState((inner,), read[:, :0], read, state.sentence), weights)

    def step(
        self, token: Tensor, state: IntervenedState, hook: AttentionHook | None = None, *, need_weights: bool = True
    ) -> Step:
        """Read one more token; compute both branches if it matters whether the next token starts a word."""
        inner, first = state.after(token), state.tokens.shape[1]
        read, sentence = torch.cat([state.tokens, token[:, None]], 1), state.sentence
        words, starts = self._words(read, sentence)[:, -1:], self._word_starts(read, sentence)
        intervening = InterventionHook(self.interventions, sentence, words, first, hook)
        same_word = self.model.step(token, inner, intervening, need_weights=need_weights)
        if not starts.any():
            return same_word._replace(state=IntervenedState((same_word.state,), read[:, :0], read, sentence))
        intervening = InterventionHook(self.interventions, sentence, words + 1, first, hook)
        next_word = self.model.step(token, inner, intervening, need_weights=False)
        branches = IntervenedState((same_word.state, next_word.state), starts, read, sentence)
        return Step(merge_logits(same_word.logits, next_word.logits, starts), branches, same_word.weights)

    # --- words

    def _words(self, read: Tensor, sentence: Tensor) -> Tensor:
        """Return (B, t) the word of each step, assuming that the last one continues; −1 in rows without force."""
        words = torch.full(read.shape, -1, device=read.device)
        for row, word_of, _ in self._forced_rows(read, sentence):
            known = torch.tensor([*word_of, *(word_of[-1:] or [0])], device=read.device)
            start = len(self.tokenizer.start) - 1
            words[row, start : start + len(known)] = known[: max(read.shape[1] - start, 0)]
        return words

    def _word_starts(self, read: Tensor, sentence: Tensor) -> Tensor:
        """Return (B, V) tokens that would start a word, in rows where this word or the next has forced attention."""
        starts = self._after_space.new_zeros(len(read), len(self._after_space)).to(read.device)
        for row, word_of, pieces in self._forced_rows(read, sentence):
            forced = self.forced[int(sentence[row])]
            word = (word_of[-1:] or [0])[0]
            if {word, word + 1} & {target for change in forced for target, _ in change.targets}:
                spaced, unspaced = (_word_of([*pieces, probe], forced)[-1] > word for probe in (f"{WORD_START}x", "x"))
                starts[row] = (self._after_space & spaced) | (self._without_space & unspaced)
        return starts

    def _forced_rows(self, read: Tensor, sentence: Tensor) -> list[tuple[int, list[int], list[str]]]:
        """Return the rows with forced attention: row, word index of each token, tokens after BOS up to padding."""
        rows = []
        for row, index in enumerate(sentence.tolist()):
            if self.forced[index]:
                ids = read[row].tolist()
                start = tuple(self.tokenizer.start[: len(ids)])
                after = ids[len(start) :] if tuple(ids[: len(start)]) == start else ids
                text_ids = takewhile(lambda token: token not in SPECIAL_TOKENS, after)
                pieces = self.tokenizer.pieces(list(text_ids))
                rows.append((row, _word_of(pieces, self.forced[index]), pieces))
        return rows

    @cached_property
    def _after_space(self) -> Tensor:
        """(V,) tokens that begin with a space."""
        pieces = self.tokenizer.pieces(range(len(self.tokenizer)))
        return torch.tensor([piece.startswith(WORD_START) for piece in pieces])

    @cached_property
    def _without_space(self) -> Tensor:
        """(V,) tokens of text that do not."""
        tokens = ~self._after_space
        tokens[list(SPECIAL_TOKENS)] = False
        return tokens


class InterventionHook:
    """Applies the interventions of each sentence to its batch rows, then calls another hook."""

    def __init__(
        self, interventions: Interventions, sentence: Tensor, words: Tensor, first: int, then: AttentionHook | None
    ) -> None:
        self.words, self.first, self.then = words, first, then
        changed = [index for index in sorted(set(sentence.tolist())) if interventions[index]]
        self.rows = [((sentence == index).nonzero().flatten(), interventions[index]) for index in changed]

    def __call__(self, site: AttentionSite, weights: Tensor, values: Tensor) -> Tensor:
        start = site.step - self.first if site.kind == "cross" else 0
        words = self.words[:, start : start + weights.shape[2]]
        changed = weights
        for rows, interventions in self.rows:
            active = [intervention for intervention in interventions if intervention.heads_at(site, weights.shape[1])]
            if active:
                selected = weights[rows]
                for intervention in active:
                    selected = intervention.apply(site, selected, words[rows])
                changed = changed.index_copy(0, rows, selected)
        return changed if self.then is None else self.then(site, changed, values)


def _word_of(pieces: Sequence[str], forced: Sequence[ForceAttention]) -> list[int]:
    return (words_by_space if forced[0].is_spaced else words_by_character)(pieces)[0]


def merge_logits(same_word: Tensor, next_word: Tensor, starts: Tensor) -> Tensor:
    """Return log-probabilities (B, V): that a word starts as in `same_word`, with which token as in `next_word`."""
    first, second = (logits.log_softmax(-1) for logits in (same_word, next_word))
    any_start, which = (
        log_probs.masked_fill(~starts, -torch.inf).logsumexp(-1, keepdim=True) for log_probs in (first, second)
    )
    return torch.where(starts, second - which + any_start, first)


def _where(condition: Tensor, first: Any, second: Any) -> Any:
    """Select between two nested states row by row; shared tensors, such as memories, are kept."""
    if first is second:
        return first
    if isinstance(first, Tensor):
        return torch.where(condition.view(-1, *[1] * (first.ndim - 1)), first, second)
    parts = [_where(condition, one, other) for one, other in zip(first, second, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)

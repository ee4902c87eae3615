"""A model that looks elsewhere: the same parameters, with changes to the weights of each row of one batch.

It speaks the protocol of every model, so search, recording and influence need not know. What it must know of a row
(which sentence it is, what it has read) is in the state, which reorders itself; nothing is kept on a module.

Which word the next piece belongs to is not known before it is chosen. Where that matters, a step is computed both as if
the word went on and as if the next one began. The first says whether the word is over, the second which piece the next
one begins with, and each piece goes on from the state that it was predicted with.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from softgaze.data.tokens import Tokenizer
from softgaze.gaze.edits import Edit, Force
from softgaze.gaze.words import WORD_START, by_character, by_space
from softgaze.models.base import Advance, Memory, Place, Seq2Seq, Source, Step, Watch, choose
from softgaze.symbols import BEGIN, SPECIAL

Edits = Sequence[tuple[Edit, ...]]  # of each row of a batch


def edited(model: Seq2Seq, tokenizer: Tokenizer, edits: Edits) -> Seq2Seq:
    """The model with these changes for the rows of one batch; the model itself where there are none."""
    return Edited(model, tokenizer, edits) if any(edits) else model


class EditedState(NamedTuple):
    """Where the decoder stands: in one state, or in two of which the next token chooses."""

    ways: tuple[Any, ...]  # if the word goes on; if another begins
    begins: Tensor  # (B, V) tokens that begin another, (B, 0) where it does not matter
    read: Tensor  # (B, t) BEGIN first
    sentence: Tensor  # (B,) of the batch

    def reorder(self, index: Tensor) -> Self:
        """Choose batch rows."""
        rows = choose(self._replace(ways=()), index)
        reordered: Self = rows._replace(ways=tuple(way.reorder(index) for way in self.ways))
        return reordered

    def chosen(self, token: Tensor) -> Any:
        """The state that this token was predicted with."""
        if len(self.ways) == 1:
            return self.ways[0]
        goes_on, another = self.ways
        return either(goes_on, another, self.begins.gather(1, token[:, None]).squeeze(1))


class Edited(Seq2Seq):
    """The model, its watch and who is who."""

    def __init__(self, model: Seq2Seq, tokenizer: Tokenizer, edits: Edits) -> None:
        super().__init__()
        self.model, self.tokenizer, self.edits = model, tokenizer, edits
        self.training, self.output = model.training, model.output
        self.forces = [[edit for edit in own if isinstance(edit, Force)] for own in edits]

    # --- the protocol

    def encode(self, source: Source, watch: Watch | None = None) -> Memory:
        """With the changes that concern the encoder."""
        sentence = torch.arange(len(self.edits), device=source.values.device)
        nothing = torch.full(source.values.shape[:2], -1, device=source.values.device)  # no word is being written
        return self.model.encode(source, Changing(self.edits, sentence, nothing, 0, watch))

    def start(self, memory: Memory) -> EditedState:
        """Nothing read yet."""
        sentence = torch.arange(len(self.edits), device=memory.values.device)
        return EditedState((self.model.start(memory),), sentence[:, None][:, :0], sentence[:, None][:, :0], sentence)

    def advance(
        self, tokens: Tensor, state: EditedState, watch: Watch | None = None, *, need_weights: bool = False
    ) -> Advance:
        """All tokens at once: here the next one is known, so every step knows its word."""
        read = torch.cat([state.read, tokens], 1)
        words = self.words(read, state.sentence)[:, state.read.shape[1] :]
        changing = Changing(self.edits, state.sentence, words, state.read.shape[1], watch)
        inner = state.chosen(tokens[:, 0])
        features, inner, weights = self.model.advance(tokens, inner, changing, need_weights=need_weights)
        return Advance(features, EditedState((inner,), read[:, :0], read, state.sentence), weights)

    def step(self, token: Tensor, state: EditedState, watch: Watch | None = None, *, need_weights: bool = True) -> Step:
        """One more token; twice where it matters whether the next one begins a word."""
        inner, first = state.chosen(token), state.read.shape[1]
        read, sentence = torch.cat([state.read, token[:, None]], 1), state.sentence
        words, begins = self.words(read, sentence)[:, -1:], self.beginnings(read, sentence)
        changing = Changing(self.edits, sentence, words, first, watch)
        goes_on = self.model.step(token, inner, changing, need_weights=need_weights)
        if not begins.any():
            return goes_on._replace(state=EditedState((goes_on.state,), read[:, :0], read, sentence))
        changing = Changing(self.edits, sentence, words + 1, first, watch)
        another = self.model.step(token, inner, changing, need_weights=False)
        ways = EditedState((goes_on.state, another.state), begins, read, sentence)
        return Step(joined(goes_on.logits, another.logits, begins), ways, goes_on.weights)

    # --- words

    def words(self, read: Tensor, sentence: Tensor) -> Tensor:
        """(B, t) the word that each step writes; the last one known goes on. −1 where nothing depends on it."""
        found = torch.full(read.shape, -1, device=read.device)
        for row, pieces, forces in self.forced_rows(read, sentence):
            numbers = counted(pieces, forces)
            last = numbers[-1:] or [0]
            found[row, : len(numbers) + 1] = torch.tensor(numbers + last, device=read.device)
        return found

    def beginnings(self, read: Tensor, sentence: Tensor) -> Tensor:
        """(B, V) tokens that would begin another word, in rows where this word or the next is looked for elsewhere."""
        found = self.starts.new_zeros(len(read), len(self.starts)).to(read.device)
        for row, pieces, forces in self.forced_rows(read, sentence):
            word = (counted(pieces, forces)[-1:] or [0])[0]
            if {word, word + 1} & {each for force in forces for each, _ in force.looks}:
                spaced, plain = (counted([*pieces, probe], forces)[-1] > word for probe in (f"{WORD_START}x", "x"))
                found[row] = (self.starts & spaced) | (self.goes_on & plain)
        return found

    def forced_rows(self, read: Tensor, sentence: Tensor) -> "list[tuple[int, list[str], list[Force]]]":
        """Rows whose words matter, with the pieces they have written."""
        whose = sentence.tolist()
        return [
            (row, self.tokenizer.pieces(written(read[row].tolist())), self.forces[number])
            for row, number in enumerate(whose)
            if self.forces[number]
        ]

    @cached_property
    def starts(self) -> Tensor:
        """(V,) tokens with a space before them."""
        pieces = self.tokenizer.pieces(range(len(self.tokenizer)))
        return torch.tensor([piece.startswith(WORD_START) for piece in pieces])

    @cached_property
    def goes_on(self) -> Tensor:
        """(V,) ordinary tokens without one."""
        without = ~self.starts
        without[list(SPECIAL)] = False
        return without


class Changing:
    """The watch of one pass: changes the rows of each sentence as it asks for, then lets another watch see."""

    def __init__(self, edits: Edits, sentence: Tensor, words: Tensor, first: int, then: Watch | None) -> None:
        self.words, self.first, self.then = words, first, then
        changed = [number for number in sorted(set(sentence.tolist())) if edits[number]]
        self.rows = [((sentence == number).nonzero().flatten(), edits[number]) for number in changed]

    def __call__(self, place: Place, weights: Tensor, values: Tensor) -> Tensor:
        """Weights (B, H, Q, K) as changed."""
        start = place.first - self.first if place.kind == "cross" else 0
        words = self.words[:, start : start + weights.shape[2]]
        changed = weights
        for rows, edits in self.rows:
            here = [edit for edit in edits if edit.at(place, weights.shape[1])]
            own = weights[rows] if here else weights
            for edit in here:
                own = edit.apply(place, own, words[rows])
            changed = changed.index_copy(0, rows, own) if here else changed
        return changed if self.then is None else self.then(place, changed, values)


def counted(pieces: Sequence[str], forces: Sequence[Force]) -> list[int]:
    """The word number of each piece."""
    return (by_space if forces[0].is_spaced else by_character)(pieces)[0]


def written(read: Sequence[int]) -> list[int]:
    """What follows BEGIN, up to what is no text: padding."""
    tokens = list(read[1:] if read[0] == BEGIN else read)
    ends = (place for place, token in enumerate(tokens) if token in SPECIAL)
    return tokens[: next(ends, len(tokens))]


def joined(goes_on: Tensor, another: Tensor, begins: Tensor) -> Tensor:
    """Log-probabilities (B, V): that a word begins is as likely as in the first, which one as in the second."""
    first, second = (logits.log_softmax(-1) for logits in (goes_on, another))
    any_word, which = (each.masked_fill(~begins, -torch.inf).logsumexp(-1, keepdim=True) for each in (first, second))
    return torch.where(begins, second - which + any_word, first)


def either(first: Any, second: Any, is_second: Tensor) -> Any:
    """Of two states, row by row, one or the other; nested like `choose`. What they share, such as memories, stays."""
    if first is second:
        return first
    if isinstance(first, Tensor):
        return torch.where(is_second.view(-1, *[1] * (first.ndim - 1)), second, first)
    parts = [either(one, other, is_second) for one, other in zip(first, second, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)

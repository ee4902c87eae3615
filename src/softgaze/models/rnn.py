"""Recurrent encoder–decoders: without attention (Cho 2014), with Bahdanau's (2015) and with Luong's (2015).

They share one encoder; each decoder is one `read`. Nothing here packs sequences: backward layers reverse by index, so
the models export, and padding on the right is never read before it no longer matters.
"""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from softgaze.attention import (
    SCORES,
    WINDOWS,
    Attended,
    Everywhere,
    Score,
    attend,
    for_each_row,
    padding_mask,
)
from softgaze.dropout import Dropout
from softgaze.errors import pick
from softgaze.models.base import (
    Advance,
    Memory,
    Seq2Seq,
    Source,
    Watch,
    check_source,
    check_tokens,
    choose,
    choose_memories,
    look_at,
)
from softgaze.models.embeddings import embeddings

Hidden = tuple[Tensor, ...]  # what a cell carries from step to step, each (B, layers, D): (h,) or (h, c)


class GRU(nn.Module):
    """torch's GRU, with its state as a tuple of batch-first tensors."""

    parts = 1

    def __init__(self, input_width: int, width: int, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.rnn = nn.GRU(input_width, width, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)

    def forward(self, vectors: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
        """(B, N, D) on from `hidden` -> outputs (B, N, D) and the hidden state after them."""
        outputs, last = self.rnn(vectors, layers_first(hidden[0]))
        return outputs, (last.transpose(0, 1),)


class LSTM(nn.Module):
    """torch's LSTM, with its state as a tuple of batch-first tensors; under autocast on a CPU, in float32.

    Else oneDNN would be asked for a bfloat16 LSTM, and where the CPU has none that is a crash, not a detour.
    """

    parts = 2

    def __init__(self, input_width: int, width: int, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.rnn = nn.LSTM(input_width, width, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)

    def forward(self, vectors: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
        """(B, N, D) on from `hidden` -> outputs (B, N, D) and the hidden state after them."""
        h, c = (layers_first(part) for part in hidden)
        if vectors.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            with torch.autocast("cpu", enabled=False):
                outputs, last = self.rnn(vectors.float(), (h.float(), c.float()))
        else:
            outputs, last = self.rnn(vectors, (h, c))
        return outputs, tuple(part.transpose(0, 1) for part in last)


def layers_first(part: Tensor) -> Tensor:
    """(B, layers, D) -> (layers, B, D), as torch's cells want it."""
    return part.transpose(0, 1).contiguous()


CELLS: dict[str, type[GRU] | type[LSTM]] = {"gru": GRU, "lstm": LSTM}


# --- encoder ----------------------------------------------------------------------------------------------------


class BothWays(nn.Module):
    """One bidirectional layer: half of the width reads ahead, the other half reads back."""

    def __init__(self, width: int, cell: type[GRU] | type[LSTM]) -> None:
        super().__init__()
        self.ahead = cell(width, width // 2)
        self.back = cell(width, width // 2)

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, D) -> outputs (B, S, D) and the last state of each direction, joined (B, D)."""
        reverse = reversal(lengths, vectors.shape[1])
        ahead = self.run(self.ahead, vectors)
        back = self.run(self.back, pick_places(vectors, reverse))
        ends = torch.cat([ahead, back], dim=-1)
        final = pick_places(ends, (lengths - 1)[:, None]).squeeze(1)
        return torch.cat([ahead, pick_places(back, reverse)], dim=-1), final

    def run(self, cell: nn.Module, vectors: Tensor) -> Tensor:
        """From a state of zeros."""
        zeros = vectors.new_zeros(vectors.shape[0], 1, vectors.shape[2] // 2)
        outputs: Tensor = cell(vectors, (zeros, zeros))[0]
        return outputs


def reversal(lengths: Tensor, size: int) -> Tensor:
    """(B, S) places that turn the real part of each row round and leave its padding where it is."""
    places = torch.arange(size, device=lengths.device)
    mirrored = lengths[:, None] - 1 - places
    return torch.where(mirrored >= 0, mirrored, places)


def pick_places(vectors: Tensor, places: Tensor) -> Tensor:
    """(B, S, D) at (B, N) -> (B, N, D)."""
    return vectors.gather(1, places[..., None].expand(-1, -1, vectors.shape[-1]))


# --- the family -------------------------------------------------------------------------------------------------


class RNNState(NamedTuple):
    """Where a recurrent decoder stands."""

    memory: Memory  # of N memories, and so the keys; the rest of R rows
    keys: Tensor  # (N, S, D) what queries are compared with, computed once
    hidden: Hidden
    attentional: Tensor  # (B, D) h̃ of the step before, for input feeding
    position: Tensor  # (B,) tokens read so far

    def reorder(self, index: Tensor) -> Self:
        """Choose batch rows."""
        rows, memories = self.position.shape[0], self.memory.mask.shape[0]
        memory, keys = choose_memories(self[:2], index, memories, rows)
        return type(self)(memory, keys, *choose(self[2:], index))


class RNN(Seq2Seq):
    """Encoder–decoder without attention: one fixed vector, the encoder's last state, is the context of every step.

    s_t = RNN(s_{t−1}, [y_{t−1}; c]), and the output reads s_t, y_{t−1} and c (Cho 2014).
    """

    sizes: ClassVar = {
        "tiny": {"width": 256, "layers": 1},
        "small": {"width": 384, "layers": 2},
        "base": {"width": 512, "layers": 2},
        "big": {"width": 1024, "layers": 4},
    }
    feeds_back = False  # True: what a step looked at or said is read by the next, so steps cannot run side by side

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        *,
        width: int,
        layers: int = 1,
        encoder_layers: int | None = None,
        cell: str = "gru",
        dropout: float = 0.2,
        tie: str = "all",
    ) -> None:
        super().__init__()
        if width % 2:
            raise ValueError(f"a bidirectional encoder halves its width: {width} is odd")
        kind = pick("cell", cell, CELLS)
        self.width, self.layers = width, layers
        self.source_embedding, self.target_embedding, self.output = embeddings(
            source_vocabulary, target_vocabulary, width, tie
        )
        read_by = layers if encoder_layers is None else encoder_layers
        self.encoder = nn.ModuleList(BothWays(width, kind) for _ in range(read_by))
        self.bridge = nn.Linear(width, kind.parts * layers * width)
        self.decoder = kind(self.input_width(), width, layers, dropout)
        self.readout = nn.Linear(self.readout_width(), width)
        self.dropout = Dropout(dropout)

    def input_width(self) -> int:
        """Of the decoder cell: [y; c]."""
        return 2 * self.width

    def readout_width(self) -> int:
        """Of the layer before the output: [s; y; c]."""
        return 3 * self.width

    def encode(self, source: Source, watch: Watch | None = None) -> Memory:
        """Memory values (B, S, D); its extra is the encoder's last state (B, D)."""
        check_source(source, self.source_embedding.num_embeddings)
        words = vectors = self.dropout(self.source_embedding(source.values))
        final = vectors[:, 0]
        for number, layer in enumerate(self.encoder):
            vectors, final = layer(self.dropout(vectors) if number else vectors, source.lengths)
        return Memory(self.remembered(words, vectors), padding_mask(source.lengths, vectors.shape[1]), (final,))

    def remembered(self, words: Tensor, vectors: Tensor) -> Tensor:
        """The memory (B, S, D), from embedded words and what the encoder made of them."""
        return vectors

    def start(self, memory: Memory) -> RNNState:
        """The decoder's first state is made from the encoder's last."""
        final = memory.extra[0]
        batch = final.shape[0]  # not len(): a traced graph would keep that number for good
        first = torch.tanh(self.bridge(final)).view(batch, -1, self.layers, self.width)  # (B, parts, layers, D)
        position = torch.zeros(batch, dtype=torch.long, device=final.device)
        return RNNState(memory, self.prepare(memory), first.unbind(1), torch.zeros_like(final), position)

    def prepare(self, memory: Memory) -> Tensor:
        """The part of a score that depends on the memory alone."""
        return memory.values

    def advance(
        self, tokens: Tensor, state: RNNState, watch: Watch | None = None, *, need_weights: bool = False
    ) -> Advance:
        """All tokens in one fused call where steps do not feed each other, else one by one."""
        check_tokens("target", tokens, self.target_embedding.num_embeddings, state.position.shape[0])
        words = self.dropout(self.target_embedding(tokens))  # (B, T, D)
        if not self.feeds_back:
            return self.read(words, state, watch, need_weights)
        done = []
        for word in words.split(1, dim=1):
            done.append(self.read(word, state, watch, need_weights))
            state = done[-1].state
        weights = [part.weights for part in done if part.weights is not None]
        features = self.settle(torch.cat([part.features for part in done], 1))
        return Advance(features, state, torch.cat(weights, 2) if weights else None)

    def settle(self, features: Tensor) -> Tensor:
        """Do for all steps at once what no step needs of the one before."""
        return features

    def read(self, words: Tensor, state: RNNState, watch: Watch | None, need_weights: bool) -> Advance:
        """Read embedded `words` (B, T, D); T is 1 where steps feed each other."""
        context = for_each_row(state.memory.extra[0][:, None], words.shape[0]).expand_as(words)
        seen, hidden = self.decoder(torch.cat([words, context], -1), state.hidden)
        nowhere = words.new_zeros(words.shape[0], 0, words.shape[1], state.memory.mask.shape[-1])
        return Advance(self.read_out(seen, words, context), self.after(state, words, hidden), nowhere)

    def read_out(self, *parts: Tensor) -> Tensor:
        """Features from whatever the output layer may read."""
        features: Tensor = self.dropout(torch.tanh(self.readout(torch.cat(parts, -1))))
        return features

    def after(self, state: RNNState, words: Tensor, hidden: Hidden) -> RNNState:
        """The state once `words` were read."""
        return state._replace(hidden=hidden, position=state.position + words.shape[1])


class AttentiveRNN(RNN):
    """A recurrent decoder with one attention over the memory: any score, any window.

    With a `shortcut`, each word stands in the memory beside what the encoder made of it. Without (as in the papers) the
    two directions carry words to other places, and the decoder may look there instead of at the word it means.
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        *,
        width: int,
        score: str = "general",
        window: str = "global",
        reach: int = 10,
        shortcut: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(source_vocabulary, target_vocabulary, width=width, **options)
        self.shortcut = shortcut
        self.score: Score = pick("score", score, SCORES)(width, width)
        self.window: Everywhere = pick("window", window, WINDOWS)(width, reach)

    def remembered(self, words: Tensor, vectors: Tensor) -> Tensor:
        """With the words themselves, if there is a shortcut."""
        return vectors + words if self.shortcut else vectors

    def prepare(self, memory: Memory) -> Tensor:
        """The keys."""
        return self.score.keys(memory.values)

    def look(self, query: Tensor, state: RNNState, watch: Watch | None, need_weights: bool) -> Attended:
        """Context (B, Q, D) and weights (B, 1, Q, S) for `query` (B, Q, D)."""
        memory = state.memory
        positions = state.position[:, None] + torch.arange(query.shape[1], device=query.device)
        mask, weighting = self.window(query[:, None], positions, memory.mask)
        context, weights = attend(
            query[:, None],
            state.keys[:, None],
            memory.values[:, None],
            mask,
            score=self.score.compare,
            weighting=weighting,
            need_weights=need_weights,
            look=look_at(watch, "cross", 0, state.position[0]),
        )
        return Attended(context.squeeze(1), weights)

    @abstractmethod
    def read(self, words: Tensor, state: RNNState, watch: Watch | None, need_weights: bool) -> Advance:
        """When to look is what tells Bahdanau's decoder from Luong's."""


class BahdanauRNN(AttentiveRNN):
    """c_t from the *previous* state: e_i = score(s_{t−1}, h_i); s_t = RNN(s_{t−1}, [y_{t−1}; c_t]) (Bahdanau 2015)."""

    feeds_back = True

    def __init__(
        self, source_vocabulary: int, target_vocabulary: int, *, score: str = "additive", **options: Any
    ) -> None:
        super().__init__(source_vocabulary, target_vocabulary, score=score, **options)

    def read(self, words: Tensor, state: RNNState, watch: Watch | None, need_weights: bool) -> Advance:
        """One word (B, 1, D); the query is the top layer's state before it."""
        before = state.hidden[0][:, -1:]
        context, weights = self.look(before, state, watch, need_weights)
        seen, hidden = self.decoder(torch.cat([words, context], -1), state.hidden)
        return Advance(torch.cat([seen, words, context], -1), self.after(state, words, hidden), weights)

    def settle(self, features: Tensor) -> Tensor:
        """The output layer reads [s; y; c], and nothing reads it back."""
        return self.read_out(features)


class LuongRNN(AttentiveRNN):
    """c_t from the *current* state: h_t = RNN(h_{t−1}, y_{t−1}); h̃_t = tanh(W [h_t; c_t]) (Luong 2015, eq. 5).

    With `input_feeding` the next step also reads h̃_t (§3.3); without it the whole target runs in one fused call.
    """

    def __init__(
        self, source_vocabulary: int, target_vocabulary: int, *, input_feeding: bool = False, **options: Any
    ) -> None:
        self.feeds_back = input_feeding
        super().__init__(source_vocabulary, target_vocabulary, **options)

    def input_width(self) -> int:
        """[y], or [y; h̃] with input feeding."""
        return 2 * self.width if self.feeds_back else self.width

    def readout_width(self) -> int:
        """[h; c]."""
        return 2 * self.width

    def read(self, words: Tensor, state: RNNState, watch: Watch | None, need_weights: bool) -> Advance:
        """Step first, look then."""
        fed = torch.cat([words, state.attentional[:, None]], -1) if self.feeds_back else words
        seen, hidden = self.decoder(fed, state.hidden)
        context, weights = self.look(seen, state, watch, need_weights)
        features = self.read_out(seen, context)
        return Advance(features, self.after(state, words, hidden)._replace(attentional=features[:, -1]), weights)

"""Recurrent encoder–decoders: without attention (Cho 2014), with Bahdanau's (2015) and with Luong's (2015).

They share one bidirectional encoder; each decoder is one `advance`. Sequences are not packed, so the models can be
exported; backward layers reverse by index. Right padding never changes a real position.
"""

from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from softgaze.attention import Attended, attend, padding_mask
from softgaze.dropout import Dropout
from softgaze.errors import pick
from softgaze.models.base import (
    Advance,
    AttentionHook,
    Memory,
    Seq2Seq,
    Source,
    check_source,
    check_tokens,
    group_rows,
    hook_for,
    repeat_rows,
    select_memory_rows,
    select_rows,
    ungroup_weights,
)
from softgaze.models.embeddings import embeddings
from softgaze.scores import SCORES, WINDOWS, GlobalWindow, Score

Hidden = tuple[Tensor, ...]  # the recurrent state, each (B, layers, D): (h,) or (h, c)


class GRU(nn.Module):
    """nn.GRU with its state as a tuple of batch-first tensors."""

    state_size = 1

    def __init__(self, input_width: int, width: int, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.rnn = nn.GRU(input_width, width, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)

    def forward(self, x: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
        """(B, N, D) from `hidden` -> outputs (B, N, D) and the hidden state after them."""
        outputs, last = self.rnn(x, layers_first(hidden[0]))
        return outputs, (last.transpose(0, 1),)


class LSTM(nn.Module):
    """nn.LSTM with its state as a tuple of batch-first tensors; under autocast on a CPU, in float32.

    A bfloat16 LSTM of oneDNN crashes on CPUs without bfloat16.
    """

    state_size = 2

    def __init__(self, input_width: int, width: int, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.rnn = nn.LSTM(input_width, width, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)

    def forward(self, x: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
        """(B, N, D) from `hidden` -> outputs (B, N, D) and the hidden state after them."""
        h, c = (layers_first(part) for part in hidden)
        if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            with torch.autocast("cpu", enabled=False):
                outputs, last = self.rnn(x.float(), (h.float(), c.float()))
        else:
            outputs, last = self.rnn(x, (h, c))
        return outputs, tuple(part.transpose(0, 1) for part in last)


def layers_first(part: Tensor) -> Tensor:
    """(B, layers, D) -> (layers, B, D), the layout of torch's cells."""
    return part.transpose(0, 1).contiguous()


CELLS: dict[str, type[GRU] | type[LSTM]] = {"gru": GRU, "lstm": LSTM}


# --- encoder ----------------------------------------------------------------------------------------------------


class BiRNNLayer(nn.Module):
    """One bidirectional layer: each direction has half of the width."""

    def __init__(self, width: int, cell: type[GRU] | type[LSTM]) -> None:
        super().__init__()
        self.ahead = cell(width, width // 2)
        self.back = cell(width, width // 2)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, D) -> outputs (B, S, D) and the last state of each direction, concatenated (B, D)."""
        reverse = reverse_index(lengths, x.shape[1])
        zeros = x.new_zeros(x.shape[0], 1, x.shape[2] // 2)
        ahead = self.ahead(x, (zeros, zeros))[0]
        back = self.back(gather_positions(x, reverse), (zeros, zeros))[0]
        final = gather_positions(torch.cat([ahead, back], dim=-1), (lengths - 1)[:, None]).squeeze(1)
        return torch.cat([ahead, gather_positions(back, reverse)], dim=-1), final


def reverse_index(lengths: Tensor, size: int) -> Tensor:
    """Return (B, S) positions that reverse the real part of each row and keep its padding in place."""
    positions = torch.arange(size, device=lengths.device)
    mirrored = lengths[:, None] - 1 - positions
    return torch.where(mirrored >= 0, mirrored, positions)


def gather_positions(x: Tensor, positions: Tensor) -> Tensor:
    """(B, S, D) at (B, N) -> (B, N, D)."""
    return x.gather(1, positions[..., None].expand(-1, -1, x.shape[-1]))


# --- decoders ---------------------------------------------------------------------------------------------------


class RNNState(NamedTuple):
    """The decoder state. R rows share N memories and keys."""

    memory: Memory
    keys: Tensor  # (N, S, D) projected once
    hidden: Hidden
    attentional: Tensor  # (B, D) h̃ of the previous step, for input feeding
    position: Tensor  # (B,) tokens read so far

    def reorder(self, index: Tensor) -> Self:
        """Select batch rows."""
        rows, memories = self.position.shape[0], self.memory.mask.shape[0]
        memory, keys = select_memory_rows((self.memory, self.keys), index, memories, rows)
        return type(self)(memory, keys, *select_rows((self.hidden, self.attentional, self.position), index))


class RecurrentSeq2Seq(Seq2Seq):
    """The parts all recurrent models share: embeddings, bidirectional encoder, bridge, decoder cell and readout.

    `decoder_inputs` and `readout_inputs` are how many vectors of `width` are concatenated as the input of each.
    """

    sizes: ClassVar = {
        "tiny": {"width": 256, "layers": 1},
        "small": {"width": 384, "layers": 2},
        "base": {"width": 512, "layers": 2},
        "big": {"width": 1024, "layers": 4},
    }
    exports_to = ("onnx",)
    renamed_parameters: ClassVar = {"places": "positions"}

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        decoder_inputs: int,
        readout_inputs: int,
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
            raise ValueError(f"a bidirectional encoder needs an even width, got {width}")
        cell_type = pick("cell", cell, CELLS)
        self.width, self.layers = width, layers
        self.source_embedding, self.target_embedding, self.output = embeddings(
            source_vocabulary, target_vocabulary, width, tie
        )
        encoder_layers = layers if encoder_layers is None else encoder_layers
        self.encoder = nn.ModuleList(BiRNNLayer(width, cell_type) for _ in range(encoder_layers))
        self.bridge = nn.Linear(width, cell_type.state_size * layers * width)
        self.decoder = cell_type(decoder_inputs * width, width, layers, dropout)
        self.readout = nn.Linear(readout_inputs * width, width)
        self.dropout = Dropout(dropout)

    def encode(self, source: Source, hook: AttentionHook | None = None) -> Memory:
        """Memory values are (B, S, D); the extra tensor is the encoder's last state (B, D)."""
        check_source(source, self.source_embedding.num_embeddings)
        embedded = x = self.dropout(self.source_embedding(source.values))
        final = x[:, 0]
        for index, layer in enumerate(self.encoder):
            x, final = layer(self.dropout(x) if index else x, source.lengths)
        return Memory(self.memory_values(embedded, x), padding_mask(source.lengths, x.shape[1]), (final,))

    def memory_values(self, embedded: Tensor, outputs: Tensor) -> Tensor:
        """Return the memory (B, S, D), given the embedded source and the outputs of the encoder."""
        return outputs

    def start(self, memory: Memory) -> RNNState:
        """Initialise the decoder from the encoder's last state."""
        final = memory.extra[0]
        batch = final.shape[0]  # not len(), which a traced graph would store as a constant
        first = torch.tanh(self.bridge(final)).view(batch, -1, self.layers, self.width)  # (B, h or h and c, layers, D)
        position = torch.zeros(batch, dtype=torch.long, device=final.device)
        return RNNState(memory, self.project_keys(memory), first.unbind(1), torch.zeros_like(final), position)

    def project_keys(self, memory: Memory) -> Tensor:
        """Return the part of the score that depends on the memory alone."""
        return memory.values

    def embed_target(self, tokens: Tensor, state: RNNState) -> Tensor:
        """Return the embedded target tokens y_{t−1}: (B, T) -> (B, T, D)."""
        check_tokens("target", tokens, self.target_embedding.num_embeddings, state.position.shape[0])
        embedded: Tensor = self.dropout(self.target_embedding(tokens))
        return embedded

    def read_out(self, *inputs: Tensor) -> Tensor:
        """Return tanh(W [inputs]), the features that the output layer reads."""
        features: Tensor = self.dropout(torch.tanh(self.readout(torch.cat(inputs, -1))))
        return features


class RNN(RecurrentSeq2Seq):
    """Without attention: one fixed vector c, the encoder's last state, is the context of every step.

    s_t = RNN(s_{t−1}, [y_{t−1}; c]), and the readout is tanh(W [s_t; y_{t−1}; c]) (Cho 2014).
    """

    has_cross_attention = False

    def __init__(self, source_vocabulary: int, target_vocabulary: int, **options: Any) -> None:
        super().__init__(source_vocabulary, target_vocabulary, 2, 3, **options)

    def advance(
        self, tokens: Tensor, state: RNNState, hook: AttentionHook | None = None, *, need_weights: bool = False
    ) -> Advance:
        """Read all tokens in one call of the cell."""
        y = self.embed_target(tokens, state)
        c = repeat_rows(state.memory.extra[0][:, None], y.shape[0]).expand_as(y)
        s, hidden = self.decoder(torch.cat([y, c], -1), state.hidden)
        no_weights = y.new_zeros(y.shape[0], 0, y.shape[1], state.memory.mask.shape[-1])
        state = state._replace(hidden=hidden, position=state.position + y.shape[1])
        return Advance(self.read_out(s, y, c), state, no_weights)


class AttentiveRNN(RecurrentSeq2Seq):
    """A recurrent decoder that attends to the memory, with any score and any window.

    With a `shortcut`, the memory is the encoder's output plus the source embedding. Without it (as in the papers) the
    two directions carry words to other positions, and attention may settle there.
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        decoder_inputs: int,
        readout_inputs: int,
        *,
        width: int,
        score: str = "general",
        window: str = "global",
        window_size: int = 10,
        shortcut: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(source_vocabulary, target_vocabulary, decoder_inputs, readout_inputs, width=width, **options)
        self.shortcut = shortcut
        self.score: Score = pick("score", score, SCORES)(width, width)
        self.window: GlobalWindow = pick("window", window, WINDOWS)(width, window_size)

    def memory_values(self, embedded: Tensor, outputs: Tensor) -> Tensor:
        return outputs + embedded if self.shortcut else outputs

    def project_keys(self, memory: Memory) -> Tensor:
        return self.score.keys(memory.values)

    def attend(self, query: Tensor, state: RNNState, hook: AttentionHook | None, need_weights: bool) -> Attended:
        """Return the context (B, Q, D) and weights (B, 1, Q, S) of `query` (B, Q, D)."""
        memory, keys = state.memory, state.keys
        positions = state.position[:, None] + torch.arange(query.shape[1], device=query.device)
        weights_hook = hook_for(hook, "cross", 0, state.position[0])
        if weights_hook is not None:  # a hook may treat rows differently, so that each needs its own memory
            memory, keys = repeat_rows((memory, keys), query.shape[0])
        grouped = group_rows(query, memory.mask.shape[0])
        mask, prior = self.window(grouped[:, None], group_rows(positions, memory.mask.shape[0]), memory.mask)
        context, weights = attend(
            grouped[:, None],
            keys[:, None],
            memory.values[:, None],
            mask,
            score=self.score.compare,
            prior=prior,
            need_weights=need_weights,
            hook=weights_hook,
        )
        return Attended(context.reshape(query.shape), ungroup_weights(weights, query.shape[0]))


class BahdanauRNN(AttentiveRNN):
    """c_t = attend(s_{t−1}, memory); s_t = RNN(s_{t−1}, [y_{t−1}; c_t]); readout of [s_t; y_{t−1}; c_t] (2015)."""

    def __init__(
        self, source_vocabulary: int, target_vocabulary: int, *, score: str = "additive", **options: Any
    ) -> None:
        super().__init__(source_vocabulary, target_vocabulary, 2, 3, score=score, **options)

    def advance(
        self, tokens: Tensor, state: RNNState, hook: AttentionHook | None = None, *, need_weights: bool = False
    ) -> Advance:
        """Read token by token: the query of each step is the top layer's state before it."""
        features, weights = [], []
        for y in torch.split(self.embed_target(tokens, state), 1, dim=1):
            c, step_weights = self.attend(state.hidden[0][:, -1:], state, hook, need_weights)
            s, hidden = self.decoder(torch.cat([y, c], -1), state.hidden)
            state = state._replace(hidden=hidden, position=state.position + 1)
            features.append(torch.cat([s, y, c], -1))
            weights.append(step_weights)
        return Advance(self.read_out(torch.cat(features, 1)), state, cat_weights(weights))


class LuongRNN(AttentiveRNN):
    """h_t = RNN(h_{t−1}, y_{t−1}); c_t = attend(h_t, memory); h̃_t = tanh(W [h_t; c_t]) (Luong 2015, eq. 5).

    With `input_feeding` the next step also reads h̃_t (§3.3); without it all steps run in one call of the cell.
    """

    def __init__(
        self, source_vocabulary: int, target_vocabulary: int, *, input_feeding: bool = False, **options: Any
    ) -> None:
        super().__init__(source_vocabulary, target_vocabulary, 2 if input_feeding else 1, 2, **options)
        self.input_feeding = input_feeding

    def advance(
        self, tokens: Tensor, state: RNNState, hook: AttentionHook | None = None, *, need_weights: bool = False
    ) -> Advance:
        """Read all tokens at once or, with input feeding, one by one."""
        embedded = self.embed_target(tokens, state)
        features, weights = [], []
        for y in torch.split(embedded, 1, dim=1) if self.input_feeding else [embedded]:
            fed = torch.cat([y, state.attentional[:, None]], -1) if self.input_feeding else y
            h, hidden = self.decoder(fed, state.hidden)
            c, step_weights = self.attend(h, state, hook, need_weights)
            h_tilde = self.read_out(h, c)
            state = state._replace(hidden=hidden, attentional=h_tilde[:, -1], position=state.position + y.shape[1])
            features.append(h_tilde)
            weights.append(step_weights)
        return Advance(torch.cat(features, 1), state, cat_weights(weights))


def cat_weights(weights: list[Tensor | None]) -> Tensor | None:
    """Concatenate the attention weights of consecutive steps, if there are any: (B, 1, Q, S) each."""
    present = [part for part in weights if part is not None]
    return torch.cat(present, 2) if present else None

"""Convolutional encoder–decoder with gated linear units and attention in every decoder layer (ConvS2S, Gehring 2017).

Of the paper's tricks we leave out weight normalisation and the scaling of contexts by the source length.
With `dilation` above 1 each layer looks that many times further than the one before (ByteNet, Kalchbrenner 2016), so
that the reach grows exponentially with depth instead of linearly.
"""

import math
from typing import ClassVar, NamedTuple, Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.attention import Attended, Look, attend, dot, padding_mask
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
from softgaze.positions import POSITIONS, Positions

# Rotary positions turn the queries and keys of heads: a convolution would read no order out of them.
ADDED_POSITIONS = {name: kind for name, kind in POSITIONS.items() if kind.rotate is Positions.rotate}
HALVE_VARIANCE = math.sqrt(0.5)  # a sum of two like-sized parts keeps its size


class GatedConvolution(nn.Module):
    """a ⊙ σ(b), where [a; b] is a convolution of the input (Dauphin 2017)."""

    def __init__(self, width: int, kernel: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(width, 2 * width, kernel, dilation=dilation)
        self.reach = (kernel - 1) * dilation  # how many items before the last one a window covers
        nn.init.normal_(self.convolution.weight, std=math.sqrt(4 * (1 - dropout) / (kernel * width)))
        nn.init.constant_(self.convolution.get_parameter("bias"), 0.0)

    def forward(self, padded: Tensor) -> Tensor:
        """(B, N + reach, D) -> (B, N, D): the caller decides what stands beside the sequence."""
        if padded.shape[1] == self.reach + 1:
            return F.glu(self.one_window(padded), dim=-1)[:, None]
        gated: Tensor = F.glu(self.convolution(padded.transpose(1, 2)), dim=1).transpose(1, 2)
        return gated

    def one_window(self, padded: Tensor) -> Tensor:
        """The convolution of a single window (B, reach + 1, D) -> (B, 2D): as one product, six times as fast."""
        window = padded[:, :: self.convolution.dilation[0]].transpose(1, 2).flatten(1)
        return F.linear(window, self.convolution.weight.flatten(1), self.convolution.bias)


class EncoderLayer(nn.Module):
    """A gated convolution that sees both sides, with its residual."""

    def __init__(self, width: int, kernel: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.gated = GatedConvolution(width, kernel, dilation, dropout)
        self.dropout = Dropout(dropout)

    def forward(self, vectors: Tensor, real: Tensor) -> Tensor:
        """(B, S, D); `real` (B, S, 1) is 0 on padding, which must look like the emptiness beyond the edges."""
        reach = self.gated.reach
        padded = F.pad(self.dropout(vectors) * real, (0, 0, reach // 2, reach - reach // 2))
        joined: Tensor = (self.gated(padded) + vectors) * HALVE_VARIANCE
        return joined


class LayerState(NamedTuple):
    """The last inputs of one decoder layer: as many as its window reaches back."""

    recent: Tensor  # (B, reach, D)


class DecoderLayer(nn.Module):
    """A gated convolution that sees only the past, then a look at the memory."""

    def __init__(self, width: int, kernel: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.gated = GatedConvolution(width, kernel, dilation, dropout)
        self.query = nn.Linear(width, width)
        self.context = nn.Linear(width, width)
        self.dropout = Dropout(dropout)

    def start(self, memory: Memory) -> LayerState:
        """Before the first word there is nothing: zeros."""
        batch, _, width = memory.values.shape
        return LayerState(memory.values.new_zeros(batch, self.gated.reach, width))

    def forward(
        self, vectors: Tensor, words: Tensor, state: LayerState, memory: Memory, look: Look | None, need_weights: bool
    ) -> tuple[Tensor, LayerState, Tensor | None]:
        """Read `vectors` (B, T, D) on from `state`; the query also knows the `words` just read (eq. 1)."""
        past = torch.cat([state.recent, self.dropout(vectors)], dim=1)
        gated = self.gated(past)
        query = (self.query(gated) + words) * HALVE_VARIANCE
        context, weights = self.look(query, memory, look, need_weights)
        gated = (gated + self.context(context)) * HALVE_VARIANCE
        recent = past[:, past.shape[1] - self.gated.reach :]
        return (gated + vectors) * HALVE_VARIANCE, LayerState(recent), weights

    def look(self, query: Tensor, memory: Memory, look: Look | None, need_weights: bool) -> Attended:
        """Keys are the encoder's outputs; values add the embeddings, the words themselves (eq. 2)."""
        keys = memory.extra[0]
        context, weights = attend(
            query[:, None],
            keys[:, None],
            memory.values[:, None],
            memory.mask,
            score=dot,
            need_weights=need_weights,
            look=look,
        )
        return Attended(context.squeeze(1), weights)


class ConvState(NamedTuple):
    """Where the decoder stands."""

    layers: tuple[LayerState, ...]  # of R rows
    memory: Memory  # of N memories
    position: Tensor  # (B,) tokens read so far

    def reorder(self, index: Tensor) -> Self:
        """Choose batch rows."""
        rows, memories = self.position.shape[0], self.memory.mask.shape[0]
        layers, position = choose((self.layers, self.position), index)
        return type(self)(layers, choose_memories(self.memory, index, memories, rows), position)


class Conv(Seq2Seq):
    """Stacked gated convolutions on both sides; every decoder layer has its own look at the source."""

    sizes: ClassVar = {
        "tiny": {"width": 128, "encoder_layers": 4, "decoder_layers": 4},
        "small": {"width": 256, "encoder_layers": 6, "decoder_layers": 6},
        "base": {"width": 512, "encoder_layers": 8, "decoder_layers": 8},
        "big": {"width": 768, "encoder_layers": 15, "decoder_layers": 15},
    }

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        *,
        width: int,
        encoder_layers: int,
        decoder_layers: int,
        kernel: int = 3,
        dilation: int = 1,
        positions: str = "learned",
        max_length: int = 1024,
        dropout: float = 0.1,
        tie: str = "all",
    ) -> None:
        super().__init__()
        if kernel < 2:
            raise ValueError(f"a kernel of {kernel} sees no neighbour; use 2 or more")
        self.scale = math.sqrt(width)
        self.source_embedding, self.target_embedding, self.output = embeddings(
            source_vocabulary, target_vocabulary, width, tie
        )
        place_kind = pick("positions of conv", positions, ADDED_POSITIONS)
        self.source_positions = place_kind(width, width, max_length)
        self.target_positions = place_kind(width, width, max_length)
        self.encoder = nn.ModuleList(
            EncoderLayer(width, kernel, dilation**number, dropout) for number in range(encoder_layers)
        )
        self.decoder = nn.ModuleList(
            DecoderLayer(width, kernel, dilation**number, dropout) for number in range(decoder_layers)
        )
        self.readout = nn.Linear(width, width)
        self.dropout = Dropout(dropout)

    def encode(self, source: Source, watch: Watch | None = None) -> Memory:
        """Values are (outputs + embeddings); the extra is the outputs alone, which are the keys."""
        check_source(source, self.source_embedding.num_embeddings)
        places = torch.arange(source.values.shape[1], device=source.values.device)
        words = self.dropout(self.source_positions.add(self.source_embedding(source.values) * self.scale, places))
        mask = padding_mask(source.lengths, words.shape[1])
        real = mask[:, 0, 0, :, None].to(words.dtype)
        outputs = words
        for layer in self.encoder:
            outputs = layer(outputs, real)
        return Memory((outputs + words) * HALVE_VARIANCE, mask, (outputs,))

    def start(self, memory: Memory) -> ConvState:
        """Nothing written yet."""
        position = torch.zeros(memory.values.shape[0], dtype=torch.long, device=memory.values.device)
        return ConvState(tuple(cast(DecoderLayer, layer).start(memory) for layer in self.decoder), memory, position)

    def advance(
        self, tokens: Tensor, state: ConvState, watch: Watch | None = None, *, need_weights: bool = False
    ) -> Advance:
        """All tokens side by side; windows that end at each token keep the future out."""
        check_tokens("target", tokens, self.target_embedding.num_embeddings, state.position.shape[0])
        places = state.position[:, None] + torch.arange(tokens.shape[1], device=tokens.device)
        words = self.dropout(self.target_positions.add(self.target_embedding(tokens) * self.scale, places))
        vectors, weights, layers = words, None, []
        for number, (layer, before) in enumerate(zip(self.decoder, state.layers, strict=True)):
            look = look_at(watch, "cross", number, state.position[0])
            wanted = need_weights and number == len(self.decoder) - 1  # only the last layer is shown
            vectors, after, weights = layer(vectors, words, before, state.memory, look, wanted)
            layers.append(after)
        state = ConvState(tuple(layers), state.memory, state.position + tokens.shape[1])
        return Advance(self.dropout(self.readout(vectors)), state, weights)

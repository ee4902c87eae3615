"""Convolutional encoder–decoder with gated linear units and attention in every decoder layer (ConvS2S, Gehring 2017).

Of the paper's techniques, weight normalisation and the scaling of contexts by the source length are left out.
With `dilation` above 1 each layer covers that many times more positions than the layer below (ByteNet, Kalchbrenner
2016), so that the receptive field grows exponentially with depth instead of linearly.
"""

import math
from typing import ClassVar, NamedTuple, Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.attention import WeightsHook, attend, dot, padding_mask
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
from softgaze.positions import POSITIONS

# Rotary positions act on the queries and keys of heads; convolutions have none.
ADDED_POSITIONS = {name: kind for name, kind in POSITIONS.items() if not kind.rotates}
HALVE_VARIANCE = math.sqrt(0.5)  # a sum of two terms of equal variance keeps that variance


class GatedConvolution(nn.Module):
    """a ⊙ σ(b), where [a; b] is a convolution of the input (Dauphin 2017)."""

    def __init__(self, width: int, kernel: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(width, 2 * width, kernel, dilation=dilation)
        self.span = (kernel - 1) * dilation  # positions before the last one that a window covers
        nn.init.normal_(self.convolution.weight, std=math.sqrt(4 * (1 - dropout) / (kernel * width)))
        nn.init.constant_(self.convolution.get_parameter("bias"), 0.0)

    def forward(self, padded: Tensor) -> Tensor:
        """(B, N + span, D) -> (B, N, D): the caller pads the sequence."""
        if padded.shape[1] == self.span + 1:  # a single window as one matrix product: six times as fast
            window = padded[:, :: self.convolution.dilation[0]].transpose(1, 2).flatten(1)
            single = F.linear(window, self.convolution.weight.flatten(1), self.convolution.bias)
            return F.glu(single, dim=-1)[:, None]
        gated: Tensor = F.glu(self.convolution(padded.transpose(1, 2)), dim=1).transpose(1, 2)
        return gated


class ConvEncoderLayer(nn.Module):
    """A gated convolution centred on each position, with its residual connection."""

    def __init__(self, width: int, kernel: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.gated = GatedConvolution(width, kernel, dilation, dropout)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        """(B, S, D) -> (B, S, D); `real` (B, S, 1) is 0 on padding, which must equal the zeros beyond the edges."""
        span = self.gated.span
        padded = F.pad(self.dropout(x) * real, (0, 0, span // 2, span - span // 2))
        output: Tensor = (self.gated(padded) + x) * HALVE_VARIANCE
        return output


class ConvDecoderLayer(nn.Module):
    """A gated convolution over past positions, then attention to the memory."""

    def __init__(self, width: int, kernel: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.gated = GatedConvolution(width, kernel, dilation, dropout)
        self.query = nn.Linear(width, width)
        self.context = nn.Linear(width, width)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        embedded: Tensor,
        recent: Tensor,
        memory: Memory,
        *,
        hook: WeightsHook | None,
        need_weights: bool,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Read `x` (B, T, D) after the `recent` inputs (B, span, D) -> outputs, recent inputs, weights (B, 1, T, S).

        The query also contains the embedded input tokens (eq. 1). Keys are the encoder's outputs; values add the
        source embeddings (eq. 2).
        """
        past = torch.cat([recent, self.dropout(x)], dim=1)
        gated = self.gated(past)
        query = (self.query(gated) + embedded) * HALVE_VARIANCE
        if hook is not None:  # a hook may treat rows differently, so that each needs its own memory
            memory = repeat_rows(memory, query.shape[0])
        context, weights = attend(
            group_rows(query, memory.mask.shape[0])[:, None],
            memory.extra[0][:, None],
            memory.values[:, None],
            memory.mask,
            score=dot,
            need_weights=need_weights,
            hook=hook,
        )
        gated = (gated + self.context(context.reshape(query.shape))) * HALVE_VARIANCE
        recent = past[:, past.shape[1] - self.gated.span :]
        return (gated + x) * HALVE_VARIANCE, recent, ungroup_weights(weights, query.shape[0])


class ConvState(NamedTuple):
    """The decoder state: the inputs each layer still needs."""

    recent: tuple[Tensor, ...]  # of each layer, R rows
    memory: Memory  # N memories
    position: Tensor  # (B,) tokens read so far

    def reorder(self, index: Tensor) -> Self:
        """Select batch rows."""
        rows, memories = self.position.shape[0], self.memory.mask.shape[0]
        recent, position = select_rows((self.recent, self.position), index)
        return type(self)(recent, select_memory_rows(self.memory, index, memories, rows), position)


class Conv(Seq2Seq):
    """Stacked gated convolutions on both sides; every decoder layer attends to the source."""

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
            raise ValueError(f"kernel must be at least 2, got {kernel}")
        self.max_positions = max_length if positions == "learned" else None
        self.scale = math.sqrt(width)
        self.source_embedding, self.target_embedding, self.output = embeddings(
            source_vocabulary, target_vocabulary, width, tie
        )
        position_type = pick("positions of conv", positions, ADDED_POSITIONS)
        self.source_positions = position_type(width, width, max_length)
        self.target_positions = position_type(width, width, max_length)
        self.encoder = nn.ModuleList(
            ConvEncoderLayer(width, kernel, dilation**index, dropout) for index in range(encoder_layers)
        )
        self.decoder = nn.ModuleList(
            ConvDecoderLayer(width, kernel, dilation**index, dropout) for index in range(decoder_layers)
        )
        self.readout = nn.Linear(width, width)
        self.dropout = Dropout(dropout)

    @property
    def cross_attention_shape(self) -> tuple[int, int]:
        return len(self.decoder), 1

    def encode(self, source: Source, hook: AttentionHook | None = None) -> Memory:
        """Values are outputs plus embeddings; the extra tensor is the outputs alone, which are the keys."""
        check_source(source, self.source_embedding.num_embeddings)
        positions = torch.arange(source.values.shape[1], device=source.values.device)
        embedded = self.source_positions.add(self.source_embedding(source.values) * self.scale, positions)
        embedded = self.dropout(embedded)
        mask = padding_mask(source.lengths, embedded.shape[1])
        real = mask[:, 0, 0, :, None].to(embedded.dtype)
        x = embedded
        for layer in self.encoder:
            x = layer(x, real)
        return Memory((x + embedded) * HALVE_VARIANCE, mask, (x,))

    def start(self, memory: Memory) -> ConvState:
        """Nothing is written yet: recent inputs are zeros."""
        batch, _, width = memory.values.shape
        layers = cast(list[ConvDecoderLayer], self.decoder)
        recent = tuple(memory.values.new_zeros(batch, layer.gated.span, width) for layer in layers)
        return ConvState(recent, memory, torch.zeros(batch, dtype=torch.long, device=memory.values.device))

    def advance(
        self, tokens: Tensor, state: ConvState, hook: AttentionHook | None = None, *, need_weights: bool = False
    ) -> Advance:
        """Read all tokens in parallel; windows that end at each token hide the future."""
        check_tokens("target", tokens, self.target_embedding.num_embeddings, state.position.shape[0])
        positions = state.position[:, None] + torch.arange(tokens.shape[1], device=tokens.device)
        embedded = self.target_positions.add(self.target_embedding(tokens) * self.scale, positions)
        embedded = x = self.dropout(embedded)
        weights, recents, last = None, [], len(self.decoder) - 1
        for index, (layer, recent) in enumerate(zip(self.decoder, state.recent, strict=True)):
            x, recent, weights = layer(
                x,
                embedded,
                recent,
                state.memory,
                hook=hook_for(hook, "cross", index, state.position[0]),
                need_weights=need_weights and index == last,  # only the last layer returns its weights
            )
            recents.append(recent)
        state = ConvState(tuple(recents), state.memory, state.position + tokens.shape[1])
        return Advance(self.dropout(self.readout(x)), state, weights)

"""The Transformer (Vaswani 2017): self-attention, cross-attention and feed-forward blocks, stacked.

Pre- or post-norm, LayerNorm or RMSNorm, ReLU / GELU / SwiGLU, any positions: each is one entry of a dictionary below.
"""

import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple, Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.attention import Look, MultiHead, Rotate, padding_mask
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
from softgaze.nearby import NearbyHeads
from softgaze.positions import POSITIONS, Turns
from softgaze.remembered import KeysValues

# --- the parts of a block ---------------------------------------------------------------------------------------

NORMS: dict[str, Callable[[int], nn.Module]] = {
    "layer": nn.LayerNorm,
    "rms": lambda width: nn.RMSNorm(width, eps=1e-6),
}


class PreNorm(nn.Module):
    """x + f(norm(x)): trains without care (Xiong 2020); the stack needs a norm at its end."""

    ends_normed = False

    def __init__(self, norm: nn.Module, dropout: float) -> None:
        super().__init__()
        self.norm, self.dropout = norm, Dropout(dropout)

    def before(self, vectors: Tensor) -> Tensor:
        """What the block reads."""
        normed: Tensor = self.norm(vectors)
        return normed

    def after(self, vectors: Tensor, change: Tensor) -> Tensor:
        """`vectors` with the block's `change` added."""
        added: Tensor = vectors + self.dropout(change)
        return added


class PostNorm(PreNorm):
    """norm(x + f(x)): the paper's own order; needs a warm-up."""

    ends_normed = True

    def before(self, vectors: Tensor) -> Tensor:
        """What the block reads."""
        return vectors

    def after(self, vectors: Tensor, change: Tensor) -> Tensor:
        """`vectors` with the block's `change` added, normed."""
        normed: Tensor = self.norm(vectors + self.dropout(change))
        return normed


RESIDUALS: dict[str, type[PreNorm]] = {"pre": PreNorm, "post": PostNorm}


class FeedForward(nn.Module):
    """W₂ ReLU(W₁ x): each position by itself."""

    def __init__(self, width: int, inner_width: int, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Linear(width, inner_width)
        self.outer = nn.Linear(inner_width, width)
        self.dropout = Dropout(dropout)

    def activate(self, vectors: Tensor) -> Tensor:
        """What the inner layer becomes."""
        return F.relu(self.inner(vectors))

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, N, D) -> (B, N, D)."""
        outer: Tensor = self.outer(self.dropout(self.activate(vectors)))
        return outer


class GELUFeedForward(FeedForward):
    """W₂ GELU(W₁ x)."""

    def activate(self, vectors: Tensor) -> Tensor:
        """What the inner layer becomes."""
        return F.gelu(self.inner(vectors))


class SwiGLUFeedForward(FeedForward):
    """W₂ (SiLU(W₁ x) ⊙ W₃ x) (Shazeer 2020)."""

    def __init__(self, width: int, inner_width: int, dropout: float) -> None:
        super().__init__(width, inner_width, dropout)
        self.gate = nn.Linear(width, inner_width)

    def activate(self, vectors: Tensor) -> Tensor:
        """What the inner layer becomes."""
        gated: Tensor = F.silu(self.inner(vectors)) * self.gate(vectors)
        return gated


FEED_FORWARDS: dict[str, type[FeedForward]] = {
    "relu": FeedForward,
    "gelu": GELUFeedForward,
    "swiglu": SwiGLUFeedForward,
}


# --- layers -----------------------------------------------------------------------------------------------------


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with its residual."""

    def __init__(self, attention: MultiHead, feed_forward: nn.Module, residual: Callable[[], PreNorm]) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.around_attention, self.around_feed_forward = residual(), residual()

    def forward(self, vectors: Tensor, places: Tensor | Turns, mask: Tensor, look: Look | None) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        query = self.around_attention.before(vectors)
        asked, memory = self.attention.ask_and_remember(query, places)
        attended = self.attention.answer(asked, memory, mask, look=look)
        vectors = self.around_attention.after(vectors, attended.context)
        change = self.feed_forward(self.around_feed_forward.before(vectors))
        return self.around_feed_forward.after(vectors, change)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, feed-forward."""

    def __init__(
        self, attention: MultiHead, cross: MultiHead, feed_forward: nn.Module, residual: Callable[[], PreNorm]
    ) -> None:
        super().__init__()
        self.attention, self.cross, self.feed_forward = attention, cross, feed_forward
        self.around_attention, self.around_cross, self.around_feed_forward = residual(), residual(), residual()

    def forward(
        self,
        vectors: Tensor,
        places: Tensor | Turns,
        own: KeysValues,
        memory: KeysValues,
        memory_mask: Tensor,
        look_own: Look | None,
        look_cross: Look | None,
        need_weights: bool,
    ) -> tuple[Tensor, KeysValues, Tensor | None]:
        """Read `vectors` (B, T, D) after those of `own` -> vectors, `own` with them, cross weights (B, H, T, S)."""
        query = self.around_attention.before(vectors)
        asked, new = self.attention.ask_and_remember(query, places)
        own = own.append(new)
        past = self.attention.past(query.shape[1], own.keys.shape[-2], query.device)
        context = self.attention.answer(asked, own, past, look=look_own).context
        vectors = self.around_attention.after(vectors, context)

        query = self.around_cross.before(vectors)
        context, weights = self.cross(query, memory, memory_mask, need_weights=need_weights, look=look_cross)
        vectors = self.around_cross.after(vectors, context)

        change = self.feed_forward(self.around_feed_forward.before(vectors))
        return self.around_feed_forward.after(vectors, change), own, weights


# --- the model --------------------------------------------------------------------------------------------------


class TransformerState(NamedTuple):
    """Where the decoder stands."""

    own: tuple[KeysValues, ...]  # what each layer remembers of the target so far, of R rows
    memory: tuple[KeysValues, ...]  # and of the source; of N memories
    memory_mask: Tensor

    def reorder(self, index: Tensor) -> Self:
        """Choose batch rows."""
        rows, memories = self.own[0].keys.shape[0], self.memory_mask.shape[0]
        memory, mask = choose_memories(self[1:], index, memories, rows)
        return self._replace(own=choose(self.own, index), memory=memory, memory_mask=mask)


class Transformer(Seq2Seq):
    """Encoder and decoder of stacked attention blocks; embeddings times √D, tied unless told otherwise.

    With a `reach`, self-attention sees that many places to either side, and long texts cost in proportion to length.
    """

    sizes: ClassVar = {
        "tiny": {"width": 128, "feed_forward_width": 256, "heads": 4, "encoder_layers": 4, "decoder_layers": 4},
        "small": {"width": 256, "feed_forward_width": 1024, "heads": 4, "encoder_layers": 6, "decoder_layers": 6},
        "base": {"width": 512, "feed_forward_width": 2048, "heads": 8, "encoder_layers": 6, "decoder_layers": 6},
        "big": {"width": 1024, "feed_forward_width": 4096, "heads": 16, "encoder_layers": 6, "decoder_layers": 6},
    }

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        *,
        width: int,
        feed_forward_width: int,
        heads: int,
        encoder_layers: int,
        decoder_layers: int,
        key_heads: int | None = None,
        positions: str = "sinusoidal",
        max_length: int = 1024,
        residual: str = "pre",
        norm: str = "layer",
        feed_forward: str = "relu",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        reach: int | None = None,
        tie: str = "all",
    ) -> None:
        super().__init__()
        self.scale = math.sqrt(width)
        self.source_embedding, self.target_embedding, self.output = embeddings(
            source_vocabulary, target_vocabulary, width, tie
        )
        place_kind = pick("positions", positions, POSITIONS)
        # Two tables for learned positions: word 5 of a source and of a target have nothing in common.
        self.source_positions = place_kind(width, width // heads, max_length)
        self.target_positions = place_kind(width, width // heads, max_length)
        around = pick("residual", residual, RESIDUALS)
        make_norm = pick("norm", norm, NORMS)
        feed = pick("feed_forward", feed_forward, FEED_FORWARDS)

        def attention(rotate: Rotate, causal: bool = False) -> MultiHead:
            if reach is None:
                return MultiHead(width, heads, key_heads, attention_dropout, rotate)
            return NearbyHeads(width, heads, key_heads, attention_dropout, rotate, reach=reach, causal=causal)

        def cross() -> MultiHead:
            return MultiHead(width, heads, key_heads, attention_dropout)

        def block() -> nn.Module:
            return feed(width, feed_forward_width, dropout)

        def residuals() -> PreNorm:
            return around(make_norm(width), dropout)

        self.encoder = nn.ModuleList(
            EncoderLayer(attention(self.source_positions.rotate), block(), residuals) for _ in range(encoder_layers)
        )
        self.decoder = nn.ModuleList(
            DecoderLayer(attention(self.target_positions.rotate, causal=True), cross(), block(), residuals)
            for _ in range(decoder_layers)
        )
        self.encoder_norm, self.decoder_norm = (
            nn.Identity() if around.ends_normed or not layers else make_norm(width)
            for layers in (encoder_layers, decoder_layers)
        )
        self.dropout = Dropout(dropout)
        draw_matrices(self.encoder, self.decoder)

    def encode(self, source: Source, watch: Watch | None = None) -> Memory:
        """Every source token in the light of all the others."""
        check_source(source, self.source_embedding.num_embeddings)
        places = torch.arange(source.values.shape[1], device=source.values.device)
        vectors = self.source_positions.add(self.source_embedding(source.values) * self.scale, places)
        vectors = self.dropout(vectors)
        mask = padding_mask(source.lengths, vectors.shape[1])
        turns = self.source_positions.turns(places)
        for number, layer in enumerate(self.encoder):
            vectors = layer(vectors, turns, mask, look_at(watch, "encoder", number))
        return Memory(self.encoder_norm(vectors), mask)

    def start(self, memory: Memory) -> TransformerState:
        """Nothing written yet; the memory's keys and values computed once."""
        remembered = tuple(cast(DecoderLayer, layer).cross.remember(memory.values) for layer in self.decoder)
        nothing = tuple(KeysValues(*(part[:, :, :0] for part in own)) for own in remembered)
        return TransformerState(nothing, remembered, memory.mask)

    def advance(
        self, tokens: Tensor, state: TransformerState, watch: Watch | None = None, *, need_weights: bool = False
    ) -> Advance:
        """All tokens side by side; the causal mask keeps the future out."""
        check_tokens("target", tokens, self.target_embedding.num_embeddings, state.own[0].keys.shape[0])
        first = state.own[0].keys.shape[-2]
        places = torch.arange(first, first + tokens.shape[1], device=tokens.device)
        vectors = self.target_positions.add(self.target_embedding(tokens) * self.scale, places)
        vectors, weights, read = self.dropout(vectors), None, []
        turns = self.target_positions.turns(places)
        for number, (layer, own, memory) in enumerate(zip(self.decoder, state.own, state.memory, strict=True)):
            looks = (look_at(watch, "decoder", number, first), look_at(watch, "cross", number, first))
            wanted = need_weights and number == len(self.decoder) - 1  # only the last layer is shown
            vectors, own, weights = layer(vectors, turns, own, memory, state.memory_mask, *looks, wanted)
            read.append(own)
        return Advance(self.decoder_norm(vectors), state._replace(own=tuple(read)), weights)


def draw_matrices(*stacks: nn.Module) -> None:
    """Glorot's uniform draw for every matrix, zero for every bias, as in the paper's own code."""
    for stack in stacks:
        for module in stack.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

"""The Transformer (Vaswani 2017): self-attention, cross-attention and feed-forward blocks, stacked.

Pre- or post-norm, LayerNorm or RMSNorm, ReLU / GELU / SiLU / SwiGLU, any positions: each is one entry of a dictionary
below. The decoder may have recurrent layers (SSRU) in place of self-attention. Imported models need more options: an
output bias, a norm of the embeddings, other norm constants.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import ClassVar, NamedTuple, Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.attention import MultiHeadAttention, Positions, WeightsHook, causal_mask, padding_mask
from softgaze.dropout import Dropout
from softgaze.errors import pick
from softgaze.kv_cache import KVCache
from softgaze.local_attention import LocalMultiHeadAttention
from softgaze.models.base import (
    Advance,
    AttentionHook,
    Memory,
    SearchStep,
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
from softgaze.models.ssru import SSRU, RecurrentCache
from softgaze.models.transformer_step import TransformerStep, can_step
from softgaze.positions import POSITIONS, PositionEncoding

# --- the parts of a layer ---------------------------------------------------------------------------------------

NORMS: dict[str, type[nn.Module]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
NORM_EPS = {"layer": 1e-5, "rms": 1e-6}


class PreNorm(nn.Module):
    """x + f(norm(x)): trains without a warm-up (Xiong 2020); the stack ends with a norm of its own."""

    ends_normed = False

    def __init__(self, norm: nn.Module, dropout: float) -> None:
        super().__init__()
        self.norm, self.dropout = norm, Dropout(dropout)

    def before(self, x: Tensor) -> Tensor:
        """Return the input of f."""
        normed: Tensor = self.norm(x)
        return normed

    def after(self, x: Tensor, output: Tensor) -> Tensor:
        """Add the `output` of f to the residual stream."""
        total: Tensor = x + self.dropout(output)
        return total


class PostNorm(PreNorm):
    """norm(x + f(x)): the order of the paper; needs a warm-up."""

    ends_normed = True

    def before(self, x: Tensor) -> Tensor:
        return x

    def after(self, x: Tensor, output: Tensor) -> Tensor:
        normed: Tensor = self.norm(x + self.dropout(output))
        return normed


RESIDUALS: dict[str, type[PreNorm]] = {"pre": PreNorm, "post": PostNorm}


class FeedForward(nn.Module):
    """W₂ ReLU(W₁ x), applied to each position."""

    def __init__(self, width: int, inner_width: int, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Linear(width, inner_width)
        self.outer = nn.Linear(inner_width, width)
        self.dropout = Dropout(dropout)

    def activate(self, x: Tensor) -> Tensor:
        """Return the hidden layer."""
        return F.relu(self.inner(x))

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, D) -> (B, N, D)."""
        output: Tensor = self.outer(self.dropout(self.activate(x)))
        return output


class GELUFeedForward(FeedForward):
    """W₂ GELU(W₁ x)."""

    def activate(self, x: Tensor) -> Tensor:
        return F.gelu(self.inner(x))


class SiLUFeedForward(FeedForward):
    """W₂ SiLU(W₁ x); Marian calls it swish."""

    def activate(self, x: Tensor) -> Tensor:
        return F.silu(self.inner(x))


class SwiGLUFeedForward(FeedForward):
    """W₂ (SiLU(W₁ x) ⊙ W₃ x) (Shazeer 2020)."""

    def __init__(self, width: int, inner_width: int, dropout: float) -> None:
        super().__init__(width, inner_width, dropout)
        self.gate = nn.Linear(width, inner_width)

    def activate(self, x: Tensor) -> Tensor:
        gated: Tensor = F.silu(self.inner(x)) * self.gate(x)
        return gated


FEED_FORWARDS: dict[str, type[FeedForward]] = {
    "relu": FeedForward,
    "gelu": GELUFeedForward,
    "silu": SiLUFeedForward,
    "swiglu": SwiGLUFeedForward,
}


# --- layers -----------------------------------------------------------------------------------------------------


class TransformerEncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with its residual connection."""

    def __init__(self, attention: MultiHeadAttention, feed_forward: nn.Module, residual: Callable[[], PreNorm]) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.around_attention, self.around_feed_forward = residual(), residual()

    def forward(self, x: Tensor, mask: Tensor, positions: Positions = None, hook: WeightsHook | None = None) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        query = self.around_attention.before(x)
        x = self.around_attention.after(x, self.attention(query, mask=mask, positions=positions, hook=hook).context)
        return self.around_feed_forward.after(x, self.feed_forward(self.around_feed_forward.before(x)))


class CachedMemory(NamedTuple):
    """The encoder output as a decoder layer sees it. N memories may serve R ≥ N rows, R/N consecutive rows each."""

    kv: KVCache
    mask: Tensor  # (N, 1, 1, S)


class TransformerDecoderLayer(nn.Module):
    """Masked self-attention or SSRU, cross-attention, feed-forward, each with its residual connection."""

    def __init__(
        self,
        attention: MultiHeadAttention | SSRU,
        cross: MultiHeadAttention,
        feed_forward: nn.Module,
        residual: Callable[[], PreNorm],
    ) -> None:
        super().__init__()
        self.attention, self.cross, self.feed_forward = attention, cross, feed_forward
        self.around_attention, self.around_cross, self.around_feed_forward = residual(), residual(), residual()

    def forward(
        self,
        x: Tensor,
        cache: KVCache | RecurrentCache,
        memory: CachedMemory,
        mask: Tensor | None,
        positions: Positions,
        *,
        hook: WeightsHook | None = None,
        cross_hook: WeightsHook | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, KVCache | RecurrentCache, Tensor | None]:
        """Read `x` (B, T, D) after the tokens in `cache` -> outputs, extended cache, cross weights (B, H, T, S)."""
        query = self.around_attention.before(x)
        context, _, cache = self.attention(query, mask=mask, cache=cache, positions=positions, hook=hook)
        x = self.around_attention.after(x, context)

        query = self.around_cross.before(x)
        if cross_hook is not None:  # a hook may treat rows differently, so that each needs its own memory
            memory = repeat_rows(memory, query.shape[0])
        grouped = group_rows(query, memory.mask.shape[0])
        context, weights, _ = self.cross(grouped, memory.kv, memory.mask, need_weights=need_weights, hook=cross_hook)
        x = self.around_cross.after(x, context.reshape(query.shape))

        x = self.around_feed_forward.after(x, self.feed_forward(self.around_feed_forward.before(x)))
        return x, cache, ungroup_weights(weights, query.shape[0])


# --- the model --------------------------------------------------------------------------------------------------


class TransformerState(NamedTuple):
    """The decoder state: keys and values of each layer, or the vector of its recurrence."""

    caches: tuple[KVCache | RecurrentCache, ...]  # of the target so far, R rows
    memories: tuple[KVCache, ...]  # of the source, N memories
    memory_mask: Tensor

    def reorder(self, index: Tensor) -> Self:
        """Select batch rows."""
        rows, memories = self.caches[0].rows, self.memory_mask.shape[0]
        kv, mask = select_memory_rows((self.memories, self.memory_mask), index, memories, rows)
        return type(self)(select_rows(self.caches, index), kv, mask)


class Transformer(Seq2Seq):
    """Encoder and decoder of stacked attention layers; embeddings are scaled by √D and tied by default.

    With `embedding_norm`, LayerNorm follows the sum of embedding and position, as in mBART.
    With a `window_size`, self-attention sees that many positions on either side, and cost is linear in length.
    """

    sizes: ClassVar = {
        "tiny": {"width": 128, "feed_forward_width": 256, "heads": 4, "encoder_layers": 4, "decoder_layers": 4},
        "small": {"width": 256, "feed_forward_width": 1024, "heads": 4, "encoder_layers": 6, "decoder_layers": 6},
        "base": {"width": 512, "feed_forward_width": 2048, "heads": 8, "encoder_layers": 6, "decoder_layers": 6},
        "big": {"width": 1024, "feed_forward_width": 4096, "heads": 16, "encoder_layers": 6, "decoder_layers": 6},
    }
    exports_to: tuple[str, ...] = ("ctranslate2",)

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
        norm_eps: float | None = None,
        embedding_norm: bool = False,
        scale_embeddings: bool = True,
        output_bias: bool = False,
        feed_forward: str = "relu",
        decoder_self: str = "attention",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        window_size: int | None = None,
        tie: str = "all",
    ) -> None:
        super().__init__()
        self.heads, self.window_size = heads, window_size
        if decoder_self != "attention":
            self.exports_to = ("onnx",)  # CTranslate2 has no recurrent layers
        self.scale = math.sqrt(width) if scale_embeddings else 1.0
        self.source_embedding, self.target_embedding, self.output = embeddings(
            source_vocabulary, target_vocabulary, width, tie, output_bias
        )
        position_type = pick("positions", positions, POSITIONS)
        self.max_positions = max_length if position_type.has_table else None
        # Two tables for learned positions: position 5 of a source and of a target have nothing in common.
        self.source_positions = position_type(width, width // heads, max_length)
        self.target_positions = position_type(width, width // heads, max_length)
        residual_type = pick("residual", residual, RESIDUALS)
        make_norm = partial(pick("norm", norm, NORMS), width, eps=NORM_EPS[norm] if norm_eps is None else norm_eps)
        feed_forward_type = pick("feed_forward", feed_forward, FEED_FORWARDS)

        def make_residual() -> PreNorm:
            return residual_type(make_norm(), dropout)

        def make_self_attention(positions: PositionEncoding, causal: bool) -> MultiHeadAttention:
            sizes = (width, heads, key_heads, attention_dropout, positions.rotate)
            if window_size is None:
                return MultiHeadAttention(*sizes)
            return LocalMultiHeadAttention(*sizes, window_size=window_size, causal=causal)

        decoder_selfs: dict[str, Callable[[], MultiHeadAttention | SSRU]] = {
            "attention": lambda: make_self_attention(self.target_positions, causal=True),
            "ssru": lambda: SSRU(width),
        }
        make_decoder_self = pick("decoder_self", decoder_self, decoder_selfs)

        self.encoder = nn.ModuleList(
            TransformerEncoderLayer(
                make_self_attention(self.source_positions, causal=False),
                feed_forward_type(width, feed_forward_width, dropout),
                make_residual,
            )
            for _ in range(encoder_layers)
        )
        self.decoder = nn.ModuleList(
            TransformerDecoderLayer(
                make_decoder_self(),
                MultiHeadAttention(width, heads, key_heads, attention_dropout),
                feed_forward_type(width, feed_forward_width, dropout),
                make_residual,
            )
            for _ in range(decoder_layers)
        )
        self.encoder_norm, self.decoder_norm = (
            nn.Identity() if residual_type.ends_normed or not layers else make_norm()
            for layers in (encoder_layers, decoder_layers)
        )
        self.source_embedding_norm, self.target_embedding_norm = (
            make_norm() if embedding_norm else nn.Identity() for _ in range(2)
        )
        self.dropout = Dropout(dropout)
        init_xavier(self.encoder, self.decoder)

    @property
    def cross_attention_shape(self) -> tuple[int, int]:
        return len(self.decoder), self.heads

    def encode(self, source: Source, hook: AttentionHook | None = None) -> Memory:
        """Encode every source token in the context of all others."""
        check_source(source, self.source_embedding.num_embeddings)
        positions = torch.arange(source.values.shape[1], device=source.values.device)
        x = self.source_positions.add(self.source_embedding(source.values) * self.scale, positions)
        x = self.dropout(self.source_embedding_norm(x))
        mask = padding_mask(source.lengths, x.shape[1])
        prepared = self.source_positions.prepare(positions)
        for index, layer in enumerate(self.encoder):
            x = layer(x, mask, prepared, hook_for(hook, "encoder", index))
        return Memory(self.encoder_norm(x), mask)

    def start(self, memory: Memory) -> TransformerState:
        """Project the memory once for each layer; the target is empty."""
        layers = cast(list[TransformerDecoderLayer], self.decoder)
        memories = tuple(layer.cross.project_kv(memory.values) for layer in layers)
        empty = tuple(layer.attention.empty_cache(memory.values) for layer in layers)
        return TransformerState(empty, memories, memory.mask)

    def search_step(self) -> SearchStep:
        can_be_fast = type(self).advance is Transformer.advance and can_step(self)
        return TransformerStep(self) if can_be_fast else super().search_step()

    def advance(
        self, tokens: Tensor, state: TransformerState, hook: AttentionHook | None = None, *, need_weights: bool = False
    ) -> Advance:
        """Read all tokens in parallel; the causal mask hides the future."""
        check_tokens("target", tokens, self.target_embedding.num_embeddings, state.caches[0].rows)
        first, size = state.caches[0].length, tokens.shape[1]
        positions = torch.arange(first, first + size, device=tokens.device)
        x = self.target_positions.add(self.target_embedding(tokens) * self.scale, positions)
        x = self.dropout(self.target_embedding_norm(x))
        # A single query sees every key, and local attention applies its own causal window.
        mask = None if size == 1 or self.window_size else causal_mask(size, first + size, tokens.device)
        prepared = self.target_positions.prepare(positions)
        weights, caches, last = None, [], len(self.decoder) - 1
        for index, (layer, cache, kv) in enumerate(zip(self.decoder, state.caches, state.memories, strict=True)):
            x, cache, weights = layer(
                x,
                cache,
                CachedMemory(kv, state.memory_mask),
                mask,
                prepared,
                hook=hook_for(hook, "decoder", index, first),
                cross_hook=hook_for(hook, "cross", index, first),
                need_weights=need_weights and index == last,  # only the last layer returns its weights
            )
            caches.append(cache)
        return Advance(self.decoder_norm(x), state._replace(caches=tuple(caches)), weights)


def init_xavier(*stacks: nn.Module) -> None:
    """Initialise every matrix with Glorot's uniform distribution and every bias with zero, as the paper's code does."""
    for stack in stacks:
        for module in stack.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

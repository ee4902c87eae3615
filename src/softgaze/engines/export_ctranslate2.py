"""Export a Transformer to CTranslate2: fill its model specification from our layers.

CTranslate2 returns one attention map, the mean of the first heads of one cross-attention layer. The head of the
selected map is therefore moved to the front, which changes nothing else. Weights are quantized here, because
CTranslate2's own quantization overflows on some processors.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import ctranslate2
import numpy as np
import numpy.typing
import torch
from ctranslate2.specs.model_spec import NumpyVariable, Variable, visit_spec
from torch import Tensor, nn

from softgaze.attention import MultiHeadAttention
from softgaze.bundle import ATTENTION, Bundle, Tokenizers
from softgaze.data.tokenizer import BOS_FRAME
from softgaze.engines.base import MAX_POSITIONS, NEEDS_VNNI
from softgaze.errors import UsageError
from softgaze.explain.recording import SelectedMap, View
from softgaze.local_attention import LocalMultiHeadAttention
from softgaze.models.transformer import (
    FeedForward,
    GELUFeedForward,
    PostNorm,
    SiLUFeedForward,
    SwiGLUFeedForward,
    Transformer,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)
from softgaze.positions import Learned, PositionEncoding, Rotary, Sinusoidal, sinusoidal
from softgaze.search.options import SearchOptions
from softgaze.special_tokens import BOS, EOS, UNK

Array = np.typing.NDArray[np.float32]

# Largest quantized weight, of the 127 that int8 allows. Processors without VNNI multiply it with unsigned bytes and add
# two products in 16 bits, where 2 × 255 × 64 still fits; larger sums are cut silently.
MAX_QUANTIZED = 64
MAX_INT8 = 127


class Quantization(NamedTuple):
    """How matrices become int8. CTranslate2 cannot mix: a matrix left in float32 is quantized when it is loaded."""

    description: str
    max_quantized: int  # of matrices that are multiplied
    max_embedding: int  # of embeddings, which are only looked up, so that no sum can be cut
    needs_vnni: bool = False


# From the smallest to the most exact; an export takes the first that passes its proof.
QUANTIZATIONS = (
    Quantization("64 steps per row", MAX_QUANTIZED, MAX_QUANTIZED),
    Quantization("embeddings stored apart with 127 steps per row", MAX_QUANTIZED, MAX_INT8),
    Quantization("127 steps per row, for processors with VNNI", MAX_INT8, MAX_INT8, needs_vnni=True),
)


def export(
    bundle: Bundle,
    model: nn.Module,
    directory: Path,
    precision: str,
    attention: SelectedMap | None,
    attempt: int = 0,
) -> dict[str, Any]:
    """Write the files CTranslate2 loads, and return the facts of its engine; `attempt` counts in `QUANTIZATIONS`."""
    transformer = cast(Transformer, model)
    max_positions = transformer.max_positions
    if max_positions is None and not isinstance(transformer.source_positions, Rotary):
        max_positions = SearchOptions().length_limit(bundle.description.max_length + 1)  # of the longest source
    if attention is not None and attention.view.layer is not None:
        layer, head = attention.view.layer, attention.view.head
    else:  # the mean of the layer before the last, which aligns best most often
        layer, head = max(len(transformer.decoder) - 2, 0), None
    spec = build_spec(transformer, bundle.tokenizers, max_positions or 0, layer, head)
    spec.validate()
    quantization = QUANTIZATIONS[attempt]
    if precision != "float32":
        quantize_spec(spec, quantization)
    spec.optimize()  # stores equal matrices once; an embedding with other steps than the output layer is not equal
    spec.save(str(directory))
    heads = "mean of all heads" if head is None else f"head {head}"
    facts: dict[str, Any] = {
        MAX_POSITIONS: max_positions,
        "note": f"CTranslate2's own map (layer {layer}, {heads} of the cross-attention)",
    }
    if precision != "float32":
        facts |= {"quantization": quantization.description, NEEDS_VNNI: quantization.needs_vnni}
    if attention is not None:
        facts[ATTENTION] = replace(attention, view=View(rows=attention.view.rows)).to_dict()
    return facts


def check_model(model: nn.Module) -> None:
    """Reject options that CTranslate2 does not support."""
    if any(isinstance(module, LocalMultiHeadAttention) for module in model.modules()):
        raise UsageError("CTranslate2 does not support local self-attention; train without a window")


def build_spec(
    model: Transformer, tokenizers: Tokenizers, max_positions: int, map_layer: int, map_head: int | None
) -> Any:
    """Return the filled specification; CTranslate2 returns the map of a layer and a head, None for the mean."""
    specs, layer = ctranslate2.specs, cast(TransformerEncoderLayer, model.encoder[0])
    attention, feed_forward = layer.attention, cast(FeedForward, layer.feed_forward)
    activations = {
        SwiGLUFeedForward: specs.Activation.SWISH,
        SiLUFeedForward: specs.Activation.SWISH,
        GELUFeedForward: specs.Activation.GELU,
        FeedForward: specs.Activation.RELU,
    }
    options = {
        "num_heads": attention.heads,
        "num_heads_kv": attention.key_heads if attention.key_heads != attention.heads else None,
        "pre_norm": not isinstance(layer.around_attention, PostNorm),
        "rms_norm": isinstance(layer.around_attention.norm, nn.RMSNorm),
        "activation": activations[type(feed_forward)],
        "ffn_glu": isinstance(feed_forward, SwiGLUFeedForward),
        "rotary_dim": 0 if isinstance(model.source_positions, Rotary) else None,  # 0: all dimensions
        "rotary_interleave": False,
        "layernorm_embedding": not isinstance(model.source_embedding_norm, nn.Identity),
    }
    heads = cast(TransformerDecoderLayer, model.decoder[0]).cross.heads
    encoder = specs.TransformerEncoderSpec(len(model.encoder), **options)
    decoder = specs.TransformerDecoderSpec(
        len(model.decoder), **options, alignment_layer=map_layer, alignment_heads=heads if map_head is None else 1
    )
    fill_encoder(encoder, model, max_positions)
    fill_decoder(decoder, model, max_positions, map_layer, map_head or 0)
    spec = specs.TransformerSpec(encoder, decoder)
    source, target = tokenizers.source, tokenizers.target
    spec.register_source_vocabulary(source.pieces(range(len(source))))
    spec.register_target_vocabulary(target.pieces(range(len(target))))
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = target.pieces([UNK, BOS, EOS])
    # Without it CTranslate2 starts from the first token of a prefix: the language, in models that start from that.
    starts_from_bos = tokenizers.languages is None or BOS_FRAME in tokenizers.languages.decoder_start
    spec.config.decoder_start_token = spec.config.bos_token if starts_from_bos else None
    spec.config.layer_norm_epsilon = layer.around_attention.norm.eps
    return spec


def quantize_spec(spec: Any, quantization: Quantization) -> None:
    """Quantize every matrix that CTranslate2 can store as int8, with one scale per row."""

    def quantize(layer: Any, name: str, value: Any) -> None:
        key = name.rpartition("/")[2]
        if isinstance(value, Variable) and hasattr(layer, f"{key}_scale"):
            is_embedding = "embeddings" in name
            steps = quantization.max_embedding if is_embedding else quantization.max_quantized
            quantized, scales = quantize_rows(value.numpy(), steps)
            setattr(layer, key, NumpyVariable(quantized))
            setattr(layer, f"{key}_scale", NumpyVariable(scales))

    visit_spec(spec, quantize)


def quantize_rows(matrix: Array, steps: int = MAX_QUANTIZED) -> tuple[np.typing.NDArray[np.int8], Array]:
    """Return a matrix as int8 and the scales its rows were multiplied by."""
    largest = np.abs(matrix).max(axis=1, initial=0)
    scales = (steps / np.where(largest > 0, largest, steps)).astype(np.float32)
    return np.rint(matrix * scales[:, None]).astype(np.int8), scales


# --- layers -----------------------------------------------------------------------------------------------------


def to_array(tensor: Tensor) -> Array:
    """Return a copy: CTranslate2 edits arrays in place."""
    array: Array = tensor.detach().float().cpu().numpy().copy()
    return array


def fill_encoder(spec: Any, model: Transformer, max_positions: int) -> None:
    spec.embeddings[0].weight = to_array(model.source_embedding.weight)
    spec.scale_embeddings = model.scale != 1
    fill_norm(getattr(spec, "layernorm_embedding", None), model.source_embedding_norm)
    fill_positions(spec, model.source_positions, max_positions, model.source_embedding.embedding_dim)
    fill_norm(getattr(spec, "layer_norm", None), model.encoder_norm)
    for layer_spec, layer in zip(spec.layer, cast(Sequence[TransformerEncoderLayer], model.encoder), strict=True):
        fill_layer(layer_spec, layer)


def fill_decoder(spec: Any, model: Transformer, max_positions: int, map_layer: int, map_head: int) -> None:
    """Fill the decoder, with one cross-attention head of one layer moved to the front."""
    spec.embeddings.weight = to_array(model.target_embedding.weight)
    spec.scale_embeddings = model.scale != 1
    fill_norm(getattr(spec, "layernorm_embedding", None), model.target_embedding_norm)
    output = cast(nn.Linear, model.output)
    spec.projection.weight = to_array(output.weight)
    if output.bias is not None:
        spec.projection.bias = to_array(output.bias)
    fill_positions(spec, model.target_positions, max_positions, model.target_embedding.embedding_dim)
    fill_norm(getattr(spec, "layer_norm", None), model.decoder_norm)
    layers = cast(Sequence[TransformerDecoderLayer], model.decoder)
    for index, (layer_spec, layer) in enumerate(zip(spec.layer, layers, strict=True)):
        fill_layer(layer_spec, layer)
        fill_cross_attention(layer_spec.attention, layer.cross, map_head if index == map_layer else 0)
        fill_norm(layer_spec.attention.layer_norm, layer.around_cross.norm)


def fill_positions(spec: Any, positions: PositionEncoding, max_positions: int, width: int) -> None:
    """Fill the position table, always: CTranslate2's default has another layout.

    It has one row more than there are positions, because CTranslate2 reads one token past a target it scores.
    """
    if isinstance(positions, Rotary):
        return
    table = torch.zeros(max_positions + 1, width)
    if isinstance(positions, Learned):
        table[:max_positions] = positions.table.weight.detach()
    elif isinstance(positions, Sinusoidal):
        table = sinusoidal(torch.arange(max_positions + 1), width)
    spec.position_encodings.encodings = to_array(table)


def fill_norm(spec: Any, norm: nn.Module) -> None:
    if not isinstance(norm, nn.Identity):
        spec.gamma = to_array(cast(Tensor, norm.weight))
        if isinstance(norm, nn.LayerNorm):
            spec.beta = to_array(norm.bias)


def fill_linear(spec: Any, *layers: nn.Linear) -> None:
    """Fill one matrix from one or several concatenated layers."""
    spec.weight = to_array(torch.cat([layer.weight for layer in layers]))
    spec.bias = to_array(torch.cat([layer.bias for layer in layers]))


def fill_layer(spec: Any, layer: TransformerEncoderLayer | TransformerDecoderLayer) -> None:
    """Fill self-attention and feed-forward layer with their norms."""
    attention, feed_forward = cast(MultiHeadAttention, layer.attention), cast(FeedForward, layer.feed_forward)
    fill_linear(spec.self_attention.linear[0], attention.query, attention.key, attention.value)
    fill_linear(spec.self_attention.linear[1], attention.output)
    fill_norm(spec.self_attention.layer_norm, layer.around_attention.norm)
    fill_linear(spec.ffn.linear_0, feed_forward.inner)
    fill_linear(spec.ffn.linear_1, feed_forward.outer)
    if isinstance(feed_forward, SwiGLUFeedForward):
        fill_linear(spec.ffn.linear_0_noact, feed_forward.gate)
    fill_norm(spec.ffn.layer_norm, layer.around_feed_forward.norm)


def fill_cross_attention(spec: Any, attention: MultiHeadAttention, first: int) -> None:
    """Fill the projections with the head `first` moved to the front."""
    heads, groups = head_order(attention.heads, attention.key_heads, first)
    width = attention.query.out_features // attention.heads
    query_rows, key_rows = head_rows(heads, width), head_rows(groups, width)
    fill_linear(spec.linear[0], attention.query)
    fill_linear(spec.linear[1], attention.key, attention.value)
    fill_linear(spec.linear[2], attention.output)
    key_value_rows = np.concatenate([key_rows, key_rows + attention.key.out_features])
    for linear, rows in ((spec.linear[0], query_rows), (spec.linear[1], key_value_rows)):
        linear.weight, linear.bias = linear.weight[rows], linear.bias[rows]
    spec.linear[2].weight = np.ascontiguousarray(spec.linear[2].weight[:, query_rows])


def head_order(heads: int, key_heads: int, first: int) -> tuple[list[int], list[int]]:
    """Return an order of the heads that starts with `first`, and of the key heads; groups stay together."""
    size = heads // key_heads
    groups = sorted(range(key_heads), key=lambda group: group != first // size)
    members = [sorted(range(group * size, (group + 1) * size), key=lambda head: head != first) for group in groups]
    return [head for group in members for head in group], groups


def head_rows(heads: Sequence[int], width: int) -> np.typing.NDArray[np.int64]:
    """Return the rows of a projection that belong to these heads, in order."""
    return (np.array(heads)[:, None] * width + np.arange(width)).ravel()

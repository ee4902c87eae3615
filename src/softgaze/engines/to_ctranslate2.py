"""A trained Transformer as CTranslate2 has it: its specification, filled from our layers one by one.

CTranslate2 tells one attention map, the mean of the first heads of one layer of the cross-attention; so the head that
shows best is moved to the front, which changes nothing else. Weights are rounded here: its own way overflows on some
processors.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import ctranslate2
import numpy
import numpy.typing
import torch
from ctranslate2.specs.model_spec import NumpyVariable, Variable, visit_spec
from torch import Tensor, nn

from softgaze.attention import MultiHead
from softgaze.bundle import ATTENTION, Bundle, Tokenizers
from softgaze.engines.torch import position_limit
from softgaze.errors import UsageError
from softgaze.gaze.view import Choice, View
from softgaze.models.transformer import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    GELUFeedForward,
    PostNorm,
    SwiGLUFeedForward,
    Transformer,
)
from softgaze.nearby import NearbyHeads
from softgaze.positions import Learned, Positions, Rotary, Sinusoidal, sinusoidal
from softgaze.search.settings import longest
from softgaze.symbols import BEGIN, END, UNKNOWN

Array = numpy.typing.NDArray[numpy.float32]

# Steps of a rounded weight to either side of 0, of the 127 a byte has room for. Processors without VNNI multiply them
# with bytes of 0 to 255 and add two products in 16 bits, where 2 × 255 × 64 still fits: what does not is silently cut.
STEPS = 64


def export(
    bundle: Bundle, model: nn.Module, directory: Path, precision: str, attention: Choice | None
) -> dict[str, Any]:
    """Write the files CTranslate2 loads, and say what its engine must know."""
    transformer = runnable(bundle.description.arch, model)
    places = position_limit(bundle.description) or longest_text(transformer, bundle.description.max_length)
    layer, head = map_to_tell(transformer, attention)
    spec = specification(transformer, bundle.tokenizers, places or 0, (layer, head))
    spec.validate()
    spec.optimize()
    if precision != "float32":
        round_weights(spec)
    spec.save(str(directory))
    which = f"layer {layer}, {'mean of all heads' if head is None else f'head {head}'}"
    facts: dict[str, Any] = {"places": places, "note": f"CTranslate2's own map ({which} of the cross-attention)"}
    if attention is not None:
        told = replace(attention, view=View(rows=attention.view.rows))
        facts[ATTENTION] = told.to_dict()
    return facts


def runnable(arch: str, model: nn.Module) -> Transformer:
    """The model, or by name what CTranslate2 cannot run."""
    if not isinstance(model, Transformer):
        instead = "; it can be exported to onnx" if arch.startswith(("rnn", "captioner")) else ""
        raise UsageError(f"CTranslate2 runs Transformers, and cannot run arch {arch}{instead}")
    if any(isinstance(each, NearbyHeads) for each in model.modules()):
        raise UsageError("CTranslate2 cannot run self-attention with a reach, only over whole texts")
    return model


def longest_text(model: Transformer, max_length: int) -> int | None:
    """How long a table of places must be: for the longest source, and what is written of it without other limits."""
    rotary = isinstance(model.source_positions, Rotary)
    return None if rotary else longest(max_length + 1, 0, 0, None)


def map_to_tell(model: Transformer, attention: Choice | None) -> tuple[int, int | None]:
    """Layer and head; without a choice the mean of the last layer but one, where links are found most often."""
    if attention is not None and attention.view.layer is not None:
        return attention.view.layer, attention.view.head
    return max(len(model.decoder) - 2, 0), None


def specification(model: Transformer, tokenizers: Tokenizers, places: int, look: tuple[int, int | None]) -> Any:
    """The whole model; `look` is the layer whose map is told, and the head, or None for the mean of all heads."""
    layer, head = look
    shared = options_of(model)
    heads = cast(DecoderLayer, model.decoder[0]).cross.heads
    specs = ctranslate2.specs
    encoder = specs.TransformerEncoderSpec(len(model.encoder), **shared)
    decoder = specs.TransformerDecoderSpec(
        len(model.decoder), **shared, alignment_layer=layer, alignment_heads=heads if head is None else 1
    )
    fill_encoder(encoder, model, places)
    fill_decoder(decoder, model, places, (layer, head or 0))
    spec = specs.TransformerSpec(encoder, decoder)
    fill_words(spec, tokenizers)
    spec.config.layer_norm_epsilon = cast(EncoderLayer, model.encoder[0]).around_attention.norm.eps
    return spec


def options_of(model: Transformer) -> dict[str, Any]:
    """What both sides have in common."""
    layer = cast(EncoderLayer, model.encoder[0])
    attention, feed = layer.attention, layer.feed_forward
    activations = ctranslate2.specs.Activation
    named = {SwiGLUFeedForward: activations.SWISH, GELUFeedForward: activations.GELU, FeedForward: activations.RELU}
    rotary = isinstance(model.source_positions, Rotary)
    return {
        "num_heads": attention.heads,
        "num_heads_kv": attention.key_heads if attention.key_heads != attention.heads else None,
        "pre_norm": not isinstance(layer.around_attention, PostNorm),
        "rms_norm": isinstance(layer.around_attention.norm, nn.RMSNorm),
        "activation": named[type(cast(FeedForward, feed))],
        "ffn_glu": isinstance(feed, SwiGLUFeedForward),
        "rotary_dim": 0 if rotary else None,  # 0: every dimension is turned
        "rotary_interleave": False,
    }


def round_weights(spec: Any) -> None:
    """Every matrix that CTranslate2 can keep in bytes, each of its rows with a scale of its own."""

    def round_one(layer: Any, name: str, value: Any) -> None:
        key = name.rpartition("/")[2]
        if isinstance(value, Variable) and hasattr(layer, f"{key}_scale"):
            rounded, scales = in_bytes(value.numpy())
            setattr(layer, key, NumpyVariable(rounded))
            setattr(layer, f"{key}_scale", NumpyVariable(scales))

    visit_spec(spec, round_one)


def in_bytes(matrix: Array) -> tuple[numpy.typing.NDArray[numpy.int8], Array]:
    """A matrix times the scales of its rows, rounded; and the scales."""
    largest = numpy.abs(matrix).max(axis=1, initial=0)
    scales = (STEPS / numpy.where(largest > 0, largest, STEPS)).astype(numpy.float32)
    return numpy.rint(matrix * scales[:, None]).astype(numpy.int8), scales


# --- filling ----------------------------------------------------------------------------------------------------


def array(values: Tensor) -> Array:
    """A copy that may be edited."""
    copied: Array = values.detach().float().cpu().numpy().copy()
    return copied


def fill_words(spec: Any, tokenizers: Tokenizers) -> None:
    """Both vocabularies, and which of their tokens are special."""
    for register, tokenizer in (
        (spec.register_source_vocabulary, tokenizers.source),
        (spec.register_target_vocabulary, tokenizers.target),
    ):
        register(tokenizer.pieces(range(len(tokenizer))))
    unknown, begin, end = tokenizers.target.pieces([UNKNOWN, BEGIN, END])
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = unknown, begin, end
    spec.config.decoder_start_token = begin


def fill_encoder(spec: Any, model: Transformer, places: int) -> None:
    """Embeddings, positions, layers and the last norm."""
    spec.embeddings[0].weight = array(model.source_embedding.weight)
    fill_positions(spec, model.source_positions, places, model.source_embedding.embedding_dim)
    fill_norm(getattr(spec, "layer_norm", None), model.encoder_norm)
    for one, layer in zip(spec.layer, cast(Sequence[EncoderLayer], model.encoder), strict=True):
        fill_self_attention(one.self_attention, layer.attention)
        fill_norm(one.self_attention.layer_norm, layer.around_attention.norm)
        fill_feed_forward(one.ffn, cast(FeedForward, layer.feed_forward))
        fill_norm(one.ffn.layer_norm, layer.around_feed_forward.norm)


def fill_decoder(spec: Any, model: Transformer, places: int, first: tuple[int, int]) -> None:
    """The same, and the output; one head of one layer is moved to the front."""
    spec.embeddings.weight = array(model.target_embedding.weight)
    spec.projection.weight = array(cast(nn.Linear, model.output).weight)
    fill_positions(spec, model.target_positions, places, model.target_embedding.embedding_dim)
    fill_norm(getattr(spec, "layer_norm", None), model.decoder_norm)
    for number, (one, layer) in enumerate(zip(spec.layer, cast(Sequence[DecoderLayer], model.decoder), strict=True)):
        fill_self_attention(one.self_attention, layer.attention)
        fill_norm(one.self_attention.layer_norm, layer.around_attention.norm)
        fill_cross_attention(one.attention, layer.cross, first[1] if number == first[0] else 0)
        fill_norm(one.attention.layer_norm, layer.around_cross.norm)
        fill_feed_forward(one.ffn, cast(FeedForward, layer.feed_forward))
        fill_norm(one.ffn.layer_norm, layer.around_feed_forward.norm)


def fill_positions(spec: Any, positions: Positions, places: int, width: int) -> None:
    """Always a table of our own: left alone, CTranslate2 makes one of another layout.

    It has one row more than there are places, since CTranslate2 looks one token past what it is given to score.
    """
    if isinstance(positions, Rotary):
        return
    table = torch.zeros(places + 1, width)
    if isinstance(positions, Learned):
        table[:places] = positions.table.weight.detach()
    elif isinstance(positions, Sinusoidal):
        table = sinusoidal(torch.arange(places + 1), width)
    spec.position_encodings.encodings = array(table)


def fill_norm(spec: Any, norm: nn.Module) -> None:
    """LayerNorm or RMSNorm; a stack that ends normed has none."""
    if not isinstance(norm, nn.Identity):
        spec.gamma = array(cast(Tensor, norm.weight))
        if isinstance(norm, nn.LayerNorm):
            spec.beta = array(norm.bias)


def fill_linear(spec: Any, *layers: nn.Linear) -> None:
    """One layer, or several one below the other."""
    spec.weight = array(torch.cat([layer.weight for layer in layers]))
    spec.bias = array(torch.cat([layer.bias for layer in layers]))


def fill_feed_forward(spec: Any, layer: FeedForward) -> None:
    """Two layers, or three with a gate."""
    fill_linear(spec.linear_0, layer.inner)
    fill_linear(spec.linear_1, layer.outer)
    if isinstance(layer, SwiGLUFeedForward):
        fill_linear(spec.linear_0_noact, layer.gate)


def fill_self_attention(spec: Any, attention: MultiHead) -> None:
    """Queries, keys and values in one matrix."""
    fill_linear(spec.linear[0], attention.query, attention.key, attention.value)
    fill_linear(spec.linear[1], attention.output)


def fill_cross_attention(spec: Any, attention: MultiHead, first: int) -> None:
    """Queries; keys and values in one matrix; `first` is the head to be moved to the front."""
    heads, groups = head_order(attention.heads, attention.key_heads, first)
    width = attention.query.out_features // attention.heads
    rows, shared = dimensions(heads, width), dimensions(groups, width)
    fill_linear(spec.linear[0], attention.query)
    fill_linear(spec.linear[1], attention.key, attention.value)
    fill_linear(spec.linear[2], attention.output)
    both = numpy.concatenate([shared, shared + attention.key.out_features])
    for one, order in ((spec.linear[0], rows), (spec.linear[1], both)):
        one.weight, one.bias = one.weight[order], one.bias[order]
    spec.linear[2].weight = numpy.ascontiguousarray(spec.linear[2].weight[:, rows])


def head_order(heads: int, key_heads: int, first: int) -> tuple[list[int], list[int]]:
    """An order of heads that starts with one of them, and of the key heads they share: a group stays together."""
    size = heads // key_heads
    groups = sorted(range(key_heads), key=lambda group: group != first // size)
    together = [sorted(range(group * size, (group + 1) * size), key=lambda head: head != first) for group in groups]
    return [head for group in together for head in group], groups


def dimensions(heads: Sequence[int], width: int) -> numpy.typing.NDArray[numpy.int64]:
    """The rows of a matrix that belong to heads, in their order."""
    return (numpy.array(heads)[:, None] * width + numpy.arange(width)).ravel()

"""Attention over feature vectors, such as image patches or audio frames, with the decoders of the text models.

Show, Attend and Tell (Xu 2015) with a recurrent decoder, or the same with a Transformer decoder. The source is read by
one of `feature_encoders`.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor

from softgaze.attention import padding_mask
from softgaze.errors import UsageError, pick
from softgaze.models.base import Advance, AttentionHook, Memory, Seq2Seq, Source, check_source
from softgaze.models.feature_encoders import feature_encoder
from softgaze.models.rnn import BahdanauRNN
from softgaze.models.transformer import Transformer


def rnn_decoder(vocabulary: int, width: int, layers: int, heads: int, dropout: float) -> Seq2Seq:
    """Bahdanau decoder: the context is fed to the RNN, so that past attention is in its state.

    The additive score learns in half the time of a dot product on images (docs/log.md).
    """
    options: dict[str, Any] = {"width": width, "layers": layers, "encoder_layers": 0, "dropout": dropout}
    return BahdanauRNN(vocabulary, vocabulary, score="additive", **options)


def transformer_decoder(vocabulary: int, width: int, layers: int, heads: int, dropout: float) -> Seq2Seq:
    """Transformer decoder with rotary positions."""
    options: dict[str, Any] = {"width": width, "feed_forward_width": 2 * width, "heads": heads, "dropout": dropout}
    return Transformer(vocabulary, vocabulary, encoder_layers=0, decoder_layers=layers, positions="rotary", **options)


DECODERS = {"rnn": rnn_decoder, "transformer": transformer_decoder}


class Captioner(Seq2Seq):
    """A feature encoder and a text decoder. A source is (B, S, W): S items of W numbers, one memory vector per item."""

    sizes: ClassVar = {
        "tiny": {"width": 128, "layers": 1, "encoder_layers": 2, "heads": 4},
        "small": {"width": 256, "layers": 2, "encoder_layers": 2, "heads": 4},
        "base": {"width": 512, "layers": 2, "encoder_layers": 4, "heads": 8},
        "big": {"width": 1024, "layers": 4, "encoder_layers": 6, "heads": 16},
    }
    min_source_size, reads_features = 12, True
    exports_to: tuple[str, ...] = ("onnx",)
    renamed_parameters: ClassVar = {
        "eyes": "feature_encoder",
        "writer": "decoder",
        "halvings": "downsample",
        "places": "positions",
        "seen": "features",
    }

    def __init__(
        self,
        item_width: int,
        target_vocabulary: int,
        *,
        width: int,
        layers: int,
        encoder_layers: int,
        heads: int,
        decoder: str = "rnn",
        encoder: str = "cnn",
        frozen: bool = True,
        self_attention: bool = False,
        pooling: str = "none",
        dropout: float = 0.1,
    ) -> None:
        """`self_attention` adds `encoder_layers` of it among the regions of a backbone.

        `pooling` "mean" gives the decoder one vector, the mean of all items: a captioner without attention.
        """
        super().__init__()
        self.item_width = item_width
        make_encoder = feature_encoder(encoder, frozen, self_attention=self_attention)
        self.feature_encoder = make_encoder(item_width, width, encoder_layers, heads, dropout)
        self.is_pooled = pick("pooling", pooling, {"none": False, "mean": True})
        if self.is_pooled:
            self.has_cross_attention, self.exports_to = False, ()
        self.decoder = pick("decoder", decoder, DECODERS)(target_vocabulary, width, layers, heads, dropout)
        self.output = self.decoder.output

    @property
    def cross_attention_shape(self) -> tuple[int, int]:
        return (0, 0) if self.is_pooled else self.decoder.cross_attention_shape

    def encode(self, source: Source, hook: AttentionHook | None = None) -> Memory:
        """Return a vector per item; the extra tensor is their mean, from which a recurrent decoder starts."""
        check_source(source)
        if source.values.ndim != 3 or source.values.shape[2] != self.item_width:
            raise UsageError(f"expected items of {self.item_width} numbers, got shape {tuple(source.values.shape)}")
        mask = padding_mask(source.lengths, source.values.shape[1])
        features = self.feature_encoder(source.values, mask, hook)
        real = mask[:, 0, 0, :, None].to(features.dtype)  # (B, S, 1)
        mean = (features * real).sum(1) / source.lengths[:, None].to(features.dtype)
        if self.is_pooled:
            return Memory(mean[:, None], mask[..., :1], (mean,))
        return Memory(features, mask, (mean,))

    def start(self, memory: Memory) -> Any:
        return self.decoder.start(memory)

    def advance(
        self, tokens: Tensor, state: Any, hook: AttentionHook | None = None, *, need_weights: bool = False
    ) -> Advance:
        if not self.is_pooled:
            return self.decoder.advance(tokens, state, hook, need_weights=need_weights)
        features, state, _ = self.decoder.advance(tokens, state)  # the weight of a single vector is always 1
        return Advance(features, state, features.new_zeros(features.shape[0], 0, features.shape[1], 1))

    def example(self) -> Source:
        return Source(torch.zeros(1, 1, self.item_width), torch.ones(1, dtype=torch.long))

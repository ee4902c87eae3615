"""Attention over anything: sources of vectors, such as patches of a picture or frames of a sound, and text decoders.

Show, Attend and Tell (Xu 2015) with a recurrent decoder, or the same with a Transformer's. What reads the source is one
of `eyes`; the decoders are those of the text models, which do not care what their keys are.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor

from softgaze.attention import padding_mask
from softgaze.errors import UsageError, pick
from softgaze.models.base import Advance, Memory, Seq2Seq, Source, Watch, check_source
from softgaze.models.eyes import eyes_for
from softgaze.models.rnn import BahdanauRNN
from softgaze.models.transformer import Transformer


def recurrent(vocabulary: int, width: int, layers: int, heads: int, dropout: float) -> Seq2Seq:
    """Bahdanau's decoder, which reads what it looked at, so that it knows where it has been. It has one look a word.

    With his own score, which learns to look at pictures in half the time that a product takes (docs/log.md).
    """
    options: dict[str, Any] = {"width": width, "layers": layers, "encoder_layers": 0, "dropout": dropout}
    return BahdanauRNN(vocabulary, vocabulary, score="additive", **options)


def transformer(vocabulary: int, width: int, layers: int, heads: int, dropout: float) -> Seq2Seq:
    """A Transformer's decoder."""
    options: dict[str, Any] = {"width": width, "feed_forward_width": 2 * width, "heads": heads, "dropout": dropout}
    return Transformer(vocabulary, vocabulary, encoder_layers=0, decoder_layers=layers, positions="rotary", **options)


DECODERS = {"rnn": recurrent, "transformer": transformer}


class Captioner(Seq2Seq):
    """Eyes and a writer. A source is (B, S, W), S items of W numbers each; the memory has a vector for each item."""

    sizes: ClassVar = {
        "tiny": {"width": 128, "layers": 1, "encoder_layers": 2, "heads": 4},
        "small": {"width": 256, "layers": 2, "encoder_layers": 2, "heads": 4},
        "base": {"width": 512, "layers": 2, "encoder_layers": 4, "heads": 8},
        "big": {"width": 1024, "layers": 4, "encoder_layers": 6, "heads": 16},
    }
    few, reads_vectors = 12, True

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
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.item_width = item_width
        self.eyes = eyes_for(encoder, frozen)(item_width, width, encoder_layers, heads, dropout)
        self.writer = pick("decoder", decoder, DECODERS)(target_vocabulary, width, layers, heads, dropout)
        self.output = self.writer.output

    def encode(self, source: Source, watch: Watch | None = None) -> Memory:
        """A vector for each item; the extra is their mean, from which a recurrent decoder starts."""
        check_source(source)
        if source.values.ndim != 3 or source.values.shape[2] != self.item_width:
            raise UsageError(f"this model reads items of {self.item_width} numbers, not {tuple(source.values.shape)}")
        real = padding_mask(source.lengths, source.values.shape[1])
        vectors = self.eyes(source.values, real, watch)
        inside = real[:, 0, 0, :, None].to(vectors.dtype)  # (B, S, 1)
        mean = (vectors * inside).sum(1) / source.lengths[:, None].to(vectors.dtype)
        return Memory(vectors, real, (mean,))

    def start(self, memory: Memory) -> Any:
        """As the writer starts."""
        return self.writer.start(memory)

    def advance(self, tokens: Tensor, state: Any, watch: Watch | None = None, *, need_weights: bool = False) -> Advance:
        """As the writer advances."""
        return self.writer.advance(tokens, state, watch, need_weights=need_weights)

    def example(self) -> Source:
        """One item."""
        return Source(torch.zeros(1, 1, self.item_width), torch.ones(1, dtype=torch.long))

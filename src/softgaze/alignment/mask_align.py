"""Mask-Align (Chen 2021): predict each part of one side from the other side and from all other parts of its own.

The attention of a part is computed without knowing the part. It is evidence that a lexicon does not have: which words
of the other side are still to be translated at this position. One network has both directions and shares embeddings.
Positions are rotary, hence relative, so that a sentence may be longer than those in training.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, cast

import numpy as np
import torch
from torch import Tensor, nn

from softgaze.alignment.cooccurrence import Ids, Values, Vocabulary
from softgaze.alignment.lexicon import STEM
from softgaze.alignment.words import Pairs, WordParts, stem
from softgaze.attention import MultiHeadAttention, padding_mask
from softgaze.dropout import dropout
from softgaze.models.base import Source
from softgaze.models.transformer import FeedForward, PreNorm, TransformerEncoderLayer, init_xavier
from softgaze.positions import Rotary

WIDTH, INNER_WIDTH, HEADS, LAYERS = 128, 256, 4, 2
CONTEXT_DROPOUT = 0.2  # of the other parts of the own side, so that the other side is attended to
MAX_WORDS = 30_000  # of a vocabulary; rarer words are known by their stem
MIN_COUNT = 2
UNKNOWN = 0
BLOCK_CELLS = 200_000  # of attention, computed at once
NETWORK = "network."  # start of the names of its arrays in an aligner file

Arrays = Mapping[str, "np.ndarray[Any, Any]"]


@dataclass(frozen=True)
class PartVocabulary:
    """The rows of the embedding: an unknown part, frequent words, and the stems of rarer ones."""

    words: Vocabulary
    stems: Vocabulary

    @classmethod
    def of(cls, sides: Iterable[WordParts]) -> Self:
        counts = Counter(part for side in sides for part in side.parts)
        words = Vocabulary(word for word, count in counts.most_common(MAX_WORDS) if count >= MIN_COUNT)
        stems = Counter[str]()
        for word, count in counts.items():
            stems[stem(word, STEM)] += count * (word not in words.ids)
        return cls(words, Vocabulary(each for each, count in stems.items() if count >= MIN_COUNT))

    def __len__(self) -> int:
        return 1 + len(self.words) + len(self.stems)

    def find(self, side: WordParts) -> Ids:
        """Return the row of each part."""
        words, stems = self.words.find(side.parts), self.stems.find(stem(part, STEM) for part in side.parts)
        return np.where(words >= 0, 1 + words, np.where(stems >= 0, 1 + len(self.words) + stems, UNKNOWN))


# --- the network ------------------------------------------------------------------------------------------------


class Predicted(NamedTuple):
    """One direction: what predicts each part, and the attention it has."""

    features: Tensor  # (B, T, D)
    attention: Tensor  # (B, T, S + 1); the last column is no part, for unaligned ones


class MaskedDecoder(nn.Module):
    """Predicts all parts of a side at once; a part sees the embeddings of the others and attends to the memory."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = Rotary(WIDTH, WIDTH // HEADS, 0)
        self.query = nn.Parameter(torch.randn(WIDTH) / 2)
        self.own_norm = nn.LayerNorm(WIDTH)
        self.attention = nn.ModuleList(
            MultiHeadAttention(WIDTH, HEADS, rotate=self.positions.rotate) for _ in range(LAYERS)
        )
        self.feed_forward = nn.ModuleList(FeedForward(WIDTH, INNER_WIDTH, 0.0) for _ in range(LAYERS))
        self.around_attention, self.around_feed_forward = (
            nn.ModuleList(residual() for _ in range(LAYERS)) for _ in range(2)
        )
        self.cross, self.around_cross = MultiHeadAttention(WIDTH, 1), residual()
        self.unaligned = nn.Parameter(torch.randn(WIDTH) / 10)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, own: Tensor, own_mask: Tensor, memory: Tensor, memory_mask: Tensor) -> Predicted:
        """(B, T, D) embeddings of the own side, (B, S, D) encodings of the other."""
        batch, size = own.shape[:2]
        rotation = self.positions.prepare(torch.arange(size, device=own.device))
        own, x = self.own_norm(own), self.query.expand_as(own)
        mask = own_mask & ~torch.eye(size, dtype=torch.bool, device=own.device)
        if self.training:
            mask = mask & dropout(torch.ones(batch, 1, size, size, device=own.device), CONTEXT_DROPOUT).bool()
        memory = torch.cat([memory, self.unaligned.to(memory.dtype).expand(batch, 1, -1)], 1)
        memory_mask = nn.functional.pad(memory_mask, (0, 1), value=True)
        weights: Tensor | None = None
        for index in range(LAYERS):
            attention = cast(MultiHeadAttention, self.attention[index])
            around = cast(PreNorm, self.around_attention[index])
            others = attention.project_kv(own, rotation)
            x = around.after(x, attention(around.before(x), others, mask, positions=rotation).context)
            if index == LAYERS - 1:
                query = self.around_cross.before(x)
                context, weights, _ = self.cross(query, memory, memory_mask, need_weights=True)
                x = self.around_cross.after(x, context)
            around = cast(PreNorm, self.around_feed_forward[index])
            x = around.after(x, self.feed_forward[index](around.before(x)))
        assert weights is not None
        return Predicted(self.norm(x), weights.float().squeeze(1))


class MaskAlign(nn.Module):
    """Both directions: the target predicted from the source, and the source from the target."""

    def __init__(self, source_size: int, target_size: int) -> None:
        super().__init__()
        self.offset = source_size
        self.embedding = nn.Embedding(source_size + target_size, WIDTH)
        self.bias = nn.Parameter(torch.zeros(source_size + target_size))  # of the predictions
        self.positions = Rotary(WIDTH, WIDTH // HEADS, 0)
        self.encoders = nn.ModuleList(nn.ModuleList(self.encoder_layer() for _ in range(LAYERS)) for _ in range(2))
        self.encoder_norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.decoders = nn.ModuleList(MaskedDecoder() for _ in range(2))
        init_xavier(self.encoders, self.decoders)

    def encoder_layer(self) -> TransformerEncoderLayer:
        attention = MultiHeadAttention(WIDTH, HEADS, rotate=self.positions.rotate)
        return TransformerEncoderLayer(attention, FeedForward(WIDTH, INNER_WIDTH, 0.0), residual)

    def encode(self, side: int, x: Tensor, mask: Tensor) -> Tensor:
        rotation = self.positions.prepare(torch.arange(x.shape[1], device=x.device))
        for layer in cast(nn.ModuleList, self.encoders[side]):
            x = layer(x, mask, rotation)
        normed: Tensor = self.encoder_norms[side](x)
        return normed

    def forward(self, source: Source, target: Source) -> tuple[Predicted, Predicted]:
        """Return the predicted target, attending to the source, and the predicted source."""
        rows = source.values, target.values + self.offset
        masks = [padding_mask(side.lengths, side.values.shape[1]) for side in (source, target)]
        own = [self.embedding(row) * math.sqrt(WIDTH) for row in rows]
        memories = [self.encode(side, own[side], masks[side]) for side in (0, 1)]
        return (
            self.decoders[1](own[1], masks[1], memories[0], masks[0]),
            self.decoders[0](own[0], masks[0], memories[1], masks[1]),
        )


def residual() -> PreNorm:
    return PreNorm(nn.LayerNorm(WIDTH), 0.0)


# --- a trained network ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MaskedAttention:
    """A network with its vocabularies: gives the attention of any sentence pair."""

    network: MaskAlign
    vocabularies: tuple[PartVocabulary, PartVocabulary]

    def attention(self, pairs: Pairs) -> Iterator[tuple[Values, Values]]:
        """Yield (target parts, source parts) of both directions, for pairs without empty sides.

        The first sums to at most 1 over the source, the second over the target; the rest belongs to no part.
        """
        self.network.eval()
        device = self.network.bias.device
        for block in blocks(pairs, BLOCK_CELLS):
            sides = [
                Source.of([vocabulary.find(pair[side]).tolist() for pair in block], device)
                for side, vocabulary in enumerate(self.vocabularies)
            ]
            with torch.inference_mode():
                forward, reverse = (each.attention.cpu().numpy() for each in self.network(*sides))
            for row, (source, target) in enumerate(block):
                shape = len(target.parts), len(source.parts)
                yield forward[row, : shape[0], : shape[1]], reverse[row, : shape[1], : shape[0]].T

    def arrays(self) -> dict[str, "np.ndarray[Any, Any]"]:
        """Return vocabularies and parameters for an aligner file."""
        words = {
            f"{NETWORK}{kind}.{side}": np.frombuffer("\n".join(getattr(vocabulary, kind)).encode(), np.uint8)
            for side, vocabulary in enumerate(self.vocabularies)
            for kind in ("words", "stems")
        }
        parameters = {
            f"{NETWORK}{name}": value.detach().numpy().astype(np.float16)
            for name, value in self.network.named_parameters()
        }
        return words | parameters

    @classmethod
    def of(cls, arrays: Arrays) -> Self:
        """Read the arrays of an aligner file; raise a `ValueError` if they do not fit."""
        vocabularies = tuple(
            PartVocabulary(*(read_words(arrays[f"{NETWORK}{kind}.{side}"]) for kind in ("words", "stems")))
            for side in (0, 1)
        )
        with torch.no_grad(), torch.random.fork_rng(devices=[]):  # a new network draws weights
            network = MaskAlign(*map(len, vocabularies))
            for name, parameter in network.named_parameters():
                values = torch.from_numpy(arrays[f"{NETWORK}{name}"].astype(np.float32))
                if values.shape != parameter.shape or not values.isfinite().all():
                    raise ValueError(f"its {NETWORK}{name} does not fit the other arrays, or is not finite")
                parameter.copy_(values)
        return cls(network.eval(), (vocabularies[0], vocabularies[1]))


def read_words(codes: "np.ndarray[Any, Any]") -> Vocabulary:
    text = codes.tobytes().decode()
    return Vocabulary(text.split("\n") if text else ())


def blocks(pairs: Pairs, max_cells: int) -> Iterator[Pairs]:
    """Yield consecutive pairs whose padded cells fit into `max_cells`; a single pair may have more."""
    block: list[tuple[WordParts, WordParts]] = []
    longest = 0
    for pair in pairs:
        longer = max(longest, *(len(side.parts) for side in pair))
        if block and longer**2 * (len(block) + 1) > max_cells:
            yield block
            block, longer = [], max(len(side.parts) for side in pair)
        block.append(pair)
        longest = longer
    if block:
        yield block

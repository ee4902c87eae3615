"""Sentence pairs as ids, and the interface that runs a model over given targets. Does not import torch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from softgaze.bundle import Tokenizers
from softgaze.data.batching import batch_by_length
from softgaze.data.tokenizer import Tokenizer
from softgaze.errors import DataError
from softgaze.explain.recording import Matrix, PartAttention, Recording
from softgaze.explain.word_spans import EOS_MARK, TokenizedText

if TYPE_CHECKING:
    from softgaze.explain.interventions import Intervention
    from softgaze.models.base import Seq2Seq

BATCH_TOKENS = 2048  # padded tokens of one side; the weights of all layers of a batch are in memory at once

Ids = Sequence[int]


class IdPair(NamedTuple):
    """Source and target ids without BOS and EOS, and interventions in the attention."""

    source: Ids
    target: Ids
    interventions: "tuple[Intervention, ...]" = ()


@dataclass(frozen=True)
class TokenizedPair:
    """A source and a target: the texts, and the ids of each part."""

    source: str
    target: str
    parts: tuple[IdPair, ...]
    note: str = ""  # describes the interventions

    @classmethod
    def of(cls, source: str, target: str, tokenizers: Tokenizers) -> "TokenizedPair":
        """Tokenize a sentence pair as one part; no part if either side has no tokens."""
        [source_ids], [target_ids] = tokenizers.source.encode([source]), tokenizers.target.encode([target])
        return cls(source, target, (IdPair(source_ids, target_ids),) if len(source_ids) and target_ids else ())

    def texts(self, tokenizers: Tokenizers) -> tuple[TokenizedText, TokenizedText]:
        """Group the tokens of both sides into words; items of an image or of audio have names instead."""
        reader = tokenizers.source
        target = TokenizedText.of(self.target, [tokenizers.target.pieces(part.target) for part in self.parts])
        tokens = [reader.pieces(part.source) for part in self.parts]
        if isinstance(reader, Tokenizer):
            before, after = reader.frame_pieces(EOS_MARK)
            return TokenizedText.of(self.source, tokens, before, after), target
        grids = [reader.grid(part.source) or () for part in self.parts]
        return TokenizedText.from_words([name for names in tokens for name in names], *grids), target


def check_max_positions(pair: TokenizedPair, max_positions: int | None) -> None:
    """Raise if a side has more tokens than the model has positions; BOS or EOS takes one."""
    for side in ("source", "target"):
        longest = max((len(getattr(part, side)) for part in pair.parts), default=0)
        if max_positions is not None and longest >= max_positions:
            text = getattr(pair, side)
            raise DataError(
                f"the {side} {text[:40]!r}… has {longest} subwords, and the model has positions for "
                f"{max_positions - 1}; split the text"
            )


@runtime_checkable
class Scorer(Protocol):
    """Runs a model over given targets. Implemented for torch models and by every engine."""

    note: str  # which map a recording contains, if not all layers and heads

    @property
    def cross_attention_shape(self) -> tuple[int, int]:
        """Layers and heads of the cross-attention that `record` returns; (0, 0) if the model has none."""

    def record(self, pairs: Sequence[IdPair]) -> list[PartAttention]:
        """Return the attention of each pair, in order; batched."""

    def log_probs(self, pairs: Sequence[IdPair]) -> list[Matrix]:
        """Return (T,) log-probabilities of the tokens of each target, in order; of EOS only if it is given."""


def scorer_for(model: "Seq2Seq | Scorer", tokenizers: Tokenizers) -> Scorer:
    """Wrap a torch model as a scorer; an engine is one already."""
    if isinstance(model, Scorer):
        return model
    from softgaze.explain.recorder import TorchScorer

    return TorchScorer(model, tokenizers)


def record_attention(
    model: "Seq2Seq | Scorer", tokenizers: Tokenizers, pairs: Sequence[TokenizedPair]
) -> list[Recording]:
    """Record the attention of each pair, in order, with one batched forward pass over the parts."""
    scorer = scorer_for(model, tokenizers)
    parts = iter(scorer.record([part for pair in pairs for part in pair.parts]))
    return [
        Recording(
            *pair.texts(tokenizers),
            tuple(islice(parts, len(pair.parts))),
            ", ".join(filter(None, (pair.note, scorer.note))),
        )
        for pair in pairs
    ]


def batches(pairs: Sequence[IdPair], max_tokens: int = BATCH_TOKENS) -> Iterator[list[int]]:
    """Yield the indices of pairs of similar length, one batch at a time."""
    for batch in batch_by_length([max(len(pair.source), len(pair.target)) + 1 for pair in pairs], max_tokens):
        yield batch.tolist()

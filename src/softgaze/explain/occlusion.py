"""Occlusion: how much less likely each output word becomes when a source word is left out; and faithfulness.

Punctuation attached to a word stays when the word is left out, and that of an output word does not count for it.
All variants of all sentences are batched together, so the cost is about one forward pass for each source word.

Faithfulness is the rank correlation (Spearman) of attention with occlusion: near 1, the words with the largest weights
mattered most; near 0, the map does not explain the prediction.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from softgaze.bundle import Tokenizers
from softgaze.explain.attention_map import Attention
from softgaze.explain.recording import Flags, Matrix
from softgaze.explain.scoring import IdPair, Scorer, TokenizedPair, scorer_for
from softgaze.explain.word_spans import ATTACHED, NO_WORD
from softgaze.special_tokens import EOS

if TYPE_CHECKING:
    from softgaze.models.base import Seq2Seq

UNSUPPORTED = 0.08  # chosen on planted insertions in held-out text, benchmarks/planted.md
UNKNOWN = np.nan  # a source word in another part of the text, or without a token


def occlusion_scores(
    model: "Seq2Seq | Scorer", tokenizers: Tokenizers, pairs: Sequence[TokenizedPair], *, include_eos: bool = False
) -> list[Matrix]:
    """Return (target words, source words) for each pair: the drop of a word's log-probability, in nats.

    NaN where a source word cannot matter. With `include_eos` a last row is added for EOS: an output that stops too soon
    becomes more likely without the words it leaves out.
    """
    plans = [_OcclusionPlan(pair, tokenizers) for pair in pairs]
    variants = [variant for plan in plans for variant in plan.variants()]
    log_probs = iter(scorer_for(model, tokenizers).log_probs(variants))
    scores = [plan.scores(log_probs) for plan in plans]
    return scores if include_eos else [score[:-1] for score in scores]


class _OcclusionPlan:
    """The variants of one pair that the model must score."""

    def __init__(self, pair: TokenizedPair, tokenizers: Tokenizers) -> None:
        self.parts, self.reader = pair.parts, tokenizers.source
        source, target = pair.texts(tokenizers)
        eos_row = len(target.words)  # shared by the EOS of all parts
        self.shape = eos_row + 1, len(source.words)
        self.source_words = list(source.split_parts(source.core_of, [len(part.source) for part in pair.parts]))
        self.target_words = [[*words, eos_row] for words in target.split_parts(target.core_of)]

    def variants(self) -> Iterator[IdPair]:
        """Yield each part as it is, then without each of its words."""
        for part, words in zip(self.parts, self.source_words, strict=True):
            complete = part._replace(target=[*part.target, EOS])
            yield complete
            for word in _distinct(words):
                removed = [position for position, word_of in enumerate(words) if word_of == word]
                tags = len(words) - len(part.source)  # language tokens before the text
                yield complete._replace(
                    source=self.reader.occlude(part.source, [position - tags for position in removed]),
                    interventions=tuple(intervention.without(removed) for intervention in part.interventions),
                )

    def scores(self, log_probs: Iterator[Matrix]) -> Matrix:
        """Compute the scores from the log-probabilities of the variants, in their order."""
        scores = np.full(self.shape, UNKNOWN)
        for sources, targets in zip(self.source_words, self.target_words, strict=True):
            complete, words, rows = next(log_probs), _distinct(sources), _distinct(targets)
            counted = np.array(targets) != ATTACHED
            for word, occluded in zip(words, islice(log_probs, len(words)), strict=True):
                drop = np.bincount(np.array(targets)[counted], (complete - occluded)[counted], minlength=self.shape[0])
                before = np.nan_to_num(scores[rows, word])  # a word split over two parts matters in both
                scores[rows, word] = before + drop[rows]
        return scores


def _distinct(words: Sequence[int]) -> list[int]:
    return [word for word in dict.fromkeys(words) if word not in (ATTACHED, NO_WORD)]


# --- support ----------------------------------------------------------------------------------------------------


def word_support(occlusion: Matrix, log_probs: Matrix) -> Matrix:
    """Return (T,), 0 to 1: how far one source word explains each output word, given its log-probability.

    The largest occlusion score, compared with itself, the surprise that remains with the whole source, and 1 nat.
    """
    gain = np.nan_to_num(occlusion).max(axis=1, initial=0.0)
    support: Matrix = gain / (1 + gain - log_probs)
    return support


def unsupported_words(words: Sequence[str], support: Matrix) -> tuple[int, ...]:
    """Return the output words that the source hardly explains, perhaps hallucinated; punctuation is left out."""
    return tuple(
        index
        for index, (word, value) in enumerate(zip(words, support, strict=True))
        if value < UNSUPPORTED and any(map(str.isalnum, word))
    )


# --- faithfulness -----------------------------------------------------------------------------------------------


def faithfulness(attention: Attention, occlusion: Matrix) -> float:
    """Return the mean rank correlation of the output words; NaN if nothing can be ranked, as with one source word."""
    values = word_faithfulness(attention.word_weights(), occlusion)
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def word_faithfulness(weights: Matrix, occlusion: Matrix) -> Matrix:
    """Return the rank correlation of each output word's weights and occlusion scores, both (…, T, S) -> (…, T)."""
    if weights.shape[-2:] != occlusion.shape[-2:]:
        raise ValueError(f"expected occlusion scores of shape {weights.shape[-2:]}, got {occlusion.shape[-2:]}")
    known = ~np.isnan(occlusion)
    count = np.maximum(known.sum(-1, keepdims=True), 1)
    masked = [np.where(known, ranks(values, known), 0.0) for values in (weights, occlusion)]
    first, second = (np.where(known, rank - rank.sum(-1, keepdims=True) / count, 0.0) for rank in masked)  # centred
    spread = np.sqrt((first**2).sum(-1) * (second**2).sum(-1))
    covariance = (first * second).sum(-1)
    return np.where(spread > 0, covariance / np.where(spread > 0, spread, 1.0), np.nan)


def ranks(values: Matrix, known: Flags) -> Matrix:
    """Rank each value within its row from 0; ties share their mean rank, unknown values are ignored."""
    others, this, is_known = values[..., None, :], values[..., :, None], known[..., None, :]
    ranks: Matrix = ((others < this) & is_known).sum(-1) + (((others == this) & is_known).sum(-1) - 1) / 2
    return ranks

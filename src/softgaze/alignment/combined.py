"""Combine the attention of a translation model with the lexicon and the positions of a statistical aligner.

A product of experts: in each direction, the lift of two words is multiplied by the attention between them, relative to
equal attention, before the HMM weighs positions. The lexicon decides where the attention is diffuse, and the attention
decides between words that occur several times or that the lexicon does not know.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softgaze.alignment.cooccurrence import Values
from softgaze.alignment.statistical import MIN_FACTOR, THRESHOLD, StatisticalAligner, links_above
from softgaze.alignment.words import WordParts, split_words
from softgaze.explain.alignment import Alignment
from softgaze.explain.attention_map import Attention
from softgaze.explain.map_selection import Aligner
from softgaze.explain.recording import Matrix

EXPONENT = 0.5  # of the attention: its weights are more certain than they are right


@dataclass(frozen=True)
class CombinedAligner:
    """Aligns words by the attention of one or two models and by a statistical aligner."""

    attention: Aligner
    statistics: StatisticalAligner
    threshold: float = THRESHOLD

    def align(self, pairs: Sequence[tuple[str, str]]) -> list[Alignment]:
        """Return the links of each pair.

        Where the model has other words than the statistics, in scripts without spaces, one of both decides alone.
        """
        parts = [(split_words(source), split_words(target)) for source, target in pairs]
        maps = self._maps(pairs)
        factors = [
            part_factors(*pair, weights) if has_words(pair, weights) else None
            for pair, weights in zip(parts, maps, strict=True)
        ]
        scores = self.statistics.scores(pairs, factors)
        unusual = [n for n, factor in enumerate(factors) if factor is None and maps[n][0].size]
        by_attention = dict(zip(unusual, self.attention.align([pairs[n] for n in unusual]), strict=True))
        return [by_attention.get(n) or links_above(score, self.threshold) for n, score in enumerate(scores)]

    def _maps(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[Matrix, Matrix]]:
        """Return the attention (target words, source words) of both directions; one model's serves for both."""
        forward = [
            np.zeros((0, 0)) if one is None else one.word_weights() for one in self.attention.forward.attention(pairs)
        ]
        if self.attention.reverse is None:
            return [(one, one) for one in forward]
        inverted = [(target, source) for source, target in pairs]
        reverse = [
            np.zeros((0, 0)) if one is None else one.word_weights().T
            for one in self.attention.reverse.attention(inverted)
        ]
        return list(zip(forward, reverse, strict=True))


def combined_alignment(attention: Attention, statistics: StatisticalAligner) -> Alignment:
    """Return the links of one attention map and the statistics, between the words of the map."""
    source, target = (" ".join(text.words) for text in (attention.recording.source, attention.recording.target))
    parts, weights = (split_words(source), split_words(target)), attention.word_weights()
    if not has_words(parts, (weights, weights)):
        return attention.alignment()
    [scores] = statistics.scores([(source, target)], [part_factors(*parts, (weights, weights))])
    return links_above(scores, statistics.threshold)


def has_words(pair: tuple[WordParts, WordParts], maps: tuple[Matrix, Matrix]) -> bool:
    """Whether both maps have the words of the pair."""
    source, target = pair
    if not source.parts or not target.parts:
        return False
    shape = target.word_of[-1] + 1, source.word_of[-1] + 1
    return all(weights.shape == shape for weights in maps)


def part_factors(source: WordParts, target: WordParts, maps: tuple[Matrix, Matrix]) -> tuple[Values, Values]:
    """Return (target parts, source parts) of both directions: attention relative to equal attention.

    The first is normalised over the source, the second over the target. Attached punctuation has no attention of its
    own here, so its factor is 1.
    """
    core = np.outer(target.is_core, source.is_core)
    factors = []
    for axis, weights in enumerate((maps[0], maps[1])):
        total = weights.sum(axis=1 - axis, keepdims=True)
        relative = weights / np.maximum(total, 1e-9) * weights.shape[1 - axis]
        words = np.where(total > 0, np.maximum(relative, MIN_FACTOR) ** EXPONENT, 1.0)
        of_parts = words[np.array(target.word_of)[:, None], np.array(source.word_of)[None, :]]
        factors.append(np.where(core, of_parts, 1.0).astype(np.float32))
    return factors[0], factors[1]

"""Comprehensiveness and sufficiency of a map (DeYoung et al. 2020), averaged over shares of erased words (AOPC).

For each output word, the source words with the largest weights are erased, then all others. A faithful map names words
whose loss makes the output word much less likely (high comprehensiveness), and which alone almost keep its probability
(low sufficiency).
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softgaze.bundle import Tokenizers
from softgaze.explain.attribution_map import METHODS, OCCLUSION
from softgaze.explain.explanation import Translation, Translator, tokenized_pair
from softgaze.explain.occlusion import occlusion_scores
from softgaze.explain.recording import Matrix
from softgaze.explain.scoring import IdPair, Scorer, TokenizedPair, scorer_for

if TYPE_CHECKING:
    from softgaze.models.base import Seq2Seq

SHARES = (0.1, 0.2, 0.5)  # of the source words, at least one
MAX_SENTENCES = 24  # whose maps are tested by erasing words: about a hundred variants of each
SELECTED_MAP, RANDOM = "selected map", "random"
MARGIN = 0.02  # of comprehensiveness − sufficiency: a smaller difference does not decide which map is shown


class ErasureScores(NamedTuple):
    """Mean drops of the probability of an output word."""

    comprehensiveness: float  # without the words of largest weight: higher is better
    sufficiency: float  # without all other words: lower is better
    words: int  # output words

    def to_dict(self) -> dict[str, float | int]:
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in self._asdict().items()}


def compare_maps(
    translator: Translator, translations: Sequence[Translation], lengths: Container[int], limit: int = MAX_SENTENCES
) -> dict[str, ErasureScores]:
    """Score the selected map, a random map, occlusion and, for torch models, other attributions.

    Takes the first `limit` translations in one part whose source has so many words.
    """
    fitting = (each for each in translations if len(each.parts) == 1 and len(each.source.split()) in lengths)
    shown = list(islice(fitting, limit))
    attentions = translator.attentions(shown)
    chosen = [each for each, attention in zip(shown, attentions, strict=True) if attention is not None]
    tokenizers = translator.bundle.tokenizers
    pairs = [tokenized_pair(translator, each) for each in chosen]
    occlusions = [np.nan_to_num(each) for each in occlusion_scores(translator.scorer, tokenizers, pairs)]
    random = np.random.default_rng(0)
    maps: dict[str, Sequence[Matrix]] = {
        SELECTED_MAP: [attention.word_weights() for attention in attentions if attention is not None],
        RANDOM: [random.random(each.shape) for each in occlusions],
        OCCLUSION: occlusions,
    }
    if translator.supports_interventions:
        from softgaze.explain.attribution import attribute

        for method in METHODS:
            if method not in maps:
                maps[method] = [attribute(translator, each, method).source for each in chosen]
    scores = erasure_scores(translator.scorer, tokenizers, pairs, list(zip(*maps.values(), strict=True)))
    return {name: each for name, each in zip(maps, scores, strict=False) if each.words}


def most_faithful(scores: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the attribution that is more faithful than the selected map by over `MARGIN`; None if there is none.

    `scores` are those of `compare_maps` as stored in a bundle. The others are compared with occlusion.
    """
    values = {name: each["comprehensiveness"] - each["sufficiency"] for name, each in scores.items()}
    others = {name: value for name, value in values.items() if name not in (SELECTED_MAP, RANDOM, OCCLUSION)}
    best = max(others, key=others.__getitem__, default=None)
    return best if best is not None and others[best] > values.get(SELECTED_MAP, 0.0) + MARGIN else None


def erasure_scores(
    model: "Seq2Seq | Scorer",
    tokenizers: Tokenizers,
    pairs: Sequence[TokenizedPair],
    maps: Sequence[Sequence[Matrix]],
) -> list[ErasureScores]:
    """Score several maps of each pair, (target words, source words) each; every variant of a source is scored once.

    Pairs of several parts, and pairs with fewer than two source words, are left out.
    """
    plans = [_ErasurePlan(pair, own, tokenizers) for pair, own in zip(pairs, maps, strict=True) if len(pair.parts) == 1]
    variants = [variant for plan in plans for variant in plan.variants()]
    scored = iter(scorer_for(model, tokenizers).log_probs(variants))
    drops: list[list[tuple[float, float]]] = [[] for _ in (maps[0] if maps else ())]
    for plan in plans:
        probs = {erased: plan.word_probs(next(scored)) for erased in plan.erased}
        for index, found in enumerate(plan.drops(probs)):
            drops[index] += found
    means = [np.mean(own, axis=0) if own else np.full(2, np.nan) for own in drops]
    return [ErasureScores(float(mean[0]), float(mean[1]), len(own)) for mean, own in zip(means, drops, strict=True)]


class _ErasurePlan:
    """The variants of one pair: the source without every set of words that a map selects."""

    def __init__(self, pair: TokenizedPair, maps: Sequence[Matrix], tokenizers: Tokenizers) -> None:
        [self.part], self.maps, self.reader = pair.parts, maps, tokenizers.source
        source, target = pair.texts(tokenizers)
        [self.source_words] = source.split_parts(source.core_of, [len(self.part.source)])
        [self.target_words] = target.split_parts(target.core_of)
        self.words = sorted({word for word in self.source_words if word >= 0})
        self.rows = [row for row, word in enumerate(target.words) if is_scored(word, row, self.target_words)]
        sets = [erased for matrix in maps for row in self.rows for both in self._sets(matrix[row]) for erased in both]
        self.erased = list(dict.fromkeys([frozenset[int](), *sets])) if len(self.words) > 1 else []

    def _sets(self, weights: Matrix) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
        """Yield for each share the words of largest weight, and all others; equal weights in the order of the words."""
        order = sorted(self.words, key=lambda word: -weights[word])
        for share in SHARES:
            count = min(max(1, round(share * len(order))), len(order) - 1)
            yield frozenset(order[:count]), frozenset(order[count:])

    def variants(self) -> Iterator[IdPair]:
        tags = len(self.source_words) - len(self.part.source)
        for erased in self.erased:
            removed = [position - tags for position, word in enumerate(self.source_words) if word in erased]
            yield self.part._replace(
                source=self.reader.occlude(self.part.source, removed) if removed else self.part.source
            )

    def word_probs(self, log_probs: Matrix) -> Matrix:
        """Return the probability of each output word from (T,) log-probabilities of the tokens."""
        counted = np.array(self.target_words)
        return np.exp(np.bincount(counted[counted >= 0], log_probs[counted >= 0], minlength=counted.max() + 1))

    def drops(self, probs: dict[frozenset[int], Matrix]) -> Iterator[list[tuple[float, float]]]:
        """Yield for each map the two mean drops of every output word."""
        complete = probs.get(frozenset())
        for matrix in self.maps:
            if complete is None:
                yield []
                continue
            rows = [
                np.mean(
                    [[complete[row] - probs[erased][row] for erased in both] for both in self._sets(matrix[row])], 0
                )
                for row in self.rows
            ]
            yield [(float(row[0]), float(row[1])) for row in rows]


def is_scored(word: str, row: int, target_words: Sequence[int]) -> bool:
    """Whether a word has tokens and is not punctuation alone."""
    return row in target_words and any(map(str.isalnum, word))

"""Dependence of the output on source words by distance, for trained models: by gradient and by occlusion.

Source and output are taken as one sequence, the output after the source; the distance of two words is their number of
steps in it. Each source word is measured at one output word, usually its translation. All models are measured on the
same sentences with the same given translations.

The output word must not be selected by the statistic being reported: a maximum over more words is larger, which would
inflate long sentences. Links are therefore selected by the other measure, over all models together, and every model is
measured at the same links. A word is linked only if no other source word matters more to the output word, because the
maximum of an unimportant word is arbitrary. Some wrong links remain; they affect all models, so results are compared
with the first model and not with 1.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softgaze.bundle import Tokenizers
from softgaze.data.corpus import Pair
from softgaze.evaluation.by_length import Bucket, automatic_edges, make_buckets, source_lengths
from softgaze.evaluation.significance import RESAMPLES, SEED, Estimate, confidence_interval
from softgaze.explain.occlusion import UNKNOWN, occlusion_scores
from softgaze.explain.recorder import collate_pairs, device_of
from softgaze.explain.recording import Matrix
from softgaze.explain.scoring import TokenizedPair, batches, check_max_positions
from softgaze.explain.word_spans import TokenizedText
from softgaze.models.base import Seq2Seq
from softgaze.translator import Translator

MAX_SENTENCES = 100
MEASURES = {
    "gradient": "gradient norm of the log-odds of an output word × norm of the embedding of the source word",
    "occlusion": "loss of log-probability of an output word when the source word is left out, in nats",
}
LINK_MEASURE = {"gradient": "occlusion", "occlusion": "gradient"}  # by which links are selected

Array = NDArray[np.float64]
Matrices = dict[str, list[Matrix]]  # by measure, (target words, source words) of each pair


class Link(NamedTuple):
    """A source word and its output word, by their indices in a sentence pair."""

    sentence: int
    source_word: int
    target_word: int


class LinkStrength(NamedTuple):
    sentence: int
    distance: int
    strength: float


class DistanceBucket(NamedTuple):
    """The mean strength of the links in a range of distances."""

    low: int
    high: int
    distance: float  # median
    words: int
    strength: Estimate


@dataclass(frozen=True)
class Dependence:
    """The links of one model by one measure."""

    model: str
    arch: str
    measure: str
    links: tuple[LinkStrength, ...]
    edges: tuple[int, ...]  # upper ends of all buckets but the last; the same for all models
    baseline: "Dependence | None" = None  # the first model, by the same measure at the same words

    @cached_property
    def _buckets(self) -> list[Bucket]:
        return make_buckets([link.distance for link in self.links], self.edges)

    @cached_property
    def buckets(self) -> list[DistanceBucket]:
        """Mean strengths from near to far."""
        return [
            DistanceBucket(
                bucket.low, bucket.high, bucket.length, len(bucket.members), _estimate(self._resample(bucket.members))
            )
            for bucket in self._buckets
        ]

    def _resample(self, members: Sequence[int]) -> Array:
        """Return the mean strength of some links, then that in test sets drawn from the sentences with replacement."""
        links = [self.links[member] for member in members]
        total = 1 + max(link.sentence for link in self.links)
        sentences = [link.sentence for link in links]
        sums = np.bincount(sentences, [link.strength for link in links], minlength=total)
        counts = np.bincount(sentences, minlength=total)
        draws = np.random.default_rng(SEED).multinomial(total, np.full(total, 1 / total), size=RESAMPLES)
        sets: Array = np.concatenate([np.ones((1, total)), draws])
        return _divide(sets @ sums, sets @ counts.astype(np.float64))

    @cached_property
    def _ratios(self) -> Array:
        """Return farthest over nearest bucket, then the same in resampled test sets."""
        near, far = (self._resample(self._buckets[end].members) for end in (0, -1))
        return _divide(far, near)

    @cached_property
    def missing_ratio(self) -> str:
        """Why there is no `far_to_near`; empty if there is one."""
        if len(self.buckets) < 2:
            return "one bucket only"
        return "" if self.buckets[0].strength.low > 0 else "near not above 0"

    @cached_property
    def far_to_near(self) -> Estimate | None:
        """Mean strength of the farthest bucket over that of the nearest one.

        Important words are not spread evenly over distances, so 1 is not expected even where distance has no effect.
        """
        return None if self.missing_ratio else _estimate(self._ratios)

    @cached_property
    def missing_comparison(self) -> str:
        """Why there is no `relative_to_baseline`; empty if there is one."""
        if self.baseline is None:
            return "no other model"
        if self.missing_ratio or self.baseline.missing_ratio:
            return self.missing_ratio or f"first: {self.baseline.missing_ratio}"
        return "" if _estimate(self.baseline._ratios).low > 0 else "first: far not above 0"

    @cached_property
    def relative_to_baseline(self) -> Estimate | None:
        """`far_to_near` over that of the first model on the same resampled sentences; below 1, distance hurts more."""
        if self.baseline is None or self.missing_comparison:
            return None
        return _estimate(_divide(self._ratios, self.baseline._ratios))

    def to_dict(self) -> dict[str, Any]:
        missing = self.missing_ratio or (self.missing_comparison if self.baseline else "")
        return {
            "model": self.model,
            "arch": self.arch,
            "measure": self.measure,
            "words": len(self.links),
            "buckets": [{**bucket._asdict(), "strength": vars(bucket.strength)} for bucket in self.buckets],
            "far_to_near": vars(self.far_to_near) if self.far_to_near else None,
            "first": self.baseline.model if self.baseline else None,
            "relative_to_first": vars(self.relative_to_baseline) if self.relative_to_baseline else None,
            "missing": missing or None,
        }


def _estimate(values: Array) -> Estimate:
    """Return the observed value, first in the array, with the confidence interval of the resampled ones."""
    observed, samples = float(values[0]), values[1:]
    return Estimate(observed, *confidence_interval(samples[np.isfinite(samples)], observed))


def _divide(ones: Array, others: Array) -> Array:
    """Divide; NaN or infinite where a resampled set has no such words."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Array = ones / others
    return ratios


# --- models -----------------------------------------------------------------------------------------------------


def measure_dependence(
    translators: dict[str, Translator], pairs: Sequence[Pair], advance: Callable[[], object] = lambda: None
) -> list[Dependence]:
    """Measure every model by every measure on the same pairs; `advance` is called after each model."""
    matrices: dict[str, Matrices] = {}
    for name, translator in translators.items():
        matrices[name] = dependence_matrices(translator, pairs)
        advance()
    return compare_models(matrices, {name: model.bundle.description.arch for name, model in translators.items()})


def compare_models(matrices: dict[str, Matrices], archs: dict[str, str]) -> list[Dependence]:
    """Measure all models at the same links, with the first one as baseline of the others."""
    links = {
        measure: select_links([model[LINK_MEASURE[measure]] for model in matrices.values()]) for measure in MEASURES
    }
    strengths = {
        (name, measure): tuple(link_strengths(model[measure], links[measure]))
        for name, model in matrices.items()
        for measure in MEASURES
    }
    edges = common_edges([[link.distance for link in model_links] for model_links in strengths.values()])
    baselines: dict[str, Dependence] = {}
    results = []
    for (name, measure), model_links in strengths.items():
        result = Dependence(name, archs[name], measure, model_links, edges, baselines.get(measure))
        baselines.setdefault(measure, result)
        results.append(result)
    return results


def common_edges(distances: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return bucket edges with enough words in a typical model; the last bucket has no upper end."""
    typical = sorted(distance for model in distances for distance in model)[:: len(distances)]
    *ends, last = automatic_edges(typical)
    return tuple(ends or [last])


def select_links(models: Sequence[Sequence[Matrix]]) -> list[Link]:
    """Link words that are each other's maximum in the summed matrices of all models.

    A word without a subword of its own in one of the models is left out for all.
    """
    links = []
    for sentence, matrices in enumerate(zip(*models, strict=True)):
        # Scaled to the same total, so that all models have the same weight.
        total = np.sum([matrix / (np.nansum(np.abs(matrix)) or 1.0) for matrix in matrices], axis=0)
        for source_word, strengths in enumerate(total.T):
            if not np.isnan(strengths).all():
                target_word = int(np.nanargmax(strengths))
                if np.nanargmax(total[target_word]) == source_word:
                    links.append(Link(sentence, source_word, target_word))
    return links


def link_strengths(matrices: Sequence[Matrix], links: Sequence[Link]) -> Iterator[LinkStrength]:
    """Look up the links in the matrices of one model."""
    for sentence, source_word, target_word in links:
        matrix = matrices[sentence]
        distance = matrix.shape[1] - source_word + target_word
        yield LinkStrength(sentence, distance, float(matrix[target_word, source_word]))


def dependence_matrices(translator: Translator, pairs: Sequence[Pair]) -> Matrices:
    """Return (target words, source words) of each pair, by each measure."""
    model, tokenizers = translator.model, translator.bundle.tokenizers
    tokenized = [TokenizedPair.of(*pair, tokenizers) for pair in pairs]
    for pair in tokenized:
        check_max_positions(pair, translator.max_positions)
    return {
        "gradient": gradients(model, tokenizers, tokenized),
        "occlusion": occlusion_scores(model, tokenizers, tokenized),
    }


# --- gradients --------------------------------------------------------------------------------------------------


def gradients(model: Seq2Seq, tokenizers: Tokenizers, pairs: Sequence[TokenizedPair]) -> list[Matrix]:
    """Return (target words, source words) of each pair of one part; NaN where a word has no subword of its own.

    The log-odds of an output word are differentiated, because its log-probability is flat where the model is certain.
    Gradients are multiplied by the norm of the source embeddings, so that models with longer embeddings do not seem to
    depend less.
    """
    matrices: list[Matrix] = [np.zeros((0, 0))] * len(pairs)
    for indices in batches([pair.parts[0] for pair in pairs]):
        batch = [pairs[index] for index in indices]
        for index, matrix in zip(indices, _batch_gradients(model, tokenizers, batch), strict=True):
            matrices[index] = matrix
    return matrices


def _batch_gradients(model: Seq2Seq, tokenizers: Tokenizers, batch: Sequence[TokenizedPair]) -> Iterator[Matrix]:
    """Run one forward pass, and one backward pass for each output word."""
    device = device_of(model)
    source, target = collate_pairs([pair.parts[0] for pair in batch], tokenizers, device)
    texts = [pair.texts(tokenizers) for pair in batch]
    source_words = _word_mask([text for text, _ in texts], source.values.shape[1]).to(device)  # (B, words, S)
    target_words = _word_mask([text for _, text in texts], target.shape[1] - 1).to(device)  # (B, words, T)
    rows = []
    # cuDNN has no backward pass of recurrent layers in eval mode.
    with torch.backends.cudnn.flags(enabled=False), _source_embeddings(model) as embeddings:
        odds = log_odds(model(source, target[:, :-1]).float(), target[:, 1:])  # (B, T)
        for word_odds in (target_words * odds[:, None]).sum(-1).unbind(1):
            [gradient] = torch.autograd.grad(word_odds.sum(), embeddings[0], retain_graph=True)
            norms = (
                (source_words @ vectors.float().square().sum(-1, keepdim=True)).squeeze(-1).sqrt()
                for vectors in (gradient, embeddings[0].detach())
            )
            rows.append(torch.stack([*norms]).prod(0))
    strengths = torch.stack(rows, 1).cpu().double().numpy()  # (B, target words, source words)
    for strength, (source_text, target_text) in zip(strengths, texts, strict=True):
        matrix = strength[: len(target_text.words), : len(source_text.words)]
        has_target, has_source = (
            np.array([bool(label.positions) for label in text.core_labels()]) for text in (target_text, source_text)
        )
        yield np.where(has_target[:, None] & has_source, matrix, UNKNOWN)


def log_odds(logits: Tensor, targets: Tensor) -> Tensor:
    """Return log p − log(1 − p) of the target tokens (B, T) from logits (B, T, V)."""
    target_logits = logits.gather(-1, targets[..., None])
    others = logits.scatter(-1, targets[..., None], -torch.inf).logsumexp(-1)
    return target_logits.squeeze(-1) - others


def _word_mask(texts: Sequence[TokenizedText], positions: int) -> Tensor:
    """Return (B, words, positions): 1 where a subword belongs to a word, without its punctuation."""
    mask = torch.zeros(len(texts), max(len(text.words) for text in texts), positions)
    for row, text in enumerate(texts):
        for word, label in enumerate(text.core_labels()):
            mask[row, word, list(label.positions)] = 1.0
    return mask


@contextmanager
def _source_embeddings(model: Seq2Seq) -> Iterator[list[Tensor]]:
    """Capture the source embeddings of the forward pass inside, as leaves of the gradient."""
    captured: list[Tensor] = []

    def capture(module: nn.Module, inputs: object, output: Tensor) -> Tensor:
        if captured:  # a shared table embeds the target later
            return output
        captured.append(output.detach().requires_grad_())
        return captured[0]

    hook = model.get_submodule("source_embedding").register_forward_hook(capture)
    try:
        with torch.enable_grad():
            yield captured
    finally:
        hook.remove()


# --- sentences --------------------------------------------------------------------------------------------------


def comparable_pairs(translators: dict[str, Translator], pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs that all models split into the same words: in scripts without spaces, words are subwords."""

    def words(pair: Pair, tokenizers: Tokenizers) -> tuple[tuple[str, ...], ...]:
        return tuple(text.words for text in TokenizedPair.of(*pair, tokenizers).texts(tokenizers))

    models = [translator.bundle.tokenizers for translator in translators.values()]
    return [pair for pair in pairs if len({words(pair, tokenizers) for tokenizers in models}) == 1]


def sample_by_length(pairs: Sequence[Pair], count: int = MAX_SENTENCES) -> list[Pair]:
    """Select at most `count` pairs evenly over length buckets, in their order."""
    pairs = [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
    buckets = [bucket.members for bucket in make_buckets(source_lengths([pair.source for pair in pairs]))]
    turns = [index for turn in zip_longest(*buckets) for index in turn if index is not None]
    return [pairs[index] for index in sorted(turns[:count])]

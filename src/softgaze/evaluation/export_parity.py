"""Export parity: measure whether an exported model equals the trained one.

In float32, the log-probability of every reference token must agree and every greedy output must be the same, except
where two tokens are nearly tied. Quantized weights are different numbers, so there BLEU must not drop.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from softgaze.engines import parity
from softgaze.engines.parity import TOLERANCE
from softgaze.errors import DivergedError
from softgaze.evaluation.significance import count_ngrams, difference
from softgaze.explain.scoring import IdPair, TokenizedPair
from softgaze.special_tokens import EOS
from softgaze.translation import TranslatedPart, Translation
from softgaze.translator import Translator

MAX_BLEU_LOSS = 0.3  # by quantization
MIN_P_VALUE = 0.05  # a BLEU loss with a smaller p-value is rejected
MAX_SENTENCES, MAX_SCORED = 200, 1000  # compared token by token, and by BLEU

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class BleuChange:
    before: float
    after: float
    p_value: float
    sentences: int

    @property
    def is_acceptable(self) -> bool:
        """Whether BLEU drops at most a little, and not significantly."""
        loss = self.before - self.after
        return loss <= 0 or (loss <= MAX_BLEU_LOSS and self.p_value >= MIN_P_VALUE)

    def __str__(self) -> str:
        return (
            f"BLEU {self.after:.2f} after {self.before:.2f} ({self.after - self.before:+.2f}, p {self.p_value:.3f}) on "
            f"{self.sentences:,} pairs"
        )


@dataclass(frozen=True)
class ParityReport:
    max_log_prob_difference: float  # over all reference tokens
    same: int  # greedy outputs that are equal
    near: int  # greedy outputs that differ at a near tie
    sentences: int
    quality: BleuChange | None  # of quantized weights

    @property
    def is_acceptable(self) -> bool:
        """Whether a quantized export is hardly worse, and any other export the same model."""
        if self.quality is not None:
            return self.quality.is_acceptable
        return self.max_log_prob_difference < TOLERANCE and self.same + self.near == self.sentences

    def check(self) -> None:
        """Raise DivergedError unless the export is acceptable."""
        if self.quality is None and not self.is_acceptable:
            raise DivergedError(
                f"the exported model differs: {self.tokens()}; allowed are differences below {TOLERANCE} and 0 outputs"
            )
        if self.quality is not None and not self.is_acceptable:
            raise DivergedError(
                f"the exported model is worse: {self.quality}; allowed is a loss of {MAX_BLEU_LOSS} BLEU with "
                f"p >= {MIN_P_VALUE}"
            )

    def tokens(self) -> str:
        """Describe the differences of log-probabilities and greedy outputs."""
        different = self.sentences - self.same - self.near
        near = f" ({self.near} more at near ties)" if self.near else ""
        return (
            f"log-probabilities differ by up to {self.max_log_prob_difference:.1g}, {different} of {self.sentences} "
            f"greedy outputs differ{near}"
        )

    def loss(self) -> str:
        """Describe the reason to reject the export."""
        return str(self.quality or self.tokens())

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure_parity(before: Translator, after: Translator, pairs: Pairs, *, quantized: bool) -> ParityReport:
    """Compare a model with its export on sentence pairs; measure BLEU only if the export is quantized."""
    sources = [*dict.fromkeys(source for source, _ in pairs)][:MAX_SENTENCES]  # an image may have many captions
    outputs = zip(before.translate(sources, beam_size=1), after.translate(sources, beam_size=1), strict=True)
    verdicts = [compare_outputs(before, *output) for output in outputs]
    return ParityReport(
        max_log_prob_difference=max_log_prob_difference(before, after, pairs[:MAX_SENTENCES]),
        same=verdicts.count("same"),
        near=verdicts.count("near"),
        sentences=len(verdicts),
        quality=bleu_change(before, after, pairs[:MAX_SCORED]) if quantized else None,
    )


def max_log_prob_difference(before: Translator, after: Translator, pairs: Pairs) -> float:
    """Compare the log-probabilities of all reference tokens; pairs too long for either model are left out."""
    models = before, after
    batches: tuple[list[IdPair], list[IdPair]] = ([], [])
    for source, target in pairs:
        tokenized = [TokenizedPair.of(source, target, model.bundle.tokenizers).parts for model in models]
        for parts in zip(*tokenized, strict=True):
            tokens = (*parts[0].target, EOS)
            fits_target = all(model.max_positions is None or len(tokens) < model.max_positions for model in models)
            if fits_target and all(
                len(part.source) <= model.max_source_length for part, model in zip(parts, models, strict=True)
            ):
                for batch, part in zip(batches, parts, strict=True):
                    batch.append(part._replace(target=tokens))
    scores = (model.engine.log_probs(batch) for model, batch in zip(models, batches, strict=True))
    return max((float(np.abs(one - other).max()) for one, other in zip(*scores, strict=True)), default=0.0)


def compare_outputs(before: Translator, one: Translation, other: Translation) -> str:
    """Return whether two greedy outputs are the "same", differ at a "near" tie, or are "different"."""
    verdict = "same"
    for parts in zip_longest(one.parts, other.parts):
        if None in parts or not (is_same(*parts) or is_near_tie(before, *parts)):
            return "different"
        if not is_same(*parts):
            verdict = "near"
    return verdict


def is_same(one: TranslatedPart, other: TranslatedPart) -> bool:
    """Whether both parts have the same tokens and end the same way."""
    return (one.target_ids, one.finished) == (other.target_ids, other.finished)


def is_near_tie(before: Translator, one: TranslatedPart, other: TranslatedPart) -> bool:
    """Whether the first two tokens that differ are nearly equally likely to the trained model."""
    first, second = ([*part.target_ids, *[EOS] * part.finished] for part in (one, other))
    source = before.bundle.tokenizers.source.strip_eos(one.source_ids)
    return parity.is_near_tie(before.engine, IdPair(source, first), second)


def bleu_change(before: Translator, after: Translator, pairs: Pairs) -> BleuChange:
    """Score both models on the same sentences; the p-value is the larger one of both tests."""
    sources, references = map(list, zip(*pairs, strict=True))
    language = before.bundle.description.target_language
    one, other = (
        count_ngrams([out.text for out in model.translate(sources)], references, language=language)
        for model in (before, after)
    )
    p_value = difference(one, other, "bleu").p
    return BleuChange(one.score("bleu"), other.score("bleu"), p_value, len(references))

"""Attention metrics over a test set: entropy and coverage of the translations, alignment error rate of the references.

All are measured on the attention map that was selected for the model. Gold alignments belong to the references, so the
alignment error rate is computed with the references forced as output.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from softgaze.explain.alignment import Alignment, AlignmentCounts, count_links
from softgaze.explain.corpus_report import mean_entropy, share_covered

if TYPE_CHECKING:
    from softgaze.translator import Translation, Translator

BLOCK = 128  # sentences whose maps are in memory at once
SELECTION_PAIRS = 128  # for selecting a map, if the model has no selected one


@dataclass(frozen=True)
class SentenceAttention:
    """The metrics of one sentence; None where the translation is empty."""

    entropy: float | None  # mean over output words, nats
    coverage: float | None  # share of source words attended to
    links: AlignmentCounts | None = None  # compared with the gold alignment


@dataclass(frozen=True)
class AttentionSummary:
    """The metrics of many sentences."""

    sentences: int
    entropy: float | None
    coverage: float | None
    links: AlignmentCounts | None

    @property
    def aer(self) -> float | None:
        """Alignment error rate, 0 to 1."""
        return self.links.aer if self.links else None


@dataclass(frozen=True)
class AttentionMetrics:
    """The metrics of every sentence of a test set, for one model."""

    attention_map: str  # description of the selected map
    sentences: tuple[SentenceAttention, ...]

    def summary(self, members: Iterable[int] | None = None) -> AttentionSummary:
        """Average over all sentences, or over those with the given indices."""
        chosen = self.sentences if members is None else [self.sentences[index] for index in members]
        entropies = [sentence.entropy for sentence in chosen if sentence.entropy is not None]
        coverages = [sentence.coverage for sentence in chosen if sentence.coverage is not None]
        links = [sentence.links for sentence in chosen if sentence.links is not None]
        return AttentionSummary(
            sentences=len(entropies),
            entropy=fmean(entropies) if entropies else None,
            coverage=fmean(coverages) if coverages else None,
            links=AlignmentCounts(*map(sum, zip(*links, strict=True))) if links else None,
        )


def measure_attention(
    translator: "Translator",
    translations: "Sequence[Translation]",
    references: Sequence[str],
    gold: Sequence[Alignment] | None = None,
    progress: Callable[[int], None] | None = None,
) -> AttentionMetrics | None:
    """Measure the attention of `translations`; return None for a model without attention."""
    if not translator.has_attention:
        return None
    pairs = [(out.source, reference) for out, reference in zip(translations, references, strict=True)]
    translator = translator.with_selected_map(pairs[:SELECTION_PAIRS])
    sentences: list[SentenceAttention] = []
    for start in range(0, len(pairs), BLOCK):
        block = slice(start, start + BLOCK)
        links: Iterable[AlignmentCounts | None] = [None] * len(pairs[block])
        if gold is not None:
            alignments = translator.aligner().align(pairs[block])
            links = [count_links(ours.all, right) for ours, right in zip(alignments, gold[block], strict=True)]
        for attention, counts in zip(translator.attentions(translations[block]), links, strict=True):
            if attention is None:
                sentences.append(SentenceAttention(None, None, counts))
                continue
            words = attention.words()
            covered = share_covered(words.word_weights().sum(axis=0))
            sentences.append(SentenceAttention(mean_entropy(words), covered, counts))
        if progress:
            progress(len(pairs[block]))
    return AttentionMetrics(translator.aligner().forward.describe(), tuple(sentences))

"""Where a model looked, in numbers that add up over sentences: how widely, at how much of the source, and how rightly.

Entropy and coverage are of the model's own translations; the alignment error rate is of the references, which are what
gold links belong to. All are of the map that was measured to be the model's best.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softgaze.gaze.alignment import Alignment, Counts, compared
from softgaze.gaze.attention import Attention
from softgaze.gaze.corpus import mean_entropy, share_covered

if TYPE_CHECKING:
    from softgaze.translator import Translation, Translator

BLOCK = 128  # sentences whose maps are in memory at once
SAMPLE = 128  # pairs among which a map is chosen, where the model comes without a choice


@dataclass(frozen=True)
class Glance:
    """One sentence."""

    entropy: float | None  # of a row in the mean, in nats; None where nothing was written, so nothing looked at
    coverage: float | None  # the share of source words that were looked at
    links: Counts | None = None  # against gold


@dataclass(frozen=True)
class Quality:
    """Of many sentences."""

    sentences: int  # that were looked at
    entropy: float | None
    coverage: float | None
    links: Counts | None

    @property
    def aer(self) -> float | None:
        """The alignment error rate, from 0 to 1."""
        return self.links.aer if self.links else None


@dataclass(frozen=True)
class Looks:
    """Every sentence of a test set as one model saw it."""

    shows: str  # which map, in words
    glances: tuple[Glance, ...]

    def quality(self, members: Iterable[int] | None = None) -> Quality:
        """Of some sentences, or of all."""
        chosen = self.glances if members is None else [self.glances[each] for each in members]
        entropies = [each.entropy for each in chosen if each.entropy is not None]
        coverages = [each.coverage for each in chosen if each.coverage is not None]
        links = [each.links for each in chosen if each.links is not None]
        return Quality(
            sentences=len(entropies),
            entropy=mean(entropies),
            coverage=mean(coverages),
            links=Counts(*map(sum, zip(*links, strict=True))) if links else None,
        )


def mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return sum(values) / len(values) if values else None


def look_at(
    translator: "Translator",
    found: "Sequence[Translation]",
    references: Sequence[str],
    gold: Sequence[Alignment] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Looks | None:
    """Where the model looked while it wrote `found`; None for a model without attention."""
    if not translator.aligner().forward.can_look:
        return None
    pairs = [(each.source, wanted) for each, wanted in zip(found, references, strict=True)]
    seeing = translator.measured(pairs[:SAMPLE])
    glances: list[Glance] = []
    for start in range(0, len(pairs), BLOCK):
        block = slice(start, start + BLOCK)
        glances += look_at_block(seeing, found[block], pairs[block], gold[block] if gold is not None else None)
        if progress:
            progress(len(pairs[block]))
    return Looks(seeing.aligner().forward.describe(), tuple(glances))


def look_at_block(
    translator: "Translator",
    found: "Sequence[Translation]",
    pairs: Sequence[tuple[str, str]],
    gold: Sequence[Alignment] | None,
) -> Iterator[Glance]:
    """A glance for each sentence; `pairs` are the sources and the references that gold links."""
    maps = translator.attentions(found)
    if gold is None:
        yield from map(glance, maps)
        return
    for attention, mine, right in zip(maps, translator.aligner().align(pairs), gold, strict=True):
        yield glance(attention, compared(mine.all, right))


def glance(attention: Attention | None, links: Counts | None = None) -> Glance:
    """The numbers of one map."""
    if attention is None:
        return Glance(None, None, links)
    words = attention.words()
    return Glance(mean_entropy(words), share_covered(words.word_weights().sum(axis=0)), links)

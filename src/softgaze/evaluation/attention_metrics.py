"""Attention metrics over a test set: entropy and coverage of the translations, alignment error rate of the references.

All are measured on the attention map that was selected for the model. Gold alignments belong to the references, so the
alignment error rate is computed with the references forced as output. The map is also tested by erasing the words it
names, and compared with a random map, with occlusion and, for torch models, with other attributions.

The pointing game is the share of the attention of a noun that lies on the object it names, compared with chance.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from softgaze.data.captions import LabelledBox
from softgaze.data.corpora.scenes import SHAPES, Scene, draw
from softgaze.data.images import Box, Photo, pointing, share
from softgaze.explain.alignment import Alignment, AlignmentCounts, count_links, sum_counts
from softgaze.explain.attention_map import Attention
from softgaze.explain.corpus_report import mean_entropy, share_covered
from softgaze.explain.erasure import ErasureScores, compare_maps
from softgaze.explain.map_selection import SENTENCE_LENGTHS
from softgaze.explain.word_spans import EDGE_PUNCTUATION

if TYPE_CHECKING:
    from softgaze.translation import Translation
    from softgaze.translator import Translator

BLOCK = 128  # sentences whose maps are in memory at once
SELECTION_PAIRS = 128  # for selecting a map, if the model has no selected one

# Other words for COCO's categories; every category is also named by itself and its plural.
SYNONYMS = {
    "person": "people man men woman women boy boys girl girls child children kid kids lady guy player rider skier",
    "airplane": "plane planes jet",
    "bicycle": "bike bikes",
    "motorcycle": "motorbike motorcycles bike bikes",
    "couch": "sofa",
    "tv": "television",
    "cell phone": "phone cellphone",
    "dining table": "table",
    "potted plant": "plant plants",
    "donut": "doughnut doughnuts",
    "refrigerator": "fridge",
    "knife": "knives",
    "sheep": "",
    "skis": "ski",
}


@dataclass(frozen=True)
class SentenceAttention:
    """The metrics of one sentence; None where the translation is empty."""

    entropy: float | None  # mean over output words, nats
    coverage: float | None  # share of source words attended to
    links: AlignmentCounts | None = None  # compared with the gold alignment


@dataclass(frozen=True)
class AttentionSummary:
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
    erasure: dict[str, ErasureScores] = field(default_factory=dict)  # of the selected map and of others

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
            links=sum_counts(links) if links else None,
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
    erasure = compare_maps(translator, translations, SENTENCE_LENGTHS)
    return AttentionMetrics(translator.aligner().forward.describe(), tuple(sentences), erasure)


# --- pointing game ---------------------------------------------------------------------------------------------


class PointingScore(NamedTuple):
    """The score of one word, or the mean of many."""

    mass: float  # share of the attention inside the right boxes
    chance: float  # share of the image that these boxes cover: the mass of uniform attention
    nouns: int = 1

    def __str__(self) -> str:
        return (
            f"{self.mass:.1%} of the attention of {self.nouns:,} nouns is in the right box (chance {self.chance:.1%})"
        )


class Mention(NamedTuple):
    """A word that names an object: its index in the caption, and the boxes of such objects in the image."""

    word: int
    boxes: tuple[Box, ...]


def pointing_score(attention: Attention, word: int, boxes: Sequence[Box]) -> PointingScore:
    """Score the output word with index `word`; boxes are fractions of the part of the image that the model saw."""
    words = attention.words()
    row = next(row for row, label in enumerate(words.row_labels) if label.word == word)
    return PointingScore(pointing(words.tile(row), boxes), share(boxes))


def score_mentions(attention: Attention, photo: Photo, mentions: Iterable[Mention]) -> list[PointingScore]:
    """Score all mentions of a caption, except those outside of the part of the image that the model saw."""
    visible = [(word, [photo.to_grid(box) for box in boxes]) for word, boxes in mentions]
    return [pointing_score(attention, word, boxes) for word, boxes in visible if any(box.area for box in boxes)]


def mean_pointing(scores: Iterable[PointingScore]) -> PointingScore | None:
    """Average many words; return None if there are none."""
    scores = list(scores)
    if not scores:
        return None
    return PointingScore(fmean(score.mass for score in scores), fmean(score.chance for score in scores), len(scores))


def scene_mentions(scene: Scene, text: str, language: str = "en") -> list[Mention]:
    """Match the nouns of a caption with the objects of a built-in scene, in order of mention.

    A noun that names another shape than the object at its turn is left out.
    """
    names = {shape: shape if language == "en" else korean for shape, korean in SHAPES.items()}
    nouns = [(index, word) for index, word in enumerate(caption_words(text)) if word in names.values()]
    turns = zip(nouns, scene.objects, draw(scene).boxes, strict=False)  # a caption may have more or fewer nouns
    return [Mention(index, (box,)) for (index, word), thing, box in turns if names[thing.shape] == word]


def label_mentions(text: str, labels: Sequence[LabelledBox]) -> list[Mention]:
    """Find the words of a caption that name a category in the image, each with all boxes of that category."""
    words = caption_words(text)
    mentions: dict[int, Mention] = {}
    for name in dict.fromkeys(label.name.lower() for label in labels):
        boxes = tuple(label.box for label in labels if label.name.lower() == name)
        forms = [form.split() for form in (name, f"{name}s", f"{name}es", *SYNONYMS.get(name, "").split())]
        for last in range(len(words)):
            if any(words[max(last + 1 - len(form), 0) : last + 1] == form for form in forms):
                mentions.setdefault(last, Mention(last, boxes))
    return [mentions[index] for index in sorted(mentions)]


def caption_words(text: str) -> list[str]:
    """Split at spaces, in lower case and without surrounding punctuation."""
    return [word.strip(EDGE_PUNCTUATION).lower() for word in text.split()]

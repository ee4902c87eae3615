"""Attention metrics over a test set: entropy and coverage of the translations, alignment error rate of the references.

All are measured on the attention map that was selected for the model. Gold alignments belong to the references, so the
alignment error rate is computed with the references forced as output. The map is also tested by erasing the words it
names, and compared with a random map, with occlusion and, for torch models, with other attributions.

The pointing game is the share of the attention of a noun that lies on the object it names, compared with chance and
with the mean map of all nouns. The attention of captions is also tested by occluding regions, and the self-attention of
an image encoder by the share that a region of an object gives to the same object.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softgaze.data.captions import LabelledBox
from softgaze.data.corpora.scenes import SHAPES, Scene, draw
from softgaze.data.images import Box, Photo, coverage, pointing, share
from softgaze.explain.alignment import Alignment, AlignmentCounts, count_links, sum_counts
from softgaze.explain.attention_map import Attention
from softgaze.explain.corpus_report import mean_entropy, share_covered
from softgaze.explain.erasure import ErasureScores, compare_maps, erasure_scores
from softgaze.explain.explanation import tokenized_pair
from softgaze.explain.map_selection import SENTENCE_LENGTHS
from softgaze.explain.occlusion import occlusion_scores, word_faithfulness
from softgaze.explain.recording import Matrix
from softgaze.explain.word_spans import EDGE_PUNCTUATION

if TYPE_CHECKING:
    from softgaze.translation import Translation
    from softgaze.translator import Translator

BLOCK = 128  # sentences whose maps are in memory at once
ERASURE_CAPTIONS = 24  # whose maps are tested by erasing regions: about a hundred variants of each
HIT_COVERAGE = 0.5  # of a cell by the boxes, so that it counts as inside
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
    mean_map: float | None = None  # mass of the mean map of all nouns, which is the same for every noun
    hits: float | None = None  # share of nouns whose largest weight is inside the right boxes
    mean_map_hits: float | None = None

    def __str__(self) -> str:
        mean_map = "" if self.mean_map is None else f", mean map {self.mean_map:.1%}"
        hits = (
            ""
            if self.hits is None or self.mean_map_hits is None
            else f"; the largest weight is in {self.hits:.1%} (mean map {self.mean_map_hits:.1%})"
        )
        share = f"{self.mass:.1%} of the attention of {self.nouns:,} nouns is in the right box"
        return f"{share} (chance {self.chance:.1%}{mean_map}){hits}"


class RegionScore(NamedTuple):
    """How much of the encoder's self-attention stays on an object, averaged over the regions of objects."""

    mass: float  # share of a region's attention inside the box of its object
    chance: float  # share of the image that the box covers
    regions: int

    def __str__(self) -> str:
        return (
            f"{self.mass:.1%} of the self-attention of {self.regions:,} regions stays in the box of their object "
            f"(chance {self.chance:.1%})"
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


NounMap = tuple[Matrix, list[Box]]  # weights of a noun on the grid, and the boxes of what it names


def noun_maps(attention: Attention, photo: Photo, mentions: Iterable[Mention]) -> list[NounMap]:
    """Return the map of every mention, except those outside of the part of the image that the model saw."""
    visible = [(word, [photo.to_grid(box) for box in boxes]) for word, boxes in mentions]
    words = attention.words()
    rows = {label.word: row for row, label in enumerate(words.row_labels)}
    return [(words.tile(rows[word]), boxes) for word, boxes in visible if any(box.area for box in boxes)]


def pointing_game(maps: Sequence[NounMap]) -> PointingScore | None:
    """Compare the maps of all nouns of a test set with chance and with their mean map; return None if there are none.

    A model that attends to the middle of every photo has a good mean map, but nothing beyond it.
    """
    if not maps:
        return None
    mean = np.mean([tile for tile, _ in maps], axis=0)

    def is_hit(tile: Matrix, boxes: list[Box]) -> bool:
        return bool(coverage(boxes, *tile.shape).flat[tile.argmax()] >= HIT_COVERAGE)

    return PointingScore(
        mass=fmean(pointing(tile, boxes) for tile, boxes in maps),
        chance=fmean(share(boxes) for _, boxes in maps),
        nouns=len(maps),
        mean_map=fmean(pointing(mean, boxes) for _, boxes in maps),
        hits=fmean(is_hit(tile, boxes) for tile, boxes in maps),
        mean_map_hits=fmean(is_hit(mean, boxes) for _, boxes in maps),
    )


def region_scores(attention: Attention, photo: Photo, labels: Sequence[LabelledBox]) -> list[RegionScore]:
    """Score the encoder's self-attention: for each region that is mostly one object, the mass inside that object."""
    if attention.grid is None or not attention.has_encoder_attention:
        return []
    rows, columns = attention.grid
    weights = attention.encoder().mean().subwords().weights[: rows * columns, : rows * columns]
    scores = []
    for label in labels:
        inside = coverage([photo.to_grid(label.box)], rows, columns).ravel()
        area = float(inside.mean())
        scores += [RegionScore(float(weights[region] @ inside), area, 1) for region in np.flatnonzero(inside > 0.5)]
    return scores


def mean_region_score(scores: Sequence[RegionScore]) -> RegionScore | None:
    """Average many regions; return None if there are none."""
    if not scores:
        return None
    return RegionScore(fmean(score.mass for score in scores), fmean(score.chance for score in scores), len(scores))


def region_faithfulness(
    translator: "Translator", captions: "Sequence[Translation]"
) -> tuple[dict[str, ErasureScores], float]:
    """Test the maps of some captions by occluding regions; return the scores of maps, and the rank correlation.

    The other maps are random, the mean map of all words, and the occlusion of single regions, which is the best
    possible ranking by this test.
    """
    chosen, tokenizers = list(captions[:ERASURE_CAPTIONS]), translator.bundle.tokenizers
    attentions = translator.attentions(chosen)
    chosen = [each for each, attention in zip(chosen, attentions, strict=True) if attention is not None]
    own = [attention.word_weights() for attention in attentions if attention is not None]
    pairs = [tokenized_pair(translator, each) for each in chosen]
    occlusions = [np.nan_to_num(each) for each in occlusion_scores(translator.scorer, tokenizers, pairs)]
    if not own:
        return {}, float("nan")
    random, mean = np.random.default_rng(0), np.concatenate(own).mean(axis=0)
    maps = {
        "attention": own,
        "mean map": [np.broadcast_to(mean, each.shape) for each in own],
        "random": [random.random(each.shape) for each in own],
        "occlusion": occlusions,
    }
    correlations = [
        value for one, other in zip(own, occlusions, strict=True) for value in word_faithfulness(one, other)
    ]
    known = [float(value) for value in correlations if not np.isnan(value)]
    scores = erasure_scores(translator.scorer, tokenizers, pairs, list(zip(*maps.values(), strict=True)))
    return dict(zip(maps, scores, strict=True)), fmean(known) if known else float("nan")


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

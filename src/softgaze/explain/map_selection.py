"""Select the attention map to show for a model, measured on sentence pairs without gold alignments; and align words.

Candidates are all layers (and their mean) × heads (and their mean) × row meanings × weights or norms of the
cross-attention; of the mean of all layers only the mean of heads. With a reverse model, the pair of maps whose
alignments agree best is selected, else the map that agrees best with occlusion, on sentences and on longer texts. A
head that was trained on alignments is preferred to maps that agree little better.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from softgaze.bundle import Tokenizers
from softgaze.errors import UsageError, pick
from softgaze.explain.alignment import METHODS, Alignment, Links
from softgaze.explain.attention_map import Attention, default_attention, group_tokens, row_column_normalize
from softgaze.explain.occlusion import occlusion_scores
from softgaze.explain.recording import BY_GUIDING, LINKED, ROWS, Flags, Matrix, Recording, SelectedMap, View
from softgaze.explain.scoring import Scorer, TokenizedPair, check_max_positions, record_attention

if TYPE_CHECKING:
    from softgaze.models.base import Seq2Seq

MAX_SENTENCES = 48  # enough to select the same map again; occlusion of so many takes seconds
MAX_OCCLUSIONS, MIN_SENTENCES = 1500, 6  # occluded words in total; at least so many sentences
SENTENCE_LENGTHS = range(3, 21)  # words: in shorter sentences all maps agree, longer ones are slow
JOINED, MAX_JOINED = 3, 8  # sentences of a longer text, and the number of such texts
BY_OCCLUSION = "agreement with occlusion"
BY_AGREEMENT = "agreement with the reverse model"
BY_CONFIRMED = "alignment head, confirmed by occlusion"
ALIGNMENT_MARGIN = 0.1  # of the score: an alignment head is selected unless another map is better by more
MIN_EFFECT = 1.0  # nats: a source word that changed the whole output by less than this counts for little
METHOD = "grow-diag-final"

SentencePairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class AttentionReader:
    """Reads the attention of a model for sentence pairs, with the map selected for it, if any."""

    model: "Seq2Seq | Scorer"
    tokenizers: Tokenizers
    selected_map: SelectedMap | None = None
    max_positions: int | None = None
    alignment_head: tuple[int, int] | None = None  # layer and head that the toolkit of an import trains on alignments

    @property
    def has_cross_attention(self) -> bool:
        return self.model.cross_attention_shape != (0, 0)

    def describe(self) -> str:
        """Describe the map that alignments are made of; empty without a selected map."""
        if self.selected_map is None:
            return ""
        description = self.selected_map.view.describe(*self.model.cross_attention_shape, unit=LINKED)
        note = self.model.note if isinstance(self.model, Scorer) else ""
        return "; ".join(filter(None, [description, note, self.selected_map.describe()]))

    def tokenize(self, pairs: SentencePairs) -> list[TokenizedPair]:
        """Tokenize pairs; raise if one is too long for the model."""
        tokenized = [TokenizedPair.of(*pair, self.tokenizers) for pair in pairs]
        for pair in tokenized:
            check_max_positions(pair, self.max_positions)
        return tokenized

    def fitting(self, pairs: SentencePairs) -> SentencePairs:
        """Return the pairs that are not too long for the model."""
        limit = self.max_positions
        lengths = [
            max((len(side) for part in TokenizedPair.of(*pair, self.tokenizers).parts for side in part[:2]), default=0)
            for pair in pairs
        ]
        return [pair for pair, length in zip(pairs, lengths, strict=True) if limit is None or length < limit]

    def recordings(self, pairs: SentencePairs) -> list[Recording]:
        return record_attention(self.model, self.tokenizers, self.tokenize(pairs))

    def attention(self, pairs: SentencePairs) -> list[Attention | None]:
        """Return the selected map of each pair; None if a side is empty or the model has no cross-attention."""
        recordings = self.recordings(pairs)
        return [default_attention(recording, self.selected_map, self.alignment_head) for recording in recordings]


# --- selection --------------------------------------------------------------------------------------------------


def select_by_occlusion(
    reader: AttentionReader,
    pairs: Iterable[tuple[str, str]],
    allowed: Callable[[View], bool] = lambda view: True,
    *,
    guided: View | None = None,
) -> SelectedMap | None:
    """Select the map that agrees best with occlusion; None without cross-attention or without a sentence.

    Sentences alone and texts of several sentences have equal weight.

    The head that was `guided` by alignments wins over all others, because it learned to align words.
    """
    sample = sample_pairs(pairs)
    recordings = reader.recordings(sample)
    # One pass for each source word adds up if the words are image patches.
    passes = np.cumsum([len(recording.source.words) for recording in recordings])
    count = max(MIN_SENTENCES, int((passes <= MAX_OCCLUSIONS).sum()))
    sample, recordings = sample[:count], recordings[:count]
    if not recordings or "cross" not in recordings[0].kinds:
        return None
    views = [view for view in candidate_views(recordings[0]) if allowed(view)]
    guided_views = [view for view in views if guided and is_trained(view, recordings[0], guided)]
    views, by = (guided_views, BY_GUIDING) if guided_views else (views, BY_OCCLUSION)
    scores = agreement_scores(reader, sample, recordings, views)
    if longer := reader.fitting(longer_pairs(sample)) if reader.tokenizers.source.is_text else []:
        scores = (scores + agreement_scores(reader, longer, reader.recordings(longer), views)) / 2
    best = int(scores.argmax())
    best_head = max(  # of all heads as they would be trained on alignments: the one that was is the best (docs/log.md)
        (
            scores[index]
            for index, view in enumerate(views)
            if view.layer is not None
            if is_trained(view, recordings[0], View(layer=view.layer, head=view.head or 0))
        ),
        default=0.0,
    )
    for index, view in enumerate(views):
        head = reader.alignment_head and View(layer=reader.alignment_head[0], head=reader.alignment_head[1])
        if (
            head
            and is_trained(view, recordings[0], head)
            and scores[index] >= max(scores[best] - ALIGNMENT_MARGIN, best_head)
        ):
            best, by = index, by if by == BY_GUIDING else BY_CONFIRMED
            break
    return SelectedMap(views[best], round(float(scores[best]), 4), by, len(sample))


def agreement_scores(
    reader: AttentionReader, pairs: SentencePairs, recordings: Sequence[Recording], views: Sequence[View]
) -> Matrix:
    """Return (C,): the agreement of each view with occlusion over all pairs, from 0 to 1."""
    occlusions = occlusion_scores(reader.model, reader.tokenizers, reader.tokenize(pairs))
    whole_map = not reader.tokenizers.source.is_text
    rows = [
        occlusion_agreement(word_maps(recording, views), occlusion, whole_map=whole_map)
        for recording, occlusion in zip(recordings, occlusions, strict=True)
    ]
    reached, reachable = np.sum(rows, axis=0)  # each (C,)
    scores: Matrix = reached / np.where(reachable > 0, reachable, 1.0)
    return scores


def longer_pairs(sample: SentencePairs) -> SentencePairs:
    """Return texts of several pairs each, so that a map that is right on short sentences only is not selected."""
    return concatenate(sample, [frozenset()] * len(sample), JOINED, MAX_JOINED)[0]


def is_trained(view: View, recording: Recording, guided: View) -> bool:
    """Whether a view shows a head as it was trained; of a layer with one head, views show the mean."""
    _, heads = recording.size("cross")
    return view == (replace(guided, head=None) if heads == 1 else guided)


def select_by_agreement(
    forward: AttentionReader, reverse: AttentionReader, pairs: Iterable[tuple[str, str]]
) -> tuple[SelectedMap, SelectedMap] | None:
    """Select for both models the maps whose links agree best (F1); None if no pair can be compared."""
    sample = sample_pairs(pairs)
    recordings = zip(
        forward.recordings(sample), reverse.recordings([(target, source) for source, target in sample]), strict=True
    )
    both = [pair for pair in recordings if all("cross" in one.kinds for one in pair) and same_words(*pair)]
    if not both:
        return None
    views = [candidate_views(recording) for recording in both[0]]
    links = [link_matrix(word_maps(one, views[0])).reshape(len(views[0]), -1) for one, _ in both]  # (C, T·S)
    reverse_links = [
        link_matrix(word_maps(other, views[1])).swapaxes(1, 2).reshape(len(views[1]), -1) for _, other in both
    ]
    first, second = (np.concatenate(rows, axis=1).astype(np.float64) for rows in (links, reverse_links))
    total = first.sum(1)[:, None] + second.sum(1)
    scores = 2 * (first @ second.T) / np.maximum(total, 1)  # (C, C')
    best = np.unravel_index(scores.argmax(), scores.shape)
    score = round(float(scores[best]), 4)
    one, other = (
        SelectedMap(candidates[int(index)], score, BY_AGREEMENT, len(both))
        for candidates, index in zip(views, best, strict=True)
    )
    return one, other


def same_words(forward: Recording, reverse: Recording) -> bool:
    """Whether both directions have the same words; in scripts without spaces each tokenizer makes its own."""
    return (forward.source.words, forward.target.words) == (reverse.target.words, reverse.source.words)


def sample_pairs(pairs: Iterable[tuple[str, str]], limit: int = MAX_SENTENCES) -> SentencePairs:
    """Return the first pairs of suitable length; if there are none, of any length."""
    suitable: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    for source, target in pairs:
        lengths = len(source.split()), len(target.split())
        if lengths[0] in SENTENCE_LENGTHS and lengths[1] and lengths[1] < SENTENCE_LENGTHS.stop:
            suitable.append((source, target))
        elif all(lengths) and len(others) < limit:
            others.append((source, target))
        if len(suitable) == limit:
            break
    return suitable or others


def concatenate(
    pairs: SentencePairs, links: Sequence[Links], size: int, count: int
) -> tuple[list[tuple[str, str]], list[Links]]:
    """Return up to `count` texts of `size` pairs each, from the whole of the pairs, with their links."""
    texts: list[tuple[str, str]] = []
    joined: list[Links] = []
    step = len(pairs) // size  # the parts are far from each other in the text
    for start in range(min(count, step)):
        chosen = range(start, start + size * step, step)
        offsets, own = (0, 0), set()
        for index in chosen:
            own |= {(source + offsets[0], target + offsets[1]) for source, target in links[index]}
            offsets = offsets[0] + len(pairs[index][0].split()), offsets[1] + len(pairs[index][1].split())
        texts.append((" ".join(pairs[i][0] for i in chosen), " ".join(pairs[i][1] for i in chosen)))
        joined.append(frozenset(own))
    return texts, joined


def candidate_views(recording: Recording) -> list[View]:
    """Return every map of the cross-attention that may be selected."""
    layers, heads = recording.size("cross")
    heads_and_mean: list[int | None] = [None] if heads == 1 else [None, *range(heads)]  # of equals the mean wins
    slices: list[tuple[int | None, int | None]] = [*product(range(layers), heads_and_mean)]
    if layers > 1:
        slices.append((None, None))
    return [
        View(layer=layer, head=head, rows=rows, measure=measure)
        for (layer, head), rows, measure in product(slices, ("predicting", "reading"), ("weights", "norms"))
    ]


def word_maps(recording: Recording, views: Sequence[View]) -> Matrix:
    """Return (C, target words, source words): `Attention.word_weights` of many views at once."""
    target, columns = recording.target.core_labels(), recording.source.core_labels()
    rows = {meaning: Attention(recording, View(rows=meaning)).to_row_labels(target) for meaning in ROWS}
    return np.stack([group_tokens(recording.map(view), rows[view.rows], columns) for view in views])


def occlusion_agreement(weights: Matrix, occlusion: Matrix, *, whole_map: bool = False) -> tuple[Matrix, Matrix]:
    """Return the occlusion effect of the words with the largest weights, and the largest possible effect; (C,) each.

    The effect of a source word on an output word is its share of all that the source word does: a verb that changes the
    whole sentence is weaker evidence of one word than a numeral that changes only that word. With `whole_map` all
    weights count, not only the largest: words are aligned by the largest weight, but an image is overlaid with the
    whole map.
    """
    effect = np.nan_to_num(occlusion).clip(min=0)  # (T, S)
    effect = effect / (effect.sum(axis=0) + MIN_EFFECT)
    used = weights if whole_map else np.arange(weights.shape[-1]) == weights.argmax(axis=-1)[..., None]  # (C, T, S)
    reached: Matrix = (used * effect).sum(axis=(1, 2))
    return reached, np.full(len(weights), effect.max(axis=1).sum())


def link_matrix(weights: Matrix) -> Flags:
    """Return (C, T, S), True where `Attention.alignment` links."""
    links: Flags = np.arange(weights.shape[-1]) == row_column_normalize(weights).argmax(axis=-1)[..., None]
    return links


# --- alignment of sentence pairs --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Aligner:
    """Aligns words by the attention of a model, or of two models that translate in opposite directions."""

    forward: AttentionReader
    reverse: AttentionReader | None = None
    method: str = METHOD  # symmetrization of two directions
    threshold: float | None = None  # None: one link for each output word, to its largest weight

    def __post_init__(self) -> None:
        pick("method", self.method, METHODS)
        if self.threshold is not None and not 0 < self.threshold <= 1:
            raise UsageError(f"threshold must be above 0 and at most 1, got {self.threshold}")

    def with_selected_maps(self, sample: SentencePairs) -> "Aligner":
        """Select maps on `sample`: by agreement of both directions, or by occlusion if none is stored."""
        readers = [self.forward, *([self.reverse] if self.reverse else [])]
        if all(reader.selected_map is not None and reader.selected_map.by == BY_GUIDING for reader in readers):
            return self
        if self.reverse is not None:
            selected = select_by_agreement(self.forward, self.reverse, sample)
            if selected is None:
                return self
            forward = replace(self.forward, selected_map=selected[0])
            return replace(self, forward=forward, reverse=replace(self.reverse, selected_map=selected[1]))
        if self.forward.selected_map is None:
            selected_map = select_by_occlusion(self.forward, sample)
            return replace(self, forward=replace(self.forward, selected_map=selected_map))
        return self

    def align(self, pairs: SentencePairs) -> list[Alignment]:
        """Return the links of each pair; none if a side is empty."""
        forward = self.forward.attention(pairs)
        links = [self._links(attention) for attention in forward]
        if self.reverse is None:
            return links
        reverse = self.reverse.attention([(target, source) for source, target in pairs])
        for number, (one, other) in enumerate(zip(forward, reverse, strict=True), 1):
            if one is not None and other is not None and not same_words(one.recording, other.recording):
                raise UsageError(
                    f"pair {number:,}: the two models segment a text without spaces into different words; "
                    "put spaces between its words"
                )
        inverted = [self._links(attention).inverted() for attention in reverse]
        return [one.symmetrized(other, self.method) for one, other in zip(links, inverted, strict=True)]

    def _links(self, attention: Attention | None) -> Alignment:
        return Alignment() if attention is None else attention.alignment(self.threshold)

"""Which map to show of a model: measured on sentence pairs without any gold, never a layer that somebody fixed.

Candidates are all layers (and their mean) × heads (and their mean) × row meanings × weights or norms of the
cross-attention; of the mean of all layers, which is a blend of everything, only the mean of heads. With a
reverse model, the pair of maps whose links agree best; else the map that points best at the words that mattered.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy

from softgaze.bundle import Tokenizers
from softgaze.gaze.attention import Attention, gathered, mutual
from softgaze.gaze.influence import influences
from softgaze.gaze.passages import Eyes, Passage, check_places, record, shown
from softgaze.gaze.recording import Flags, Matrix, Recording
from softgaze.gaze.view import LINKED, ROWS, Choice, View

if TYPE_CHECKING:
    from softgaze.models.base import Seq2Seq

SENTENCES = 48  # enough that the same map is chosen again; leaving words out takes seconds for so many
PASSES, FEWEST = 1500, 6  # left-out words in all, and sentences whatever they have
WORDS = range(3, 21)  # in shorter sentences everything agrees, longer ones are slow
INFLUENCE = "influence of leaving words out"
HARDLY = 1.0  # nats: a source word that did no more than this to the whole output counts for little
AGREEMENT = "agreement with the reverse model"

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Looker:
    """A model with its tokenizers, and the map that was chosen for it, if one was."""

    model: "Seq2Seq | Eyes"
    tokenizers: Tokenizers
    choice: Choice | None = None
    places: int | None = None  # how many tokens the model has places for; None: any number

    @cached_property
    def can_look(self) -> bool:
        """Whether the model looks at its source at all: found by trying; who reads no text cannot do without."""
        return not self.tokenizers.source.spells or "cross" in self.recordings([("a", "a")])[0].kinds

    def describe(self) -> str:
        """Which map links are made of, and why; nothing where none was chosen for all sentences."""
        if self.choice is None:
            return ""
        view, [any_look] = self.choice.view, self.recordings([("a", "a")])
        said = [view.describe(*any_look.size(view.kind), unit=LINKED), any_look.note, self.choice.describe()]
        return "; ".join(filter(None, said))

    def passages(self, pairs: Pairs) -> list[Passage]:
        """Sentence pairs as the model has them."""
        found = [Passage.of(*pair, self.tokenizers) for pair in pairs]
        for passage in found:
            check_places(passage, self.places)
        return found

    def recordings(self, pairs: Pairs) -> list[Recording]:
        """Where the model looks while it writes each second sentence from the first."""
        return record(self.model, self.tokenizers, self.passages(pairs))

    def look(self, pairs: Pairs) -> list[Attention | None]:
        """The chosen map of each pair; None where a side is empty or the model never looks."""
        return [shown(each, self.choice) for each in self.recordings(pairs)]


def by_influence(
    looker: Looker, pairs: Iterable[tuple[str, str]], allowed: Callable[[View], bool] = lambda view: True
) -> Choice | None:
    """The map whose most looked-at words mattered most; None without attention, or without a sentence to measure on."""
    sample = fitting(pairs)
    recordings = looker.recordings(sample)
    sample, recordings = sample[: (few := affordable(recordings))], recordings[:few]
    if not recordings or "cross" not in recordings[0].kinds:
        return None
    views = [view for view in candidates(recordings[0]) if allowed(view)]
    mattered = influences(looker.model, looker.tokenizers, looker.passages(sample))
    wholly = not looker.tokenizers.source.spells
    rows = [pointed(maps(each, views), own, wholly=wholly) for each, own in zip(recordings, mattered, strict=True)]
    reached, reachable = numpy.sum(rows, axis=0)  # each (C,)
    scores = reached / numpy.where(reachable > 0, reachable, 1.0)
    best = int(scores.argmax())
    return Choice(views[best], round(float(scores[best]), 4), INFLUENCE, len(sample))


def affordable(recordings: Sequence[Recording]) -> int:
    """How many of them can be asked what mattered: a pass for each word adds up where words are patches."""
    passes = numpy.cumsum([len(each.source.words) for each in recordings])
    return max(FEWEST, int((passes <= PASSES).sum()))


def by_agreement(forward: Looker, reverse: Looker, pairs: Iterable[tuple[str, str]]) -> tuple[Choice, Choice] | None:
    """For both models the maps whose links agree best, as F1; None if there is nothing to compare."""
    sample = fitting(pairs)
    found = forward.recordings(sample), reverse.recordings([(target, source) for source, target in sample])
    both = [(one, other) for one, other in zip(*found, strict=True) if comparable(one, other)]
    if not both:
        return None
    views = [candidates(each) for each in both[0]]
    linked = [links(maps(one, views[0])).reshape(len(views[0]), -1) for one, _ in both]  # (C, T·S) of each sentence
    turned = [links(maps(other, views[1])).swapaxes(1, 2).reshape(len(views[1]), -1) for _, other in both]
    first, second = (numpy.concatenate(each, axis=1).astype(numpy.float64) for each in (linked, turned))
    total = first.sum(1)[:, None] + second.sum(1)
    scores = 2 * (first @ second.T) / numpy.maximum(total, 1)  # (C, C')
    best = numpy.unravel_index(scores.argmax(), scores.shape)
    score = round(float(scores[best]), 4)
    one, other = (Choice(own[int(place)], score, AGREEMENT, len(both)) for own, place in zip(views, best, strict=True))
    return one, other


def fitting(pairs: Iterable[tuple[str, str]], limit: int = SENTENCES) -> Pairs:
    """The first pairs of a good length; if there are none, of any length."""
    chosen: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    for source, target in pairs:
        sizes = len(source.split()), len(target.split())
        if sizes[0] in WORDS and sizes[1] and sizes[1] < WORDS.stop:
            chosen.append((source, target))
        elif all(sizes) and len(others) < limit:
            others.append((source, target))
        if len(chosen) == limit:
            break
    return chosen or others


def candidates(recording: Recording) -> list[View]:
    """Every map of the cross-attention that might be shown."""
    layers, heads = recording.size("cross")
    which: list[int | None] = [None] if heads == 1 else [None, *range(heads)]  # equals go to the mean
    places: list[tuple[int | None, int | None]] = [*product(range(layers), which)]
    if layers > 1:
        places.append((None, None))
    return [
        View(layer=layer, head=head, rows=rows, measure=measure)
        for (layer, head), rows, measure in product(places, ("predicting", "reading"), ("weights", "norms"))
    ]


def comparable(forward: Recording, reverse: Recording) -> bool:
    """Both models look, and see the same words; without spaces each cuts its own."""
    return (
        "cross" in forward.kinds
        and "cross" in reverse.kinds
        and (forward.source.words, forward.target.words) == (reverse.target.words, reverse.source.words)
    )


def maps(recording: Recording, views: Sequence[View]) -> Matrix:
    """(C, target words, source words) of each view: `Attention.word_weights` of many views at once."""
    one = Attention(recording, View())
    rows = {meaning: Attention(recording, View(rows=meaning)).as_rows(one.row_side.cores()) for meaning in ROWS}
    columns = one.column_side.cores()
    return numpy.stack([gathered(recording.map(view), rows[view.rows], columns) for view in views])


def pointed(weights: Matrix, influence: Matrix, *, wholly: bool = False) -> tuple[Matrix, Matrix]:
    """What the words that were looked at most did, and the most that could be reached; (C,) each.

    Of each source word, the share of all it did that it did to this output word: a verb that moves the whole sentence
    says no more about one word than a number that moves only that word. `wholly`: the whole look counts, not only its
    highest point. Words are linked by that point, but over a picture the look itself is laid, and may be everywhere.
    """
    mattered = numpy.nan_to_num(influence).clip(min=0)  # (T, S)
    mattered = mattered / (mattered.sum(axis=0) + HARDLY)
    looked = weights if wholly else numpy.arange(weights.shape[-1]) == weights.argmax(axis=-1)[..., None]  # (C, T, S)
    reached: Matrix = (looked * mattered).sum(axis=(1, 2))
    return reached, numpy.full(len(weights), mattered.max(axis=1).sum())


def links(weights: Matrix) -> Flags:
    """(C, T, S) with True where `Attention.alignment` links."""
    linked: Flags = numpy.arange(weights.shape[-1]) == mutual(weights).argmax(axis=-1)[..., None]
    return linked

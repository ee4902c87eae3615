"""What an output depends on, and how far away it is: gradient and influence against distance, for trained models.

Both sentences are thought of as one line, the output after the source; the distance of two words is how many steps the
one stands after the other. Each source word is seen at one output word, its translation as a rule, so that what is
shown is how far a needed signal came and not how few words need each other. All models are asked about the same
sentences and the same, given, translations.

Which output word that is must not be chosen by the number that is then shown: the most of many is more than the most of
few, so that long sentences, and with them far words, would seem to need more than they do. So words are linked by what
all models together say by the other measure, and every model is seen at the same links. A word that matters little has
its most anywhere, often at the ends of a sentence; it is linked only if no other source word matters more there. Some
such links remain. They fall on all models, which is why each is held against the first and none against 1.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from softgaze.data.corpus import Pair
from softgaze.evaluation.buckets import Bucket, automatic_edges, make_buckets, source_lengths
from softgaze.evaluation.significance import RESAMPLES, SEED, Estimate, band
from softgaze.evaluation.why.gradients import gradients
from softgaze.gaze.influence import influences
from softgaze.gaze.passages import Passage, check_places
from softgaze.gaze.recording import Matrix
from softgaze.translator import Translator

SENTENCES = 100
MEASURES = {
    "gradient": "gradient norm of an output word's log-odds × the length of the source word's vector",
    "influence": "log-probability that an output word loses when the source word is left out, in nats",
}
OTHER = {"gradient": "influence", "influence": "gradient"}  # the measure that chooses where one is taken

Matrices = dict[str, list[Matrix]]  # by measure, one (target words, source words) of each pair


class Link(NamedTuple):
    """A source word and its output word, by their numbers in a sentence pair."""

    sentence: int
    word: int
    place: int


class Need(NamedTuple):
    """How far a source word is from its output word, and how strongly that one depends on it."""

    sentence: int
    distance: int
    strength: float


class Stretch(NamedTuple):
    """A range of distances, and how strong dependence is there."""

    low: int
    high: int
    distance: float  # the median
    words: int
    strength: Estimate


@dataclass(frozen=True)
class Dependence:
    """One model by one measure."""

    model: str
    arch: str
    measure: str
    needs: tuple[Need, ...]
    edges: tuple[int, ...]  # where stretches of distances end, but for the last; the same for all models

    first: "Dependence | None" = None  # the model it is held against, by the same measure at the same words

    @cached_property
    def buckets(self) -> list[Bucket]:
        """Needs by their distance, from near to far."""
        return make_buckets([need.distance for need in self.needs], self.edges)

    @cached_property
    def stretches(self) -> list[Stretch]:
        """From near to far."""
        return [
            Stretch(each.low, each.high, each.length, len(each.members), estimated(resampled(self, each.members)))
            for each in self.buckets
        ]

    @cached_property
    def lacking(self) -> str:
        """Why there is no share of far in near; empty if there is one."""
        if len(self.stretches) < 2:
            return "one stretch only"
        # What may as well be nothing, or less, has no shares.
        return "" if self.stretches[0].strength.low > 0 else "near not above 0"

    @cached_property
    def far_to_near(self) -> Estimate | None:
        """The mean of the farthest stretch as a share of that of the nearest.

        Words that matter much and words that matter little are not spread evenly over distances, so 1 is not expected
        even where distance does not matter; only shares of models at the same words compare.
        """
        return None if self.lacking else estimated(self.shares)

    @cached_property
    def shares(self) -> NDArray[numpy.float64]:
        """Of far in near: what was found, then the same in resampled test sets."""
        near, far = (resampled(self, self.buckets[end].members) for end in (0, -1))
        return divided(far, near)

    @cached_property
    def lacking_to_first(self) -> str:
        """Why its share is not held against the first model's; empty if it is."""
        if self.first is None:
            return "nothing to be held against"
        if self.lacking or self.first.lacking:
            return self.lacking or f"first: {self.first.lacking}"
        return "" if estimated(self.first.shares).low > 0 else "first: far not above 0"

    @cached_property
    def to_first(self) -> Estimate | None:
        """`far_to_near` as a share of the first model's, the same sentences resampled for both.

        At 1, distance matters no more to it than to the first; below 1 it does.
        """
        if self.first is None or self.lacking_to_first:
            return None
        return estimated(divided(self.shares, self.first.shares))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "model": self.model,
            "arch": self.arch,
            "measure": self.measure,
            "words": len(self.needs),
            "stretches": [{**each._asdict(), "strength": vars(each.strength)} for each in self.stretches],
            "far_to_near": vars(self.far_to_near) if self.far_to_near else None,
            "first": self.first.model if self.first else None,
            "to_first": vars(self.to_first) if self.to_first else None,
            "lacking": self.lacking or (self.lacking_to_first if self.first else "") or None,
        }


def estimated(values: NDArray[numpy.float64]) -> Estimate:
    """What was found, first among the values, and the band of what other sentences might have given."""
    found, luck = float(values[0]), values[1:]
    return Estimate(found, *band(luck[numpy.isfinite(luck)], found))


def divided(ones: NDArray[numpy.float64], others: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """Not a number, or without end, where a set lacks all sentences with such words."""
    with numpy.errstate(divide="ignore", invalid="ignore"):
        shares: NDArray[numpy.float64] = ones / others
    return shares


def resampled(dependence: Dependence, members: Sequence[int]) -> NDArray[numpy.float64]:
    """The mean of some words' strengths, then the same in test sets drawn from the sentences with replacement."""
    needs = [dependence.needs[member] for member in members]
    total = 1 + max(need.sentence for need in dependence.needs)
    places = [need.sentence for need in needs]
    sums = numpy.bincount(places, [need.strength for need in needs], minlength=total)
    counts = numpy.bincount(places, minlength=total)
    drawn = numpy.random.default_rng(SEED).multinomial(total, numpy.full(total, 1 / total), size=RESAMPLES)
    sets: NDArray[numpy.float64] = numpy.concatenate([numpy.ones((1, total)), drawn])
    return divided(sets @ sums, sets @ counts.astype(numpy.float64))


def dependences(
    translators: dict[str, Translator], pairs: Sequence[Pair], advance: Callable[[], object] = lambda: None
) -> list[Dependence]:
    """Every model by every measure, on the same pairs; `advance` is called after each model."""
    found: dict[str, Matrices] = {}
    for name, translator in translators.items():
        found[name] = matrices_of(translator, pairs)
        advance()
    return compared(found, {name: each.bundle.description.arch for name, each in translators.items()})


def compared(found: dict[str, Matrices], archs: dict[str, str]) -> list[Dependence]:
    """Every model by every measure, all at the same words, the further ones held against the first."""
    links = {measure: [*links_of([own[OTHER[measure]] for own in found.values()])] for measure in MEASURES}
    needs = {
        (name, measure): tuple(needs_of(own[measure], links[measure]))
        for name, own in found.items()
        for measure in MEASURES
    }
    edges = common_edges([[need.distance for need in each] for each in needs.values()])
    firsts: dict[str, Dependence] = {}
    all_of_them = []
    for (name, measure), own in needs.items():
        each = Dependence(name, archs[name], measure, own, edges, firsts.get(measure))
        firsts.setdefault(measure, each)
        all_of_them.append(each)
    return all_of_them


def common_edges(distances: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Ends of stretches that have enough words in a usual model; the last stretch has no end but that of the text."""
    usual = sorted(distance for own in distances for distance in own)[:: len(distances)]
    *ends, last = automatic_edges(usual)
    return tuple(ends or [last])


def matrices_of(translator: Translator, pairs: Sequence[Pair]) -> dict[str, list[Matrix]]:
    """(target words, source words) of each pair, by each measure."""
    model, tokenizers = translator.model, translator.bundle.tokenizers
    passages = [Passage.of(*pair, tokenizers) for pair in pairs]
    for passage in passages:
        check_places(passage, translator.places)
    return {
        "gradient": gradients(model, tokenizers, passages),
        "influence": influences(model, tokenizers, passages),
    }


def links_of(models: Sequence[Sequence[Matrix]]) -> Iterator[Link]:
    """Words that are each other's most in the matrices of all models together.

    A word that has no piece of its own in one of the models is left out for all.
    """
    for sentence, matrices in enumerate(zip(*models, strict=True)):
        together = numpy.sum([scaled(matrix) for matrix in matrices], axis=0)
        for word, strengths in enumerate(together.T):
            if not numpy.isnan(strengths).all():
                place = int(numpy.nanargmax(strengths))
                if numpy.nanargmax(together[place]) == word:
                    yield Link(sentence, word, place)


def scaled(matrix: Matrix) -> Matrix:
    """To the same total as any other, so that no model is heard more than the rest."""
    total = numpy.nansum(numpy.abs(matrix))
    return matrix / total if total else matrix


def needs_of(matrices: Sequence[Matrix], links: Sequence[Link]) -> Iterator[Need]:
    """What one model shows at the links."""
    for sentence, word, place in links:
        matrix = matrices[sentence]
        yield Need(sentence, len(matrix.T) - word + place, float(matrix[place, word]))


def shared(translators: dict[str, Translator], pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs that all models have in the same words.

    Of a script without spaces the pieces are the words, and of a text that its pieces do not spell, too; models whose
    pieces differ then have matrices of different words.
    """
    return [pair for pair in pairs if len({words_of(pair, each) for each in translators.values()}) == 1]


def words_of(pair: Pair, translator: Translator) -> tuple[tuple[str, ...], ...]:
    """Of both sides, as a model has them."""
    tokenizers = translator.bundle.tokenizers
    return tuple(side.words for side in Passage.of(*pair, tokenizers).sides(tokenizers))


def spread(pairs: Sequence[Pair], most: int = SENTENCES) -> list[Pair]:
    """At most so many pairs, as many long ones as short ones as far as there are; of two alike, the first."""
    there = [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
    lengths = source_lengths([pair.source for pair in there])
    buckets = [each.members for each in make_buckets(lengths)]
    turns = [number for turn in zip_longest(*buckets) for number in turn if number is not None]
    return [there[number] for number in sorted(turns[:most])]

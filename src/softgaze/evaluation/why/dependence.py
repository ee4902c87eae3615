"""What an output depends on, and how far away it is: gradient and influence against distance, for trained models.

Both sentences are thought of as one line, the output after the source; the distance of two words is how many steps the
one stands after the other. Each source word is seen at the output word that depends on it most, its translation as a
rule, so that what is shown is how far a needed signal came and not how few words need each other. All models are asked
about the same sentences and the same, given, translations.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from softgaze.data.corpus import Pair
from softgaze.evaluation.buckets import automatic_edges, make_buckets, source_lengths
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


class Need(NamedTuple):
    """A source word and the output word that depends on it most."""

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

    @cached_property
    def stretches(self) -> list[Stretch]:
        """From near to far."""
        buckets = make_buckets([need.distance for need in self.needs], self.edges)
        return [
            Stretch(each.low, each.high, each.length, len(each.members), self.mean(resampled(self, each.members)))
            for each in buckets
        ]

    @cached_property
    def far_to_near(self) -> Estimate | None:
        """The mean of the farthest stretch as a share of that of the nearest; None if there is but one.

        At 1, distance does not matter.
        """
        buckets = make_buckets([need.distance for need in self.needs], self.edges)
        if len(buckets) < 2:
            return None
        near, far = (resampled(self, each.members) for each in (buckets[0], buckets[-1]))
        return self.mean(far / near)

    def mean(self, values: NDArray[numpy.float64]) -> Estimate:
        """What was found, first among the values, and the band of what other sentences might have given."""
        found, luck = float(values[0]), values[1:]
        return Estimate(found, *band(luck[numpy.isfinite(luck)], found))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "model": self.model,
            "arch": self.arch,
            "measure": self.measure,
            "words": len(self.needs),
            "stretches": [{**each._asdict(), "strength": vars(each.strength)} for each in self.stretches],
            "far_to_near": vars(self.far_to_near) if self.far_to_near else None,
        }


def resampled(dependence: Dependence, members: Sequence[int]) -> NDArray[numpy.float64]:
    """The mean of some words' strengths, then the same in test sets drawn from the sentences with replacement."""
    needs = [dependence.needs[member] for member in members]
    total = 1 + max(need.sentence for need in dependence.needs)
    places = [need.sentence for need in needs]
    sums = numpy.bincount(places, [need.strength for need in needs], minlength=total)
    counts = numpy.bincount(places, minlength=total)
    drawn = numpy.random.default_rng(SEED).multinomial(total, numpy.full(total, 1 / total), size=RESAMPLES)
    drawn = numpy.concatenate([numpy.ones((1, total)), drawn])
    with numpy.errstate(divide="ignore", invalid="ignore"):  # a set may lack all sentences with such words
        means: NDArray[numpy.float64] = (drawn @ sums) / (drawn @ counts)
    return means


def dependences(
    translators: dict[str, Translator], pairs: Sequence[Pair], advance: Callable[[], object] = lambda: None
) -> list[Dependence]:
    """Every model by every measure, on the same pairs; `advance` is called after each model."""
    found: dict[tuple[str, str], tuple[Need, ...]] = {}
    for name, translator in translators.items():
        for measure, matrices in matrices_of(translator, pairs).items():
            found[name, measure] = tuple(needs_of(matrices))
        advance()
    edges = common_edges([[need.distance for need in needs] for needs in found.values()])
    return [
        Dependence(name, translators[name].bundle.description.arch, measure, needs, edges)
        for (name, measure), needs in found.items()
    ]


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


def needs_of(matrices: Sequence[Matrix]) -> Iterator[Need]:
    """Every source word that has a piece of its own, at the output word that depends on it most."""
    for sentence, matrix in enumerate(matrices):
        for word, strengths in enumerate(matrix.T):
            if not numpy.isnan(strengths).all():
                place = int(numpy.nanargmax(strengths))
                yield Need(sentence, len(matrix.T) - word + place, float(strengths[place]))


def spread(pairs: Sequence[Pair], most: int = SENTENCES) -> list[Pair]:
    """At most so many pairs, as many long ones as short ones as far as there are; of two alike, the first."""
    there = [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
    lengths = source_lengths([pair.source for pair in there])
    buckets = [each.members for each in make_buckets(lengths)]
    turns = [number for turn in zip_longest(*buckets) for number in turn if number is not None]
    return [there[number] for number in sorted(turns[:most])]

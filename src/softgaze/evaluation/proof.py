"""Whether an exported model is still the same model: measured on pairs, not believed.

In full precision every token must be as likely as before, and every greedy output the same, but where two tokens were
all but equally likely. Rounded weights are other numbers: there the outputs must be as good as before. A source is
whatever the models read, each in its own way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

import numpy

from softgaze.errors import DivergedError
from softgaze.evaluation.counts import count_system
from softgaze.evaluation.significance import difference
from softgaze.gaze.passages import Passage, Spoken
from softgaze.symbols import END
from softgaze.translator import Part, Translation, Translator

NEAR = 1e-4  # log-probabilities that differ by less are the same
LOSS = 0.3  # BLEU that rounding may cost
CHANCE = 0.05  # a loss that luck alone makes more seldom is real
SENTENCES, SCORED = 200, 1000  # compared token by token, and by BLEU

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Quality:
    """How good translations are, before and after."""

    before: float
    after: float
    p_value: float  # how often luck alone makes such a difference
    sentences: int

    @property
    def is_kept(self) -> bool:
        """At most a little worse, and not certainly."""
        lost = self.before - self.after
        return lost <= 0 or (lost <= LOSS and self.p_value >= CHANCE)


@dataclass(frozen=True)
class Proof:
    """What was measured."""

    log_probability: float  # the largest difference of any token's
    same: int  # greedy outputs that are equal,
    near: int  # or part where two tokens were all but equally likely,
    sentences: int  # of so many
    quality: Quality | None  # of rounded weights

    def check(self) -> None:
        """Refuse a model that is another one."""
        if self.quality is None and (self.log_probability >= NEAR or self.same + self.near < self.sentences):
            raise DivergedError(f"the exported model is not the same: {self.tokens()}; allowed are {NEAR} and none")
        if self.quality is not None and not self.quality.is_kept:
            raise DivergedError(
                f"the exported model is worse: {self.bleu()}; allowed are {LOSS} BLEU less and a difference that luck "
                f"makes at least {100 * CHANCE:.0f} times in 100"
            )

    def tokens(self) -> str:
        """Token by token, in words."""
        others = self.sentences - self.same - self.near
        excused = f" ({self.near} more where two tokens were all but equally likely)" if self.near else ""
        return (
            f"log-probabilities differ by up to {self.log_probability:.1g}, and {others} of {self.sentences} greedy "
            f"outputs are others{excused}"
        )

    def bleu(self) -> str:
        """By quality, in words."""
        assert self.quality is not None
        return (
            f"BLEU {self.quality.after:.2f} after {self.quality.before:.2f} "
            f"({self.quality.after - self.quality.before:+.2f}, p {self.quality.p_value:.3f}) on "
            f"{self.quality.sentences:,} pairs"
        )

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)


def prove(before: Translator, after: Translator, pairs: Pairs, *, rounded: bool) -> Proof:
    """Compare a model with its export on pairs; of rounded weights the quality counts."""
    sources = [*dict.fromkeys(source for source, _ in pairs)][:SENTENCES]  # a picture may have many captions
    both = zip(before.translate(sources, beam=1), after.translate(sources, beam=1), strict=True)
    verdicts = [likeness(before, *each) for each in both]
    return Proof(
        log_probability=largest_difference(before, after, pairs[:SENTENCES]),
        same=verdicts.count("same"),
        near=verdicts.count("near"),
        sentences=len(verdicts),
        quality=quality(before, after, pairs[:SCORED]) if rounded else None,
    )


def largest_difference(before: Translator, after: Translator, pairs: Pairs) -> float:
    """Of the log-probability of any token of the references."""
    models = before, after
    parts = list(fitting(models, pairs))
    scores = (each.engine.log_probabilities([own[n] for own in parts]) for n, each in enumerate(models))
    return max((float(numpy.abs(one - other).max()) for one, other in zip(*scores, strict=True)), default=0.0)


def fitting(models: Sequence[Translator], pairs: Pairs) -> Iterator[tuple[Spoken, ...]]:
    """Pairs that all models have places for, as each reads and writes them."""
    for source, target in pairs:
        parts = [Passage.of(source, target, each.bundle.tokenizers).parts for each in models]
        for own in zip(*parts, strict=True):
            written = (*own[0].target, END)
            has_places = all(each.places is None or len(written) < each.places for each in models)
            if has_places and all(len(part.source) <= each.limit for part, each in zip(own, models, strict=True)):
                yield tuple(part._replace(target=written) for part in own)


def likeness(before: Translator, one: Translation, other: Translation) -> str:
    """Whether two greedy outputs are the same, or part at a near tie, or are others."""
    pairs = [each for each in zip_longest(one.parts, other.parts) if each[0] != each[1]]
    if all(None not in each and same(*each) for each in pairs):
        return "same"
    return "near" if all(None not in each and (same(*each) or near(before, *each)) for each in pairs) else "other"


def same(one: Part, other: Part) -> bool:
    """The same tokens."""
    return (one.target_ids, one.finished) == (other.target_ids, other.finished)


def near(before: Translator, one: Part, other: Part) -> bool:
    """Whether the two tokens where they part were all but equally likely to the model."""
    first, second = ([*part.target_ids, *[END] * part.finished] for part in (one, other))
    place = next((n for n, tokens in enumerate(zip(first, second, strict=False)) if tokens[0] != tokens[1]), None)
    if place is None:
        return False
    read = before.bundle.tokenizers.source.opened(one.source_ids)
    ways = [Spoken(read, way[: place + 1]) for way in (first, second)]
    chances = [float(each[-1]) for each in before.engine.log_probabilities(ways)]
    return abs(chances[0] - chances[1]) < NEAR


def quality(before: Translator, after: Translator, pairs: Pairs) -> Quality:
    """BLEU of both on the same sentences; a loss is certain only if bootstrap and randomisation both say so."""
    sources, references = map(list, zip(*pairs, strict=True))
    language = before.bundle.description.target_language
    one, other = (
        count_system([found.text for found in each.translate(sources)], references, language=language)
        for each in (before, after)
    )
    found = difference(one, other, "bleu")
    p_value = max(found.bootstrap_p, found.randomisation_p)
    return Quality(one.score("bleu"), other.score("bleu"), p_value, len(references))

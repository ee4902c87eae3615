"""Where a model seems to drop or repeat words: the sentences of a corpus in numbers, and the worst of them.

A stream of sentences becomes a stream of `Look`s, which wait on disk until it is known how much is usually looked at
each word; a `Survey` then keeps the worst by each ranking and counts the rest, so a long corpus needs no more memory
than its vocabulary does. Knows no models, and no scores of translations.
"""

import base64
import heapq
import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy

from softgaze.gaze.alignment import Alignment, Counts, compared
from softgaze.gaze.attention import Attention
from softgaze.gaze.honesty import honesty
from softgaze.gaze.plain import UNUSED
from softgaze.gaze.recording import Matrix

UNSAID = 0.5  # nats: without a word that it says, a translation does not become so much likelier
CONTENT = 0.7  # a word that usually gets this much is one that is translated, not an article
QUARTER = 0.25  # such a word is uncovered when it gets less than this share of what it usually gets
PRIOR = 2  # sightings of an average word that every word starts with, so that a rare one has a usual, too
HONEST = 0.3  # from this rank correlation on, a map shows at least a part of what mattered
SURE = 0.5  # an output word that gives a source word this much is its translation
LONGEST_LOOP = 4  # words in a row that may be written again at once
KEPT = 1000  # sentences for each ranking
LEVELS = 255  # of a packed weight
DIGITS = 4

Numbers = tuple[int, ...]


# --- one sentence -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """One sentence, and where the model looked while it wrote the translation."""

    line: int  # in the corpus, from 1
    source: tuple[str, ...]  # words
    output: tuple[str, ...]
    reference: tuple[str, ...] | None
    covered: tuple[float, ...]  # what all output words together gave each source word
    needed: tuple[float, ...]  # nats that the translation loses without each source word
    repeated: Numbers  # output words that say something again
    different: Numbers  # output words that the reference does not have there
    honesty: float | None  # None where there is nothing to rank
    entropy: float
    sink: float
    scores: dict[str, float]  # against the reference
    links: Counts | None  # of source and reference, against the right ones
    weights: str  # (output words, source words + 1), the last column what goes to marks; packed
    uncovered: Numbers = ()  # source words that were hardly looked at and usually are; known when all sentences are
    shortfall: float = 0.0  # what these would usually have got, and did not

    @property
    def unsaid(self) -> Numbers:
        """Source words that the translation does not say."""
        return unsaid(self.needed)

    @property
    def misfit(self) -> float:
        """How much likelier the translation is without the word that fits it worst, in nats."""
        return max(0.0, -min(self.needed, default=0.0))

    @property
    def coverage(self) -> float:
        """The share of source words that were looked at."""
        return share_covered(self.covered)

    @property
    def repetition(self) -> float:
        """The share of output words that say something again."""
        return rounded(len(self.repeated) / len(self.output)) if self.output else 0.0

    @property
    def aer(self) -> float | None:
        """How wrong the links of the reference are."""
        return rounded(self.links.aer) if self.links else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON; what follows from the rest is there, too, for whoever reads it."""
        found = {name: getattr(self, name) for name in ("unsaid", "misfit", "coverage", "repetition", "aer")}
        return {**asdict(self), **found}

    def to_line(self) -> str:
        """As it waits on disk."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str) -> "Look":
        """What `to_line` wrote."""
        stored: dict[str, Any] = json.loads(line)
        plain: dict[str, Any] = {name: tuple(own) if isinstance(own, list) else own for name, own in stored.items()}
        plain["links"] = Counts(*plain["links"]) if plain["links"] else None
        return cls(**plain)


def look(
    line: int,
    attention: Attention,
    influence: Matrix,
    *,
    reference: str | None = None,
    scores: dict[str, float] | None = None,
    links: tuple[Alignment, Alignment] | None = None,
) -> Look:
    """The numbers of one sentence.

    `influence` is (output words + END, source words); `links` are those between source and reference that the model
    found, and the right ones.
    """
    words = attention.words()
    weights, sides = words.word_weights(), words.recording
    output, wanted = sides.target.words, tuple(reference.split()) if reference is not None else None
    value = honesty(words, influence[:-1])
    return Look(
        line=line,
        source=sides.source.words,
        output=output,
        reference=wanted,
        covered=tuple(map(rounded, weights.sum(axis=0))),
        needed=tuple(map(rounded, needs(influence))),
        repeated=repeated(output, weights, sides.source.words, wanted),
        different=different(output, wanted) if wanted is not None else (),
        honesty=None if math.isnan(value) else rounded(value),
        entropy=mean_entropy(words),
        sink=rounded(words.sink),
        scores=scores or {},
        links=compared(links[0].all, links[1]) if links else None,
        weights=packed(weights),
    )


def share_covered(covered: Sequence[float]) -> float:
    """The share of source words that were looked at, given what all output words together gave each."""
    return rounded(sum(given >= UNUSED for given in covered) / len(covered)) if len(covered) else 1.0


def mean_entropy(words: Attention) -> float:
    """Of the rows of a map, in nats."""
    entropy = words.entropy()
    return rounded(entropy.mean()) if len(entropy) else 0.0


def rounded(value: float) -> float:
    """As many digits as anybody reads."""
    return round(float(value), DIGITS)


def packed(weights: Matrix) -> str:
    """(T, S) -> bytes of (T, S + 1), as text; what is left of a row went to marks."""
    rest = (1 - weights.sum(axis=1, keepdims=True)).clip(0, 1)
    levels = (numpy.hstack([weights, rest]).clip(0, 1) * LEVELS).round().astype(numpy.uint8)
    return base64.b64encode(levels.tobytes()).decode()


# --- words that are written again -------------------------------------------------------------------------------


def repeated(
    output: Sequence[str], weights: Matrix, source: Sequence[str], reference: Sequence[str] | None = None
) -> Numbers:
    """Output words that say again what the source says once.

    A word is one if it was written before while looking at the same source word, or if it belongs to words in a row
    that are written once more at once, unless the source does so too. What the reference has as often is right.
    """
    folded = [word.casefold() for word in output]
    again = set(same_look(folded, weights))
    if not any(loops([word.casefold() for word in source])):
        again |= set(loops(folded))
    written, allowed = Counter(folded), Counter(word.casefold() for word in reference or ())
    return tuple(place for place in sorted(again) if written[folded[place]] > allowed[folded[place]])


def same_look(words: Sequence[str], weights: Matrix) -> Iterator[int]:
    """Words that were written before, at the sight of the same source word."""
    seen: set[tuple[str, int]] = set()
    for place, (word, row) in enumerate(zip(words, weights, strict=True)):
        if row.size and row.max() >= SURE:
            sight = word, int(row.argmax())
            if sight in seen:
                yield place
            seen.add(sight)


def loops(words: Sequence[str]) -> Iterator[int]:
    """Words of a run that was written just before: "very very", "on the on the"."""
    for size in range(1, LONGEST_LOOP + 1):
        for start in range(size, len(words) - size + 1):
            if words[start - size : start] == words[start : start + size]:
                yield from range(start, start + size)


def needs(influence: Matrix) -> list[float]:
    """What the whole translation loses without each source word, in nats; `influence` has a row for END."""
    lost: list[float] = numpy.nan_to_num(influence).sum(axis=0).tolist()
    return lost


def unsaid(needed: Sequence[float]) -> Numbers:
    """Source words without which a translation becomes likelier: it does not say them.

    `needed` are the nats it loses without each. (Leaving parts of the source out to find what is missing in the
    translation: Vamvas & Sennrich 2022.)
    """
    return tuple(place for place, nats in enumerate(needed) if nats < -UNSAID)


def different(output: Sequence[str], reference: Sequence[str]) -> Numbers:
    """Output words that are not in the reference at their place."""
    same = SequenceMatcher(None, output, reference, autojunk=False).get_matching_blocks()
    kept = {block.a + place for block in same for place in range(block.size)}
    return tuple(place for place in range(len(output)) if place not in kept)


# --- words that are dropped -------------------------------------------------------------------------------------


class Usual:
    """How much is usually looked at each source word: articles get little everywhere, and that is no mistake."""

    def __init__(self) -> None:
        self.given: dict[str, float] = {}
        self.seen: Counter[str] = Counter()

    def add(self, each: Look) -> None:
        """Learn from one sentence."""
        for word, given in zip(each.source, each.covered, strict=True):
            name = word.casefold()
            self.given[name] = self.given.get(name, 0.0) + given
            self.seen[name] += 1

    def judged(self, each: Look) -> Look:
        """The same, and which of its words were hardly looked at for once."""
        mean = sum(self.given.values()) / max(self.seen.total(), 1)
        usual = [
            self.elsewhere(word.casefold(), given, mean) for word, given in zip(each.source, each.covered, strict=True)
        ]
        short = [
            place
            for place, (given, expected) in enumerate(zip(each.covered, usual, strict=True))
            if expected >= CONTENT and given < QUARTER * expected
        ]
        missed = sum(usual[place] - each.covered[place] for place in short)
        return replace(each, uncovered=tuple(short), shortfall=rounded(missed))

    def elsewhere(self, word: str, given: float, mean: float) -> float:
        """What a word got in the mean where it was seen but here, `PRIOR` sightings of an average word added."""
        return (self.given[word] - given + PRIOR * mean) / (self.seen[word] - 1 + PRIOR)


# --- many sentences ---------------------------------------------------------------------------------------------


class Ranking(NamedTuple):
    """An order of sentences, the worst first."""

    title: str
    badness: Callable[[Look], float | None]  # None: has no place in it
    explained: str


RANKINGS = {
    "uncovered": Ranking(
        "Uncovered words",
        lambda each: len(each.uncovered) + each.shortfall / 1000 if each.uncovered else None,
        "source words that got less than a quarter of the looks they usually get: perhaps dropped",
    ),
    "unsaid": Ranking(
        "Unsaid words",
        lambda each: each.misfit if each.unsaid else None,
        f"source words without which the translation is likelier, by over {UNSAID} nats: perhaps dropped",
    ),
    "repetition": Ranking(
        "Repeated words",
        lambda each: each.repetition or None,
        "output words written again at once, or again at the sight of the same source word",
    ),
    "honesty": Ranking(
        "Low honesty",
        lambda each: None if each.honesty is None or each.honesty >= HONEST else -each.honesty,
        f"the map ranks source words hardly as their influence does (below {HONEST}): little of what mattered is seen",
    ),
    "aer": Ranking("Wrong links", lambda each: each.aer or None, "the alignment error rate of source and reference"),
    "chrf": Ranking(
        "Unlike the reference",
        lambda each: -each.scores["chrf"] if each.scores.get("chrf", 100.0) < 100 else None,
        "chrF of the translation against the reference",
    ),
}

HISTOGRAMS: dict[str, tuple[Callable[[Look], float | None], list[float]]] = {
    "coverage": (lambda each: each.coverage, [step / 10 for step in range(11)]),
    "honesty": (lambda each: each.honesty, [step / 5 for step in range(-5, 6)]),
    "length": (lambda each: float(len(each.source)), [0.0, 5, 10, 15, 20, 25, 30, 40, 50, 75, 100]),
}


def survey(looks: Iterable[Look | None], kept: int = KEPT) -> "Survey":
    """Of all sentences, None where there was nothing to look at."""
    usual, result = Usual(), Survey(kept)
    with TemporaryFile("w+", encoding="utf-8", newline="\n") as waiting:
        for each in looks:
            if each is None:
                result.skip()
            else:
                usual.add(each)
                waiting.write(each.to_line() + "\n")
        waiting.seek(0)
        for line in waiting:
            result.add(usual.judged(Look.from_line(line)))
    return result


class Survey:
    """A corpus in numbers: counts over all of it, and the worst sentences by each ranking."""

    def __init__(self, kept: int = KEPT) -> None:
        self.limit, self.sentences, self.empty = kept, 0, 0
        self.heaps: dict[str, list[tuple[float, int, Look]]] = {name: [] for name in RANKINGS}
        self.first: list[Look] = []
        self.totals: Counter[str] = Counter()
        self.links = Counts(0, 0, 0, 0)
        self.counts = {name: [0] * (len(edges) - 1) for name, (_, edges) in HISTOGRAMS.items()}

    def skip(self) -> None:
        """A line without anything to look at."""
        self.empty += 1

    def add(self, each: Look) -> None:
        """One more sentence."""
        self.sentences += 1
        if len(self.first) < self.limit:
            self.first.append(each)
        for name, ranking in RANKINGS.items():
            badness = ranking.badness(each)
            if badness is not None:
                self.totals[f"in {name}"] += 1
                push(self.heaps[name], (badness, -each.line, each), self.limit)
        self.count(each)

    def count(self, each: Look) -> None:
        """Into the sums and histograms."""
        self.totals["all words"] += len(each.source)
        self.totals["uncovered words"] += len(each.uncovered)
        self.totals["unsaid words"] += len(each.unsaid)
        self.totals["repeated words"] += len(each.repeated)
        if each.links:
            self.links = Counts(*(one + other for one, other in zip(self.links, each.links, strict=True)))
        for name, (value, edges) in HISTOGRAMS.items():
            number = value(each)
            if number is not None:
                self.counts[name][min(max(bisect_right(edges, number) - 1, 0), len(edges) - 2)] += 1

    def worst(self, name: str, count: int | None = None) -> list[Look]:
        """By one ranking, the worst first; of equals the one that comes first in the corpus."""
        return [each for _, _, each in sorted(self.heaps[name], key=lambda entry: entry[:2], reverse=True)[:count]]

    @property
    def is_whole(self) -> bool:
        """Whether every sentence is still there."""
        return self.sentences <= self.limit

    def kept(self) -> list[Look]:
        """All sentences that some ranking holds, in the order of the corpus; of a small corpus, all."""
        every = {each.line: each for each in self.first} if self.is_whole else {}
        every |= {each.line: each for heap in self.heaps.values() for _, _, each in heap}
        return [every[line] for line in sorted(every)]

    def summary(self) -> dict[str, Any]:
        """Counts over the whole corpus."""
        return {
            "sentences": self.sentences,
            "empty": self.empty,
            "rankings": {name: self.totals[f"in {name}"] for name in RANKINGS},
            "words": {name: self.totals[f"{name} words"] for name in ("all", "uncovered", "unsaid", "repeated")},
            "aer": rounded(self.links.aer) if self.links.sure else None,
            "histograms": {
                name: {"edges": edges, "counts": self.counts[name]} for name, (_, edges) in HISTOGRAMS.items()
            },
        }


def push(heap: list[tuple[float, int, Look]], entry: tuple[float, int, Look], limit: int) -> None:
    """Keep the largest."""
    if len(heap) < limit:
        heapq.heappush(heap, entry)
    elif entry[:2] > heap[0][:2]:
        heapq.heapreplace(heap, entry)

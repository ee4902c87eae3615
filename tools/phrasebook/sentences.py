"""Whole sentences: frequencies of constructions, text and links."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from tools.phrasebook import clauses, conjunctions, questions, statements
from tools.phrasebook.alignment import Link, links
from tools.phrasebook.sentence_builder import SentenceBuilder
from tools.phrasebook.statements import people_do
from tools.phrasebook.word_order import SentenceWords

LONGEST = 40
LONG = range(41, 61)
_CHAINED_SHARE = 0.12
_SHORTEST_CHAIN = 13

Make = Callable[[SentenceBuilder], SentenceWords | None]

# Constructions of short sentences, and their relative frequency.
KINDS: tuple[tuple[str, int, Make], ...] = (
    ("transitive", 28, partial(people_do, make=clauses.transitive)),
    ("dative", 7, partial(people_do, make=clauses.dative)),
    ("intransitive", 7, partial(people_do, make=clauses.intransitive)),
    ("motion", 10, partial(people_do, make=clauses.motion)),
    ("static", 2, partial(people_do, make=clauses.static)),
    ("seated", 2, partial(people_do, make=clauses.seated)),
    ("generic", 5, partial(people_do, make=clauses.generic)),
    ("possession", 4, partial(people_do, make=clauses.possession)),
    ("becoming", 2, partial(people_do, make=clauses.becoming)),
    ("thing is", 10, statements.thing_is),
    ("place is", 3, statements.place_is),
    ("person is", 4, statements.person_is),
    ("located", 5, statements.located),
    ("existing", 4, statements.existing),
    ("identified", 3, statements.person_is_a),
    ("animal does", 2, statements.animal_does),
    ("weather", 1, statements.raining),
    ("question_word_question", 7, questions.question_word_question),
    ("both deeds", 6, conjunctions.two_actions),
    ("joined", 12, conjunctions.two_clauses),
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence pair with its links.

    `combinations` ("eat bread", "big dog") determine the split; `kind` is the construction.
    """

    source: str
    target: str
    links: tuple[Link, ...]
    combinations: tuple[str, ...] = ()
    kind: str = ""

    @property
    def gold(self) -> str:
        """Return the links as in a gold file: `0-0` is sure, `1p0` possible."""
        return " ".join(map(str, self.links))


def render_sentence(builder: SentenceBuilder, make_sentence: SentenceWords, kind: str) -> Sentence:
    """Return the text with capital and final mark, and the links."""
    source, target = (" ".join(word.text for word in words) + make_sentence.mark for words in make_sentence[:2])
    found = links(make_sentence.english, make_sentence.korean)
    return Sentence(source[0].upper() + source[1:], target, found, tuple(builder.combinations), kind)


class Construction(NamedTuple):
    """A kind of sentence and its generator."""

    kind: str
    make: Make


_WEIGHTED = tuple(Construction(kind, make) for kind, weight, make in KINDS for _ in range(weight))


def choose_construction(rng: random.Random, split: str) -> Construction:
    """Choose the kind before the sentence, so that every split has the same mixture."""
    if split == "long":
        target = rng.choice(LONG)
        return Construction("long", partial(conjunctions.chain, least=max(target - 2, LONG.start), most=target))
    if rng.random() < _CHAINED_SHARE:
        # The smaller of two: every length occurs, the longest least.
        target = min(rng.randint(_SHORTEST_CHAIN, LONGEST), rng.randint(_SHORTEST_CHAIN, LONGEST))
        return Construction("chain", partial(conjunctions.chain, least=target - 2, most=target))
    return rng.choice(_WEIGHTED)


def choose_construction_of_length(rng: random.Random, lengths: range) -> Construction:
    """Choose a construction for a length drawn uniformly from `lengths`."""
    target = rng.choice(lengths)
    if target < _SHORTEST_CHAIN:
        return rng.choice(_WEIGHTED)
    return Construction("chain", partial(conjunctions.chain, least=max(target - 2, lengths.start), most=target))

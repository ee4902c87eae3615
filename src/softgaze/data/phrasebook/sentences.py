"""Whole sentences: which construction is wanted, how often, and how it is written down."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from softgaze.data.phrasebook import clauses, joins, questions, statements
from softgaze.data.phrasebook.alignment import Link, links
from softgaze.data.phrasebook.draft import Draft
from softgaze.data.phrasebook.statements import people_do
from softgaze.data.phrasebook.word_order import Spoken

LONGEST = 40
LONG = range(41, 61)
_CHAINED_SHARE = 0.12
_SHORTEST_CHAIN = 13

Make = Callable[[Draft], Spoken | None]

# What a short sentence may be, and how often.
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
    ("asking", 7, questions.asking),
    ("both deeds", 6, joins.both_deeds),
    ("joined", 12, joins.two_clauses),
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """An English sentence, its Korean, and which word means which.

    `combinations` are the pairs of words the splits are made by ("eat bread", "big dog"); `kind` is the construction.
    """

    source: str
    target: str
    links: tuple[Link, ...]
    combinations: tuple[str, ...] = ()
    kind: str = ""

    @property
    def gold(self) -> str:
        """The links as a line of a gold file: `0-0` is sure, `1p0` possible."""
        return " ".join(map(str, self.links))


def written_down(draft: Draft, spoken: Spoken, kind: str) -> Sentence:
    """The sentence with its capital, spaces, final mark and links."""
    source, target = (" ".join(word.text for word in words) + spoken.mark for words in spoken[:2])
    found = links(spoken.english, spoken.korean)
    return Sentence(source[0].upper() + source[1:], target, found, tuple(draft.combinations), kind)


class Wish(NamedTuple):
    """What kind of sentence is wanted next: a short construction, or a length for clauses joined."""

    kind: str
    make: Make


_WEIGHTED = tuple(Wish(kind, make) for kind, weight, make in KINDS for _ in range(weight))


def wish(dice: random.Random, split: str) -> Wish:
    """The kind is drawn before the sentence, so that every split has the same mixture however hard it is to fill."""
    if split == "long":
        target = dice.choice(LONG)
        return Wish("long", partial(joins.chain, least=max(target - 2, LONG.start), most=target))
    if dice.random() < _CHAINED_SHARE:
        # The smaller of two: every length occurs, the longest least.
        target = min(dice.randint(_SHORTEST_CHAIN, LONGEST), dice.randint(_SHORTEST_CHAIN, LONGEST))
        return Wish("chain", partial(joins.chain, least=target - 2, most=target))
    return dice.choice(_WEIGHTED)


def wish_within(dice: random.Random, lengths: range) -> Wish:
    """A sentence that has, or may have, so many English words, each number as likely."""
    target = dice.choice(lengths)
    if target < _SHORTEST_CHAIN:
        return dice.choice(_WEIGHTED)
    return Wish("chain", partial(joins.chain, least=max(target - 2, lengths.start), most=target))

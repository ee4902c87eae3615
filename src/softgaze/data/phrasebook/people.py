"""People: who acts, who is met or helped, and whom a question is about."""

from collections.abc import Sequence

from softgaze.data.phrasebook.draft import Draft
from softgaze.data.phrasebook.english import plural
from softgaze.data.phrasebook.lexicon.adjectives import TRAITS
from softgaze.data.phrasebook.lexicon.nouns import FAMILY, NAMES, OTHERS, ROLES
from softgaze.data.phrasebook.lexicon.rows import Person
from softgaze.data.phrasebook.meaning import NOTHING, Phrase, bare, explained, joined
from softgaze.data.phrasebook.phrases import both, demonstrative, described, head_of
from softgaze.data.phrasebook.word_order import Subject


def fresh(draft: Draft, people: Sequence[Person]) -> Person:
    """Somebody this sentence has not spoken of yet: the same person twice would want a pronoun."""
    person = draft.pick([one for one in people if one.english not in draft.heads] or people)
    draft.heads.append(person.english)
    return person


def _named(draft: Draft) -> Phrase:
    return head_of(draft, fresh(draft, NAMES))


def _relative(draft: Draft) -> Phrase:
    person = fresh(draft, FAMILY)
    return joined(draft.words("my", "제"), head_of(draft, person))


def _role(draft: Draft, *, many: bool) -> Phrase:
    """Somebody by profession or age: "the kind doctor", "this student", "the children"."""
    person = fresh(draft, (*ROLES, *OTHERS))
    trait = NOTHING
    if draft.chance(0.2):
        adjective = draft.pick(TRAITS)
        draft.combine(adjective.english, person.english)
        trait = described(draft, adjective, degree=0.05)
    first = demonstrative(draft) if not many and draft.chance(0.25) else bare("the")
    head = draft.words(plural(person.english), person.korean + "들") if many else head_of(draft, person)
    return explained(first, trait, head)


def acquaintance(draft: Draft) -> Subject:
    """Somebody with a name."""
    return Subject(_named(draft), "it", "name")


def one_of_mine(draft: Draft) -> Subject:
    """My friend, my daughter."""
    return Subject(_relative(draft), "it", "family")


def _pronoun(draft: Draft, english: str) -> Subject:
    draft.heads.append(english)
    return Subject(draft.words(english, "저" if english == "I" else "우리"), english, english)


def somebody(draft: Draft) -> Subject:
    """Who acts: I, we, a name, one of mine, a role, or two people."""
    roll = draft.dice.random()
    if roll < 0.14 and "I" not in draft.heads:
        return _pronoun(draft, "I")
    if roll < 0.19 and "we" not in draft.heads:
        return _pronoun(draft, "we")
    if roll < 0.55:
        return acquaintance(draft)
    if roll < 0.68:
        return one_of_mine(draft)
    if roll < 0.74:
        return Subject(both(_named(draft), _named(draft)), "they", "names")
    many = roll > 0.93
    return Subject(_role(draft, many=many), "they" if many else "it", "role")


def somebody_else(draft: Draft, subject: Subject) -> Phrase:
    """Somebody to meet, help or go with."""
    if subject.person == "it" and draft.chance(0.12) and "I" not in draft.heads:
        draft.heads.append("I")
        return draft.words("me", "저")
    roll = draft.dice.random()
    return _named(draft) if roll < 0.5 else _relative(draft) if roll < 0.75 else _role(draft, many=False)


def asked_one(draft: Draft) -> Subject:
    """Whom a question is about: the listener, whom Korean leaves unsaid, or anybody but the speaker."""
    if draft.chance(0.35):
        return Subject(bare("you"), "you", "you")
    draft.heads.append("I")
    return somebody(draft)

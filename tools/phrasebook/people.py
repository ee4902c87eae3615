"""Persons: subjects, objects and the persons of questions."""

from collections.abc import Sequence

from tools.phrasebook.aligned_words import NOTHING, Phrase, bare, concatenate, link_articles
from tools.phrasebook.english import plural
from tools.phrasebook.lexicon.adjectives import TRAITS
from tools.phrasebook.lexicon.nouns import FAMILY, NAMES, OTHERS, ROLES
from tools.phrasebook.lexicon.types import Person
from tools.phrasebook.phrases import both, demonstrative, described, head_of
from tools.phrasebook.sentence_builder import SentenceBuilder
from tools.phrasebook.word_order import Subject


def new_person(builder: SentenceBuilder, people: Sequence[Person]) -> Person:
    """Return a person that the sentence has not mentioned: a second mention would need a pronoun."""
    person = builder.pick([one for one in people if one.english not in builder.heads] or people)
    builder.heads.append(person.english)
    return person


def _named(builder: SentenceBuilder) -> Phrase:
    return head_of(builder, new_person(builder, NAMES))


def _relative(builder: SentenceBuilder) -> Phrase:
    person = new_person(builder, FAMILY)
    return concatenate(builder.words("my", "제"), head_of(builder, person))


def _role(builder: SentenceBuilder, *, many: bool) -> Phrase:
    """Return a person by profession or age: "the kind doctor", "this student", "the children"."""
    person = new_person(builder, (*ROLES, *OTHERS))
    trait = NOTHING
    if builder.chance(0.2):
        adjective = builder.pick(TRAITS)
        builder.combine(adjective.english, person.english)
        trait = described(builder, adjective, degree=0.05)
    first = demonstrative(builder) if not many and builder.chance(0.25) else bare("the")
    head = builder.words(plural(person.english), person.korean + "들") if many else head_of(builder, person)
    return link_articles(first, trait, head)


def named_person(builder: SentenceBuilder) -> Subject:
    """Return a person with a name."""
    return Subject(_named(builder), "it", "name")


def family_member(builder: SentenceBuilder) -> Subject:
    """Return a relative or friend: "my daughter"."""
    return Subject(_relative(builder), "it", "family")


def _pronoun(builder: SentenceBuilder, english: str) -> Subject:
    builder.heads.append(english)
    return Subject(builder.words(english, "저" if english == "I" else "우리"), english, english)


def random_person(builder: SentenceBuilder) -> Subject:
    """Return a subject: I, we, a name, a relative, a role, or two persons."""
    roll = builder.rng.random()
    if roll < 0.14 and "I" not in builder.heads:
        return _pronoun(builder, "I")
    if roll < 0.19 and "we" not in builder.heads:
        return _pronoun(builder, "we")
    if roll < 0.55:
        return named_person(builder)
    if roll < 0.68:
        return family_member(builder)
    if roll < 0.74:
        return Subject(both(_named(builder), _named(builder)), "they", "names")
    many = roll > 0.93
    return Subject(_role(builder, many=many), "they" if many else "it", "role")


def other_person(builder: SentenceBuilder, subject: Subject) -> Phrase:
    """Return another person than the subject, to meet, help or accompany."""
    if subject.person == "it" and builder.chance(0.12) and "I" not in builder.heads:
        builder.heads.append("I")
        return builder.words("me", "저")
    roll = builder.rng.random()
    return _named(builder) if roll < 0.5 else _relative(builder) if roll < 0.75 else _role(builder, many=False)


def question_subject(builder: SentenceBuilder) -> Subject:
    """Return the subject of a question: "you", which Korean omits, or a third person."""
    if builder.chance(0.35):
        return Subject(bare("you"), "you", "you")
    builder.heads.append("I")
    return random_person(builder)

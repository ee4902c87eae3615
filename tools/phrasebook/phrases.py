"""Noun phrases: a noun with its article, adjectives, number, and another noun."""

from tools.phrasebook.aligned_words import NOTHING, Phrase, Word, bare, concatenate, link_articles, possible_word
from tools.phrasebook.collocations import OBJECTS_OF, QUALITIES_OF
from tools.phrasebook.english import article, plural
from tools.phrasebook.lexicon.adjectives import NEW, NEW_KINDS
from tools.phrasebook.lexicon.adverbials import DEGREES
from tools.phrasebook.lexicon.nouns import NUMBERS, POSSESSED
from tools.phrasebook.lexicon.types import Adjective, Noun, Person, Verb, predicate_of
from tools.phrasebook.lexicon.verbs import UNDESCRIBED
from tools.phrasebook.sentence_builder import SentenceBuilder

_ATTRIBUTIVE = tuple(degree for degree in DEGREES if degree.tags)
_UNITS = {"mass": "cups", "plural": "pairs"}


def head_of(builder: SentenceBuilder, word: Noun | Person) -> Phrase:
    """The noun alone."""
    return builder.words(word.english, word.korean)


def described(builder: SentenceBuilder, adjective: Adjective, *, degree: float = 0.12) -> Phrase:
    """An adjective before its noun, perhaps with a degree: "very big", 아주 큰."""
    predicate = predicate_of(adjective)
    phrase = builder.words(adjective.english, f"{predicate.prefix} {predicate.attributive()}")
    return concatenate(builder.fixed(builder.pick(_ATTRIBUTIVE)), phrase) if builder.chance(degree) else phrase


def perhaps_described(builder: SentenceBuilder, noun: Noun, share: float) -> Phrase:
    """Return an adjective of this noun with a probability of `share`, else nothing."""
    if not builder.chance(share) or noun.number == "bare" or "instrument" in noun.kinds:
        return NOTHING
    if builder.chance(0.15) and set(noun.kinds) & set(NEW_KINDS):
        builder.combine("new", noun.english)
        return builder.words(*NEW)
    if not QUALITIES_OF[noun]:
        return NOTHING
    adjective = builder.pick(QUALITIES_OF[noun])
    builder.combine(adjective.english, noun.english)
    return described(builder, adjective)


def demonstrative(builder: SentenceBuilder) -> Phrase:
    """This or that."""
    return builder.words(*builder.pick((("this", "이"), ("that", "그"))))


def _determiner(builder: SentenceBuilder, noun: Noun, following: str, *, definite: bool) -> Phrase:
    """Return an English article or another determiner; Korean has words only for some of them."""
    if noun.number == "bare":
        return NOTHING
    if noun.number == "the":
        return bare("the")
    roll = builder.rng.random()
    if roll < 0.17 and set(noun.kinds) & set(POSSESSED):
        return builder.words(*(("my", "제") if roll < 0.12 else ("our", "우리")))
    if roll < 0.29 and noun.number != "plural":
        return demonstrative(builder)
    if definite or roll < 0.5:
        return bare("the")
    return _indefinite(noun, following)


def _indefinite(noun: Noun, following: str) -> Phrase:
    """a or an, where English counts the noun."""
    return bare(article(following)) if noun.number == "count" else NOTHING


def noun_phrase(builder: SentenceBuilder, noun: Noun, *, definite: bool = False, adjective: float = 0.3) -> Phrase:
    """A noun with its article, perhaps an adjective: "a big dog", 큰 개."""
    phrase = concatenate(perhaps_described(builder, noun, adjective), head_of(builder, noun))
    return link_articles(_determiner(builder, noun, phrase.english[0].text, definite=definite), phrase)


def some(builder: SentenceBuilder, noun: Noun, *, no: int | None = None) -> Phrase:
    """A noun not spoken of before: "a big dog", "two dogs", or with the idea of a negation "no dog"."""
    if no is None and noun.counter and noun.number == "count" and builder.chance(0.2):
        return _counted(builder, noun)
    phrase = concatenate(perhaps_described(builder, noun, 0.25), head_of(builder, noun))
    if no is not None:
        return Phrase([Word("no", (no,)), *phrase.english], phrase.korean)
    return link_articles(_indefinite(noun, phrase.english[0].text), phrase)


def kind_of_thing(builder: SentenceBuilder, noun: Noun) -> Phrase:
    """A noun in general: "dogs", "bread", "the piano"."""
    quality = perhaps_described(builder, noun, 0.2)
    many = plural(noun.english) if noun.number == "count" else noun.english
    first = bare("the") if noun.number == "the" else NOTHING
    return link_articles(first, quality, builder.words(many, noun.korean))


def _counted(builder: SentenceBuilder, noun: Noun) -> Phrase:
    """Two or more of it: "two dogs", 개 두 마리; "two cups of tea", 차 두 잔."""
    how_many = builder.words(*builder.pick(NUMBERS))
    quality = perhaps_described(builder, noun, 0.2)
    unit = _UNITS.get(noun.number, "")
    head = builder.words(noun.english if unit else plural(noun.english), noun.korean)
    if unit:
        counter = builder.words(unit, noun.counter)
        counter.english.append(possible_word("of", *counter.korean[0].sure))
    else:
        counter = Phrase([], [possible_word(noun.counter, *head.korean[0].sure)])
    english = [*how_many.english, *counter.english, *quality.english, *head.english]
    return Phrase(english, [*quality.korean, *head.korean, *how_many.korean, *counter.korean])


def object_phrase(builder: SentenceBuilder, noun: Noun, verb: Verb) -> Phrase:
    """Return a noun as object: "a big apple", "two apples", "an apple and a peach"."""
    builder.combine(verb.english, noun.english)
    if noun.counter and verb.english != "wear" and builder.chance(0.1):
        return _counted(builder, noun)
    if builder.chance(0.1):
        others = [other for other in OBJECTS_OF[verb] if other.kinds[0] == noun.kinds[0] and other != noun]
        if others:
            first = noun_phrase(builder, noun, adjective=0.0)
            other = builder.pick(others)
            builder.combine(verb.english, other.english)
            return both(first, noun_phrase(builder, other, adjective=0.0))
    return noun_phrase(builder, noun, adjective=0.0 if verb.english in UNDESCRIBED else 0.3)


def both(first: Phrase, other: Phrase) -> Phrase:
    """Two phrases joined: "bread and milk", 빵과 우유."""
    left = first.with_particle("with")
    joint = possible_word("and", *left.korean[-1].sure)
    return Phrase([*left.english, joint, *other.english], [*left.korean, *other.korean])

"""Noun phrases: a noun with its article, adjectives, number, and another noun. Of verbs it knows the names."""

from softgaze.data.phrasebook.collocations import OBJECTS_OF, QUALITIES_OF
from softgaze.data.phrasebook.draft import Draft
from softgaze.data.phrasebook.english import article, plural
from softgaze.data.phrasebook.lexicon.adjectives import NEW, NEW_KINDS
from softgaze.data.phrasebook.lexicon.adverbials import DEGREES
from softgaze.data.phrasebook.lexicon.nouns import NUMBERS, POSSESSED
from softgaze.data.phrasebook.lexicon.rows import Adjective, Noun, Person, Verb, predicate_of
from softgaze.data.phrasebook.lexicon.verbs import UNDESCRIBED
from softgaze.data.phrasebook.meaning import NOTHING, Phrase, Word, bare, explained, hinting, joined

_ATTRIBUTIVE = tuple(degree for degree in DEGREES if degree.tags)
_UNITS = {"mass": "cups", "plural": "pairs"}


def head_of(draft: Draft, word: Noun | Person) -> Phrase:
    """The noun alone."""
    return draft.words(word.english, word.korean)


def described(draft: Draft, adjective: Adjective, *, degree: float = 0.12) -> Phrase:
    """An adjective before its noun, perhaps with a degree: "very big", 아주 큰."""
    predicate = predicate_of(adjective)
    phrase = draft.words(adjective.english, f"{predicate.prefix} {predicate.attributive()}")
    return joined(draft.fixed(draft.pick(_ATTRIBUTIVE)), phrase) if draft.chance(degree) else phrase


def perhaps_described(draft: Draft, noun: Noun, share: float) -> Phrase:
    """Something one says of this noun, in so many cases of one, or nothing."""
    if not draft.chance(share) or noun.number == "bare" or "instrument" in noun.kinds:
        return NOTHING
    if draft.chance(0.15) and set(noun.kinds) & set(NEW_KINDS):
        draft.combine("new", noun.english)
        return draft.words(*NEW)
    if not QUALITIES_OF[noun]:
        return NOTHING
    adjective = draft.pick(QUALITIES_OF[noun])
    draft.combine(adjective.english, noun.english)
    return described(draft, adjective)


def demonstrative(draft: Draft) -> Phrase:
    """This or that."""
    return draft.words(*draft.pick((("this", "이"), ("that", "그"))))


def _determiner(draft: Draft, noun: Noun, following: str, *, definite: bool) -> Phrase:
    """The English article or what stands in its place; Korean has words only for some of them."""
    if noun.number == "bare":
        return NOTHING
    if noun.number == "the":
        return bare("the")
    roll = draft.dice.random()
    if roll < 0.17 and set(noun.kinds) & set(POSSESSED):
        return draft.words(*(("my", "제") if roll < 0.12 else ("our", "우리")))
    if roll < 0.29 and noun.number != "plural":
        return demonstrative(draft)
    if definite or roll < 0.5:
        return bare("the")
    return _indefinite(noun, following)


def _indefinite(noun: Noun, following: str) -> Phrase:
    """a or an, where English counts the noun."""
    return bare(article(following)) if noun.number == "count" else NOTHING


def noun_phrase(draft: Draft, noun: Noun, *, definite: bool = False, adjective: float = 0.3) -> Phrase:
    """A noun with its article, perhaps an adjective: "a big dog", 큰 개."""
    phrase = joined(perhaps_described(draft, noun, adjective), head_of(draft, noun))
    return explained(_determiner(draft, noun, phrase.english[0].text, definite=definite), phrase)


def some(draft: Draft, noun: Noun, *, no: int | None = None) -> Phrase:
    """A noun not spoken of before: "a big dog", "two dogs", or with the idea of a negation "no dog"."""
    if no is None and noun.counter and noun.number == "count" and draft.chance(0.2):
        return _counted(draft, noun)
    phrase = joined(perhaps_described(draft, noun, 0.25), head_of(draft, noun))
    if no is not None:
        return Phrase([Word("no", (no,)), *phrase.english], phrase.korean)
    return explained(_indefinite(noun, phrase.english[0].text), phrase)


def kind_of_thing(draft: Draft, noun: Noun) -> Phrase:
    """A noun in general: "dogs", "bread", "the piano"."""
    quality = perhaps_described(draft, noun, 0.2)
    many = plural(noun.english) if noun.number == "count" else noun.english
    first = bare("the") if noun.number == "the" else NOTHING
    return explained(first, quality, draft.words(many, noun.korean))


def _counted(draft: Draft, noun: Noun) -> Phrase:
    """Two or more of it: "two dogs", 개 두 마리; "two cups of tea", 차 두 잔."""
    how_many = draft.words(*draft.pick(NUMBERS))
    quality = perhaps_described(draft, noun, 0.2)
    unit = _UNITS.get(noun.number, "")
    head = draft.words(noun.english if unit else plural(noun.english), noun.korean)
    if unit:
        counter = draft.words(unit, noun.counter)
        counter.english.append(hinting("of", *counter.korean[0].sure))
    else:
        counter = Phrase([], [hinting(noun.counter, *head.korean[0].sure)])
    english = [*how_many.english, *counter.english, *quality.english, *head.english]
    return Phrase(english, [*quality.korean, *head.korean, *how_many.korean, *counter.korean])


def object_phrase(draft: Draft, noun: Noun, verb: Verb) -> Phrase:
    """A noun as what somebody does something to: "a big apple", "two apples", "an apple and a peach"."""
    draft.combine(verb.english, noun.english)
    if noun.counter and verb.english != "wear" and draft.chance(0.1):
        return _counted(draft, noun)
    if draft.chance(0.1):
        others = [other for other in OBJECTS_OF[verb] if other.kinds[0] == noun.kinds[0] and other != noun]
        if others:
            first = noun_phrase(draft, noun, adjective=0.0)
            other = draft.pick(others)
            draft.combine(verb.english, other.english)
            return both(first, noun_phrase(draft, other, adjective=0.0))
    return noun_phrase(draft, noun, adjective=0.0 if verb.english in UNDESCRIBED else 0.3)


def both(first: Phrase, other: Phrase) -> Phrase:
    """Two phrases joined: "bread and milk", 빵과 우유."""
    left = first.with_particle("with")
    joint = hinting("and", *left.korean[-1].sure)
    return Phrase([*left.english, joint, *other.english], [*left.korean, *other.korean])

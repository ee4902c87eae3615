"""Sentences of one clause: statements, and questions to be answered by yes or no."""

from collections.abc import Sequence

from softgaze.data.phrasebook.adjuncts import position, time
from softgaze.data.phrasebook.clauses import (
    EXIST,
    NOBODY,
    PLAIN,
    SIMPLE,
    Frame,
    Maker,
    being,
    intransitive,
    quality,
    state,
    weather,
)
from softgaze.data.phrasebook.collocations import (
    ANIMAL_DEEDS,
    DESCRIBABLE,
    LANDMARKS,
    PUT,
    QUALITIES_OF,
    RUNNERS,
    SITUATIONS_OF,
    SURFACES,
)
from softgaze.data.phrasebook.draft import Draft
from softgaze.data.phrasebook.english import article, be
from softgaze.data.phrasebook.korean import Tense
from softgaze.data.phrasebook.lexicon.adjectives import TRAITS
from softgaze.data.phrasebook.lexicon.nouns import NUMBERS, ROLES
from softgaze.data.phrasebook.lexicon.rows import Adjective, Noun
from softgaze.data.phrasebook.meaning import NOTHING, Phrase, Word, bare, explained, hinting
from softgaze.data.phrasebook.people import acquaintance, asked_one, one_of_mine, somebody
from softgaze.data.phrasebook.phrases import head_of, noun_phrase, some
from softgaze.data.phrasebook.word_order import Clause, Spoken, Subject, in_english, korean_verb, spoken

# How often each tense is spoken of; "must" is not asked.
_TENSES: tuple[Tense, ...] = ("past",) * 8 + ("present",) * 5 + ("future",) * 4 + ("can",) * 2
_STATED: tuple[Tense, ...] = (*_TENSES, "must")


def people_do(draft: Draft, make: Maker) -> Spoken:
    """A statement or a question about people."""
    question = draft.chance(0.14)
    budget = draft.pick((0, 1, 1, 2, 2))
    frame = _people(draft, _TENSES if question else _STATED, question=question, budget=budget)
    return spoken(make(draft, frame), question=question)


def _people(draft: Draft, tenses: Sequence[Tense], *, question: bool, budget: int = 2) -> Frame:
    """Who, when, and whether not: what every clause of people has."""
    tense = draft.pick(tenses)
    negative = not question and tense != "must" and draft.chance(0.15)
    return Frame(asked_one(draft) if question else somebody(draft), tense, negative, question, budget)


def _framed(draft: Draft, subject: Subject, tenses: Sequence[Tense], asked: float, denied: float) -> Frame:
    """The frame of something asked, stated or denied of a subject, in so many cases of one."""
    question = draft.chance(asked)
    tense = draft.pick(tenses)
    return Frame(subject, tense, not question and draft.chance(denied), question)


def _thing(draft: Draft, noun: Noun, *, adjective: float) -> Subject:
    """A thing or animal as what a sentence is about."""
    phrase = noun_phrase(draft, noun, definite=True, adjective=adjective)
    return Subject(phrase, "they" if noun.number == "plural" else "it", noun.english)


# --- Something is so


def thing_is(draft: Draft) -> Spoken:
    """A thing or animal is so: "The bag is heavy.", 가방은 무거워요."""
    noun = draft.pick(DESCRIBABLE)
    adjective = draft.pick(QUALITIES_OF[noun])
    draft.combine(adjective.english, noun.english)
    return _is_so(draft, _thing(draft, noun, adjective=0.0), adjective)


def place_is(draft: Draft) -> Spoken:
    """A place is so: "The library is quiet."."""
    place = draft.pick(tuple(SITUATIONS_OF))
    adjective = draft.pick(SITUATIONS_OF[place])
    draft.combine(adjective.english, f"@ {place.english}")
    first = NOTHING if place.english[0].isupper() else bare("the")
    phrase = explained(first, draft.words(place.english, place.korean))
    return _is_so(draft, Subject(phrase, "it", "place"), adjective)


def _is_so(draft: Draft, subject: Subject, adjective: Adjective) -> Spoken:
    question = draft.chance(0.14)
    negative = not question and draft.chance(0.15)
    return spoken(quality(draft, adjective, Frame(subject, draft.pick(PLAIN), negative)), question=question)


def person_is(draft: Draft) -> Spoken:
    """A person is so: "The doctor is kind."."""
    question = draft.chance(0.14)
    frame = _people(draft, PLAIN, question=question)
    momentary = draft.chance(0.5)
    clause = state(draft, frame) if momentary else quality(draft, draft.pick(TRAITS), frame)
    return spoken(clause, question=question)


def person_is_a(draft: Draft) -> Spoken:
    """Somebody is something: 학생이에요, 의사예요, 가수가 아니에요."""
    question = draft.chance(0.2)
    subject = acquaintance(draft) if draft.chance(0.7) else one_of_mine(draft)
    role = draft.pick(ROLES)
    draft.combine(draft.heads[-1], role.english)
    tense = draft.pick(PLAIN)
    clause = being(draft, EXIST, Frame(subject, tense, not question and draft.chance(0.3)))
    noun = explained(bare(article(role.english)), head_of(draft, role))
    clause.after.extend(noun.english)
    korean = [*subject.korean("topic"), *_copula(clause, noun)]
    return Spoken(in_english(clause, question=question), korean, "?" if question else ".")


def _copula(clause: Clause, noun: Phrase) -> list[Word]:
    """The Korean noun with its "is", which is a particle, or with "is not", which is a word."""
    past = clause.tense == "past"
    if not clause.negative:
        return [noun.with_particle("was" if past else "is").korean[0].also(possible=(clause.key,))]
    last = Word("아니었어요" if past else "아니에요", (clause.negation,), (clause.key,))
    return [*noun.with_particle("subject").korean, last]


# --- Something is somewhere


def located(draft: Draft) -> Spoken:
    """A thing is somewhere: "The cat is under the table.", 고양이는 탁자 아래에 있어요."""
    noun, landmark = _put(draft)
    frame = _framed(draft, _thing(draft, noun, adjective=0.2), PLAIN, asked=0.2, denied=0.2)
    clause = being(draft, EXIST, frame, lexical=True)
    return spoken(clause.complete({"place": position(draft, landmark)}), question=frame.question)


def existing(draft: Draft) -> Spoken:
    """There is something somewhere: the same words with 이/가, and the place first."""
    noun, landmark = _put(draft)
    negative = draft.chance(0.2)
    key, no = draft.idea(), draft.idea()
    thing = some(draft, noun, no=no if negative else None).with_particle("subject")
    many = thing.english[0].text in dict(NUMBERS) or noun.number == "plural"
    tense = draft.pick(PLAIN)
    where = position(draft, landmark)
    clause = Clause(Subject(NOTHING, "it", ""), "be", "be", EXIST, tense, negative, key, draft.idea(), no)
    there = [hinting("there", key), Word(be("they" if many else "it", tense), (key,))]
    korean = [*where.korean, *thing.korean, *korean_verb(clause)]
    return Spoken([*there, *thing.english, *where.english], korean)


def _put(draft: Draft) -> tuple[Noun, Noun]:
    """Something and where it may lie."""
    noun = draft.pick(PUT)
    landmark = draft.pick(LANDMARKS if "animal" in noun.kinds else SURFACES)
    draft.combine(noun.english, f"@ {landmark.english}")
    return noun, landmark


# --- What happens without people


def animal_does(draft: Draft) -> Spoken:
    """An animal sleeps, runs, plays."""
    frame = _framed(draft, _thing(draft, draft.pick(RUNNERS), adjective=0.3), PLAIN, asked=0.14, denied=0.15)
    return spoken(intransitive(draft, frame._replace(budget=1), ANIMAL_DEEDS), question=frame.question)


def raining(draft: Draft) -> Spoken:
    """It rains: "It will rain tomorrow."."""
    frame = _framed(draft, NOBODY, SIMPLE, asked=0.2, denied=0.2)
    clause = weather(draft, frame)
    if clause.tense != "present" and draft.chance(0.8):
        clause.dated(time(draft, clause.tense))
    return spoken(clause, question=frame.question)

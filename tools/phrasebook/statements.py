"""Sentences of one clause: statements, and questions to be answered by yes or no."""

from collections.abc import Sequence

from tools.phrasebook.adjuncts import position, time
from tools.phrasebook.aligned_words import NOTHING, Phrase, Word, bare, link_articles, possible_word
from tools.phrasebook.clauses import (
    EXIST,
    IMPERSONAL,
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
from tools.phrasebook.collocations import (
    ANIMAL_ACTIONS,
    DESCRIBABLE,
    LANDMARKS,
    PUT,
    QUALITIES_OF,
    RUNNERS,
    SITUATIONS_OF,
    SURFACES,
)
from tools.phrasebook.english import article, be
from tools.phrasebook.korean import Tense
from tools.phrasebook.lexicon.adjectives import TRAITS
from tools.phrasebook.lexicon.nouns import NUMBERS, ROLES
from tools.phrasebook.lexicon.types import Adjective, Noun
from tools.phrasebook.people import family_member, named_person, question_subject, random_person
from tools.phrasebook.phrases import head_of, noun_phrase, some
from tools.phrasebook.sentence_builder import SentenceBuilder
from tools.phrasebook.word_order import Clause, SentenceWords, Subject, in_english, korean_verb, make_sentence

# Frequency of each tense; "must" does not occur in questions.
_TENSES: tuple[Tense, ...] = ("past",) * 8 + ("present",) * 5 + ("future",) * 4 + ("can",) * 2
_STATED: tuple[Tense, ...] = (*_TENSES, "must")


def people_do(builder: SentenceBuilder, make: Maker) -> SentenceWords:
    """A statement or a question about people."""
    question = builder.chance(0.14)
    budget = builder.pick((0, 1, 1, 2, 2))
    frame = _people(builder, _TENSES if question else _STATED, question=question, budget=budget)
    return make_sentence(make(builder, frame), question=question)


def _people(builder: SentenceBuilder, tenses: Sequence[Tense], *, question: bool, budget: int = 2) -> Frame:
    """Return subject, tense and polarity of a clause about people."""
    tense = builder.pick(tenses)
    negative = not question and tense != "must" and builder.chance(0.15)
    return Frame(question_subject(builder) if question else random_person(builder), tense, negative, question, budget)


def _framed(
    builder: SentenceBuilder, subject: Subject, tenses: Sequence[Tense], questions: float, negated: float
) -> Frame:
    """Return a frame that is a question or negated with these probabilities."""
    question = builder.chance(questions)
    tense = builder.pick(tenses)
    return Frame(subject, tense, not question and builder.chance(negated), question)


def _thing(builder: SentenceBuilder, noun: Noun, *, adjective: float) -> Subject:
    """Return a thing or animal as subject."""
    phrase = noun_phrase(builder, noun, definite=True, adjective=adjective)
    return Subject(phrase, "they" if noun.number == "plural" else "it", noun.english)


# --- Something is so


def thing_is(builder: SentenceBuilder) -> SentenceWords:
    """Return a sentence about the quality of a thing or animal: "The bag is heavy.", 가방은 무거워요."""
    noun = builder.pick(DESCRIBABLE)
    adjective = builder.pick(QUALITIES_OF[noun])
    builder.combine(adjective.english, noun.english)
    return _is_so(builder, _thing(builder, noun, adjective=0.0), adjective)


def place_is(builder: SentenceBuilder) -> SentenceWords:
    """Return a sentence about the quality of a location: "The library is quiet."."""
    place = builder.pick(tuple(SITUATIONS_OF))
    adjective = builder.pick(SITUATIONS_OF[place])
    builder.combine(adjective.english, f"@ {place.english}")
    first = NOTHING if place.english[0].isupper() else bare("the")
    phrase = link_articles(first, builder.words(place.english, place.korean))
    return _is_so(builder, Subject(phrase, "it", "place"), adjective)


def _is_so(builder: SentenceBuilder, subject: Subject, adjective: Adjective) -> SentenceWords:
    question = builder.chance(0.14)
    negative = not question and builder.chance(0.15)
    return make_sentence(quality(builder, adjective, Frame(subject, builder.pick(PLAIN), negative)), question=question)


def person_is(builder: SentenceBuilder) -> SentenceWords:
    """Return a sentence about the character of a person: "The student is kind."."""
    question = builder.chance(0.14)
    frame = _people(builder, PLAIN, question=question)
    momentary = builder.chance(0.5)
    clause = state(builder, frame) if momentary else quality(builder, builder.pick(TRAITS), frame)
    return make_sentence(clause, question=question)


def person_is_a(builder: SentenceBuilder) -> SentenceWords:
    """Return a sentence about a profession: 학생이에요, 의사예요, 가수가 아니에요."""
    question = builder.chance(0.2)
    subject = named_person(builder) if builder.chance(0.7) else family_member(builder)
    role = builder.pick(ROLES)
    builder.combine(builder.heads[-1], role.english)
    tense = builder.pick(PLAIN)
    clause = being(builder, EXIST, Frame(subject, tense, not question and builder.chance(0.3)))
    noun = link_articles(bare(article(role.english)), head_of(builder, role))
    clause.after.extend(noun.english)
    korean = [*subject.korean("topic"), *_copula(clause, noun)]
    return SentenceWords(in_english(clause, question=question), korean, "?" if question else ".")


def _copula(clause: Clause, noun: Phrase) -> list[Word]:
    """The Korean noun with its "is", which is a particle, or with "is not", which is a word."""
    past = clause.tense == "past"
    if not clause.negative:
        return [noun.with_particle("was" if past else "is").korean[0].also(possible=(clause.key,))]
    last = Word("아니었어요" if past else "아니에요", (clause.negation,), (clause.key,))
    return [*noun.with_particle("subject").korean, last]


# --- positions


def located(builder: SentenceBuilder) -> SentenceWords:
    """Return a sentence about the position of a thing: "The cat is under the table.", 고양이는 탁자 아래에 있어요."""
    noun, landmark = _put(builder)
    frame = _framed(builder, _thing(builder, noun, adjective=0.2), PLAIN, questions=0.2, negated=0.2)
    clause = being(builder, EXIST, frame, lexical=True)
    return make_sentence(clause.complete({"place": position(builder, landmark)}), question=frame.question)


def existing(builder: SentenceBuilder) -> SentenceWords:
    """Return a "there is" sentence: the same words with 이/가, and the position first."""
    noun, landmark = _put(builder)
    negative = builder.chance(0.2)
    key, no = builder.concept(), builder.concept()
    thing = some(builder, noun, no=no if negative else None).with_particle("subject")
    many = thing.english[0].text in dict(NUMBERS) or noun.number == "plural"
    tense = builder.pick(PLAIN)
    where = position(builder, landmark)
    clause = Clause(Subject(NOTHING, "it", ""), "be", "be", EXIST, tense, negative, key, builder.concept(), no)
    there = [possible_word("there", key), Word(be("they" if many else "it", tense), (key,))]
    korean = [*where.korean, *thing.korean, *korean_verb(clause)]
    return SentenceWords([*there, *thing.english, *where.english], korean)


def _put(builder: SentenceBuilder) -> tuple[Noun, Noun]:
    """Return a thing and the landmark of its position."""
    noun = builder.pick(PUT)
    landmark = builder.pick(LANDMARKS if "animal" in noun.kinds else SURFACES)
    builder.combine(noun.english, f"@ {landmark.english}")
    return noun, landmark


# --- animals and weather


def animal_does(builder: SentenceBuilder) -> SentenceWords:
    """Return a sentence about the action of an animal."""
    frame = _framed(builder, _thing(builder, builder.pick(RUNNERS), adjective=0.3), PLAIN, questions=0.14, negated=0.15)
    return make_sentence(intransitive(builder, frame._replace(budget=1), ANIMAL_ACTIONS), question=frame.question)


def raining(builder: SentenceBuilder) -> SentenceWords:
    """Return a sentence about the weather: "It will rain tomorrow."."""
    frame = _framed(builder, IMPERSONAL, SIMPLE, questions=0.2, negated=0.2)
    clause = weather(builder, frame)
    if clause.tense != "present" and builder.chance(0.8):
        clause.dated(time(builder, clause.tense))
    return make_sentence(clause, question=frame.question)

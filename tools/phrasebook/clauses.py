"""Clauses: each construction is a function of the sentence builder and of the frame that it fills."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tools.phrasebook.adjuncts import extras, goal, place
from tools.phrasebook.aligned_words import NOTHING, Phrase, Word, bare, link_articles, possible_word
from tools.phrasebook.collocations import HISTORY_OF, LIKINGS_OF, OBJECTS_OF, OWNED, STATE_TIMES_IN
from tools.phrasebook.english import article, plural
from tools.phrasebook.korean import Predicate, Tense
from tools.phrasebook.lexicon.adjectives import STATES, UNNEGATED
from tools.phrasebook.lexicon.adverbials import DEGREES
from tools.phrasebook.lexicon.nouns import ROLES
from tools.phrasebook.lexicon.types import Adjective, Noun, Verb, predicate_of
from tools.phrasebook.lexicon.verbs import (
    CREATING,
    DATIVE,
    GENERIC,
    INTRANSITIVE,
    MOTION,
    RARE,
    SIT,
    STATIC,
    TRANSITIVE,
    WEATHER,
)
from tools.phrasebook.people import named_person, new_person, other_person
from tools.phrasebook.phrases import head_of, kind_of_thing, noun_phrase, object_phrase, some
from tools.phrasebook.sentence_builder import SentenceBuilder
from tools.phrasebook.word_order import Clause, Subject, in_english, in_korean

# Frequency of each tense, for constructions that lack some tenses.
PLAIN: tuple[Tense, ...] = ("past", "past", "present")
SIMPLE: tuple[Tense, ...] = ("past", "past", "present", "future")

IMPERSONAL = Subject(bare("it"), "it", "it")
EXIST = Predicate.of("있다")
_HAVE = Verb("have", "had", "있다", "", (), (), ())
_BECOME = Verb("become", "became", "되다", "", (), (), ())


class Frame(NamedTuple):
    """The specification of a clause: subject, tense, polarity, question or statement, and number of additions."""

    subject: Subject
    tense: Tense
    negative: bool = False
    question: bool = False
    budget: int = 0

    @property
    def clear(self) -> bool:
        """Return whether an auxiliary shows the tense."""
        return self.negative or self.question

    def past_or_present(self) -> "Frame":
        """Return the frame of a state, in past or present."""
        return self if self.tense == "past" else self._replace(tense="present")


Maker = Callable[[SentenceBuilder, Frame], Clause]


def clause_of(builder: SentenceBuilder, verb: Verb, frame: Frame) -> Clause:
    """Return a clause of subject and verb."""
    keys = (builder.concept(), builder.concept(), builder.concept())
    return Clause(frame.subject, verb.english, verb.past, predicate_of(verb), frame.tense, frame.negative, *keys)


def being(builder: SentenceBuilder, predicate: Predicate, frame: Frame, *, lexical: bool = False) -> Clause:
    """Return a clause of "be"; its meaning is in the complement unless it is lexical."""
    keys = (builder.concept(), builder.concept(), builder.concept())
    return Clause(frame.subject, "be", "be", predicate, frame.tense, frame.negative, *keys, lexical=lexical)


def verb_for(builder: SentenceBuilder, verbs: Sequence[Verb], frame: Frame) -> Verb:
    """Return a verb that occurs in this tense and shows it."""
    while True:
        verb = builder.pick(verbs)
        rare = frame.tense == "present" and verb.english in RARE
        if not rare and (frame.clear or not _ambiguous(verb, frame)):
            return verb


def _ambiguous(verb: Verb, frame: Frame) -> bool:
    """Return whether this present reads as a past, too ("I read", "they cut"): it would have two translations."""
    return verb.english == verb.past and frame.tense == "present" and frame.subject.person != "it"


# --- actions of people


def transitive(builder: SentenceBuilder, frame: Frame, verbs: Sequence[Verb] = TRANSITIVE) -> Clause:
    """Return a clause with an object: "Minsu read a book at the library yesterday"."""
    verb = verb_for(builder, verbs, frame)
    clause = clause_of(builder, verb, frame)
    allowed = ["time", "frequency", "place", "company", "tool", "manner"]
    if "person" in verb.objects and (not OBJECTS_OF[verb] or builder.chance(0.7)):
        thing = other_person(builder, frame.subject)
    else:
        noun = builder.pick(OBJECTS_OF[verb])
        # A relative clause ends the sentence: further words would seem to belong to it.
        related = _related(builder, noun, verb) if not frame.budget and builder.chance(0.2) else None
        thing = related or object_phrase(builder, noun, verb)
        if "meal" in noun.kinds:
            allowed.remove("time")  # no breakfast in the evening
        if verb.english == "eat" and "dish" not in noun.kinds:
            allowed.remove("tool")  # no apple with chopsticks
    added = extras(builder, clause, verb, allowed, frame.budget)
    return clause.complete({"object": thing.with_particle("object"), **added})


def _related(builder: SentenceBuilder, noun: Noun, verb: Verb) -> Phrase | None:
    """Return a noun with a relative clause: "the book that Jimin bought", 지민이 산 책; None if nothing fits."""
    verbs = [other for other in HISTORY_OF[noun] if other.english != verb.english]
    if not verbs or noun.number in ("bare", "the") or verb.english in CREATING:
        return None
    other = builder.pick(verbs)
    builder.combine(verb.english, noun.english)
    builder.combine(other.english, noun.english)
    clause = clause_of(builder, other, Frame(named_person(builder), "past"))
    head = head_of(builder, noun)
    english = [
        possible_word("the", *head.korean[0].sure),
        *head.english,
        possible_word("that", clause.key),
        *in_english(clause),
    ]
    return Phrase(english, [*in_korean(clause, "subject", "관형"), *head.korean])


def dative(builder: SentenceBuilder, frame: Frame) -> Clause:
    """Return a clause with two objects: "Minsu gave a book to Jimin"."""
    verb = builder.pick(DATIVE)
    clause = clause_of(builder, verb, frame)
    thing = some_object(builder, verb)
    receiver = other_person(builder, frame.subject).with_particle("to").after("to")
    added = extras(builder, clause, verb, ("time", "frequency", "place", "manner"), min(frame.budget, 1))
    return clause.complete({"object": thing, "receiver": receiver, **added})


def some_object(builder: SentenceBuilder, verb: Verb) -> Phrase:
    """Return an object of this verb with its particle."""
    return object_phrase(builder, builder.pick(OBJECTS_OF[verb]), verb).with_particle("object")


def intransitive(builder: SentenceBuilder, frame: Frame, verbs: Sequence[Verb] = INTRANSITIVE) -> Clause:
    """Return a clause without object: "Minsu slept well at home"."""
    verb = builder.pick(verbs)
    clause = clause_of(builder, verb, frame)
    allowed = ("time", "frequency", "place", "company", "manner")
    return clause.complete(extras(builder, clause, verb, allowed, max(frame.budget, 1)))


def static(builder: SentenceBuilder, frame: Frame) -> Clause:
    """Return a clause of living somewhere: 에, not 에서."""
    verb = builder.pick(STATIC)
    clause = clause_of(builder, verb, frame)
    added = extras(builder, clause, verb, ("company", "manner"), min(frame.budget, 1))
    return clause.complete({"place": place(builder, verb, "at"), **added})


def seated(builder: SentenceBuilder, frame: Frame) -> Clause:
    """Return a clause of sitting or lying: "Minsu sat on the chair", 의자에."""
    verb = builder.pick(SIT)
    clause = clause_of(builder, verb, frame)
    noun = builder.pick(OBJECTS_OF[verb])
    builder.combine(verb.english, noun.english)
    seat = noun_phrase(builder, noun, definite=True).with_particle("at").after("on")
    added = extras(builder, clause, verb, ("time", "manner"), min(frame.budget, 1))
    return clause.complete({"goal": seat, **added})


def motion(builder: SentenceBuilder, frame: Frame, verbs: Sequence[Verb] = MOTION) -> Clause:
    """Return a clause of motion: "Minsu went to Busan by train"."""
    verb = verb_for(builder, verbs, frame)
    clause = clause_of(builder, verb, frame)
    where = goal(builder, verb)
    allowed = ["time", "frequency", "company", "manner"]
    if verb.english in ("go", "come"):
        allowed.append("vehicle")
    return clause.complete({"goal": where, **extras(builder, clause, verb, allowed, frame.budget)})


# --- states


def generic(builder: SentenceBuilder, frame: Frame) -> Clause:
    """Return a clause about a kind of thing: "Minsu likes dogs"."""
    verb = builder.pick(GENERIC)
    clause = clause_of(builder, verb, frame.past_or_present())
    noun = builder.pick(LIKINGS_OF[verb])
    builder.combine(verb.english, noun.english)
    return clause.complete({"object": kind_of_thing(builder, noun).with_particle("object")})


def possession(builder: SentenceBuilder, frame: Frame) -> Clause:
    """Return a clause of possession, in Korean of existence: 자동차가 있어요."""
    clause = clause_of(builder, _HAVE, frame.past_or_present())
    noun = builder.pick(OWNED)
    builder.combine("have", noun.english)
    return clause.complete({"object": some(builder, noun).with_particle("subject")})


def becoming(builder: SentenceBuilder, frame: Frame) -> Clause:
    """Return a clause of becoming: 의사가 됐어요."""
    tense: Tense = "future" if frame.tense in ("present", "must") else frame.tense
    clause = clause_of(builder, _BECOME, frame._replace(tense=tense))
    role = new_person(builder, ROLES)
    builder.combine("become", role.english)
    alone = frame.subject.person in ("I", "it", "you")
    first, many = (bare(article(role.english)), role.english) if alone else (NOTHING, plural(role.english))
    noun = link_articles(first, builder.words(many, role.korean))
    return clause.complete({"object": noun.with_particle("subject")})


def state(builder: SentenceBuilder, frame: Frame, states: Sequence[Adjective] = STATES) -> Clause:
    """Return a clause about the state of a person: "Minsu was busy yesterday"."""
    frame = frame.past_or_present()
    clause = quality(builder, builder.pick(states), frame)
    if frame.budget and builder.chance(0.5):
        clause.dated(builder.fixed(builder.pick(STATE_TIMES_IN[frame.tense])))
    return clause


def quality(builder: SentenceBuilder, adjective: Adjective, frame: Frame) -> Clause:
    """Return a clause about a quality: "the bag is very heavy", 가방은 아주 무거워요."""
    negative = frame.negative and adjective.english not in UNNEGATED
    clause = being(builder, predicate_of(adjective), frame._replace(negative=negative))
    degree = builder.fixed(builder.pick(DEGREES)) if not negative and builder.chance(0.2) else NOTHING
    clause.after.extend([*degree.english, Word(adjective.english, (clause.key,))])
    clause.middle.extend(degree.korean)
    return clause


def weather(builder: SentenceBuilder, frame: Frame) -> Clause:
    """Return a clause about the weather: 비가 와요, 추워요."""
    english, past, subject, korean, irregular = builder.pick(WEATHER)
    frame = frame._replace(subject=IMPERSONAL)
    if past:
        clause = clause_of(builder, Verb(english, past, korean, irregular, (), (), ()), frame)
        clause.middle.append(Word(subject, (clause.key,)))
    else:
        clause = being(builder, Predicate.of(korean, irregular, adjective=True), frame.past_or_present())
        clause.after.append(Word(english, (clause.key,)))
    return clause

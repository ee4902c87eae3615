"""Clauses: who does or is what, each construction a function of the draft and of the frame it must fill.

A clause knows its words and not yet their order.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from softgaze.data.phrasebook.adjuncts import extras, goal, place
from softgaze.data.phrasebook.collocations import HISTORY_OF, LIKINGS_OF, OBJECTS_OF, OWNED, STATE_TIMES_IN
from softgaze.data.phrasebook.draft import Draft
from softgaze.data.phrasebook.english import article, plural
from softgaze.data.phrasebook.korean import Predicate, Tense
from softgaze.data.phrasebook.lexicon.adjectives import STATES, UNNEGATED
from softgaze.data.phrasebook.lexicon.adverbials import DEGREES
from softgaze.data.phrasebook.lexicon.nouns import ROLES
from softgaze.data.phrasebook.lexicon.rows import Adjective, Noun, Verb, predicate_of
from softgaze.data.phrasebook.lexicon.verbs import (
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
from softgaze.data.phrasebook.meaning import NOTHING, Phrase, Word, bare, explained, hinting
from softgaze.data.phrasebook.people import acquaintance, fresh, somebody_else
from softgaze.data.phrasebook.phrases import head_of, kind_of_thing, noun_phrase, object_phrase, some
from softgaze.data.phrasebook.word_order import Clause, Subject, in_english, in_korean

# How often each tense is spoken of, where not every tense is.
PLAIN: tuple[Tense, ...] = ("past", "past", "present")
SIMPLE: tuple[Tense, ...] = ("past", "past", "present", "future")

NOBODY = Subject(bare("it"), "it", "it")
EXIST = Predicate.of("있다")
_HAVE = Verb("have", "had", "있다", "", (), (), ())
_BECOME = Verb("become", "became", "되다", "", (), (), ())


class Frame(NamedTuple):
    """What a clause is asked for: its subject, tense, polarity, whether it is a question, and how much to add."""

    subject: Subject
    tense: Tense
    negative: bool = False
    question: bool = False
    budget: int = 0

    @property
    def clear(self) -> bool:
        """Whether an auxiliary says the tense."""
        return self.negative or self.question

    def past_or_present(self) -> "Frame":
        """The frame of a state: whatever is not past is now."""
        return self if self.tense == "past" else self._replace(tense="present")


Maker = Callable[[Draft, Frame], Clause]


def clause_of(draft: Draft, verb: Verb, frame: Frame) -> Clause:
    """A clause with nothing but subject and verb."""
    keys = (draft.idea(), draft.idea(), draft.idea())
    return Clause(frame.subject, verb.english, verb.past, predicate_of(verb), frame.tense, frame.negative, *keys)


def being(draft: Draft, predicate: Predicate, frame: Frame, *, lexical: bool = False) -> Clause:
    """A clause of "be", whose meaning is in what follows unless it is lexical."""
    keys = (draft.idea(), draft.idea(), draft.idea())
    return Clause(frame.subject, "be", "be", predicate, frame.tense, frame.negative, *keys, lexical=lexical)


def verb_for(draft: Draft, verbs: Sequence[Verb], frame: Frame) -> Verb:
    """A verb of these that is done in this tense, and shows it."""
    while True:
        verb = draft.pick(verbs)
        rare = frame.tense == "present" and verb.english in RARE
        if not rare and (frame.clear or not _ambiguous(verb, frame)):
            return verb


def _ambiguous(verb: Verb, frame: Frame) -> bool:
    """Would this present read as a past too ("I read", "they cut")? Then it would have two translations."""
    return verb.english == verb.past and frame.tense == "present" and frame.subject.person != "it"


# --- What people do


def transitive(draft: Draft, frame: Frame, verbs: Sequence[Verb] = TRANSITIVE) -> Clause:
    """Somebody does something to something: "Minsu read a book at the library yesterday"."""
    verb = verb_for(draft, verbs, frame)
    clause = clause_of(draft, verb, frame)
    allowed = ["time", "frequency", "place", "company", "tool", "manner"]
    if "person" in verb.objects and (not OBJECTS_OF[verb] or draft.chance(0.7)):
        thing = somebody_else(draft, frame.subject)
    else:
        noun = draft.pick(OBJECTS_OF[verb])
        # A relative clause ends the sentence: whatever followed would seem to belong to it.
        related = _related(draft, noun, verb) if not frame.budget and draft.chance(0.2) else None
        thing = related or object_phrase(draft, noun, verb)
        if "meal" in noun.kinds:
            allowed.remove("time")  # no breakfast in the evening
        if verb.english == "eat" and "dish" not in noun.kinds:
            allowed.remove("tool")  # no apple with chopsticks
    added = extras(draft, clause, verb, allowed, frame.budget)
    return clause.complete({"object": thing.with_particle("object"), **added})


def _related(draft: Draft, noun: Noun, verb: Verb) -> Phrase | None:
    """A noun with a relative clause: "the book that Jimin bought", 지민이 산 책; None where nothing fits."""
    verbs = [other for other in HISTORY_OF[noun] if other.english != verb.english]
    if not verbs or noun.number in ("bare", "the") or verb.english in CREATING:
        return None
    other = draft.pick(verbs)
    draft.combine(verb.english, noun.english)
    draft.combine(other.english, noun.english)
    clause = clause_of(draft, other, Frame(acquaintance(draft), "past"))
    head = head_of(draft, noun)
    english = [hinting("the", *head.korean[0].sure), *head.english, hinting("that", clause.key), *in_english(clause)]
    return Phrase(english, [*in_korean(clause, "subject", "관형"), *head.korean])


def dative(draft: Draft, frame: Frame) -> Clause:
    """Somebody gives somebody something: "Minsu gave a book to Jimin"."""
    verb = draft.pick(DATIVE)
    clause = clause_of(draft, verb, frame)
    thing = some_object(draft, verb)
    receiver = somebody_else(draft, frame.subject).with_particle("to").after("to")
    added = extras(draft, clause, verb, ("time", "frequency", "place", "manner"), min(frame.budget, 1))
    return clause.complete({"object": thing, "receiver": receiver, **added})


def some_object(draft: Draft, verb: Verb) -> Phrase:
    """Something this verb takes, with its particle."""
    return object_phrase(draft, draft.pick(OBJECTS_OF[verb]), verb).with_particle("object")


def intransitive(draft: Draft, frame: Frame, verbs: Sequence[Verb] = INTRANSITIVE) -> Clause:
    """Somebody does something: "Minsu slept well at home"."""
    verb = draft.pick(verbs)
    clause = clause_of(draft, verb, frame)
    allowed = ("time", "frequency", "place", "company", "manner")
    return clause.complete(extras(draft, clause, verb, allowed, max(frame.budget, 1)))


def static(draft: Draft, frame: Frame) -> Clause:
    """Somebody lives somewhere: 에, not 에서."""
    verb = draft.pick(STATIC)
    clause = clause_of(draft, verb, frame)
    added = extras(draft, clause, verb, ("company", "manner"), min(frame.budget, 1))
    return clause.complete({"place": place(draft, verb, "at"), **added})


def seated(draft: Draft, frame: Frame) -> Clause:
    """Somebody sits or lies on something: "Minsu sat on the chair", 의자에."""
    verb = draft.pick(SIT)
    clause = clause_of(draft, verb, frame)
    noun = draft.pick(OBJECTS_OF[verb])
    draft.combine(verb.english, noun.english)
    seat = noun_phrase(draft, noun, definite=True).with_particle("at").after("on")
    added = extras(draft, clause, verb, ("time", "manner"), min(frame.budget, 1))
    return clause.complete({"goal": seat, **added})


def motion(draft: Draft, frame: Frame, verbs: Sequence[Verb] = MOTION) -> Clause:
    """Somebody goes somewhere: "Minsu went to Busan by train"."""
    verb = verb_for(draft, verbs, frame)
    clause = clause_of(draft, verb, frame)
    where = goal(draft, verb)
    allowed = ["time", "frequency", "company", "manner"]
    if verb.english in ("go", "come"):
        allowed.append("vehicle")
    return clause.complete({"goal": where, **extras(draft, clause, verb, allowed, frame.budget)})


# --- How things are


def generic(draft: Draft, frame: Frame) -> Clause:
    """Somebody likes a kind of thing: "Minsu likes dogs"."""
    verb = draft.pick(GENERIC)
    clause = clause_of(draft, verb, frame.past_or_present())
    noun = draft.pick(LIKINGS_OF[verb])
    draft.combine(verb.english, noun.english)
    return clause.complete({"object": kind_of_thing(draft, noun).with_particle("object")})


def possession(draft: Draft, frame: Frame) -> Clause:
    """Somebody has something: Korean says it exists, 자동차가 있어요."""
    clause = clause_of(draft, _HAVE, frame.past_or_present())
    noun = draft.pick(OWNED)
    draft.combine("have", noun.english)
    return clause.complete({"object": some(draft, noun).with_particle("subject")})


def becoming(draft: Draft, frame: Frame) -> Clause:
    """Somebody becomes something: 의사가 됐어요."""
    tense: Tense = "future" if frame.tense in ("present", "must") else frame.tense
    clause = clause_of(draft, _BECOME, frame._replace(tense=tense))
    role = fresh(draft, ROLES)
    draft.combine("become", role.english)
    alone = frame.subject.person in ("I", "it", "you")
    first, many = (bare(article(role.english)), role.english) if alone else (NOTHING, plural(role.english))
    noun = explained(first, draft.words(many, role.korean))
    return clause.complete({"object": noun.with_particle("subject")})


def state(draft: Draft, frame: Frame, states: Sequence[Adjective] = STATES) -> Clause:
    """Somebody is tired, busy, kind: "Minsu was busy yesterday"."""
    frame = frame.past_or_present()
    clause = quality(draft, draft.pick(states), frame)
    if frame.budget and draft.chance(0.5):
        clause.dated(draft.fixed(draft.pick(STATE_TIMES_IN[frame.tense])))
    return clause


def quality(draft: Draft, adjective: Adjective, frame: Frame) -> Clause:
    """Something is so: "the bag is very heavy", 가방은 아주 무거워요."""
    negative = frame.negative and adjective.english not in UNNEGATED
    clause = being(draft, predicate_of(adjective), frame._replace(negative=negative))
    degree = draft.fixed(draft.pick(DEGREES)) if not negative and draft.chance(0.2) else NOTHING
    clause.after.extend([*degree.english, Word(adjective.english, (clause.key,))])
    clause.middle.extend(degree.korean)
    return clause


def weather(draft: Draft, frame: Frame) -> Clause:
    """It rains, it is cold: 비가 와요, 추워요."""
    english, past, subject, korean, irregular = draft.pick(WEATHER)
    frame = frame._replace(subject=NOBODY)
    if past:
        clause = clause_of(draft, Verb(english, past, korean, irregular, (), (), ()), frame)
        clause.middle.append(Word(subject, (clause.key,)))
    else:
        clause = being(draft, Predicate.of(korean, irregular, adjective=True), frame.past_or_present())
        clause.after.append(Word(english, (clause.key,)))
    return clause

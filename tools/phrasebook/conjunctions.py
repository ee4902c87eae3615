"""Sentences of more than one clause: and, but, when, while, before, after, because, if."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tools.phrasebook.aligned_words import Word, comma, possible_word
from tools.phrasebook.clauses import (
    SIMPLE,
    Frame,
    Maker,
    dative,
    intransitive,
    motion,
    state,
    transitive,
    weather,
)
from tools.phrasebook.collocations import ACTS, ARRIVALS, CAUSING, PASTIMES
from tools.phrasebook.korean import Ending, Tense
from tools.phrasebook.people import random_person
from tools.phrasebook.sentence_builder import SentenceBuilder
from tools.phrasebook.word_order import Clause, SentenceWords, base_form, in_english, in_korean, inflected


class _Conjunction(NamedTuple):
    """A conjunction: the word, its Korean ending, and what the inner clause may be."""

    english: str
    ending: Ending
    makers: tuple[Maker, ...]

    def word(self, concept: int) -> Word:
        """The English word, sure of its idea where Korean has a word for it too, and not an ending alone."""
        said = self.ending in ("때", "동안", "전에", "후에")
        return Word(self.english, (concept,)) if said else possible_word(self.english, concept)


_cause = partial(state, states=CAUSING)
_arrival = partial(motion, verbs=ARRIVALS)
_pastime = partial(transitive, verbs=PASTIMES)
_act = partial(transitive, verbs=ACTS)

# Which conjunctions join clauses in a tense.
_REAL = (
    _Conjunction("when", "때", (weather, state, _arrival)),
    _Conjunction("while", "동안", (_pastime,)),
    _Conjunction("before", "전에", (_act, motion)),
    _Conjunction("after", "후에", (_act, motion)),
    _Conjunction("because", "아서", (weather, _cause)),
)
_THOUGHT = (
    _Conjunction("if", "면", (weather, _cause, _arrival)),
    _Conjunction("because", "아서", (_cause,)),
)
_CONJUNCTIONS = {"past": _REAL, "present": _REAL, "future": _THOUGHT}
_ACTIONS: tuple[Maker, ...] = (transitive,) * 5 + (intransitive, motion, motion, dative)


class _Unit(NamedTuple):
    """A main clause, and the subordinate clause before it in Korean, if any."""

    english: list[Word]
    lead: list[Word]
    main: Clause
    particle: str | None = "topic"

    def korean(self, ending: Ending = "요", joint: int | None = None) -> list[Word]:
        return [*self.lead, *in_korean(self.main, self.particle, ending, joint)]


def two_clauses(builder: SentenceBuilder) -> SentenceWords | None:
    """One clause within another, or two side by side."""
    if builder.chance(0.6):
        unit = _subordinated(builder, builder.pick(SIMPLE), builder.pick((0, 0, 1)))
        return SentenceWords(unit.english, unit.korean())
    return chain(builder, 8, 16)


def two_actions(builder: SentenceBuilder) -> SentenceWords | None:
    """One subject, two deeds: "Minsu ate bread and drank milk.", 빵을 먹고 우유를 마셨어요; None for the same."""
    frame = Frame(random_person(builder), builder.pick(SIMPLE), budget=1)
    first = _action(builder, frame)
    other = replace(_action(builder, frame._replace(budget=0)), auxiliary=first.auxiliary)
    if other.base == first.base:
        return None
    joint = builder.concept()
    verb = base_form(other) if frame.tense == "future" else inflected(other)
    english = [*in_english(first), possible_word("and", joint), *other.before, *verb, *other.after]
    # The first deed takes its tense from the last: 먹고, not 먹었고.
    tied = in_korean(replace(first, tense="present"), "topic", "고", joint)
    return SentenceWords(english, [*tied, *in_korean(other, None)])


def chain(builder: SentenceBuilder, least: int, most: int) -> SentenceWords | None:
    """Units joined by and, once by but, until there are enough words; None where the last would not fit."""
    tense = builder.pick(SIMPLE)
    unit = _fitting(builder, tense, most)
    english, korean = (unit.english if unit else []), list[Word]()
    may_but = tense != "future"
    while unit and len(english) < least:
        but = may_but and builder.chance(0.35)
        may_but = may_but and not but
        joint = builder.concept()
        korean += unit.korean("지만" if but else "고", joint)
        unit = _fitting(builder, tense, most - len(english) - 1)
        if unit:
            english = [*comma(english), possible_word("but" if but else "and", joint), *unit.english]
    return SentenceWords(english, [*korean, *unit.korean()]) if unit else None


def _fitting(builder: SentenceBuilder, tense: Tense, room: int) -> _Unit | None:
    """A unit of at most so many words with nothing held out from this split; None after some tries."""
    marks = len(builder.combinations), len(builder.heads)
    for _ in range(8):
        unit = _unit(builder, tense, builder.pick((0, 1, 2)) if room > 7 else 0, room)
        if len(unit.english) <= room and not builder.uses_other_split(since=marks[0]):
            return unit
        del builder.combinations[marks[0] :], builder.heads[marks[1] :]
    return None


def _unit(builder: SentenceBuilder, tense: Tense, budget: int, room: int) -> _Unit:
    """A main clause, perhaps with a subordinate one before or after it; in little room rather not."""
    if room >= 11 and not builder.chance(0.45):
        return _subordinated(builder, tense, budget)
    main = _action(builder, Frame(random_person(builder), tense, builder.chance(0.1), budget=budget))
    return _Unit(in_english(main), [], main)


def _subordinated(builder: SentenceBuilder, tense: Tense, budget: int) -> _Unit:
    """Two clauses, one of them when, while, before, after, because or if the other is."""
    conjunction = builder.pick(_CONJUNCTIONS[tense])
    subject = random_person(builder)
    same = subject.head in ("I", "we") and conjunction.english != "if" and builder.chance(0.6)
    inner = _inner(builder, conjunction, Frame(subject, "past" if tense == "past" else "present"), same=same)
    deed = _activity if conjunction.english == "while" else _action
    main = deed(builder, Frame(subject, tense, budget=budget))
    joint = builder.concept()
    english = _ordered(builder, conjunction.word(joint), in_english(inner), in_english(main))
    if same:
        tied = in_korean(inner, None, conjunction.ending, joint)
        return _Unit(english, [*subject.korean("topic"), *tied], main, None)
    return _Unit(english, in_korean(inner, "subject", conjunction.ending, joint), main)


def _inner(builder: SentenceBuilder, conjunction: _Conjunction, frame: Frame, *, same: bool) -> Clause:
    """Return the subordinate clause, with the same subject as the frame or another person."""
    negative = conjunction.english in ("because", "if") and builder.chance(0.15)
    make = builder.pick([make for make in conjunction.makers if not (same and make is weather)])
    return make(builder, Frame(frame.subject if same else random_person(builder), frame.tense, negative))


def _ordered(builder: SentenceBuilder, conjunction: Word, inner: list[Word], main: list[Word]) -> list[Word]:
    """English may put the inner clause first, with a comma, or last."""
    if builder.chance(0.5):
        return [conjunction, *comma(inner), *main]
    return [*main, conjunction, *inner]


def _action(builder: SentenceBuilder, frame: Frame) -> Clause:
    """Something people do."""
    return builder.pick(_ACTIONS)(builder, frame)


def _activity(builder: SentenceBuilder, frame: Frame) -> Clause:
    """Something people do for a while."""
    return transitive(builder, frame) if builder.chance(0.8) else intransitive(builder, frame)

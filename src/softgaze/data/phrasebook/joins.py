"""Sentences of more than one clause: and, but, when, while, before, after, because, if."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

from softgaze.data.phrasebook.clauses import (
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
from softgaze.data.phrasebook.collocations import ACTS, ARRIVALS, CAUSING, PASTIMES
from softgaze.data.phrasebook.draft import Draft
from softgaze.data.phrasebook.korean import Ending, Tense
from softgaze.data.phrasebook.meaning import Word, comma, hinting
from softgaze.data.phrasebook.people import somebody
from softgaze.data.phrasebook.word_order import Clause, Spoken, base_form, in_english, in_korean, inflected


class _Conjunction(NamedTuple):
    """A conjunction: the word, its Korean ending, and what the inner clause may be."""

    english: str
    ending: Ending
    makers: tuple[Maker, ...]

    def word(self, idea: int) -> Word:
        """The English word, sure of its idea where Korean has a word for it too, and not an ending alone."""
        said = self.ending in ("때", "동안", "전에", "후에")
        return Word(self.english, (idea,)) if said else hinting(self.english, idea)


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
_DEEDS: tuple[Maker, ...] = (transitive,) * 5 + (intransitive, motion, motion, dative)


class _Unit(NamedTuple):
    """A main clause and what Korean says before it: a subordinate clause, or nothing."""

    english: list[Word]
    lead: list[Word]
    main: Clause
    particle: str | None = "topic"

    def korean(self, ending: Ending = "요", joint: int | None = None) -> list[Word]:
        return [*self.lead, *in_korean(self.main, self.particle, ending, joint)]


def two_clauses(draft: Draft) -> Spoken | None:
    """One clause within another, or two side by side."""
    if draft.chance(0.6):
        unit = _subordinated(draft, draft.pick(SIMPLE), draft.pick((0, 0, 1)))
        return Spoken(unit.english, unit.korean())
    return chain(draft, 8, 16)


def both_deeds(draft: Draft) -> Spoken | None:
    """One subject, two deeds: "Minsu ate bread and drank milk.", 빵을 먹고 우유를 마셨어요; None for the same."""
    frame = Frame(somebody(draft), draft.pick(SIMPLE), budget=1)
    first = _deed(draft, frame)
    other = replace(_deed(draft, frame._replace(budget=0)), auxiliary=first.auxiliary)
    if other.base == first.base:
        return None
    joint = draft.idea()
    verb = base_form(other) if frame.tense == "future" else inflected(other)
    english = [*in_english(first), hinting("and", joint), *other.before, *verb, *other.after]
    # The first deed takes its tense from the last: 먹고, not 먹었고.
    tied = in_korean(replace(first, tense="present"), "topic", "고", joint)
    return Spoken(english, [*tied, *in_korean(other, None)])


def chain(draft: Draft, least: int, most: int) -> Spoken | None:
    """Units joined by and, once by but, until there are enough words; None where the last would not fit."""
    tense = draft.pick(SIMPLE)
    unit = _fitting(draft, tense, most)
    english, korean = (unit.english if unit else []), list[Word]()
    may_but = tense != "future"
    while unit and len(english) < least:
        but = may_but and draft.chance(0.35)
        may_but = may_but and not but
        joint = draft.idea()
        korean += unit.korean("지만" if but else "고", joint)
        unit = _fitting(draft, tense, most - len(english) - 1)
        if unit:
            english = [*comma(english), hinting("but" if but else "and", joint), *unit.english]
    return Spoken(english, [*korean, *unit.korean()]) if unit else None


def _fitting(draft: Draft, tense: Tense, room: int) -> _Unit | None:
    """A unit of at most so many words with nothing held out from this split; None after some tries."""
    marks = len(draft.combinations), len(draft.heads)
    for _ in range(8):
        unit = _unit(draft, tense, draft.pick((0, 1, 2)) if room > 7 else 0, room)
        if len(unit.english) <= room and not draft.spoils(since=marks[0]):
            return unit
        del draft.combinations[marks[0] :], draft.heads[marks[1] :]
    return None


def _unit(draft: Draft, tense: Tense, budget: int, room: int) -> _Unit:
    """A main clause, perhaps with a subordinate one before or after it; in little room rather not."""
    if room >= 11 and not draft.chance(0.45):
        return _subordinated(draft, tense, budget)
    main = _deed(draft, Frame(somebody(draft), tense, draft.chance(0.1), budget=budget))
    return _Unit(in_english(main), [], main)


def _subordinated(draft: Draft, tense: Tense, budget: int) -> _Unit:
    """Two clauses, one of them when, while, before, after, because or if the other is."""
    conjunction = draft.pick(_CONJUNCTIONS[tense])
    subject = somebody(draft)
    same = subject.head in ("I", "we") and conjunction.english != "if" and draft.chance(0.6)
    inner = _inner(draft, conjunction, Frame(subject, "past" if tense == "past" else "present"), same=same)
    deed = _activity if conjunction.english == "while" else _deed
    main = deed(draft, Frame(subject, tense, budget=budget))
    joint = draft.idea()
    english = _ordered(draft, conjunction.word(joint), in_english(inner), in_english(main))
    if same:
        tied = in_korean(inner, None, conjunction.ending, joint)
        return _Unit(english, [*subject.korean("topic"), *tied], main, None)
    return _Unit(english, in_korean(inner, "subject", conjunction.ending, joint), main)


def _inner(draft: Draft, conjunction: _Conjunction, frame: Frame, *, same: bool) -> Clause:
    """The subordinate clause, about the same subject as the frame's or about somebody else."""
    negative = conjunction.english in ("because", "if") and draft.chance(0.15)
    make = draft.pick([make for make in conjunction.makers if not (same and make is weather)])
    return make(draft, Frame(frame.subject if same else somebody(draft), frame.tense, negative))


def _ordered(draft: Draft, conjunction: Word, inner: list[Word], main: list[Word]) -> list[Word]:
    """English may put the inner clause first, with a comma, or last."""
    if draft.chance(0.5):
        return [conjunction, *comma(inner), *main]
    return [*main, conjunction, *inner]


def _deed(draft: Draft, frame: Frame) -> Clause:
    """Something people do."""
    return draft.pick(_DEEDS)(draft, frame)


def _activity(draft: Draft, frame: Frame) -> Clause:
    """Something people do for a while."""
    return transitive(draft, frame) if draft.chance(0.8) else intransitive(draft, frame)

"""What may be added to a clause: time, frequency, place, company, tool, vehicle and manner."""

from collections.abc import Callable, Sequence

from softgaze.data.phrasebook.collocations import MANNERS_OF, PLACES_OF, TIMES_IN, TOOLS_OF
from softgaze.data.phrasebook.draft import Draft
from softgaze.data.phrasebook.held_out import ENOUGH
from softgaze.data.phrasebook.korean import Tense
from softgaze.data.phrasebook.lexicon.adverbials import FREQUENCIES, POSITIONS, VEHICLES
from softgaze.data.phrasebook.lexicon.rows import Noun, Place, Verb
from softgaze.data.phrasebook.lexicon.verbs import GOAL_PARTICLES, LONG_TERM, PLACE_PARTICLES, SOCIAL
from softgaze.data.phrasebook.meaning import Phrase, Word, bare, explained, hinting
from softgaze.data.phrasebook.people import somebody_else
from softgaze.data.phrasebook.phrases import head_of
from softgaze.data.phrasebook.word_order import Clause

# What is not said together: "alone with Minsu", "often every day" and the like.
_RIVALS = ({"manner", "company"}, {"time", "frequency"}, {"tool", "manner"}, {"vehicle", "manner"})


def extras(draft: Draft, clause: Clause, verb: Verb, allowed: Sequence[str], budget: int) -> dict[str, Phrase]:
    """Up to `budget` of the additions allowed, as far as the verb has them."""
    possible = [name for name in allowed if _fits(name, clause, verb)]
    chosen: dict[str, Phrase] = {}
    while possible and len(chosen) < budget:
        name = possible.pop(draft.dice.randrange(len(possible)))
        chosen[name] = _MAKERS[name](draft, clause, verb)
        possible = [other for other in possible if {name, other} not in _RIVALS]
    if "time" in chosen and chosen["time"].english[0].text == "in":
        chosen.pop("manner", None)  # "late in the evening" is a time, not a manner
    return chosen


def _fits(name: str, clause: Clause, verb: Verb) -> bool:
    """Whether this verb, in this clause, may have such an addition."""
    if name == "place":
        return bool(PLACES_OF[verb])
    if name == "company":
        return verb.english in SOCIAL and clause.subject.head != "who"
    if clause.negative:
        return name == "time" and clause.tense != "present"  # "not … every day" is not 매일 안
    if name == "frequency":
        return clause.tense == "present"
    if name == "tool":
        return bool(TOOLS_OF.get(verb))
    if name == "manner":
        return bool(MANNERS_OF[verb])
    return True


def time(draft: Draft, tense: Tense, *, slow: bool = False) -> Phrase:
    """When it is done; only what is slow is done "last year"."""
    return draft.fixed(draft.pick([when for when in TIMES_IN[tense] if slow or "long" not in when.tags]))


def place(draft: Draft, verb: Verb, particle: str) -> Phrase:
    """Where it is done: "at the library", 도서관에서."""
    where = draft.pick(PLACES_OF[verb])
    if len(PLACES_OF[verb]) >= ENOUGH:
        draft.combine(verb.english, f"@ {where.english}")
    return _placed(draft, where, where.preposition, particle)


def goal(draft: Draft, verb: Verb) -> Phrase:
    """Where one goes: "to the park", 공원에."""
    where = draft.pick(PLACES_OF[verb])
    draft.combine(verb.english, f"> {where.english}")
    return _placed(draft, where, _goal_preposition(verb, where), GOAL_PARTICLES.get(verb.english, "at"))


def _goal_preposition(verb: Verb, place: Place) -> str:
    """How English names a goal: "to the park", "home", "arrived at the park", "arrived in Seoul"."""
    if place.english == "home" or verb.english == "visit":
        return ""
    if verb.english == "arrive":
        return "in" if "lived" in place.kinds else "at"
    return "to"


def _placed(draft: Draft, place: Place, preposition: str, particle: str) -> Phrase:
    return _marked(draft, place.article, place.english, place.korean).with_particle(particle).after(preposition)


def _marked(draft: Draft, article: str, english: str, korean: str) -> Phrase:
    """Words with the article of their row, which may be none."""
    return explained(bare(*article.split()), draft.words(english, korean))


def position(draft: Draft, landmark: Noun) -> Phrase:
    """Where a thing is: "under the table", 탁자 아래에."""
    positions = POSITIONS if "surface" in landmark.kinds else POSITIONS[2:]
    english, meaning, korean = draft.pick(positions)
    idea = draft.idea()
    words = [Word(word, (idea,)) if word == meaning else hinting(word, idea) for word in english.split()]
    mark = explained(bare("the"), head_of(draft, landmark))
    return Phrase([*words, *mark.english], [*mark.korean, Word(korean, (idea,))])


_MAKERS: dict[str, Callable[[Draft, Clause, Verb], Phrase]] = {
    "time": lambda draft, clause, verb: time(draft, clause.tense, slow=verb.english in LONG_TERM),
    "frequency": lambda draft, clause, verb: draft.fixed(draft.pick(FREQUENCIES)),
    "place": lambda draft, clause, verb: place(draft, verb, PLACE_PARTICLES.get(verb.english, "in")),
    "company": lambda draft, clause, verb: somebody_else(draft, clause.subject).with_particle("with").after("with"),
    "tool": lambda draft, clause, verb: _marked(draft, *draft.pick(TOOLS_OF[verb])).with_particle("by").after("with"),
    "vehicle": lambda draft, clause, verb: draft.words(*draft.pick(VEHICLES)).with_particle("by").after("by"),
    "manner": lambda draft, clause, verb: draft.fixed(draft.pick(MANNERS_OF[verb])),
}

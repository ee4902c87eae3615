"""Additions to a clause: time, frequency, location, company, tool, vehicle and manner."""

from collections.abc import Callable, Sequence

from tools.phrasebook.aligned_words import Phrase, Word, bare, link_articles, possible_word
from tools.phrasebook.collocations import MANNERS_OF, PLACES_OF, TIMES_IN, TOOLS_OF
from tools.phrasebook.held_out import ENOUGH
from tools.phrasebook.korean import Tense
from tools.phrasebook.lexicon.adverbials import FREQUENCIES, POSITIONS, VEHICLES
from tools.phrasebook.lexicon.types import Noun, Place, Verb
from tools.phrasebook.lexicon.verbs import GOAL_PARTICLES, LONG_TERM, PLACE_PARTICLES, SOCIAL
from tools.phrasebook.people import other_person
from tools.phrasebook.phrases import head_of
from tools.phrasebook.sentence_builder import SentenceBuilder
from tools.phrasebook.word_order import Clause

# Additions that exclude each other: "alone with Minsu", "often every day".
_RIVALS = ({"manner", "company"}, {"time", "frequency"}, {"tool", "manner"}, {"vehicle", "manner"})


def extras(
    builder: SentenceBuilder, clause: Clause, verb: Verb, allowed: Sequence[str], budget: int
) -> dict[str, Phrase]:
    """Up to `budget` of the additions allowed, as far as the verb has them."""
    possible = [name for name in allowed if _fits(name, clause, verb)]
    chosen: dict[str, Phrase] = {}
    while possible and len(chosen) < budget:
        name = possible.pop(builder.rng.randrange(len(possible)))
        chosen[name] = _MAKERS[name](builder, clause, verb)
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


def time(builder: SentenceBuilder, tense: Tense, *, slow: bool = False) -> Phrase:
    """Return a time; only slow actions take place "last year"."""
    return builder.fixed(builder.pick([when for when in TIMES_IN[tense] if slow or "long" not in when.tags]))


def place(builder: SentenceBuilder, verb: Verb, particle: str) -> Phrase:
    """Where it is done: "at the library", 도서관에서."""
    where = builder.pick(PLACES_OF[verb])
    if len(PLACES_OF[verb]) >= ENOUGH:
        builder.combine(verb.english, f"@ {where.english}")
    return _placed(builder, where, where.preposition, particle)


def goal(builder: SentenceBuilder, verb: Verb) -> Phrase:
    """Where one goes: "to the park", 공원에."""
    where = builder.pick(PLACES_OF[verb])
    builder.combine(verb.english, f"> {where.english}")
    return _placed(builder, where, _goal_preposition(verb, where), GOAL_PARTICLES.get(verb.english, "at"))


def _goal_preposition(verb: Verb, place: Place) -> str:
    """How English names a goal: "to the park", "home", "arrived at the park", "arrived in Seoul"."""
    if place.english == "home" or verb.english == "visit":
        return ""
    if verb.english == "arrive":
        return "in" if "lived" in place.kinds else "at"
    return "to"


def _placed(builder: SentenceBuilder, place: Place, preposition: str, particle: str) -> Phrase:
    return _marked(builder, place.article, place.english, place.korean).with_particle(particle).after(preposition)


def _marked(builder: SentenceBuilder, article: str, english: str, korean: str) -> Phrase:
    """Words with the article of their row, which may be none."""
    return link_articles(bare(*article.split()), builder.words(english, korean))


def position(builder: SentenceBuilder, landmark: Noun) -> Phrase:
    """Where a thing is: "under the table", 탁자 아래에."""
    positions = POSITIONS if "surface" in landmark.kinds else POSITIONS[2:]
    english, meaning, korean = builder.pick(positions)
    concept = builder.concept()
    words = [Word(word, (concept,)) if word == meaning else possible_word(word, concept) for word in english.split()]
    mark = link_articles(bare("the"), head_of(builder, landmark))
    return Phrase([*words, *mark.english], [*mark.korean, Word(korean, (concept,))])


_MAKERS: dict[str, Callable[[SentenceBuilder, Clause, Verb], Phrase]] = {
    "time": lambda builder, clause, verb: time(builder, clause.tense, slow=verb.english in LONG_TERM),
    "frequency": lambda builder, clause, verb: builder.fixed(builder.pick(FREQUENCIES)),
    "place": lambda builder, clause, verb: place(builder, verb, PLACE_PARTICLES.get(verb.english, "in")),
    "company": lambda builder, clause, verb: other_person(builder, clause.subject).with_particle("with").after("with"),
    "tool": lambda builder, clause, verb: (
        _marked(builder, *builder.pick(TOOLS_OF[verb])).with_particle("by").after("with")
    ),
    "vehicle": lambda builder, clause, verb: builder.words(*builder.pick(VEHICLES)).with_particle("by").after("by"),
    "manner": lambda builder, clause, verb: builder.fixed(builder.pick(MANNERS_OF[verb])),
}

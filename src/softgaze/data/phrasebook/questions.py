"""Questions with a question word: it comes first in English and stays in its place in Korean."""

from collections.abc import Sequence

from softgaze.data.phrasebook.adjuncts import extras
from softgaze.data.phrasebook.clauses import SIMPLE, Frame, clause_of, some_object, verb_for
from softgaze.data.phrasebook.collocations import ACTS, ENCOUNTERS
from softgaze.data.phrasebook.draft import Draft
from softgaze.data.phrasebook.korean import attach
from softgaze.data.phrasebook.lexicon.rows import Verb
from softgaze.data.phrasebook.lexicon.verbs import MOTION, PLACE_PARTICLES, STATIC
from softgaze.data.phrasebook.meaning import Phrase
from softgaze.data.phrasebook.people import asked_one
from softgaze.data.phrasebook.word_order import Clause, Spoken, Subject, spoken

# "What did you wear?" would have as many translations as Korean has verbs for wearing.
_PLAIN_ACTS = tuple(verb for verb in ACTS if verb.english != "wear")
_PLACED_ACTS = tuple(verb for verb in ACTS if verb.places)
_WHITHER = tuple(verb for verb in (*MOTION, *STATIC) if verb.english in ("go", "live"))


def asking(draft: Draft) -> Spoken:
    """What, who, where, when, why."""
    make = draft.pick((what, whom, where, whither, when_or_why, who))
    return spoken(make(draft), question=True)


def _inquiry(draft: Draft, verbs: Sequence[Verb], subject: Subject | None = None) -> tuple[Verb, Clause]:
    """The bones of a question with a question word."""
    frame = Frame(subject or asked_one(draft), draft.pick(SIMPLE), question=True)
    verb = verb_for(draft, verbs, frame)
    return verb, clause_of(draft, verb, frame)


def _fronted(draft: Draft, clause: Clause, english: str, korean: str) -> Phrase:
    """Put the question word first in English; what is left is the Korean one, for its own place."""
    word = draft.words(english, korean)
    clause.fronted = word.english
    return Phrase([], word.korean)


def what(draft: Draft) -> Clause:
    """Somebody does what: "What did Minsu eat at home?"."""
    return _about_object(draft, _PLAIN_ACTS, "What", "무엇을")


def whom(draft: Draft) -> Clause:
    """Somebody meets whom: "Who did Minsu meet yesterday?"."""
    return _about_object(draft, ENCOUNTERS, "Who", "누구를")


def _about_object(draft: Draft, verbs: Sequence[Verb], english: str, korean: str) -> Clause:
    verb, clause = _inquiry(draft, verbs)
    word = _fronted(draft, clause, english, korean)
    return clause.complete({"object": word, **extras(draft, clause, verb, ("time", "place"), 1)})


def where(draft: Draft) -> Clause:
    """Something is done where: "Where did Minsu buy bread?"."""
    verb, clause = _inquiry(draft, _PLACED_ACTS)
    word = _fronted(draft, clause, "Where", attach("어디", PLACE_PARTICLES.get(verb.english, "in")))
    thing = some_object(draft, verb)
    added = extras(draft, clause, verb, ("time",), draft.pick((0, 1)))
    return clause.complete({"place": word, "object": thing, **added})


def whither(draft: Draft) -> Clause:
    """Somebody goes or lives where, with 에: "Where did Minsu go?"."""
    verb, clause = _inquiry(draft, _WHITHER)
    word = _fronted(draft, clause, "Where", "어디에")
    return clause.complete({"goal": word, **extras(draft, clause, verb, ("time", "company"), 1)})


def when_or_why(draft: Draft) -> Clause:
    """Something is done when, or why: "Why did Minsu open the window?"."""
    verb, clause = _inquiry(draft, ACTS)
    word = _fronted(draft, clause, *draft.pick((("When", "언제"), ("Why", "왜"))))
    return clause.complete({"time": word, "object": some_object(draft, verb)})


def who(draft: Draft) -> Clause:
    """Who does something: "Who bought bread?". Nothing is fronted, for the subject stands first anyway."""
    verb, clause = _inquiry(draft, ACTS, Subject(draft.words("Who", "누가"), "it", "who"))
    thing = some_object(draft, verb)
    added = extras(draft, clause, verb, ("time", "place"), draft.pick((0, 1)))
    return clause.complete({"object": thing, **added})

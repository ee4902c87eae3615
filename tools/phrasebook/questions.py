"""Questions with a question word: it is first in English and stays in its position in Korean."""

from collections.abc import Sequence

from tools.phrasebook.adjuncts import extras
from tools.phrasebook.aligned_words import Phrase
from tools.phrasebook.clauses import SIMPLE, Frame, clause_of, some_object, verb_for
from tools.phrasebook.collocations import ACTS, ENCOUNTERS
from tools.phrasebook.korean import attach
from tools.phrasebook.lexicon.types import Verb
from tools.phrasebook.lexicon.verbs import MOTION, PLACE_PARTICLES, STATIC
from tools.phrasebook.people import question_subject
from tools.phrasebook.sentence_builder import SentenceBuilder
from tools.phrasebook.word_order import Clause, SentenceWords, Subject, make_sentence

# "What did you wear?" would have as many translations as Korean has verbs for wearing.
_PLAIN_ACTS = tuple(verb for verb in ACTS if verb.english != "wear")
_PLACED_ACTS = tuple(verb for verb in ACTS if verb.places)
_WHITHER = tuple(verb for verb in (*MOTION, *STATIC) if verb.english in ("go", "live"))


def question_word_question(builder: SentenceBuilder) -> SentenceWords:
    """Return a question with what, who, where, when or why."""
    make = builder.pick((what, whom, where, whither, when_or_why, who))
    return make_sentence(make(builder), question=True)


def _inquiry(builder: SentenceBuilder, verbs: Sequence[Verb], subject: Subject | None = None) -> tuple[Verb, Clause]:
    """Return verb and clause of a question before the question word is added."""
    frame = Frame(subject or question_subject(builder), builder.pick(SIMPLE), question=True)
    verb = verb_for(builder, verbs, frame)
    return verb, clause_of(builder, verb, frame)


def _fronted(builder: SentenceBuilder, clause: Clause, english: str, korean: str) -> Phrase:
    """Put the question word first in English, and return the Korean one for its position."""
    word = builder.words(english, korean)
    clause.fronted = word.english
    return Phrase([], word.korean)


def what(builder: SentenceBuilder) -> Clause:
    """Return a question about an object: "What did Minsu eat at home?"."""
    return _about_object(builder, _PLAIN_ACTS, "What", "무엇을")


def whom(builder: SentenceBuilder) -> Clause:
    """Return a question about a person as object: "Who did Minsu meet yesterday?"."""
    return _about_object(builder, ENCOUNTERS, "Who", "누구를")


def _about_object(builder: SentenceBuilder, verbs: Sequence[Verb], english: str, korean: str) -> Clause:
    verb, clause = _inquiry(builder, verbs)
    word = _fronted(builder, clause, english, korean)
    return clause.complete({"object": word, **extras(builder, clause, verb, ("time", "place"), 1)})


def where(builder: SentenceBuilder) -> Clause:
    """Return a question about a location with 에서: "Where did Minsu buy bread?"."""
    verb, clause = _inquiry(builder, _PLACED_ACTS)
    word = _fronted(builder, clause, "Where", attach("어디", PLACE_PARTICLES.get(verb.english, "in")))
    thing = some_object(builder, verb)
    added = extras(builder, clause, verb, ("time",), builder.pick((0, 1)))
    return clause.complete({"place": word, "object": thing, **added})


def whither(builder: SentenceBuilder) -> Clause:
    """Return a question about a goal or residence with 에: "Where did Minsu go?"."""
    verb, clause = _inquiry(builder, _WHITHER)
    word = _fronted(builder, clause, "Where", "어디에")
    return clause.complete({"goal": word, **extras(builder, clause, verb, ("time", "company"), 1)})


def when_or_why(builder: SentenceBuilder) -> Clause:
    """Return a question about time or reason: "Why did Minsu open the window?"."""
    verb, clause = _inquiry(builder, ACTS)
    word = _fronted(builder, clause, *builder.pick((("When", "언제"), ("Why", "왜"))))
    return clause.complete({"time": word, "object": some_object(builder, verb)})


def who(builder: SentenceBuilder) -> Clause:
    """Return a question about the subject, which is first anyway: "Who bought bread?"."""
    verb, clause = _inquiry(builder, ACTS, Subject(builder.words("Who", "누가"), "it", "who"))
    thing = some_object(builder, verb)
    added = extras(builder, clause, verb, ("time", "place"), builder.pick((0, 1)))
    return clause.complete({"object": thing, **added})

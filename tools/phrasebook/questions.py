"""Questions with a question word: it comes first in English and stays in its place in Korean."""

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


def asking(builder: SentenceBuilder) -> SentenceWords:
    """What, who, where, when, why."""
    make = builder.pick((what, whom, where, whither, when_or_why, who))
    return make_sentence(make(builder), question=True)


def _inquiry(builder: SentenceBuilder, verbs: Sequence[Verb], subject: Subject | None = None) -> tuple[Verb, Clause]:
    """The bones of a question with a question word."""
    frame = Frame(subject or question_subject(builder), builder.pick(SIMPLE), question=True)
    verb = verb_for(builder, verbs, frame)
    return verb, clause_of(builder, verb, frame)


def _fronted(builder: SentenceBuilder, clause: Clause, english: str, korean: str) -> Phrase:
    """Put the question word first in English; what is left is the Korean one, for its own place."""
    word = builder.words(english, korean)
    clause.fronted = word.english
    return Phrase([], word.korean)


def what(builder: SentenceBuilder) -> Clause:
    """Somebody does what: "What did Minsu eat at home?"."""
    return _about_object(builder, _PLAIN_ACTS, "What", "무엇을")


def whom(builder: SentenceBuilder) -> Clause:
    """Somebody meets whom: "Who did Minsu meet yesterday?"."""
    return _about_object(builder, ENCOUNTERS, "Who", "누구를")


def _about_object(builder: SentenceBuilder, verbs: Sequence[Verb], english: str, korean: str) -> Clause:
    verb, clause = _inquiry(builder, verbs)
    word = _fronted(builder, clause, english, korean)
    return clause.complete({"object": word, **extras(builder, clause, verb, ("time", "place"), 1)})


def where(builder: SentenceBuilder) -> Clause:
    """Something is done where: "Where did Minsu buy bread?"."""
    verb, clause = _inquiry(builder, _PLACED_ACTS)
    word = _fronted(builder, clause, "Where", attach("어디", PLACE_PARTICLES.get(verb.english, "in")))
    thing = some_object(builder, verb)
    added = extras(builder, clause, verb, ("time",), builder.pick((0, 1)))
    return clause.complete({"place": word, "object": thing, **added})


def whither(builder: SentenceBuilder) -> Clause:
    """Somebody goes or lives where, with 에: "Where did Minsu go?"."""
    verb, clause = _inquiry(builder, _WHITHER)
    word = _fronted(builder, clause, "Where", "어디에")
    return clause.complete({"goal": word, **extras(builder, clause, verb, ("time", "company"), 1)})


def when_or_why(builder: SentenceBuilder) -> Clause:
    """Something is done when, or why: "Why did Minsu open the window?"."""
    verb, clause = _inquiry(builder, ACTS)
    word = _fronted(builder, clause, *builder.pick((("When", "언제"), ("Why", "왜"))))
    return clause.complete({"time": word, "object": some_object(builder, verb)})


def who(builder: SentenceBuilder) -> Clause:
    """Who does something: "Who bought bread?". Nothing is fronted, for the subject stands first anyway."""
    verb, clause = _inquiry(builder, ACTS, Subject(builder.words("Who", "누가"), "it", "who"))
    thing = some_object(builder, verb)
    added = extras(builder, clause, verb, ("time", "place"), builder.pick((0, 1)))
    return clause.complete({"object": thing, **added})

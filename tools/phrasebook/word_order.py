"""The word order of a clause: the verb is second in English and last in Korean."""

from dataclasses import dataclass, field
from typing import NamedTuple

from tools.phrasebook.aligned_words import NOTHING, Phrase, Word, link_unlinked, possible_word
from tools.phrasebook.english import be, third_person
from tools.phrasebook.korean import Ending, Form, Predicate, Tense, conjugate

# Where the parts of a clause stand: after the English verb, before the Korean verb.
_ENGLISH_ORDER = ("object", "goal", "receiver", "tool", "manner", "company", "vehicle", "place", "time")
_KOREAN_ORDER = ("frequency", "time", "company", "place", "vehicle", "goal", "receiver", "tool", "object", "manner")
_MODALS = {"future": "will", "can": "can", "must": "must"}


class Subject(NamedTuple):
    """A subject; `person` selects the English verb form: "I", "we", "you", "it" or "they"."""

    phrase: Phrase
    person: str
    head: str

    def korean(self, particle: str) -> list[Word]:
        """The Korean words with their particle: 저 + 가 is 제가, and 누가 has it already."""
        if not self.phrase.korean or self.head == "who":
            return self.phrase.korean
        if self.head == "I" and particle == "subject":
            return [self.phrase.korean[0]._replace(text="제가")]
        return self.phrase.with_particle(particle).korean


@dataclass(slots=True)
class Clause:
    """A clause before it is put in order.

    `key`, `auxiliary` and `negation` are the ideas of its verb, of "will" or "can", and of "not". A clause that is not
    `lexical` has its meaning in what follows the verb: "is tired".
    """

    subject: Subject
    base: str
    past: str
    predicate: Predicate
    tense: Tense
    negative: bool
    key: int
    auxiliary: int
    negation: int
    lexical: bool = True
    before: list[Word] = field(default_factory=list)
    after: list[Word] = field(default_factory=list)
    middle: list[Word] = field(default_factory=list)
    fronted: list[Word] = field(default_factory=list)

    def complete(self, parts: dict[str, Phrase]) -> "Clause":
        """Order the parts for each language; a frequency precedes the English verb."""
        self.before.extend(parts.get("frequency", NOTHING).english)
        self.after.extend(word for name in _ENGLISH_ORDER if name in parts for word in parts[name].english)
        self.middle.extend(word for name in _KOREAN_ORDER if name in parts for word in parts[name].korean)
        return self

    def dated(self, time: Phrase) -> "Clause":
        """Put a time at the end of the English and before all else of the Korean."""
        self.after.extend(time.english)
        self.middle[:0] = time.korean
        return self


class SentenceWords(NamedTuple):
    """A whole sentence before it is written down: its words in both languages and the mark at the end."""

    english: list[Word]
    korean: list[Word]
    mark: str = "."


def make_sentence(clause: Clause, *, question: bool = False) -> SentenceWords:
    """Return a clause as a sentence."""
    return SentenceWords(in_english(clause, question=question), in_korean(clause, "topic"), "?" if question else ".")


# --- English


def in_english(clause: Clause, *, question: bool = False) -> list[Word]:
    """The clause in English order."""
    # "you" and the "it" of the weather have no Korean word; the verb stands for them.
    subject = link_unlinked(clause.subject.phrase.english, (clause.key,))
    inverted = question and clause.subject.head != "who"
    first, main = _verb_words(clause, inverted=inverted)
    if inverted:
        return [*clause.fronted, *first, *subject, *clause.before, *main, *clause.after]
    return [*subject, *first, *clause.before, *main, *clause.after]


def _verb_words(clause: Clause, *, inverted: bool) -> tuple[list[Word], list[Word]]:
    """Return the English verb in two parts: before and after the subject of a question."""
    no = [Word("not", (clause.negation,))] if clause.negative else []
    if clause.tense == "can" and clause.negative:
        return [Word("cannot", (clause.negation,), (clause.auxiliary,))], base_form(clause)
    if clause.tense in _MODALS:
        return [possible_word(_MODALS[clause.tense], clause.auxiliary), *no], base_form(clause)
    person = clause.subject.person
    if clause.base == "be":
        return [*_lexical(clause, be(person, clause.tense)), *no], []
    if inverted or clause.negative:
        did = "did" if clause.tense == "past" else "does" if person == "it" else "do"
        return [possible_word(did, clause.key), *no], base_form(clause)
    return [], inflected(clause)


def inflected(clause: Clause) -> list[Word]:
    """The English verb in its own past or present, without auxiliaries."""
    if clause.tense == "past":
        return _lexical(clause, clause.past)
    return _lexical(clause, third_person(clause.base)) if clause.subject.person == "it" else base_form(clause)


def base_form(clause: Clause) -> list[Word]:
    """The English verb as it stands after an auxiliary."""
    return _lexical(clause, clause.base)


def _lexical(clause: Clause, text: str) -> list[Word]:
    """The words of the verb itself: "listened" means it, "to" may."""
    first, *rest = text.split()
    verb = Word(first, (clause.key,)) if clause.lexical else possible_word(first, clause.key)
    return [verb, *(possible_word(word, clause.key) for word in rest)]


# --- Korean


def in_korean(clause: Clause, particle: str | None, ending: Ending = "요", joint: int | None = None) -> list[Word]:
    """The clause in Korean order; without a particle the subject is left out."""
    subject = clause.subject.korean(particle) if particle else []
    return [*subject, *clause.middle, *korean_verb(clause, ending, joint)]


def korean_verb(clause: Clause, ending: Ending = "요", joint: int | None = None) -> list[Word]:
    """The words of the Korean predicate; `joint` is the idea of the conjunction its ending translates."""
    tied = () if joint is None else (joint,)
    forms = conjugate(clause.predicate, clause.tense, ending, negative=clause.negative)
    roles = [form.role for form in forms]
    words = [_meant(form, clause, tied) for form in forms]
    if clause.negative and "negation" not in roles:
        words[-1] = words[-1].also(sure=(clause.negation,))
    if "auxiliary" not in roles:
        # In 먹고 … 마실 거예요 the first verb has no word for its "will" but itself.
        words[-1] = words[-1].also(possible=(clause.auxiliary,))
    # "because" and "and" live in the ending of the verb, "when" in 때 and a little in the verb before it.
    verb = max(index for index, role in enumerate(roles) if role != "lexical")
    words[verb] = words[verb].also(possible=tied)
    return words


def _meant(form: Form, clause: Clause, tied: tuple[int, ...]) -> Word:
    """Return a word of the predicate with the concepts of its role."""
    if form.role == "auxiliary":
        return possible_word(form.text, clause.key, clause.auxiliary)
    sure = {"verb": (clause.key,), "negation": (clause.negation,), "lexical": tied}
    return Word(form.text, sure[form.role])

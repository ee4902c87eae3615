"""The built-in corpus: English–Korean sentence pairs from a small grammar, with gold word alignments.

One English sentence has exactly one Korean sentence, in 해요체: subject, time, company, place, object, manner, verb.
Nothing here needs torch, a network or a file; everything follows from the seed. Words are what stands between spaces,
punctuation attached, counted from 0. What a verb does to its ending is `korean`'s business, the words are `lexicon`'s.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeVar

from softgaze.data import lexicon
from softgaze.data.korean import Ending, Predicate, Tense, attach, conjugate
from softgaze.data.lexicon import Adjective, Fixed, Noun, Person, Place, Verb
from softgaze.errors import DataError

Item = TypeVar("Item")

# The grammar could write more than this; nobody has needed it, and every split stays easy to fill.
LIMIT = 500_000
LONGEST = 40
LONG = range(41, 61)
SPLITS = ("train", "dev", "test", "long")

# Of a hundred combinations, how many dev and test each keep for themselves.
_HELD_OUT = 5
_JOINED_SHARE = 0.12
# How many drafts of one kind are thrown away before another kind is wished for.
_PATIENCE = 100


class Link(NamedTuple):
    """Word `source` of the English sentence means word `target` of the Korean one; counted from 0."""

    source: int
    target: int
    sure: bool

    def __str__(self) -> str:
        return f"{self.source}{'-' if self.sure else 'p'}{self.target}"


@dataclass(frozen=True, slots=True)
class Sentence:
    """An English sentence, its Korean, and which word means which.

    `combinations` are the pairs of words the splits are made by ("eat bread", "big dog"); `kind` is the construction.
    """

    source: str
    target: str
    links: tuple[Link, ...]
    combinations: tuple[str, ...] = ()
    kind: str = ""

    @property
    def gold(self) -> str:
        """The links as a line of a gold file: `0-0` is sure, `1p0` possible."""
        return " ".join(map(str, self.links))


@dataclass(frozen=True, slots=True)
class Phrasebook:
    """The corpus in its four parts; `long` has sentences longer than any of the others."""

    train: tuple[Sentence, ...]
    dev: tuple[Sentence, ...]
    test: tuple[Sentence, ...]
    long: tuple[Sentence, ...]


class _Word(NamedTuple):
    """A word of either language and the ideas it stands for; words that share an idea are linked.

    The link is sure where the idea is `sure` on both sides, and possible otherwise.
    """

    text: str
    sure: tuple[int, ...] = ()
    possible: tuple[int, ...] = ()


class _Phrase(NamedTuple):
    """A phrase in both languages; the last Korean word still waits for its particle."""

    english: list[_Word]
    korean: list[_Word]

    def with_particle(self, particle: str) -> "_Phrase":
        *before, last = self.korean
        return _Phrase(self.english, [*before, last._replace(text=attach(last.text, particle))])

    def after(self, preposition: str) -> "_Phrase":
        """The phrase with an English preposition, which the particle of the last Korean word may translate."""
        last = self.korean[-1]
        words = [_Word(word, (), last.sure + last.possible) for word in preposition.split()]
        return _Phrase([*words, *self.english], self.korean)


_NOTHING = _Phrase([], [])


def _joined(*phrases: _Phrase) -> _Phrase:
    """Phrases one after the other, in both languages."""
    return _Phrase(
        [word for phrase in phrases for word in phrase.english], [word for phrase in phrases for word in phrase.korean]
    )


def _explained(phrase: _Phrase) -> _Phrase:
    """The phrase with its articles linked, as possible, to the last Korean word: there is no other word for them."""
    ideas = phrase.korean[-1].sure
    english = [word if word.sure or word.possible else word._replace(possible=ideas) for word in phrase.english]
    return _Phrase(english, phrase.korean)


def _bare(*english: str) -> _Phrase:
    """English words that Korean has no word for."""
    return _Phrase([_Word(word) for word in english], [])


# Where the parts of a clause stand: after the English verb, before the Korean verb.
_ENGLISH_ORDER = ("object", "goal", "receiver", "tool", "manner", "company", "vehicle", "place", "time")
_KOREAN_ORDER = (*("frequency", "time", "company", "place", "vehicle", "goal", "receiver", "tool", "object", "manner"),)


class _Subject(NamedTuple):
    """Who or what a clause is about; `person` picks the English verb form: "I", "we", "you", "it" or "they"."""

    phrase: _Phrase
    person: str
    head: str

    def korean(self, particle: str) -> list[_Word]:
        if not self.phrase.korean or self.head == "who":
            return self.phrase.korean
        if self.head == "I" and particle == "subject":
            return [self.phrase.korean[0]._replace(text="제가")]
        return self.phrase.with_particle(particle).korean


class _Frame(NamedTuple):
    """What a clause is asked for: its subject, tense, polarity, whether it is a question, and how much to add."""

    subject: _Subject
    tense: Tense
    negative: bool = False
    question: bool = False
    budget: int = 0

    @property
    def clear(self) -> bool:
        """Whether an auxiliary says the tense."""
        return self.negative or self.question


@dataclass(slots=True)
class _Clause:
    """A clause before it is put in order: English wants the verb second, Korean wants it last."""

    subject: _Subject
    base: str
    past: str
    predicate: Predicate
    tense: Tense
    negative: bool
    key: int
    auxiliary: int
    negation: int
    lexical: bool = True
    before: list[_Word] = field(default_factory=list)
    after: list[_Word] = field(default_factory=list)
    middle: list[_Word] = field(default_factory=list)
    fronted: list[_Word] = field(default_factory=list)


Maker = Callable[[_Frame], _Clause]


class _Spoken(NamedTuple):
    """A whole sentence before it is written down: its words in both languages and the mark at the end."""

    english: list[_Word]
    korean: list[_Word]
    mark: str


class _Unit(NamedTuple):
    """A main clause and what Korean says before it: a subordinate clause, or nothing."""

    english: list[_Word]
    lead: list[_Word]
    main: _Clause
    particle: str | None

    def korean(self, ending: Ending, joint: int | None = None) -> list[_Word]:
        return [*self.lead, *_korean(self.main, self.particle, ending, joint)]


# --- English forms ---------------------------------------------------------------------------------------------------


def third_person(verb: str) -> str:
    """The verb after he, she or it: go → goes, carry → carries, listen to → listens to."""
    first, *rest = verb.split()
    if first == "have":
        return "has"
    if first.endswith(("s", "x", "ch", "sh", "o")):
        first += "es"
    elif first.endswith("y") and first[-2] not in "aeiou":
        first = first[:-1] + "ies"
    else:
        first += "s"
    return " ".join([first, *rest])


def plural(noun: str) -> str:
    """More than one of it: dog → dogs, leaf → leaves, comic book → comic books."""
    *before, last = noun.split()
    if last in lexicon.PLURALS:
        last = lexicon.PLURALS[last]
    elif last in ("tomato", "potato") or last.endswith(("s", "x", "ch", "sh")):
        last += "es"
    elif last.endswith("y") and last[-2] not in "aeiou":
        last = last[:-1] + "ies"
    else:
        last += "s"
    return " ".join([*before, last])


def article(following: str) -> str:
    """a or an; spelling is enough but for the two words where a "u" is said "yu"."""
    return "an" if following[0].lower() in "aeiou" and not following.startswith(("use", "uni")) else "a"


_BE = {
    ("I", "present"): "am",
    ("it", "present"): "is",
    ("they", "present"): "are",
    ("I", "past"): "was",
    ("it", "past"): "was",
    ("they", "past"): "were",
}
_MODALS = {"future": "will", "can": "can", "must": "must"}


def _be(person: str, tense: str) -> str:
    """The form of "be" for a person and a tense."""
    return _BE[("they" if person in ("we", "you") else person, tense)]


def _ambiguous(verb: Verb, tense: Tense, subject: _Subject) -> bool:
    """Would this present read as a past too ("I read", "they cut")? Then it would have two translations."""
    return verb.english == verb.past and tense == "present" and subject.person != "it"


def _verb_words(clause: _Clause, *, inverted: bool) -> tuple[list[_Word], list[_Word]]:
    """The English verb in two parts: what goes before the subject of a question, and what stays behind it."""
    person = clause.subject.person
    helped = ((), (clause.key,))
    no = [_Word("not", (clause.negation,))] if clause.negative else []
    if clause.tense == "can" and clause.negative:
        first, no = [_Word("cannot", (clause.negation,), (clause.auxiliary,))], []
    elif clause.tense in _MODALS:
        first = [_Word(_MODALS[clause.tense], (), (clause.auxiliary,))]
    elif clause.base == "be":
        form = _be(person, clause.tense)
        word = _Word(form, (clause.key,)) if clause.lexical else _Word(form, *helped)
        return [word, *no], []
    elif inverted or clause.negative:
        first = [_Word("did" if clause.tense == "past" else "does" if person == "it" else "do", *helped)]
    else:
        return [], _verb_form(clause)
    return [*first, *no], _lexical(clause, clause.base)


def _verb_form(clause: _Clause) -> list[_Word]:
    """The inflected English verb without auxiliaries."""
    if clause.tense == "past":
        return _lexical(clause, clause.past)
    return _lexical(clause, third_person(clause.base) if clause.subject.person == "it" else clause.base)


def _lexical(clause: _Clause, text: str) -> list[_Word]:
    """The words of the verb itself: "listened" means it, "to" may."""
    first, *rest = text.split()
    verb = _Word(first, (clause.key,)) if clause.lexical else _Word(first, (), (clause.key,))
    return [verb, *(_Word(word, (), (clause.key,)) for word in rest)]


def _english(clause: _Clause, *, question: bool = False) -> list[_Word]:
    """The clause in English order."""
    # "you" and the "it" of the weather have no Korean word; the verb stands for them.
    subject = [
        word if word.sure or word.possible else word._replace(possible=(clause.key,))
        for word in clause.subject.phrase.english
    ]
    inverted = question and clause.subject.head != "who"
    first, main = _verb_words(clause, inverted=inverted)
    if inverted:
        return [*clause.fronted, *first, *subject, *clause.before, *main, *clause.after]
    return [*subject, *first, *clause.before, *main, *clause.after]


def _korean_verb(clause: _Clause, ending: Ending, joint: int | None = None) -> list[_Word]:
    """The words of the Korean predicate; `joint` is the idea of the conjunction its ending translates."""
    words = []
    forms = conjugate(clause.predicate, clause.tense, ending, negative=clause.negative)
    unsaid = clause.negative and all(form.role != "negation" for form in forms)
    for form in forms:
        last = form is forms[-1]
        if form.role == "verb":
            words.append(_Word(form.text, (clause.key,)))
        elif form.role == "negation":
            words.append(_Word(form.text, (clause.negation,)))
        elif form.role == "auxiliary":
            words.append(_Word(form.text, (), (clause.key, clause.auxiliary)))
        elif joint is not None:
            words.append(_Word(form.text, (joint,)))
        if last and unsaid:
            words[-1] = words[-1]._replace(sure=(*words[-1].sure, clause.negation))
    if all(form.role != "auxiliary" for form in forms):
        # In 먹고 … 마실 거예요 the first verb has no word for its "will" but itself.
        words[-1] = words[-1]._replace(possible=(*words[-1].possible, clause.auxiliary))
    if joint is not None:
        # "because" and "and" live in the ending of the verb, "when" in 때 and a little in the verb before it.
        verb = max(index for index, form in enumerate(forms) if form.role != "lexical")
        words[verb] = words[verb]._replace(possible=(*words[verb].possible, joint))
    return words


def _korean(clause: _Clause, particle: str | None, ending: Ending = "요", joint: int | None = None) -> list[_Word]:
    """The clause in Korean order; without a particle the subject is left out."""
    subject = clause.subject.korean(particle) if particle else []
    return [*subject, *clause.middle, *_korean_verb(clause, ending, joint)]


def _comma(words: list[_Word]) -> list[_Word]:
    """The words with a comma after the last."""
    return [*words[:-1], words[-1]._replace(text=words[-1].text + ",")]


def _number(noun: Noun) -> str:
    """The person of an English verb after this noun."""
    return "they" if noun.number == "plural" else "it"


def _goal_preposition(verb: Verb, place: Place) -> str:
    """How English names a goal: "to the park", "home", "arrived at the park", "arrived in Seoul"."""
    if place.english == "home" or verb.english == "visit":
        return ""
    if verb.english == "arrive":
        return "in" if "lived" in place.kinds else "at"
    return "to"


# --- What goes with what ---------------------------------------------------------------------------------------------


def _sharing(items: Sequence[Noun], kinds: Sequence[str]) -> tuple[Noun, ...]:
    """The nouns of any of these kinds."""
    return tuple(item for item in items if set(item.kinds) & set(kinds))


def _uses(adjective: Adjective) -> int:
    """How many nouns an adjective describes."""
    return len(_sharing(lexicon.NOUNS, adjective.kinds))


_OBJECTS = {
    verb: _sharing(lexicon.NOUNS, verb.objects) for verb in (*lexicon.TRANSITIVE, *lexicon.DATIVE, *lexicon.SIT)
}
_LIKED = {verb: _sharing(lexicon.NOUNS, verb.objects) for verb in lexicon.GENERIC}
_WHERE: dict[Verb, tuple[Place, ...]] = {
    verb: tuple(place for place in lexicon.PLACES if set(place.kinds) & set(verb.places))
    for verb in (*lexicon.TRANSITIVE, *lexicon.DATIVE, *lexicon.INTRANSITIVE, *lexicon.STATIC, *lexicon.MOTION)
}
_HOW: dict[Verb, tuple[Fixed, ...]] = {
    verb: tuple(manner for manner in lexicon.MANNERS if set(manner.tags) & set(verb.manners))
    for verb in (*_WHERE, *lexicon.SIT)
}
_TOOLS = {verb: [row[1:] for row in lexicon.TOOLS if row[0] == verb.english] for verb in _OBJECTS}
_TIMES = {tense: tuple(time for time in lexicon.TIMES if tense in time.tags) for tense in ("past", "present", "future")}
_TIMES |= {"can": _TIMES["future"], "must": _TIMES["future"]}
_STATE_TIMES = {
    tense: tuple(time for time in lexicon.STATE_TIMES if tense in time.tags) for tense in ("past", "present")
}
_DESCRIBED = {
    noun: tuple(adjective for adjective in lexicon.QUALITIES if set(adjective.kinds) & set(noun.kinds))
    for noun in lexicon.NOUNS
}
_DESCRIBABLE = tuple(noun for noun in lexicon.NOUNS if _DESCRIBED[noun])
_RELATIVE = {
    noun: tuple(verb for verb, nouns in _OBJECTS.items() if verb.english in lexicon.RELATIVE and noun in nouns)
    for noun in lexicon.NOUNS
}
_SITUATED = {
    place: tuple(adjective for adjective in lexicon.SITUATIONS if set(adjective.kinds) & set(place.kinds))
    for place in lexicon.PLACES
    if "goal" in place.kinds
}
# What may be "two dogs" or "dogs" in general.
_COUNTED = tuple(
    noun
    for noun in lexicon.NOUNS
    if noun.number == "count" and (noun.counter or any(noun in liked for liked in _LIKED.values()))
)
_OWNED = _sharing(lexicon.NOUNS, ("owned", "pet"))
_PUT = tuple(noun for noun in _sharing(lexicon.NOUNS, ("pet", "lost", "small", "headwear", "reading")) if noun.counter)
_LANDMARKS = _sharing(lexicon.THINGS, ("surface", "building", "plant", "vehicle"))
_ANIMAL_DEEDS = tuple(verb for verb in lexicon.INTRANSITIVE if verb.english in lexicon.ANIMAL_VERBS)
_LASTING = tuple(verb for verb in lexicon.TRANSITIVE if verb.english in lexicon.LASTING)
_ACTS = tuple(verb for verb in lexicon.TRANSITIVE if "person" not in verb.objects)

# What goes with few words, or follows a rule of its own, cannot be learned from the rest: nothing of it is held out.
_ENOUGH = 5
_SPARSE = {
    *(verb.english for verb, nouns in {**_OBJECTS, **_LIKED}.items() if len(nouns) < _ENOUGH),
    *(adjective.english for adjective in lexicon.QUALITIES if _uses(adjective) < _ENOUGH),
    *(*lexicon.UNSPLIT, *lexicon.GOAL_PARTICLES, *lexicon.PLACE_PARTICLES),
}
_RUNNERS = _sharing(lexicon.ANIMALS, ("runner",))
_HAVE = Verb("have", "had", "있다", "", (), (), ())
_BECOME = Verb("become", "became", "되다", "", (), (), ())
_EXIST = Predicate.of("있다")
_ARRIVALS = tuple(verb for verb in lexicon.MOTION if verb.english in ("go", "come", "arrive", "return"))
_CAUSES = tuple(state for state in lexicon.STATES if state.english in lexicon.CAUSES)
_WHITHER = ("go", "live")

# Which conjunctions join clauses in a tense: the word, its Korean ending, and what the inner clause may be.
_WHEN: tuple[tuple[str, Ending, tuple[str, ...]], ...] = (
    ("when", "때", ("weather", "state", "arrival")),
    ("while", "동안", ("lasting",)),
    ("before", "전에", ("act", "motion")),
    ("after", "후에", ("act", "motion")),
    ("because", "아서", ("weather", "cause")),
)
_SUBORDINATE: dict[str, tuple[tuple[str, Ending, tuple[str, ...]], ...]] = {
    "past": _WHEN,
    "present": _WHEN,
    "future": (("if", "면", ("weather", "cause", "arrival")), ("because", "아서", ("cause",))),
}

# How often each tense is spoken of.
_STATEMENTS: tuple[Tense, ...] = ("past",) * 8 + ("present",) * 5 + ("future",) * 4 + ("can",) * 2 + ("must",)
_PLAIN: tuple[Tense, ...] = ("past", "past", "present")
_SIMPLE: tuple[Tense, ...] = ("past", "past", "present", "future")


_NOBODY = _Subject(_bare("it"), "it", "it")


@cache
def side(combination: str) -> str:
    """The split that owns a combination: "train", "dev" or "test"; the same for every seed and size."""
    number = int.from_bytes(sha256(combination.encode()).digest()[:4], "big") % 100
    return "dev" if number < _HELD_OUT else "test" if number < 2 * _HELD_OUT else "train"


@cache
def _predicate(word: Verb | Adjective) -> Predicate:
    """The Korean predicate of a row of the lexicon."""
    return Predicate.of(word.korean, word.irregular, adjective=isinstance(word, Adjective))


class _Draft:
    """One sentence in the making: the dice, the ideas numbered so far, and the combinations used."""

    def __init__(self, dice: random.Random, split: str = "train") -> None:
        self.dice = dice
        self.foreign = {"dev", "test"} - {split}
        self.ideas = count()
        self.combinations: list[str] = []
        self.heads: list[str] = []

    def idea(self) -> int:
        return next(self.ideas)

    def pick(self, items: Sequence[Item]) -> Item:
        return self.dice.choice(items)

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def combine(self, first: str, second: str) -> None:
        if first not in _SPARSE:
            self.combinations.append(f"{first} {second}")

    # phrases

    def words(self, english: str, korean: str) -> _Phrase:
        """Words that mean each other, all sure."""
        idea = self.idea()
        return _Phrase(
            [_Word(word, (idea,)) for word in english.split()], [_Word(word, (idea,)) for word in korean.split()]
        )

    def fixed(self, phrase: Fixed) -> _Phrase:
        """A phrase of the lexicon with the links it comes with."""
        english = [_Word(word) for word in phrase.english.split()]
        korean = [_Word(word) for word in phrase.korean.split()]
        for link in phrase.gold.split():
            idea = self.idea()
            source, target = (int(index) for index in link.replace("p", "-").split("-"))
            word, other = english[source], korean[target]
            if "p" in link:
                english[source] = word._replace(possible=(*word.possible, idea))
            else:
                english[source] = word._replace(sure=(*word.sure, idea))
            korean[target] = other._replace(sure=(*other.sure, idea))
        return _Phrase(english, korean)

    def described(self, adjective: Adjective, *, degree: float = 0.12) -> _Phrase:
        """An adjective before its noun, perhaps with a degree: "very big", 아주 큰."""
        predicate = _predicate(adjective)
        phrase = self.words(adjective.english, f"{predicate.prefix} {predicate.attributive()}")
        if not self.chance(degree):
            return phrase
        return _joined(self.fixed(self.pick([row for row in lexicon.DEGREES if row.tags])), phrase)

    def adjective_for(self, noun: Noun) -> _Phrase:
        """Something one says of this noun, or nothing."""
        if noun.number == "bare" or "instrument" in noun.kinds:
            return _NOTHING
        if self.chance(0.15) and set(noun.kinds) & set(lexicon.NEW_KINDS):
            self.combine("new", noun.english)
            return self.words(*lexicon.NEW)
        if not _DESCRIBED[noun]:
            return _NOTHING
        adjective = self.pick(_DESCRIBED[noun])
        self.combine(adjective.english, noun.english)
        return self.described(adjective)

    def determiner(self, noun: Noun, following: str, *, definite: bool) -> _Phrase:
        """The English article or what stands in its place; Korean has words only for some of them."""
        if noun.number == "bare":
            return _NOTHING
        if noun.number == "the":
            return _bare("the")
        roll = self.dice.random()
        if roll < 0.17 and set(noun.kinds) & set(lexicon.POSSESSED):
            return self.words(*(("my", "제") if roll < 0.12 else ("our", "우리")))
        if roll < 0.29 and noun.number != "plural":
            return self.words(*self.pick((("this", "이"), ("that", "그"))))
        if definite or roll < 0.5:
            return _bare("the")
        return _bare(article(following)) if noun.number == "count" else _NOTHING

    def noun(self, noun: Noun, *, definite: bool = False, adjective: float = 0.3) -> _Phrase:
        """A noun with its article, perhaps an adjective: "a big dog", 큰 개."""
        quality = self.adjective_for(noun) if self.chance(adjective) else _NOTHING
        head = self.words(noun.english, noun.korean)
        following = (quality.english or head.english)[0].text
        phrase = _joined(self.determiner(noun, following, definite=definite), quality, head)
        return _explained(phrase)

    def counted(self, noun: Noun) -> _Phrase:
        """Two or more of it: "two dogs", 개 두 마리; "two cups of tea", 차 두 잔."""
        number, cardinal = self.pick(lexicon.NUMBERS)
        how_many = self.words(number, cardinal)
        quality = self.adjective_for(noun) if self.chance(0.2) else _NOTHING
        cups = noun.number == "mass"
        pairs = noun.number == "plural"
        unit = "cups" if cups else "pairs" if pairs else ""
        head = self.words(noun.english if cups or pairs else plural(noun.english), noun.korean)
        counter = self.words(unit, noun.counter)
        if not unit:
            counter = _Phrase([], [_Word(noun.counter, (), head.korean[0].sure)])
        of = [_Word("of", (), counter.korean[0].sure)] if unit else []
        english = [*how_many.english, *counter.english, *of, *quality.english, *head.english]
        return _Phrase(english, [*quality.korean, *head.korean, *how_many.korean, *counter.korean])

    def related(self, noun: Noun, verb: Verb) -> _Phrase | None:
        """A noun with a relative clause: "the book that Jimin bought", 지민이 산 책; None where nothing fits."""
        verbs = [other for other in _RELATIVE[noun] if other.english != verb.english]
        if not verbs or noun.number in ("bare", "the") or verb.english in lexicon.CREATING:
            return None
        other = self.pick(verbs)
        self.combine(verb.english, noun.english)
        self.combine(other.english, noun.english)
        clause = self.clause(self.acquaintance(), other, "past")
        head = self.words(noun.english, noun.korean)
        english = [_Word("the", (), head.korean[0].sure), *head.english, _Word("that", (), (clause.key,))]
        return _Phrase([*english, *_english(clause)], [*_korean(clause, "subject", "관형"), *head.korean])

    def object(self, noun: Noun, verb: Verb) -> _Phrase:
        """A noun as what somebody does something to."""
        self.combine(verb.english, noun.english)
        if noun.counter and verb.english != "wear" and self.chance(0.1):
            return self.counted(noun)
        if self.chance(0.1):
            others = [other for other in _OBJECTS[verb] if other.kinds[0] == noun.kinds[0] and other != noun]
            if others:
                return self.both(self.noun(noun, adjective=0.0), self.second(self.pick(others), verb))
        return self.noun(noun, adjective=0.0 if verb.english in lexicon.UNDESCRIBED else 0.3)

    def second(self, noun: Noun, verb: Verb) -> _Phrase:
        """The other half of "an apple and a pear"."""
        self.combine(verb.english, noun.english)
        return self.noun(noun, adjective=0.0)

    def both(self, first: _Phrase, other: _Phrase) -> _Phrase:
        """Two phrases joined: "bread and milk", 빵과 우유."""
        left = first.with_particle("with")
        joint = _Word("and", (), left.korean[-1].sure)
        return _Phrase([*left.english, joint, *other.english], [*left.korean, *other.korean])

    # people

    def fresh(self, people: Sequence[Person]) -> Person:
        """Somebody this sentence has not spoken of yet: the same person twice would want a pronoun."""
        person = self.pick([one for one in people if one.english not in self.heads] or people)
        self.heads.append(person.english)
        return person

    def named(self) -> _Phrase:
        person = self.fresh(lexicon.NAMES)
        return self.words(person.english, person.korean)

    def acquaintance(self) -> _Subject:
        """Somebody with a name."""
        return _Subject(self.named(), "it", "name")

    def relative(self) -> _Phrase:
        person = self.fresh(lexicon.FAMILY)
        return _joined(self.words("my", "제"), self.words(person.english, person.korean))

    def role(self, *, many: bool) -> _Phrase:
        """Somebody by profession or age: "the kind doctor", "this student", "the children"."""
        person = self.fresh((*lexicon.ROLES, *lexicon.OTHERS))
        trait = _NOTHING
        if self.chance(0.2):
            adjective = self.pick(lexicon.TRAITS)
            self.combine(adjective.english, person.english)
            trait = self.described(adjective, degree=0.05)
        first = _bare("the")
        if not many and self.chance(0.25):
            first = self.words(*self.pick((("this", "이"), ("that", "그"))))
        head = self.words(plural(person.english), person.korean + "들") if many else self.words(*person)
        return _explained(_joined(first, trait, head))

    def pronoun(self, english: str) -> _Subject:
        self.heads.append(english)
        return _Subject(self.words(english, "저" if english == "I" else "우리"), english, english)

    def somebody(self) -> _Subject:
        """Who acts: I, we, a name, one of mine, a role, or two people."""
        roll = self.dice.random()
        if roll < 0.14 and "I" not in self.heads:
            return self.pronoun("I")
        if roll < 0.19 and "we" not in self.heads:
            return self.pronoun("we")
        if roll < 0.55:
            return self.acquaintance()
        if roll < 0.68:
            return _Subject(self.relative(), "it", "family")
        if roll < 0.74:
            return _Subject(self.both(self.named(), self.named()), "they", "names")
        many = roll > 0.93
        return _Subject(self.role(many=many), "they" if many else "it", "role")

    def other(self, subject: _Subject) -> _Phrase:
        """Somebody to meet, help or go with."""
        if subject.person == "it" and self.chance(0.12) and "I" not in self.heads:
            self.heads.append("I")
            return self.words("me", "저")
        roll = self.dice.random()
        return self.named() if roll < 0.5 else self.relative() if roll < 0.75 else self.role(many=False)

    # adjuncts

    def time(self, verb: Verb, tense: Tense) -> _Phrase:
        """When it is done; what takes a moment is not done "last year"."""
        slow = verb.english in lexicon.LONG_TERM
        return self.fixed(self.pick([time for time in _TIMES[tense] if slow or "long" not in time.tags]))

    def place(self, verb: Verb, particle: str) -> _Phrase:
        """Where it is done: "at the library", 도서관에서."""
        place = self.pick(_WHERE[verb])
        if len(_WHERE[verb]) >= _ENOUGH:
            self.combine(verb.english, f"@ {place.english}")
        return self.placed(place, place.preposition, particle)

    def placed(self, place: Place, preposition: str, particle: str) -> _Phrase:
        head = self.words(place.english, place.korean)
        phrase = _explained(_joined(_bare(*place.article.split()), head))
        return phrase.with_particle(particle).after(preposition)

    def company(self, subject: _Subject) -> _Phrase:
        return self.other(subject).with_particle("with").after("with")

    def tool(self, verb: Verb) -> _Phrase:
        indefinite, english, korean = self.pick(_TOOLS[verb])
        head = self.words(english, korean)
        phrase = _explained(_joined(_bare(*indefinite.split()), head))
        return phrase.with_particle("by").after("with")

    def vehicle(self) -> _Phrase:
        return self.words(*self.pick(lexicon.VEHICLES)).with_particle("by").after("by")

    # clauses

    def clause(self, subject: _Subject, verb: Verb, tense: Tense, *, negative: bool = False) -> _Clause:
        """A clause with nothing but subject and verb."""
        keys = (self.idea(), self.idea(), self.idea())
        return _Clause(subject, verb.english, verb.past, _predicate(verb), tense, negative, *keys)

    def being(self, subject: _Subject, predicate: Predicate, tense: Tense, *, negative: bool = False) -> _Clause:
        """A clause of "be", whose meaning is in what follows."""
        keys = (self.idea(), self.idea(), self.idea())
        return _Clause(subject, "be", "be", predicate, tense, negative, *keys, lexical=False)

    def extras(self, clause: _Clause, verb: Verb, allowed: Sequence[str], budget: int) -> dict[str, _Phrase]:
        """Up to `budget` of time, frequency, place, company, tool and manner, as far as the verb has them."""
        makers = {
            "time": lambda: self.time(verb, clause.tense),
            "frequency": lambda: self.fixed(self.pick(lexicon.FREQUENCIES)),
            "place": lambda: self.place(verb, lexicon.PLACE_PARTICLES.get(verb.english, "in")),
            "company": lambda: self.company(clause.subject),
            "tool": lambda: self.tool(verb),
            "manner": lambda: self.fixed(self.pick(_HOW[verb])),
            "vehicle": self.vehicle,
        }
        possible = [name for name in allowed if self.fits(name, clause, verb)]
        chosen: dict[str, _Phrase] = {}
        while possible and len(chosen) < budget:
            name = possible.pop(self.dice.randrange(len(possible)))
            chosen[name] = makers[name]()
            # "alone with Minsu", "often every day" and the like
            for rivals in (("manner", "company"), ("time", "frequency"), ("tool", "manner"), ("vehicle", "manner")):
                possible = [other for other in possible if not (name in rivals and other in rivals)]
        if "time" in chosen and chosen["time"].english[0].text == "in":
            chosen.pop("manner", None)  # "late in the evening" is a time, not a manner
        return chosen

    def fits(self, name: str, clause: _Clause, verb: Verb) -> bool:
        """Whether this verb, in this clause, may have such an addition."""
        if name == "place":
            return bool(_WHERE[verb])
        if name == "company":
            return verb.english in lexicon.SOCIAL and clause.subject.head != "who"
        if clause.negative:
            return name == "time" and clause.tense != "present"  # "not … every day" is not 매일 안
        if name == "frequency":
            return clause.tense == "present"
        if name == "tool":
            return bool(_TOOLS.get(verb))
        if name == "manner":
            return bool(_HOW[verb])
        return True

    def complete(self, clause: _Clause, parts: dict[str, _Phrase]) -> _Clause:
        """Put the parts where each language wants them; a frequency goes before the English verb."""
        clause.before.extend(parts.get("frequency", _NOTHING).english)
        clause.after.extend(word for name in _ENGLISH_ORDER if name in parts for word in parts[name].english)
        clause.middle.extend(word for name in _KOREAN_ORDER if name in parts for word in parts[name].korean)
        return clause

    def verb_for(self, verbs: Sequence[Verb], subject: _Subject, tense: Tense, *, clear: bool) -> Verb:
        """A verb of these; `clear` says the clause needs no auxiliary to tell its tense (a question has one)."""
        while True:
            verb = self.pick(verbs)
            if (clear or not _ambiguous(verb, tense, subject)) and not (
                tense == "present" and verb.english in lexicon.RARE
            ):
                return verb

    def transitive(self, frame: _Frame, verbs: Sequence[Verb] = lexicon.TRANSITIVE) -> _Clause:
        """Somebody does something to something: "Minsu read a book at the library yesterday"."""
        verb = self.verb_for(verbs, frame.subject, frame.tense, clear=frame.clear)
        clause = self.clause(frame.subject, verb, frame.tense, negative=frame.negative)
        allowed = ["time", "frequency", "place", "company", "tool", "manner"]
        if "person" in verb.objects and (not _OBJECTS[verb] or self.chance(0.7)):
            thing = self.other(frame.subject)
        else:
            noun = self.pick(_OBJECTS[verb])
            # A relative clause ends the sentence: whatever followed would seem to belong to it.
            related = self.related(noun, verb) if not frame.budget and self.chance(0.2) else None
            thing = related or self.object(noun, verb)
            if "meal" in noun.kinds:
                allowed.remove("time")  # no breakfast in the evening
            if verb.english == "eat" and "dish" not in noun.kinds:
                allowed.remove("tool")  # no apple with chopsticks
        extras = self.extras(clause, verb, allowed, frame.budget)
        return self.complete(clause, {"object": thing.with_particle("object"), **extras})

    def dative(self, frame: _Frame) -> _Clause:
        """Somebody gives somebody something: "Minsu gave a book to Jimin"."""
        verb = self.pick(lexicon.DATIVE)
        clause = self.clause(frame.subject, verb, frame.tense, negative=frame.negative)
        thing = self.object(self.pick(_OBJECTS[verb]), verb).with_particle("object")
        receiver = self.other(frame.subject).with_particle("to").after("to")
        extras = self.extras(clause, verb, ("time", "frequency", "place", "manner"), min(frame.budget, 1))
        return self.complete(clause, {"object": thing, "receiver": receiver, **extras})

    def intransitive(self, frame: _Frame, verbs: Sequence[Verb] = lexicon.INTRANSITIVE) -> _Clause:
        """Somebody does something: "Minsu slept well at home"."""
        verb = self.pick(verbs)
        clause = self.clause(frame.subject, verb, frame.tense, negative=frame.negative)
        allowed = ("time", "frequency", "place", "company", "manner")
        return self.complete(clause, self.extras(clause, verb, allowed, max(frame.budget, 1)))

    def static(self, frame: _Frame) -> _Clause:
        """Somebody lives somewhere: 에, not 에서."""
        verb = self.pick(lexicon.STATIC)
        clause = self.clause(frame.subject, verb, frame.tense, negative=frame.negative)
        extras = self.extras(clause, verb, ("company", "manner"), min(frame.budget, 1))
        return self.complete(clause, {"place": self.place(verb, "at"), **extras})

    def seated(self, frame: _Frame) -> _Clause:
        """Somebody sits or lies on something: "Minsu sat on the chair", 의자에."""
        verb = self.pick(lexicon.SIT)
        clause = self.clause(frame.subject, verb, frame.tense, negative=frame.negative)
        noun = self.pick(_OBJECTS[verb])
        self.combine(verb.english, noun.english)
        seat = self.noun(noun, definite=True).with_particle("at").after("on")
        extras = self.extras(clause, verb, ("time", "manner"), min(frame.budget, 1))
        return self.complete(clause, {"goal": seat, **extras})

    def motion(self, frame: _Frame, verbs: Sequence[Verb] = lexicon.MOTION) -> _Clause:
        """Somebody goes somewhere: "Minsu went to Busan by train"."""
        verb = self.verb_for(verbs, frame.subject, frame.tense, clear=frame.clear)
        clause = self.clause(frame.subject, verb, frame.tense, negative=frame.negative)
        place = self.pick(_WHERE[verb])
        self.combine(verb.english, f"> {place.english}")
        goal = self.placed(place, _goal_preposition(verb, place), lexicon.GOAL_PARTICLES.get(verb.english, "at"))
        allowed = ["time", "frequency", "company", "manner"]
        if verb.english in ("go", "come"):
            allowed.append("vehicle")
        return self.complete(clause, {"goal": goal, **self.extras(clause, verb, allowed, frame.budget)})

    def generic(self, frame: _Frame) -> _Clause:
        """Somebody likes a kind of thing: "Minsu likes dogs"."""
        tense: Tense = "past" if frame.tense == "past" else "present"
        verb = self.pick(lexicon.GENERIC)
        clause = self.clause(frame.subject, verb, tense, negative=frame.negative)
        noun = self.pick(_LIKED[verb])
        self.combine(verb.english, noun.english)
        quality = self.adjective_for(noun) if self.chance(0.2) else _NOTHING
        article_ = _bare("the") if noun.number == "the" else _NOTHING
        many = plural(noun.english) if noun.number == "count" else noun.english
        thing = _explained(_joined(article_, quality, self.words(many, noun.korean)))
        return self.complete(clause, {"object": thing.with_particle("object")})

    def possession(self, frame: _Frame) -> _Clause:
        """Somebody has something: Korean says it exists, 자동차가 있어요."""
        tense: Tense = "past" if frame.tense == "past" else "present"
        clause = self.clause(frame.subject, _HAVE, tense, negative=frame.negative)
        noun = self.pick(_OWNED)
        self.combine("have", noun.english)
        return self.complete(clause, {"object": self.some(noun).with_particle("subject")})

    def some(self, noun: Noun, *, no: int | None = None) -> _Phrase:
        """A noun not spoken of before: "a big dog", "two dogs", or with the idea of a negation "no dog"."""
        if no is None and noun.counter and noun.number == "count" and self.chance(0.2):
            return self.counted(noun)
        quality = self.adjective_for(noun) if self.chance(0.25) else _NOTHING
        head = self.words(noun.english, noun.korean)
        phrase = _joined(quality, head)
        if no is not None:
            return _Phrase([_Word("no", (no,)), *phrase.english], phrase.korean)
        first = _bare(article(phrase.english[0].text)) if noun.number == "count" else _NOTHING
        return _explained(_joined(first, phrase))

    def becoming(self, frame: _Frame) -> _Clause:
        """Somebody becomes something: 의사가 됐어요."""
        tense: Tense = "future" if frame.tense in ("present", "must") else frame.tense
        clause = self.clause(frame.subject, _BECOME, tense, negative=frame.negative)
        role = self.fresh(lexicon.ROLES)
        self.combine("become", role.english)
        alone = frame.subject.person in ("I", "it", "you")
        first, many = (_bare(article(role.english)), role.english) if alone else (_NOTHING, plural(role.english))
        noun = _explained(_joined(first, self.words(many, role.korean)))
        return self.complete(clause, {"object": noun.with_particle("subject")})

    def state(self, frame: _Frame, states: Sequence[Adjective] = lexicon.STATES) -> _Clause:
        """Somebody is tired, busy, kind: "Minsu was busy yesterday"."""
        tense: Tense = "past" if frame.tense == "past" else "present"
        adjective = self.pick(states)
        clause = self.quality(frame.subject, adjective, tense, negative=frame.negative)
        if frame.budget and self.chance(0.5):
            time = self.fixed(self.pick(_STATE_TIMES[tense]))
            clause.after.extend(time.english)
            clause.middle[:0] = time.korean
        return clause

    def quality(self, subject: _Subject, adjective: Adjective, tense: Tense, *, negative: bool) -> _Clause:
        """Something is so: "the bag is very heavy", 가방은 아주 무거워요."""
        negative = negative and adjective.english not in lexicon.UNNEGATED
        clause = self.being(subject, _predicate(adjective), tense, negative=negative)
        degree = self.fixed(self.pick(lexicon.DEGREES)) if not negative and self.chance(0.2) else _NOTHING
        clause.after.extend([*degree.english, _Word(adjective.english, (clause.key,))])
        clause.middle.extend(degree.korean)
        return clause

    def weather(self, frame: _Frame) -> _Clause:
        """It rains, it is cold: 비가 와요, 추워요."""
        english, past, subject, korean, irregular = self.pick(lexicon.WEATHER)
        if past:
            verb = Verb(english, past, korean, irregular, (), (), ())
            clause = self.clause(_NOBODY, verb, frame.tense, negative=frame.negative)
            clause.middle.append(_Word(subject, (clause.key,)))
        else:
            predicate = Predicate.of(korean, irregular, adjective=True)
            tense: Tense = "past" if frame.tense == "past" else "present"
            clause = self.being(_NOBODY, predicate, tense, negative=frame.negative)
            clause.after.append(_Word(english, (clause.key,)))
        return clause

    # what a sentence may be

    def frame(self, tenses: Sequence[Tense], *, question: bool = False, budget: int = 2) -> _Frame:
        """Who, when, and whether not: what every clause of people has."""
        tense = self.pick(tenses)
        negative = not question and tense != "must" and self.chance(0.15)
        return _Frame(self.asked_one() if question else self.somebody(), tense, negative, question, budget)

    def asked_one(self) -> _Subject:
        """Whom a question is about: the listener, whom Korean leaves unsaid, or anybody but the speaker."""
        if self.chance(0.35):
            return _Subject(_bare("you"), "you", "you")
        self.heads.append("I")
        return self.somebody()

    def spoken(self, clause: _Clause, *, question: bool = False) -> _Spoken:
        """A clause as a sentence of its own."""
        return _Spoken(_english(clause, question=question), _korean(clause, "topic"), "?" if question else ".")

    def people(self, make: Maker) -> _Spoken:
        """A statement or a question about people."""
        question = self.chance(0.14)
        tenses = [tense for tense in _STATEMENTS if not (question and tense == "must")]
        return self.spoken(
            make(self.frame(tenses, question=question, budget=self.pick((0, 1, 1, 2, 2)))), question=question
        )

    def thing_is(self) -> _Spoken:
        """A thing or animal is so: "The bag is heavy.", 가방은 무거워요."""
        noun = self.pick(_DESCRIBABLE)
        adjective = self.pick(_DESCRIBED[noun])
        self.combine(adjective.english, noun.english)
        subject = _Subject(self.noun(noun, definite=True, adjective=0.0), _number(noun), noun.english)
        question = self.chance(0.14)
        negative = not question and self.chance(0.15)
        return self.spoken(self.quality(subject, adjective, self.pick(_PLAIN), negative=negative), question=question)

    def place_is(self) -> _Spoken:
        """A place is so: "The library is quiet."."""
        place = self.pick(tuple(_SITUATED))
        adjective = self.pick(_SITUATED[place])
        self.combine(adjective.english, f"@ {place.english}")
        first = _NOTHING if place.english[0].isupper() else _bare("the")
        phrase = _explained(_joined(first, self.words(place.english, place.korean)))
        question = self.chance(0.14)
        negative = not question and self.chance(0.15)
        clause = self.quality(_Subject(phrase, "it", "place"), adjective, self.pick(_PLAIN), negative=negative)
        return self.spoken(clause, question=question)

    def person_is(self) -> _Spoken:
        """A person is so: "The doctor is kind."."""
        question = self.chance(0.14)
        frame = self.frame(_PLAIN, question=question)
        if self.chance(0.5):
            return self.spoken(self.state(frame), question=question)
        adjective = self.pick(lexicon.TRAITS)
        return self.spoken(
            self.quality(frame.subject, adjective, frame.tense, negative=frame.negative), question=question
        )

    def located(self) -> _Spoken:
        """A thing is somewhere: "The cat is under the table.", 고양이는 탁자 아래에 있어요."""
        noun, landmark = self.put()
        subject = _Subject(self.noun(noun, definite=True, adjective=0.2), _number(noun), noun.english)
        question = self.chance(0.2)
        clause = self.being(subject, _EXIST, self.pick(_PLAIN), negative=not question and self.chance(0.2))
        clause.lexical = True
        where = self.position(landmark)
        clause.after.extend(where.english)
        clause.middle.extend(where.korean)
        return self.spoken(clause, question=question)

    def existing(self) -> _Spoken:
        """There is something somewhere: the same words with 이/가, and the place first."""
        noun, landmark = self.put()
        negative = self.chance(0.2)
        key, no = self.idea(), self.idea()
        thing = self.some(noun, no=no if negative else None).with_particle("subject")
        many = thing.english[0].text in dict(lexicon.NUMBERS) or noun.number == "plural"
        tense = self.pick(_PLAIN)
        where = self.position(landmark)
        clause = _Clause(_Subject(_NOTHING, "it", ""), "be", "be", _EXIST, tense, negative, key, self.idea(), no)
        there = [_Word("there", (), (key,)), _Word(_be("they" if many else "it", tense), (key,))]
        korean = [*where.korean, *thing.korean, *_korean_verb(clause, "요")]
        return _Spoken([*there, *thing.english, *where.english], korean, ".")

    def put(self) -> tuple[Noun, Noun]:
        """Something and where it may lie."""
        noun = self.pick(_PUT)
        landmark = self.pick(_LANDMARKS if "animal" in noun.kinds else lexicon.SURFACES)
        self.combine(noun.english, f"@ {landmark.english}")
        return noun, landmark

    def position(self, landmark: Noun) -> _Phrase:
        """Where a thing is: "under the table", 탁자 아래에."""
        positions = lexicon.POSITIONS if "surface" in landmark.kinds else lexicon.POSITIONS[2:]
        english, meaning, korean = self.pick(positions)
        idea = self.idea()
        words = [_Word(word, (idea,)) if word == meaning else _Word(word, (), (idea,)) for word in english.split()]
        place = _explained(_joined(_bare("the"), self.words(landmark.english, landmark.korean)))
        return _Phrase([*words, *place.english], [*place.korean, _Word(korean, (idea,))])

    def identified(self) -> _Spoken:
        """Somebody is something: 학생이에요, 의사예요, 가수가 아니에요."""
        question = self.chance(0.2)
        subject = self.acquaintance() if self.chance(0.7) else _Subject(self.relative(), "it", "family")
        role = self.pick(lexicon.ROLES)
        self.combine(self.heads[-1], role.english)
        tense = self.pick(_PLAIN)
        clause = self.being(subject, _EXIST, tense, negative=not question and self.chance(0.3))
        noun = _explained(_joined(_bare(article(role.english)), self.words(*role)))
        clause.after.extend(noun.english)
        past = tense == "past"
        if clause.negative:
            last = _Word("아니었어요" if past else "아니에요", (clause.negation,), (clause.key,))
            said = [*noun.with_particle("subject").korean, last]
        else:
            head = noun.with_particle("was" if past else "is").korean[0]
            said = [head._replace(possible=(clause.key,))]
        return _Spoken(_english(clause, question=question), [*subject.korean("topic"), *said], "?" if question else ".")

    def animal_does(self) -> _Spoken:
        """An animal sleeps, runs, plays."""
        noun = self.pick(_RUNNERS)
        subject = _Subject(self.noun(noun, definite=True), "it", noun.english)
        question = self.chance(0.14)
        frame = _Frame(subject, self.pick(_PLAIN), not question and self.chance(0.15), question, 1)
        return self.spoken(self.intransitive(frame, _ANIMAL_DEEDS), question=question)

    def raining(self) -> _Spoken:
        """It rains: "It will rain tomorrow."."""
        question = self.chance(0.2)
        tense = self.pick(_SIMPLE)
        clause = self.weather(_Frame(_NOBODY, tense, not question and self.chance(0.2), question))
        if clause.tense != "present" and self.chance(0.8):
            time = self.fixed(self.pick([time for time in _TIMES[clause.tense] if "long" not in time.tags]))
            clause.after.extend(time.english)
            clause.middle[:0] = time.korean
        return self.spoken(clause, question=question)

    # questions with a question word

    def asking(self) -> _Spoken:
        """What, who, where, when, why."""
        make = self.pick((self.what, self.whom, self.where, self.whither, self.when_or_why, self.who))
        return self.spoken(make(), question=True)

    def inquiry(self, verbs: Sequence[Verb], subject: _Subject | None = None) -> tuple[Verb, _Clause]:
        """The bones of a question with a question word."""
        whom = subject or self.asked_one()
        tense = self.pick(_SIMPLE)
        verb = self.verb_for(verbs, whom, tense, clear=True)
        return verb, self.clause(whom, verb, tense)

    def what(self) -> _Clause:
        # "What did you wear?" would have as many translations as Korean has verbs for wearing.
        verb, clause = self.inquiry([verb for verb in _ACTS if verb.english != "wear"])
        thing = self.words("What", "무엇을")
        clause.fronted = thing.english
        extras = self.extras(clause, verb, ("time", "place"), 1)
        return self.complete(clause, {"object": _Phrase([], thing.korean), **extras})

    def whom(self) -> _Clause:
        verb, clause = self.inquiry([verb for verb in lexicon.TRANSITIVE if "person" in verb.objects])
        person = self.words("Who", "누구를")
        clause.fronted = person.english
        extras = self.extras(clause, verb, ("time", "place"), 1)
        return self.complete(clause, {"object": _Phrase([], person.korean), **extras})

    def where(self) -> _Clause:
        verb, clause = self.inquiry([verb for verb in _ACTS if verb.places])
        place = self.words("Where", attach("어디", lexicon.PLACE_PARTICLES.get(verb.english, "in")))
        clause.fronted = place.english
        thing = self.object(self.pick(_OBJECTS[verb]), verb).with_particle("object")
        extras = self.extras(clause, verb, ("time",), self.pick((0, 1)))
        return self.complete(clause, {"place": _Phrase([], place.korean), "object": thing, **extras})

    def whither(self) -> _Clause:
        verb, clause = self.inquiry([verb for verb in (*lexicon.MOTION, *lexicon.STATIC) if verb.english in _WHITHER])
        place = self.words("Where", "어디에")
        clause.fronted = place.english
        extras = self.extras(clause, verb, ("time", "company"), 1)
        return self.complete(clause, {"goal": _Phrase([], place.korean), **extras})

    def when_or_why(self) -> _Clause:
        verb, clause = self.inquiry(_ACTS)
        word = self.words(*self.pick((("When", "언제"), ("Why", "왜"))))
        clause.fronted = word.english
        thing = self.object(self.pick(_OBJECTS[verb]), verb).with_particle("object")
        return self.complete(clause, {"time": _Phrase([], word.korean), "object": thing})

    def who(self) -> _Clause:
        subject = _Subject(self.words("Who", "누가"), "it", "who")
        verb, clause = self.inquiry(_ACTS, subject)
        thing = self.object(self.pick(_OBJECTS[verb]), verb).with_particle("object")
        extras = self.extras(clause, verb, ("time", "place"), self.pick((0, 1)))
        return self.complete(clause, {"object": thing, **extras})

    # clauses joined

    def deed(self, frame: _Frame) -> _Clause:
        """Something people do."""
        makers: tuple[Maker, ...] = (self.transitive,) * 5 + (self.intransitive, self.motion, self.motion, self.dative)
        return self.pick(makers)(frame)

    def activity(self, frame: _Frame) -> _Clause:
        """Something people do for a while."""
        return self.transitive(frame) if self.chance(0.8) else self.intransitive(frame)

    def both_deeds(self) -> _Spoken | None:
        """One subject, two deeds: "Minsu ate bread and drank milk.", 빵을 먹고 우유를 마셨어요; None for the same."""
        frame = _Frame(self.somebody(), self.pick(_SIMPLE), False, False, 1)
        first = self.deed(frame)
        other = replace(self.deed(frame._replace(budget=0)), auxiliary=first.auxiliary)
        if other.base == first.base:
            return None
        joint = self.idea()
        verb = _lexical(other, other.base) if frame.tense == "future" else _verb_form(other)
        english = [*_english(first), _Word("and", (), (joint,)), *other.before, *verb, *other.after]
        # The first deed takes its tense from the last: 먹고, not 먹었고.
        tied = _korean(replace(first, tense="present"), "topic", "고", joint)
        return _Spoken(english, [*tied, *_korean(other, None)], ".")

    def unit(self, tense: Tense, budget: int, room: int) -> _Unit:
        """A main clause, perhaps with a subordinate one before or after it; in little room rather not."""
        if room < 11 or self.chance(0.45):
            frame = _Frame(self.somebody(), tense, self.chance(0.1), False, budget)
            main = self.deed(frame)
            return _Unit(_english(main), [], main, "topic")
        return self.subordinated(tense, budget)

    def subordinated(self, tense: Tense, budget: int) -> _Unit:
        """Two clauses, one of them when, while, before, after, because or if the other is."""
        conjunction, ending, makers = self.pick(_SUBORDINATE[tense])
        subject = self.somebody()
        same = subject.head in ("I", "we") and conjunction != "if" and self.chance(0.6)
        negative = conjunction in ("because", "if") and self.chance(0.15)
        time: Tense = "past" if tense == "past" else "present"
        joint = self.idea()
        make = self.pick([name for name in makers if not (same and name == "weather")])
        inner = self.subordinate(make, _Frame(subject if same else self.somebody(), time, negative, False, 0))
        deed = self.activity if conjunction == "while" else self.deed
        main = deed(_Frame(subject, tense, budget=budget))
        tied = _korean(inner, None if same else "subject", ending, joint)
        said = ending in ("때", "동안", "전에", "후에")
        word = _Word(conjunction, (joint,)) if said else _Word(conjunction, (), (joint,))
        lead = [*subject.korean("topic"), *tied] if same else tied
        return _Unit(self.ordered(word, _english(inner), _english(main)), lead, main, None if same else "topic")

    def subordinate(self, make: str, frame: _Frame) -> _Clause:
        """The inner clause; its maker is named in the table of conjunctions."""
        makers: dict[str, Maker] = {
            "weather": self.weather,
            "state": self.state,
            "cause": lambda inner: self.state(inner, _CAUSES),
            "motion": self.motion,
            "arrival": lambda inner: self.motion(inner, _ARRIVALS),
            "lasting": lambda inner: self.transitive(inner, _LASTING),
            "act": lambda inner: self.transitive(inner, _ACTS),
        }
        return makers[make](frame)

    def ordered(self, conjunction: _Word, inner: list[_Word], main: list[_Word]) -> list[_Word]:
        """English may put the inner clause first, with a comma, or last."""
        if self.chance(0.5):
            return [conjunction, *_comma(inner), *main]
        return [*main, conjunction, *inner]

    def fitting(self, tense: Tense, room: int) -> _Unit | None:
        """A unit of at most so many words with nothing held out from this split; None after some tries."""
        marks = len(self.combinations), len(self.heads)
        for _ in range(8):
            unit = self.unit(tense, self.pick((0, 1, 2)) if room > 7 else 0, room)
            if len(unit.english) <= room and not any(
                side(pair) in self.foreign for pair in self.combinations[marks[0] :]
            ):
                return unit
            del self.combinations[marks[0] :], self.heads[marks[1] :]
        return None

    def chain(self, least: int, most: int) -> _Spoken | None:
        """Units joined by and, once by but, until there are enough words; None where the last would not fit."""
        tense = self.pick(_SIMPLE)
        unit = self.fitting(tense, most)
        english, korean = (unit.english if unit else []), list[_Word]()
        may_but = tense != "future"
        while unit and len(english) < least:
            but = may_but and self.chance(0.35)
            may_but = may_but and not but
            joint = self.idea()
            korean += unit.korean("지만" if but else "고", joint)
            unit = self.fitting(tense, most - len(english) - 1)
            if unit:
                english = [*_comma(english), _Word("but" if but else "and", (), (joint,)), *unit.english]
        return _Spoken(english, [*korean, *unit.korean("요")], ".") if unit else None

    def joined(self) -> _Spoken | None:
        """Two clauses."""
        if self.chance(0.6):
            unit = self.subordinated(self.pick(_SIMPLE), self.pick((0, 0, 1)))
            return _Spoken(unit.english, unit.korean("요"), ".")
        return self.chain(8, 16)


# --- Sentences -------------------------------------------------------------------------------------------------------

# What a short sentence may be, and how often.
_KINDS: tuple[tuple[str, int, Callable[[_Draft], _Spoken | None]], ...] = (
    ("transitive", 28, lambda draft: draft.people(draft.transitive)),
    ("dative", 7, lambda draft: draft.people(draft.dative)),
    ("intransitive", 7, lambda draft: draft.people(draft.intransitive)),
    ("motion", 10, lambda draft: draft.people(draft.motion)),
    ("static", 2, lambda draft: draft.people(draft.static)),
    ("seated", 2, lambda draft: draft.people(draft.seated)),
    ("generic", 5, lambda draft: draft.people(draft.generic)),
    ("possession", 4, lambda draft: draft.people(draft.possession)),
    ("becoming", 2, lambda draft: draft.people(draft.becoming)),
    ("thing is", 10, _Draft.thing_is),
    ("place is", 3, _Draft.place_is),
    ("person is", 4, _Draft.person_is),
    ("located", 5, _Draft.located),
    ("existing", 4, _Draft.existing),
    ("identified", 3, _Draft.identified),
    ("animal does", 2, _Draft.animal_does),
    ("weather", 1, _Draft.raining),
    ("asking", 7, _Draft.asking),
    ("both deeds", 6, _Draft.both_deeds),
    ("joined", 12, _Draft.joined),
)
_WEIGHTED = tuple(kind for kind in _KINDS for _ in range(kind[1]))


@cache
def _link(source: int, target: int, sure: bool) -> Link:
    """One link, made once: half a million sentences share them."""
    return Link(source, target, sure)


def _links(english: Sequence[_Word], korean: Sequence[_Word]) -> tuple[Link, ...]:
    """Words that share an idea, sure where both are sure of it."""
    found: dict[tuple[int, int], bool] = {}
    where: dict[int, list[tuple[int, bool]]] = {}
    for target, word in enumerate(korean):
        for ideas, sure in ((word.sure, True), (word.possible, False)):
            for idea in ideas:
                where.setdefault(idea, []).append((target, sure))
    for source, word in enumerate(english):
        for ideas, sure in ((word.sure, True), (word.possible, False)):
            for idea in ideas:
                for target, known in where.get(idea, ()):
                    found[source, target] = found.get((source, target), False) or (sure and known)
    return tuple(_link(source, target, sure) for (source, target), sure in sorted(found.items()))


def _sentence(draft: _Draft, spoken: _Spoken, kind: str) -> Sentence:
    """Write a sentence down: capital, spaces, final mark, links."""
    source = " ".join(word.text for word in spoken.english) + spoken.mark
    target = " ".join(word.text for word in spoken.korean) + spoken.mark
    links = _links(spoken.english, spoken.korean)
    return Sentence(source[0].upper() + source[1:], target, links, tuple(draft.combinations), kind)


class _Wish(NamedTuple):
    """What kind of sentence is wanted next: a short construction, or a length for clauses joined."""

    kind: str
    make: Callable[[_Draft], _Spoken | None]


def _wish(dice: random.Random, split: str) -> _Wish:
    """The kind is drawn before the sentence, so that every split has the same mixture however hard it is to fill."""
    if split == "long":
        target = dice.choice(LONG)
        return _Wish("long", lambda draft: draft.chain(max(target - 2, LONG.start), target))
    if dice.random() < _JOINED_SHARE:
        # The smaller of two: every length occurs, the longest least.
        target = min(dice.randint(13, LONGEST), dice.randint(13, LONGEST))
        return _Wish("chain", lambda draft: draft.chain(target - 2, target))
    kind, _, make = dice.choice(_WEIGHTED)
    return _Wish(kind, make)


def _belongs(combinations: Sequence[str], split: str) -> bool:
    """Whether a sentence fits a split: train and long have nothing held out, dev and test something of their own."""
    sides = {side(combination) for combination in combinations} - {"train"}
    return sides == ({split} if split in ("dev", "test") else set())


def _types(line: str) -> list[str]:
    """The words of a line, without punctuation."""
    return [word.strip(".,?") for word in line.split()]


class _Split:
    """A split being filled with distinct sentences; what may be in it depends on what was drawn before."""

    def __init__(self, name: str, seed: int, known: frozenset[str] | None = None) -> None:
        self.name = name
        self.dice = random.Random(f"softgaze phrasebook {seed} {name}")
        self.known = known
        self.seen: set[str] = set()
        self.sentences: list[Sentence] = []

    def accepts(self, sentence: Sentence) -> bool:
        if sentence.source in self.seen:
            return False
        # What is long may end a known verb in a way train did not show: sixty known words are hard to come by.
        text = sentence.source.lower() + (f" {sentence.target}" if self.name != "long" else "")
        return self.known is None or self.known.issuperset(_types(text))

    def draw(self) -> int:
        """Try for one more sentence of the kind wished for next; how many tries it took, given up after some."""
        wish = _wish(self.dice, self.name)
        for tries in range(1, _PATIENCE + 1):
            draft = _Draft(self.dice, self.name)
            spoken = wish.make(draft)
            if spoken is None or not _belongs(draft.combinations, self.name):
                continue
            sentence = _sentence(draft, spoken, wish.kind)
            if self.accepts(sentence):
                self.seen.add(sentence.source)
                self.sentences.append(sentence)
                return tries
        return _PATIENCE

    def fill(self, size: int) -> tuple[Sentence, ...]:
        """Draw until there are `size` sentences, or fewer where the grammar is not asked to search any longer."""
        tries = _PATIENCE * size
        while len(self.sentences) < size and tries > 0:
            tries -= self.draw()
        return tuple(self.sentences)


def _vocabulary(sentences: Sequence[Sentence]) -> frozenset[str]:
    """Every word of both languages in these sentences."""
    return frozenset(word for sentence in sentences for word in _types(f"{sentence.source.lower()} {sentence.target}"))


def generate(pairs: int = 20_000, seed: int = 0) -> Phrasebook:
    """The corpus: `pairs` sentences to train on, and about 500 each (fewer for small corpora) of dev, test and long.

    Dev and test hold combinations of words that train never has, though it has all the words. The same `pairs` and
    `seed` give the same sentences everywhere.
    """
    if pairs < 1:
        raise DataError(f"phrasebook: {pairs} pairs asked for; ask for at least 1")
    if pairs > LIMIT:
        raise DataError(f"phrasebook: {pairs:,} pairs asked for, the grammar makes at most {LIMIT:,}; ask for fewer")
    train = _Split("train", seed).fill(pairs)
    if len(train) < pairs:
        raise DataError(f"phrasebook: the grammar ran dry at {len(train):,} of {pairs:,} pairs; ask for fewer")
    known = _vocabulary(train)
    size = min(500, pairs // 20)
    dev, test, long = (_Split(name, seed, known).fill(size) for name in SPLITS[1:])
    return Phrasebook(train, dev, test, long)


def write(directory: Path, pairs: int = 20_000, seed: int = 0) -> Phrasebook:
    """Write `train.en`, `train.ko`, `train.gold` and the same for dev, test and long, with a README.txt."""
    book = generate(pairs, seed)
    directory.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        sentences: tuple[Sentence, ...] = getattr(book, split)
        _write_lines(directory / f"{split}.en", [sentence.source for sentence in sentences])
        _write_lines(directory / f"{split}.ko", [sentence.target for sentence in sentences])
        _write_lines(directory / f"{split}.gold", [sentence.gold for sentence in sentences])
    _write_lines(directory / "README.txt", _readme(book, pairs, seed))
    return book


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    """UTF-8 with a newline after every line, on every system."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _readme(book: Phrasebook, pairs: int, seed: int) -> list[str]:
    """What the files are, for whoever finds them."""
    counts = [f"  {split:<6}{len(getattr(book, split)):>8,} pairs" for split in SPLITS]
    return [
        "English-Korean sentence pairs with gold word alignments, written by softgaze's own grammar.",
        "",
        f"pairs asked for: {pairs}   seed: {seed}   (the same numbers give the same files)",
        *counts,
        "",
        "SPLIT.en and SPLIT.ko hold one sentence a line; line n of one translates line n of the other.",
        "SPLIT.gold holds the word alignment of the same line: links separated by spaces, i-j where English word i",
        "surely means Korean word j, ipj where it may. Words are what stands between spaces, counted from 0,",
        "punctuation attached; the English index comes first.",
        "",
        "dev and test hold combinations of words (eat bread, big dog) that train never has, of words it has.",
        f"train, dev and test have sentences of up to {LONGEST} English words; long {LONG.start} to {LONG.stop - 1}.",
    ]


# The words the grammar itself adds to those of the lexicon.
_FUNCTION_WORDS = (
    "a an the my our this that i we you me it there no not and but with to by in at on of cups pairs "
    "am is are was were do does did will can cannot must what who where when why "
    "while before after because if have has had become became new"
)


def words() -> tuple[str, ...]:
    """Every English word the grammar can write, in lower case, sorted; inflected forms count each."""
    verbs = [(verb.english, verb.past) for verb in (*_OBJECTS, *_LIKED, *_WHERE)]
    verbs += [(english, past) for english, past, *_ in lexicon.WEATHER if past]
    texts = [_FUNCTION_WORDS, *(form for verb in verbs for form in verb)]
    texts += [third_person(english) for english, _ in verbs if english not in lexicon.RARE]
    texts += [row[0] for row in lexicon.WEATHER]
    texts += [person.english for person in (*lexicon.NAMES, *lexicon.FAMILY)]
    texts += [form for one in (*lexicon.ROLES, *lexicon.OTHERS) for form in (one.english, plural(one.english))]
    texts += [noun.english for noun in lexicon.NOUNS] + [plural(noun.english) for noun in _COUNTED]
    texts += [place.english for place in lexicon.PLACES]
    adjectives = (*lexicon.TRAITS, *lexicon.STATES, *lexicon.QUALITIES, *lexicon.SITUATIONS)
    texts += [adjective.english for adjective in adjectives]
    fixed = (*lexicon.TIMES, *lexicon.STATE_TIMES, *lexicon.FREQUENCIES, *lexicon.MANNERS, *lexicon.DEGREES)
    texts += [phrase.english for phrase in fixed]
    texts += [row[0] for row in (*lexicon.VEHICLES, *lexicon.POSITIONS, *lexicon.NUMBERS)]
    texts += [tool for _, _, tool, _ in lexicon.TOOLS]
    return tuple(sorted({word.lower() for text in texts for word in text.split()}))

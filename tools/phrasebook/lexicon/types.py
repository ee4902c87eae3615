"""Rows of the lexicon and how they are parsed: kinds in one string, the irregular class after the Korean."""

from functools import cache
from typing import NamedTuple

from tools.phrasebook.korean import IRREGULAR, Predicate


class Person(NamedTuple):
    """A person: a name ("Minsu"), a role ("student") or a relative ("son", always mine)."""

    english: str
    korean: str


class Noun(NamedTuple):
    """A thing, an animal or a school subject, its kinds, and how English and Korean count it.

    `number` is "count", "mass" (bread), "plural" (shoes), "the" (always definite: the piano) or "bare" (soccer).
    """

    english: str
    korean: str
    kinds: tuple[str, ...]
    number: str
    counter: str


class Place(NamedTuple):
    """A place with its English preposition and article, and the kinds of things done there."""

    preposition: str
    article: str
    english: str
    korean: str
    kinds: tuple[str, ...]


class Verb(NamedTuple):
    """An English verb with its Korean predicate, its objects, locations and manners."""

    english: str
    past: str
    korean: str
    irregular: str
    objects: tuple[str, ...]
    places: tuple[str, ...]
    manners: tuple[str, ...]


class Adjective(NamedTuple):
    """An adjective and the kinds it describes."""

    english: str
    korean: str
    irregular: str
    kinds: tuple[str, ...]


class Fixed(NamedTuple):
    """A phrase translated as a whole, with its word links in the format of the gold files."""

    english: str
    korean: str
    gold: str
    tags: tuple[str, ...]


def nouns(kinds: str, number: str, *rows: str) -> tuple[Noun, ...]:
    """Nouns that share their kinds: each row is "english, korean, counter, further kinds", the last two optional."""
    found = []
    for row in rows:
        english, korean, counter, more = ([cell.strip() for cell in row.split(",")] + ["", ""])[:4]
        found.append(Noun(english, korean, tuple(f"{kinds} {more}".split()), number, counter))
    return tuple(found)


def verb(english: str, past: str, korean: str, objects: str = "", places: str = "", manners: str = "") -> Verb:
    """A row of a verb table; the irregular class stands after the Korean verb: "듣다 ㄷ"."""
    split = (tuple(cell.split()) for cell in (objects, places, manners))
    return Verb(english, past, *_classed(korean), *split)


def adjective(english: str, korean: str, kinds: str) -> Adjective:
    """A row of an adjective table; the irregular class stands after the Korean adjective: "무겁다 ㅂ"."""
    return Adjective(english, *_classed(korean), tuple(kinds.split()))


def _classed(korean: str) -> tuple[str, str]:
    """The dictionary form and its irregular class, "" where none is written behind it."""
    stem, _, irregular = korean.rpartition(" ")
    return (stem, irregular) if irregular in IRREGULAR else (korean, "")


@cache
def predicate_of(word: Verb | Adjective) -> Predicate:
    """The Korean predicate of a verb or an adjective."""
    return Predicate.of(word.korean, word.irregular, adjective=isinstance(word, Adjective))

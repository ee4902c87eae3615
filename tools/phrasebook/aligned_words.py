"""Words with the concepts they express, and phrases of such words in both languages. A concept is a number."""

from typing import NamedTuple

from tools.phrasebook.korean import attach

Concepts = tuple[int, ...]


class Word(NamedTuple):
    """A word and the concepts it expresses; words that share a concept are linked.

    The link is sure if the concept is `sure` on both sides, otherwise possible.
    """

    text: str
    sure: Concepts = ()
    possible: Concepts = ()

    def also(self, sure: Concepts = (), possible: Concepts = ()) -> "Word":
        """Return the word with further concepts."""
        return Word(self.text, self.sure + sure, self.possible + possible)


def possible_word(text: str, *concepts: int) -> Word:
    """Return a word with possible concepts only: an auxiliary, a preposition."""
    return Word(text, (), concepts)


def link_unlinked(words: list[Word], concepts: Concepts) -> list[Word]:
    """Give words without any concept these possible ones."""
    return [word if word.sure or word.possible else word.also(possible=concepts) for word in words]


def comma(words: list[Word]) -> list[Word]:
    """Append a comma to the last word."""
    return [*words[:-1], words[-1]._replace(text=words[-1].text + ",")]


class Phrase(NamedTuple):
    """A phrase in both languages; its Korean particle is added later."""

    english: list[Word]
    korean: list[Word]

    def with_particle(self, particle: str) -> "Phrase":
        """Add a particle in the form that fits the last sound."""
        *before, last = self.korean
        return Phrase(self.english, [*before, last._replace(text=attach(last.text, particle))])

    def after(self, preposition: str) -> "Phrase":
        """Prepend an English preposition, linked as possible to the last Korean word."""
        last = self.korean[-1]
        words = [possible_word(word, *last.sure, *last.possible) for word in preposition.split()]
        return Phrase([*words, *self.english], self.korean)


NOTHING = Phrase([], [])


def concatenate(*phrases: Phrase) -> Phrase:
    """Concatenate phrases in both languages."""
    return Phrase(
        [word for phrase in phrases for word in phrase.english], [word for phrase in phrases for word in phrase.korean]
    )


def link_articles(*phrases: Phrase) -> Phrase:
    """Concatenate phrases and link their articles as possible to the last Korean word."""
    english, korean = concatenate(*phrases)
    return Phrase(link_unlinked(english, korean[-1].sure), korean)


def bare(*english: str) -> Phrase:
    """Return English words without a Korean counterpart."""
    return Phrase([Word(word) for word in english], [])

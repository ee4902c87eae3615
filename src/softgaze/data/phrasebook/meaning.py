"""Words that know what they mean, and phrases of them in both languages side by side.

An idea is a number. Nothing here knows a word or a rule of either language, but that Korean phrases end in particles.
"""

from typing import NamedTuple

from softgaze.data.phrasebook.korean import attach

Ideas = tuple[int, ...]


class Word(NamedTuple):
    """A word of either language and the ideas it stands for; words that share an idea are linked.

    The link is sure where the idea is `sure` on both sides, and possible otherwise.
    """

    text: str
    sure: Ideas = ()
    possible: Ideas = ()

    def also(self, sure: Ideas = (), possible: Ideas = ()) -> "Word":
        """The word with further ideas."""
        return Word(self.text, self.sure + sure, self.possible + possible)


def hinting(text: str, *ideas: int) -> Word:
    """A word that only may stand for these ideas: an auxiliary, a preposition."""
    return Word(text, (), ideas)


def covered(words: list[Word], ideas: Ideas) -> list[Word]:
    """The words, of which those without any idea may stand for these: nothing else says them."""
    return [word if word.sure or word.possible else word.also(possible=ideas) for word in words]


def comma(words: list[Word]) -> list[Word]:
    """The words with a comma after the last."""
    return [*words[:-1], words[-1]._replace(text=words[-1].text + ",")]


class Phrase(NamedTuple):
    """A phrase in both languages; the last Korean word still waits for its particle."""

    english: list[Word]
    korean: list[Word]

    def with_particle(self, particle: str) -> "Phrase":
        """The phrase with a particle in the form that fits its last sound."""
        *before, last = self.korean
        return Phrase(self.english, [*before, last._replace(text=attach(last.text, particle))])

    def after(self, preposition: str) -> "Phrase":
        """The phrase with an English preposition, which the particle of the last Korean word may translate."""
        last = self.korean[-1]
        words = [hinting(word, *last.sure, *last.possible) for word in preposition.split()]
        return Phrase([*words, *self.english], self.korean)


NOTHING = Phrase([], [])


def joined(*phrases: Phrase) -> Phrase:
    """Phrases one after the other, in both languages."""
    return Phrase(
        [word for phrase in phrases for word in phrase.english], [word for phrase in phrases for word in phrase.korean]
    )


def explained(*phrases: Phrase) -> Phrase:
    """The phrases joined, their articles linked, as possible, to the last Korean word: there is no other for them."""
    english, korean = joined(*phrases)
    return Phrase(covered(english, korean[-1].sure), korean)


def bare(*english: str) -> Phrase:
    """English words that Korean has no word for."""
    return Phrase([Word(word) for word in english], [])

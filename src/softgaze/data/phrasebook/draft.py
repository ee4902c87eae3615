"""One sentence in the making: the dice, the ideas numbered so far, the people named and the combinations used."""

import random
from collections.abc import Sequence
from itertools import count
from typing import TypeVar

from softgaze.data.phrasebook.held_out import SPARSE, side
from softgaze.data.phrasebook.lexicon.rows import Fixed
from softgaze.data.phrasebook.meaning import Phrase, Word

Item = TypeVar("Item")


class Draft:
    """What the parts of one sentence share while they are made. Every part takes it first, and rolls its dice."""

    def __init__(self, dice: random.Random, split: str = "train") -> None:
        self.dice = dice
        self.foreign = {"dev", "test"} - {split}
        self.ideas = count()
        self.combinations: list[str] = []
        self.heads: list[str] = []

    def idea(self) -> int:
        """A new idea, for words to share."""
        return next(self.ideas)

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items, all equally likely."""
        return self.dice.choice(items)

    def chance(self, share: float) -> bool:
        """True in so many cases of one."""
        return self.dice.random() < share

    def combine(self, first: str, second: str) -> None:
        """Note two words that stand together, for the splits."""
        if first not in SPARSE:
            self.combinations.append(f"{first} {second}")

    def spoils(self, since: int) -> bool:
        """Whether a combination noted since then is held out for another split."""
        return any(side(pair) in self.foreign for pair in self.combinations[since:])

    def words(self, english: str, korean: str) -> Phrase:
        """Words that mean each other, all sure."""
        idea = self.idea()
        return Phrase(
            [Word(word, (idea,)) for word in english.split()], [Word(word, (idea,)) for word in korean.split()]
        )

    def fixed(self, phrase: Fixed) -> Phrase:
        """A phrase of the lexicon with the links it comes with."""
        english = [Word(word) for word in phrase.english.split()]
        korean = [Word(word) for word in phrase.korean.split()]
        for link in phrase.gold.split():
            idea = (self.idea(),)
            source, target = (int(index) for index in link.replace("p", "-").split("-"))
            english[source] = english[source].also(possible=idea) if "p" in link else english[source].also(sure=idea)
            korean[target] = korean[target].also(sure=idea)
        return Phrase(english, korean)

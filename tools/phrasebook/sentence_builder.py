"""The state of one sentence while it is generated: random numbers, concepts, persons and combinations so far."""

import random
from collections.abc import Sequence
from itertools import count
from typing import TypeVar

from tools.phrasebook.aligned_words import Phrase, Word
from tools.phrasebook.held_out import SPARSE, split_of
from tools.phrasebook.lexicon.types import Fixed

Item = TypeVar("Item")


class SentenceBuilder:
    """The state that all parts of a sentence share; every generating function takes it as first argument."""

    def __init__(self, rng: random.Random, split: str = "train") -> None:
        self.rng = rng
        self.foreign = {"dev", "test"} - {split}
        self.concepts = count()
        self.combinations: list[str] = []
        self.heads: list[str] = []

    def concept(self) -> int:
        """Return a new concept; words that share a concept are linked."""
        return next(self.concepts)

    def pick(self, items: Sequence[Item]) -> Item:
        """Return a random item."""
        return self.rng.choice(items)

    def chance(self, share: float) -> bool:
        """Return True with a probability of `share`."""
        return self.rng.random() < share

    def combine(self, first: str, second: str) -> None:
        """Record a combination of words, which determines the split."""
        if first not in SPARSE:
            self.combinations.append(f"{first} {second}")

    def uses_other_split(self, since: int) -> bool:
        """Return whether a combination from index `since` on is held out for another split."""
        return any(split_of(pair) in self.foreign for pair in self.combinations[since:])

    def words(self, english: str, korean: str) -> Phrase:
        """Return words that are translations of each other, with sure links."""
        concept = self.concept()
        return Phrase(
            [Word(word, (concept,)) for word in english.split()], [Word(word, (concept,)) for word in korean.split()]
        )

    def fixed(self, phrase: Fixed) -> Phrase:
        """Return a phrase of the lexicon with its own links."""
        english = [Word(word) for word in phrase.english.split()]
        korean = [Word(word) for word in phrase.korean.split()]
        for link in phrase.gold.split():
            concept = (self.concept(),)
            source, target = (int(index) for index in link.replace("p", "-").split("-"))
            english[source] = (
                english[source].also(possible=concept) if "p" in link else english[source].also(sure=concept)
            )
            korean[target] = korean[target].also(sure=concept)
        return Phrase(english, korean)

"""The corpus in its parts: dev and test hold combinations of words that train never has, of words it has."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from softgaze.data.phrasebook.draft import Draft
from softgaze.data.phrasebook.held_out import belongs
from softgaze.data.phrasebook.sentences import Sentence, wish, wish_within, written_down
from softgaze.errors import DataError

# The grammar could write more than this; nobody has needed it, and every split stays easy to fill.
LIMIT = 500_000
SPLITS = ("train", "dev", "test", "long")

# How many drafts of one kind are thrown away before another kind is wished for.
_PATIENCE = 100


@dataclass(frozen=True, slots=True)
class Phrasebook:
    """The corpus in its four parts; `long` has sentences longer than any of the others."""

    train: tuple[Sentence, ...]
    dev: tuple[Sentence, ...]
    test: tuple[Sentence, ...]
    long: tuple[Sentence, ...]


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


def dialled(train: Sequence[Sentence], lengths: range, size: int, seed: int = 0) -> tuple[Sentence, ...]:
    """`size` sentences of so many English words, of words `train` has, in combinations it never has, as test does.

    So it is for every length, also beyond train's: sentences of two lengths differ in nothing else that was drawn.
    """
    found = _Split("test", seed, _vocabulary(train), lengths).fill(size)
    if len(found) < size:
        span = f"{lengths.start} to {lengths.stop - 1}"
        raise DataError(f"phrasebook: the grammar ran dry at {len(found)} of {size} sentences of {span} words")
    return found


class _Split:
    """A split being filled with distinct sentences; what may be in it depends on what was drawn before."""

    def __init__(self, name: str, seed: int, known: frozenset[str] | None = None, lengths: range | None = None) -> None:
        self.name, self.known, self.lengths = name, known, lengths
        span = f" {lengths.start}-{lengths.stop}" if lengths else ""
        self.dice = random.Random(f"softgaze phrasebook {seed} {name}{span}")
        self.seen: set[str] = set()
        self.sentences: list[Sentence] = []

    def fill(self, size: int) -> tuple[Sentence, ...]:
        """Draw until there are `size` sentences, or fewer where the grammar is not asked to search any longer."""
        tries = _PATIENCE * size
        while len(self.sentences) < size and tries > 0:
            tries -= self.draw()
        return tuple(self.sentences)

    def draw(self) -> int:
        """Try for one more sentence of the kind wished for next; how many tries it took, given up after some."""
        wanted = wish_within(self.dice, self.lengths) if self.lengths else wish(self.dice, self.name)
        for tries in range(1, _PATIENCE + 1):
            draft = Draft(self.dice, self.name)
            spoken = wanted.make(draft)
            if spoken is None or not belongs(draft.combinations, self.name):
                continue
            sentence = written_down(draft, spoken, wanted.kind)
            if self.accepts(sentence):
                self.seen.add(sentence.source)
                self.sentences.append(sentence)
                return tries
        return _PATIENCE

    def accepts(self, sentence: Sentence) -> bool:
        if sentence.source in self.seen or (self.lengths and len(sentence.source.split()) not in self.lengths):
            return False
        # What is long may end a known verb in a way train did not show: sixty known words are hard to come by.
        text = sentence.source.lower() + (f" {sentence.target}" if self.name != "long" else "")
        return self.known is None or self.known.issuperset(_types(text))


def _vocabulary(sentences: Sequence[Sentence]) -> frozenset[str]:
    """Every word of both languages in these sentences."""
    return frozenset(word for sentence in sentences for word in _types(f"{sentence.source.lower()} {sentence.target}"))


def _types(line: str) -> list[str]:
    """The words of a line, without punctuation."""
    return [word.strip(".,?") for word in line.split()]

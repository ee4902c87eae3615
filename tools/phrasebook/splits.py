"""The splits: dev and test contain word combinations that train lacks, built from words that train has."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from softgaze.errors import DataError
from tools.phrasebook.held_out import fits_split
from tools.phrasebook.sentence_builder import SentenceBuilder
from tools.phrasebook.sentences import Sentence, choose_construction, choose_construction_of_length, render_sentence

# The grammar can generate more, but up to this size every split is filled quickly.
LIMIT = 500_000
SPLITS = ("train", "dev", "test", "long")

# Rejected sentences of one construction before another construction is chosen.
_MAX_TRIES = 100


@dataclass(frozen=True, slots=True)
class Phrasebook:
    """The four splits; the sentences of `long` are longer than all others."""

    train: tuple[Sentence, ...]
    dev: tuple[Sentence, ...]
    test: tuple[Sentence, ...]
    long: tuple[Sentence, ...]


def generate(pairs: int = 20_000, seed: int = 0) -> Phrasebook:
    """Generate `pairs` training sentences, and up to 500 each of dev, test and long."""
    if pairs < 1:
        raise DataError(f"phrasebook: {pairs} pairs requested; request at least 1")
    if pairs > LIMIT:
        raise DataError(
            f"phrasebook: {pairs:,} pairs requested, the grammar generates at most {LIMIT:,}; request fewer"
        )
    train = _Split("train", seed).fill(pairs)
    if len(train) < pairs:
        raise DataError(f"phrasebook: the grammar was exhausted at {len(train):,} of {pairs:,} pairs; request fewer")
    known = _vocabulary(train)
    size = min(500, pairs // 20)
    dev, test, long = (_Split(name, seed, known).fill(size) for name in SPLITS[1:])
    return Phrasebook(train, dev, test, long)


def generate_with_lengths(train: Sequence[Sentence], lengths: range, size: int, seed: int = 0) -> tuple[Sentence, ...]:
    """Generate `size` test sentences with these numbers of English words, also beyond those of `train`.

    All follow the rules of the test split, so sentences of different lengths differ in nothing else.
    """
    found = _Split("test", seed, _vocabulary(train), lengths).fill(size)
    if len(found) < size:
        span = f"{lengths.start} to {lengths.stop - 1}"
        raise DataError(f"phrasebook: the grammar was exhausted at {len(found)} of {size} sentences of {span} words")
    return found


class _Split:
    """A split while it is filled with distinct sentences."""

    def __init__(self, name: str, seed: int, known: frozenset[str] | None = None, lengths: range | None = None) -> None:
        self.name, self.known, self.lengths = name, known, lengths
        span = f" {lengths.start}-{lengths.stop}" if lengths else ""
        self.rng = random.Random(f"softgaze phrasebook {seed} {name}{span}")
        self.seen: set[str] = set()
        self.sentences: list[Sentence] = []

    def fill(self, size: int) -> tuple[Sentence, ...]:
        """Generate `size` sentences, or fewer after too many tries."""
        tries = _MAX_TRIES * size
        while len(self.sentences) < size and tries > 0:
            tries -= self.draw()
        return tuple(self.sentences)

    def draw(self) -> int:
        """Try to add one sentence and return the number of tries."""
        if self.lengths:
            wanted = choose_construction_of_length(self.rng, self.lengths)
        else:
            wanted = choose_construction(self.rng, self.name)
        for tries in range(1, _MAX_TRIES + 1):
            builder = SentenceBuilder(self.rng, self.name)
            make_sentence = wanted.make(builder)
            if make_sentence is None or not fits_split(builder.combinations, self.name):
                continue
            sentence = render_sentence(builder, make_sentence, wanted.kind)
            if self.accepts(sentence):
                self.seen.add(sentence.source)
                self.sentences.append(sentence)
                return tries
        return _MAX_TRIES

    def accepts(self, sentence: Sentence) -> bool:
        if sentence.source in self.seen or (self.lengths and len(sentence.source.split()) not in self.lengths):
            return False
        # Long sentences may have verb endings that train lacks: sixty known words are rare.
        text = sentence.source.lower() + (f" {sentence.target}" if self.name != "long" else "")
        return self.known is None or self.known.issuperset(word_types(text))


def _vocabulary(sentences: Sequence[Sentence]) -> frozenset[str]:
    """Return the words of both languages."""
    return frozenset(
        word for sentence in sentences for word in word_types(f"{sentence.source.lower()} {sentence.target}")
    )


def word_types(line: str) -> list[str]:
    """Return the words of a line without punctuation."""
    return [word.strip(".,?") for word in line.split()]

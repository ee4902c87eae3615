"""What really mattered: how much less likely each output word becomes when a source word is left out.

A word is left out without the punctuation attached to it, which stays; nor does an output word answer for its own.
All left-out variants of all sentences are batched together, so the price is about one pass for each source word.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy

from softgaze.bundle import Tokenizers
from softgaze.gaze.honesty import UNKNOWN
from softgaze.gaze.passages import Eyes, Passage, Spoken, eyes_of
from softgaze.gaze.recording import Matrix
from softgaze.gaze.words import ATTACHED, NO_WORD
from softgaze.symbols import END

if TYPE_CHECKING:
    from softgaze.models.base import Seq2Seq


def influences(model: "Seq2Seq | Eyes", tokenizers: Tokenizers, passages: Sequence[Passage]) -> list[Matrix]:
    """For each passage (target words, source words): the fall of an output word's log-probability, in nats.

    Not a number where a word could not matter: it is in another part of the text, or has no piece of its own.
    """
    return [influence[:-1] for influence in influences_and_end(model, tokenizers, passages)]


def influences_and_end(model: "Seq2Seq | Eyes", tokenizers: Tokenizers, passages: Sequence[Passage]) -> list[Matrix]:
    """The same with one more row, of END: an output that stops too soon becomes likelier without what it leaves out."""
    outlines = [Outline(passage, tokenizers) for passage in passages]
    variants = [variant for outline in outlines for variant in outline.variants()]
    found = iter(log_probabilities(model, tokenizers, variants))
    return [outline.influence(found) for outline in outlines]


class Outline:
    """Which words stand in which part of a passage, and what to ask of the model."""

    def __init__(self, passage: Passage, tokenizers: Tokenizers) -> None:
        self.parts, self.reader = passage.parts, tokenizers.source
        source, target = passage.sides(tokenizers)
        self.shape = len(target.words) + 1, len(source.words)  # the last row is that of END, in whatever part
        self.source_words = list(apart(source.core_of))
        self.target_words = [[*words, len(target.words)] for words in apart(target.core_of)]

    def variants(self) -> Iterator[Spoken]:
        """Each part as it is, then without each of its words."""
        for part, words in zip(self.parts, self.source_words, strict=True):
            whole = part._replace(target=[*part.target, END])
            yield whole
            for word in once(words):
                gone = [place for place, own in enumerate(words) if own == word]
                source = self.reader.without(part.source, gone)
                yield whole._replace(source=source, edits=tuple(edit.without(gone) for edit in part.edits))

    def influence(self, found: Iterator[Matrix]) -> Matrix:
        """From the log-probabilities of the variants, in their order."""
        influence = numpy.full(self.shape, UNKNOWN)
        for sources, targets in zip(self.source_words, self.target_words, strict=True):
            whole, words, rows = next(found), once(sources), once(targets)
            spoken = numpy.array(targets) != ATTACHED
            for word, without in zip(words, islice(found, len(words)), strict=True):
                lost = numpy.bincount(numpy.array(targets)[spoken], (whole - without)[spoken], minlength=self.shape[0])
                known = numpy.nan_to_num(influence[rows, word])  # a word cut in two mattered in both parts
                influence[rows, word] = known + lost[rows]
        return influence


def apart(word_of: Sequence[int]) -> Iterator[list[int]]:
    """The words of each part's pieces; an END mark closes a part, and so does the end of what has no marks."""
    part: list[int] = []
    for word in word_of:
        if word == NO_WORD:
            yield part
            part = []
        else:
            part.append(word)
    if part:
        yield part


def once(words: Sequence[int]) -> list[int]:
    """The words of some pieces, each once and in order."""
    return [word for word in dict.fromkeys(words) if word != ATTACHED]


def log_probabilities(model: "Seq2Seq | Eyes", tokenizers: Tokenizers, parts: Sequence[Spoken]) -> list[Matrix]:
    """Of each token of each target, in order; of END only where it is given."""
    return eyes_of(model, tokenizers).log_probabilities(parts)

"""Vectors for words and lines, alike where words occur in the same pairs or are spelled the same.

Knows words as hashes; no dictionary, and nothing about how likely two lines are to belong together.
"""

from typing import NamedTuple

import numpy as np

from softgaze.data.doctor.characters import Array
from softgaze.data.doctor.lines import Lines

_WIDTH, _ANCHOR_WIDTH, _NUMBER_WIDTH = 64, 64, 16
_VOCABULARY = 30_000


def overlap(rows: int, others: int, shift: int) -> tuple[slice, slice]:
    """Which of `rows` have a partner `shift` further on among `others`, and which are these partners."""
    first, last = max(0, -shift), max(0, -shift, min(rows, others - shift))
    return slice(first, last), slice(first + shift, last + shift)


class Piece(NamedTuple):
    """Some consecutive rows kept for learning, with the offset at which their targets are believed to stand."""

    fold: int  # which half of the corpus they belong to
    source: Lines
    reached: Lines  # the targets, and some before and after
    left: int  # how many before
    offsets: Array  # all that may be
    offset: int

    def spans(self, offset: int) -> tuple[slice, slice]:
        """Which source lines have a target line at `offset`, and which these are among `reached`."""
        return overlap(len(self.source.length), len(self.reached.length), self.left + offset)

    def paired(self) -> tuple[Lines, Lines]:
        """Both sides, row by row, at the believed offset."""
        here, there = self.spans(self.offset)
        return self.source.cut(here), self.reached.cut(there)


class Lexicon:
    """Vectors for the words of both sides, near each other where words occur in the same pairs.

    There are two sets, each learned from one half of the sample, so that lines are judged by words of other lines.
    """

    def __init__(self, sample: list[Piece]) -> None:
        folds = [[piece.paired() for piece in sample if piece.fold == fold] for fold in (0, 1)]
        self.pairs = sum(len(pair[0].length) for pairs in folds for pair in pairs)
        words = [self._words([pair[side] for pairs in folds for pair in pairs]) for side in (0, 1)]
        self.vocabulary, self.rarity = [word[0] for word in words], [word[1] for word in words]
        self.vectors = [[self._learn([pair[side] for pair in pairs], side) for side in (0, 1)] for pairs in folds]

    def _words(self, pieces: list[Lines]) -> tuple[Array, Array]:
        words, counts = np.unique(np.concatenate([lines.token for lines in pieces]), return_counts=True)
        keep = (counts >= 3) & (counts < 0.3 * self.pairs)
        least = np.sort(counts[keep])[-_VOCABULARY:][:1]
        keep &= counts >= (least[0] if len(least) else 1)
        return words[keep], np.log(self.pairs / counts[keep])

    def _learn(self, pieces: list[Lines], side: int) -> Array:
        """Sum, for each word, the random codes of the pairs it occurs in; less what any word of its count would get."""
        sizes = [len(lines.length) for lines in pieces]
        firsts, pairs, words = np.cumsum([0, *sizes]), sum(sizes), len(self.vocabulary[side])
        chance = np.random.default_rng(0)  # the same codes for both sides: that is what brings them together
        places, signs = chance.integers(0, _WIDTH, (pairs, 4)), chance.choice(np.array([-1.0, 1.0]), (pairs, 4))
        vectors, counts = np.zeros(words * _WIDTH), np.zeros(words)
        for start in range(0, len(pieces), 32):  # a few at a time: neither one by one nor all in memory
            found = [(self.look_up(lines, side), lines) for lines in pieces[start : start + 32]]
            word = np.concatenate([number for (_, number), _ in found])
            rows = [
                lines.token_line[known] + first
                for ((known, _), lines), first in zip(found, firsts[start:], strict=False)
            ]
            row = np.concatenate(rows)
            flat = (word[:, None] * _WIDTH + places[row]).ravel()
            vectors += np.bincount(flat, signs[row].ravel(), minlength=len(vectors))
            counts += np.bincount(word, minlength=words)
        everything = np.bincount(places.ravel(), signs.ravel(), minlength=_WIDTH)
        table = vectors.reshape(words, _WIDTH) - counts[:, None] / max(1, pairs) * everything
        return np.asarray(_unit(table) * self.rarity[side][:, None], np.float32)

    def look_up(self, lines: Lines, side: int) -> tuple[Array, Array]:
        """Which tokens are in the vocabulary of a side, and their numbers."""
        table = self.vocabulary[side]
        if not len(table):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        place = np.minimum(np.searchsorted(table, lines.token), len(table) - 1)
        known = np.flatnonzero(table[place] == lines.token)
        return known, place[known]

    def embed(self, lines: Lines, side: int, fold: int) -> Array:
        """Give each line the sum of its words' vectors, of length one; learned from the half that is not `fold`."""
        known, word = self.look_up(lines, side)
        total = np.zeros((len(lines.length), _WIDTH), np.float32)
        if len(known):
            owner = lines.token_line[known]
            firsts = np.flatnonzero(np.diff(owner, prepend=-1))
            total[owner[firsts]] = np.add.reduceat(self.vectors[1 - fold][side][word], firsts, axis=0)
        return _unit(total)


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.maximum(1e-9, np.linalg.norm(rows, axis=1, keepdims=True)))


def _hashed(tokens: Array, lines: Array, count: int, width: int) -> Array:
    """Give each line a vector from its tokens' hashes alone: equal tokens, equal entries."""
    place, sign = (tokens >> np.uint64(40)) % np.uint64(width), 1.0 - 2.0 * ((tokens >> np.uint64(63)) > 0)
    flat = lines * width + place.astype(np.int64)
    return _unit(np.bincount(flat, sign, minlength=count * width).reshape(count, width).astype(np.float32))


class Clues(NamedTuple):
    """All that is compared between a source line and a target line, a row each."""

    meaning: Array  # unit vectors from the lexicon
    anchors: Array  # unit vectors from the words as spelled
    numbers: Array  # unit vectors from the numbers as spelled, zero without any
    length: Array
    ending: Array

    def cut(self, rows: slice) -> "Clues":
        """Only some rows."""
        return Clues(*(values[rows] for values in self))


def clues_of(lines: Lines, lexicon: Lexicon, side: int, fold: int) -> Clues:
    """Gather what is compared about some lines of one side."""
    count, number = len(lines.length), lines.token_is_number
    return Clues(
        lexicon.embed(lines, side, fold),
        _hashed(lines.token[~number], lines.token_line[~number], count, _ANCHOR_WIDTH),
        _hashed(lines.token[number], lines.token_line[number], count, _NUMBER_WIDTH),
        lines.length,
        lines.ending,
    )

"""Lines as arrays: many are measured at once; and the windows of consecutive rows in which a corpus is read.

Knows one line at a time; nothing about which lines belong together, nor what is normal.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from softgaze.data.corpus import Row
from softgaze.data.doctor.characters import (
    CONTROL,
    DIGIT,
    FIRST_SCRIPT,
    HANGUL,
    INVISIBLE,
    KINDS,
    MARK,
    SPACE,
    UNSPACED,
    Array,
    character_table,
)

_IS_WORD = np.zeros(KINDS, bool)  # kinds of which words are made
_IS_WORD[[DIGIT, MARK, *range(FIRST_SCRIPT, KINDS)]] = True
_IS_UNSPACED = np.zeros(KINDS, bool)
_IS_UNSPACED[UNSPACED] = True
_PREFIX = np.full(KINDS, 5)  # letters that stand for a word: a crude stem, for any language
_PREFIX[[HANGUL, *UNSPACED]] = 2  # syllables carry more than letters
_PREFIX[DIGIT] = 9


class Lines(NamedTuple):
    """Some lines of one side, measured. n lines, m tokens; a token is the hash of a word's beginning in lower case."""

    length: Array  # (n,) characters
    words: Array  # (n,)
    kinds: Array  # (n, KINDS) characters of each kind
    blank: Array  # (n,) nothing can be seen
    ending: Array  # (n,) class of the last punctuation, 0 for none
    token: Array  # (m,) uint64
    token_line: Array  # (m,) ascending
    token_is_number: Array  # (m,)

    @property
    def scripts(self) -> Array:
        """Letters of each script, (n, scripts)."""
        return self.kinds[:, FIRST_SCRIPT:]

    def cut(self, rows: slice) -> "Lines":
        """Only some lines."""
        low, high = np.searchsorted(self.token_line, [rows.start, rows.stop])
        length, words, kinds, blank, ending = (values[rows] for values in self[:5])
        token, token_line, is_number = (values[low:high] for values in self[5:])
        return Lines(length, words, kinds, blank, ending, token, token_line - rows.start, is_number)


def measure(lines: Sequence[str]) -> Lines:
    """Measure lines, all at once: one pass over their characters as an array."""
    count, length = len(lines), np.fromiter(map(len, lines), np.int64, len(lines))
    codes = np.frombuffer("".join(lines).encode("utf-32-le"), "<u4")
    kinds = character_table().kinds(codes)
    line = np.repeat(np.arange(count), length)
    opens = np.diff(line, prepend=-1) > 0  # the first character of each line
    solid = (kinds != SPACE) & (kinds != CONTROL)
    starts = solid & (opens | ~_before(solid))
    ending = np.zeros(count, np.uint8)
    ending[line[solid]] = character_table().ending[codes[solid]]  # the last character of a line is assigned last
    tokens, at = _tokens(codes, kinds, opens)
    counts = np.bincount(line * KINDS + kinds, minlength=count * KINDS).reshape(count, KINDS)
    return Lines(
        length,
        np.bincount(line[starts], minlength=count),
        counts,
        length == counts[:, [SPACE, CONTROL, INVISIBLE]].sum(axis=1),
        ending,
        tokens,
        line[at],
        kinds[at] == DIGIT,
    )


def _before(values: Array) -> Array:
    """Each position's predecessor; zero before the first."""
    shifted = np.zeros_like(values)
    shifted[1:] = values[:-1]
    return shifted


def _tokens(codes: Array, kinds: Array, opens: Array) -> tuple[Array, Array]:
    """Hash the beginning of each word (each pair of characters in scripts without spaces); and where they start."""
    word, last = _IS_WORD[kinds], _before(kinds)
    changes = (kinds != last) & (kinds != MARK) & (last != MARK)
    at = np.flatnonzero(word & (opens | ~_before(word) | changes | _IS_UNSPACED[kinds]))
    own, hashes = kinds[at], character_table().lower[codes[at]].astype(np.uint64)
    alive = np.arange(len(at))
    for step in range(1, int(_PREFIX.max())):
        position = at[alive] + step
        alive, position = alive[position < len(codes)], position[position < len(codes)]
        same = (kinds[position] == own[alive]) | (kinds[position] == MARK)
        goes_on = same & ~opens[position] & (_PREFIX[own[alive]] > step)
        alive, position = alive[goes_on], position[goes_on]
        hashes[alive] = hashes[alive] * np.uint64(1099511628211) + character_table().lower[codes[position]]
    return hashes * np.uint64(0x9E3779B97F4A7C15), at


class Window(NamedTuple):
    """Consecutive rows of one part; its targets reach `left` rows before and some rows after the sources."""

    start: int
    rows: list[Row]
    reached: list[str | None]
    left: int

    @property
    def sources(self) -> list[str]:
        """The text of the source side, empty where unreadable."""
        return [source or "" for source, _ in self.rows]

    @property
    def targets(self) -> list[str]:
        """The text of the target side, empty where unreadable."""
        return [target or "" for _, target in self.rows]


def windows(rows: Iterator[Row], size: int, reach: int) -> Iterator[Window]:
    """Cut rows into windows of `size`, whose targets reach `reach` rows further on both sides."""
    start, before, ahead = 0, list[Row](), list(islice(rows, size + reach))
    while ahead:
        now, ahead = ahead[:size], ahead[size:]
        ahead += islice(rows, size + reach - len(ahead))
        reached = [target for _, target in (*before, *now, *ahead[:reach])]
        yield Window(start, now, reached, len(before))
        start += len(now)
        before = (before + now)[-reach:] if reach else []

"""Lines as arrays: character classes, counts and word hashes of many lines at once; windows of consecutive rows."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softgaze.data.corpus import ScannedPair
from softgaze.data.language_id import UNSPACED_SCRIPTS

Array = NDArray[Any]

# --- character classes ------------------------------------------------------------------------------------------

OTHER, SPACE, DIGIT, MARK, CONTROL, INVISIBLE, PRIVATE, REPLACEMENT, METASPACE = range(9)
FIRST_SCRIPT, NUM_CLASSES, _UNSEEN = 9, 64, 255
SCRIPTS = re.findall(
    r"\w+",
    "Latin Greek Cyrillic Armenian Hebrew Arabic Syriac Thaana Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu "
    "Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Georgian Ethiopic Cherokee Khmer Mongolian Hangul Kana Han "
    "Bopomofo Yi Tifinagh Javanese Balinese",
)
SCRIPT_CLASS = {name.upper(): index for index, name in enumerate(SCRIPTS, FIRST_SCRIPT)}
HAN, KANA, HANGUL = (SCRIPT_CLASS[name] for name in ("HAN", "KANA", "HANGUL"))
SCRIPT_CLASS |= {"CJK": HAN, "IDEOGRAPHIC": HAN, "HIRAGANA": KANA, "KATAKANA": KANA}
_UNSPACED_CLASSES = [SCRIPT_CLASS[name] for name in UNSPACED_SCRIPTS]

_SPECIAL_CLASS = {"\t": SPACE, "\ufffd": REPLACEMENT, "▁": METASPACE, "\u2028": CONTROL, "\u2029": CONTROL}
# The two joiners shape letters and emoji: ordinary text in Persian, Hindi and chats.
_SPECIAL_CLASS |= {"\u200c": MARK, "\u200d": MARK}
_CATEGORY_CLASS = {"Cc": CONTROL, "Cf": INVISIBLE, "Co": PRIVATE, "Cn": PRIVATE, "Nd": DIGIT}
_FINAL_PUNCTUATION = {
    mark: index
    for index, marks in enumerate((".。．।۔", "?？؟", "!！", ":：", ",，、;；", ")）]」”\"'»"), 1)
    for mark in marks
}


def character_class(character: str) -> int:
    """Return the class of a character; for letters the script, by the first word of the Unicode name."""
    if character in _SPECIAL_CLASS:
        return _SPECIAL_CLASS[character]
    category = unicodedata.category(character)
    if category in _CATEGORY_CLASS:
        return _CATEGORY_CLASS[category]
    if category[0] in "LM":
        words = unicodedata.name(character, "").replace("-", " ").split(" ")
        while words[0] in ("FULLWIDTH", "HALFWIDTH"):
            words = words[1:]
        return SCRIPT_CLASS.get(words[0], MARK if category[0] == "M" else OTHER)
    return SPACE if character.isspace() else OTHER


class _CharacterTable:
    """Properties of code points, to index with arrays of text; filled when a character is first seen."""

    def __init__(self) -> None:
        self.classes = np.full(0x110000, _UNSEEN, np.uint8)
        self.lower = np.zeros(0x110000, np.uint32)
        self.final_punctuation = np.zeros(0x110000, np.uint8)
        for mark, index in _FINAL_PUNCTUATION.items():
            self.final_punctuation[ord(mark)] = index

    def lookup(self, codes: Array) -> Array:
        classes = self.classes[codes]
        unseen = classes == _UNSEEN
        if not unseen.any():
            return classes
        for code in np.unique(codes[unseen]).tolist():
            self.classes[code] = character_class(chr(code))
            self.lower[code] = ord(chr(code).lower()[0])
        return self.classes[codes]


_character_table = cache(_CharacterTable)


# --- lines ------------------------------------------------------------------------------------------------------

_IS_WORD = np.zeros(NUM_CLASSES, bool)
_IS_WORD[[DIGIT, MARK, *range(FIRST_SCRIPT, NUM_CLASSES)]] = True
_IS_UNSPACED = np.zeros(NUM_CLASSES, bool)
_IS_UNSPACED[_UNSPACED_CLASSES] = True
_PREFIX_LENGTH = np.full(NUM_CLASSES, 5)  # characters that identify a word: a crude stem for any language
_PREFIX_LENGTH[[HANGUL, *_UNSPACED_CLASSES]] = 2  # a syllable carries more information than a letter
_PREFIX_LENGTH[DIGIT] = 9


class Lines(NamedTuple):
    """Features of n lines of one side with m tokens; a token is the hash of a lower-cased word prefix."""

    length: Array  # (n,) characters
    words: Array  # (n,)
    class_counts: Array  # (n, NUM_CLASSES) characters of each class
    blank: Array  # (n,) without visible characters
    final_punctuation: Array  # (n,) class of the last character, 0 for none
    token: Array  # (m,) uint64
    token_line: Array  # (m,) ascending
    token_is_number: Array  # (m,)

    @property
    def scripts(self) -> Array:
        """Return the letters of each script (n, scripts)."""
        return self.class_counts[:, FIRST_SCRIPT:]

    def select(self, rows: slice) -> "Lines":
        low, high = np.searchsorted(self.token_line, [rows.start, rows.stop])
        length, words, class_counts, blank, final = (values[rows] for values in self[:5])
        token, token_line, is_number = (values[low:high] for values in self[5:])
        return Lines(length, words, class_counts, blank, final, token, token_line - rows.start, is_number)


def measure(lines: Sequence[str]) -> Lines:
    """Compute the features of lines in one pass over their characters."""
    count, length = len(lines), np.fromiter(map(len, lines), np.int64, len(lines))
    codes = np.frombuffer("".join(lines).encode("utf-32-le"), "<u4")
    classes = _character_table().lookup(codes)
    line = np.repeat(np.arange(count), length)
    starts_line = np.diff(line, prepend=-1) > 0
    solid = (classes != SPACE) & (classes != CONTROL)
    starts_word = solid & (starts_line | ~_previous(solid))
    final = np.zeros(count, np.uint8)
    final[line[solid]] = _character_table().final_punctuation[codes[solid]]  # the last assignment of a line wins
    tokens, at = _hash_tokens(codes, classes, starts_line)
    counts = np.bincount(line * NUM_CLASSES + classes, minlength=count * NUM_CLASSES).reshape(count, NUM_CLASSES)
    return Lines(
        length,
        np.bincount(line[starts_word], minlength=count),
        counts,
        length == counts[:, [SPACE, CONTROL, INVISIBLE]].sum(axis=1),
        final,
        tokens,
        line[at],
        classes[at] == DIGIT,
    )


def _previous(values: Array) -> Array:
    shifted = np.zeros_like(values)
    shifted[1:] = values[:-1]
    return shifted


def _hash_tokens(codes: Array, classes: Array, starts_line: Array) -> tuple[Array, Array]:
    """Hash the prefix of each word, in unspaced scripts each character with its successor; and return the starts."""
    is_word, previous = _IS_WORD[classes], _previous(classes)
    changes = (classes != previous) & (classes != MARK) & (previous != MARK)
    at = np.flatnonzero(is_word & (starts_line | ~_previous(is_word) | changes | _IS_UNSPACED[classes]))
    first_class, hashes = classes[at], _character_table().lower[codes[at]].astype(np.uint64)
    active = np.arange(len(at))
    for step in range(1, int(_PREFIX_LENGTH.max())):
        position = at[active] + step
        active, position = active[position < len(codes)], position[position < len(codes)]
        same = (classes[position] == first_class[active]) | (classes[position] == MARK)
        continues = same & ~starts_line[position] & (_PREFIX_LENGTH[first_class[active]] > step)
        active, position = active[continues], position[continues]
        hashes[active] = hashes[active] * np.uint64(1099511628211) + _character_table().lower[codes[position]]
    return hashes * np.uint64(0x9E3779B97F4A7C15), at


class Window(NamedTuple):
    """Consecutive rows of a corpus part, and their target lines with context on both sides."""

    start: int
    rows: list[ScannedPair]
    targets_in_context: list[str | None]
    left: int  # context lines before the first row

    @property
    def sources(self) -> list[str]:
        """Return the source lines, empty where unreadable."""
        return [source or "" for source, _ in self.rows]

    @property
    def targets(self) -> list[str]:
        """Return the target lines, empty where unreadable."""
        return [target or "" for _, target in self.rows]

    def measure(self) -> tuple[Lines, Lines]:
        """Return the features of the sources, and of the targets in context."""
        return measure(self.sources), measure([target or "" for target in self.targets_in_context])


def windows(rows: Iterator[ScannedPair], size: int, context: int) -> Iterator[Window]:
    """Split rows into windows of `size` rows with `context` target lines on both sides."""
    start, before, ahead = 0, list[ScannedPair](), list(islice(rows, size + context))
    while ahead:
        current, ahead = ahead[:size], ahead[size:]
        ahead += islice(rows, size + context - len(ahead))
        targets = [target for _, target in (*before, *current, *ahead[:context])]
        yield Window(start, current, targets, len(before))
        start += len(current)
        before = (before + current)[-context:] if context else []

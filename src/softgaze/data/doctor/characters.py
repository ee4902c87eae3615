"""What each character is (a space, a digit, a letter of which script), as tables to index with arrays of text.

Knows Unicode; nothing about lines, words, or which language anything is in.
"""

import re
import unicodedata
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

OTHER, SPACE, DIGIT, MARK, CONTROL, INVISIBLE, PRIVATE, REPLACEMENT, METASPACE = range(9)
FIRST_SCRIPT, KINDS, _UNSEEN = 9, 64, 255
SCRIPTS = re.findall(
    r"\w+",
    "Latin Greek Cyrillic Armenian Hebrew Arabic Syriac Thaana Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu "
    "Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Georgian Ethiopic Cherokee Khmer Mongolian Hangul Kana Han "
    "Bopomofo Yi Tifinagh Javanese Balinese",
)
SCRIPT_KIND = {name.upper(): kind for kind, name in enumerate(SCRIPTS, FIRST_SCRIPT)}
HAN, KANA, HANGUL = (SCRIPT_KIND[name] for name in ("HAN", "KANA", "HANGUL"))
SCRIPT_KIND |= {"CJK": HAN, "IDEOGRAPHIC": HAN, "HIRAGANA": KANA, "KATAKANA": KANA}
_ENDINGS = {
    mark: 1 + number
    for number, marks in enumerate((".。．।۔", "?？؟", "!！", ":：", ",，、;；", ")）]」”\"'»"))
    for mark in marks
}
UNSPACED = [HAN, KANA, *(SCRIPT_KIND[name] for name in ("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"))]


def _script_of(character: str) -> int:
    """Which script a letter belongs to, by the first word of its Unicode name; letters of no script are OTHER."""
    words = unicodedata.name(character, "").replace("-", " ").split(" ")
    while words[0] in ("FULLWIDTH", "HALFWIDTH"):
        words = words[1:]
    return SCRIPT_KIND.get(words[0], OTHER)


def kind_of(character: str) -> int:
    """What a character is, as one small number: a kind from above, or the script of a letter."""
    special = {"\t": SPACE, "\ufffd": REPLACEMENT, "▁": METASPACE, "\u2028": CONTROL, "\u2029": CONTROL}
    # The two joiners shape letters and emoji: ordinary text in Persian, Hindi and any chat.
    special |= {"\u200c": MARK, "\u200d": MARK}
    if character in special:
        return special[character]
    category = unicodedata.category(character)
    by_category = {"Cc": CONTROL, "Cf": INVISIBLE, "Co": PRIVATE, "Cn": PRIVATE, "Nd": DIGIT}
    if category in by_category:
        return by_category[category]
    if category[0] in "LM":
        return _script_of(character) or (MARK if category[0] == "M" else OTHER)
    return SPACE if character.isspace() else OTHER


class CharacterTable:
    """What each code point is, as tables to index with whole arrays of text; filled as characters are met."""

    def __init__(self) -> None:
        self.kind = np.full(0x110000, _UNSEEN, np.uint8)
        self.lower = np.zeros(0x110000, np.uint32)
        self.ending = np.zeros(0x110000, np.uint8)
        for mark, number in _ENDINGS.items():
            self.ending[ord(mark)] = number

    def kinds(self, codes: Array) -> Array:
        """Look up the kind of each code point."""
        kinds = self.kind[codes]
        unseen = kinds == _UNSEEN
        if not unseen.any():
            return kinds
        for code in np.unique(codes[unseen]).tolist():
            self.kind[code] = kind_of(chr(code))
            self.lower[code] = ord(chr(code).lower()[0])
        return self.kind[codes]


@cache
def character_table() -> CharacterTable:
    """The one table, made when first needed."""
    return CharacterTable()

"""The second reading, pair by pair: each rule marks the pairs that are odd for this corpus.

Knows one pair and what is normal; nothing about the neighbouring lines.
"""

import re
from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np

from softgaze.data.doctor.characters import CONTROL, INVISIBLE, METASPACE, PRIVATE, REPLACEMENT, Array
from softgaze.data.doctor.lines import Lines
from softgaze.data.doctor.report import Level
from softgaze.data.doctor.survey import Hashes, Normal, contains, log_ratio

LONG_WORDS, LONG_CHARACTERS = 200, 2_000
RATIO_FLOOR = log(3)  # a side may always be three times longer or shorter than usual


class Rule(NamedTuple):
    """One way for a pair to be odd."""

    level: Level
    message: str  # what such pairs have
    drops: bool = False  # whether `fix` leaves such pairs out


RULES = {
    "empty": Rule("warning", "empty on both sides", True),
    "one_sided": Rule("warning", "text on one side only", True),
    "duplicate": Rule("warning", "a repeat of an earlier pair", True),
    "ratio": Rule("warning", "a length ratio that is extreme for this corpus", True),
    "script": Rule("warning", "a side written in a script that is foreign there", True),
    "replacement": Rule("warning", "U+FFFD, the mark of text damaged before it came here"),
    "mojibake": Rule("warning", "letters that look decoded wrongly (UTF-8 read as latin1, such as Ã© for é)"),
    "control": Rule("warning", "control characters"),
    "private": Rule("warning", "private-use or unassigned characters"),
    "long": Rule("warning", f"more than {LONG_WORDS} words or {LONG_CHARACTERS:,} characters"),
    "markup": Rule("warning", "HTML entities or tags"),
    "metaspace": Rule("note", "a literal ▁, which subwords cannot tell from a space"),
    "invisible": Rule("note", "invisible formatting characters"),
    "mixed_script": Rule("note", "a side mostly in the script of the other side"),
    "ambiguous": Rule("note", "the same source as a pair with a different target"),
    "identical": Rule("note", "the same text on both sides"),
}
_MARKUP = re.compile(
    r"&(?:[A-Za-z][A-Za-z0-9]{1,9}|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});|</?[A-Za-z][A-Za-z0-9]{0,14}(?: [^<>\n]{0,200})?/?>"
)
_MOJIBAKE = re.compile("[ÃÂ][\u0080-\u00bf]|â€|ï¿½")


def _search(pattern: re.Pattern[str], lines: Sequence[str]) -> Array:
    """Mark the lines in which a pattern occurs, searching all of them as one text."""
    hits = [match.start() for match in pattern.finditer("\n".join(lines))]
    ends = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)) + 1)
    found = np.zeros(len(lines), bool)
    found[np.searchsorted(ends, hits, side="right")] = True
    return found


class Judge:
    """Marks the odd pairs of a window against what is normal; remembers which repeated pairs it has met."""

    def __init__(self, normal: Normal) -> None:
        self.normal = normal
        self.met = np.zeros(len(normal.repeated), bool)

    def __call__(self, sources: list[str], targets: list[str], source: Lines, target: Lines) -> dict[str, Array]:
        """Give a mask of pairs for each rule."""
        blank = source.blank, target.blank
        good = ~blank[0] & ~blank[1]
        masks = {"empty": blank[0] & blank[1], "one_sided": blank[0] ^ blank[1]}
        judged = self._repeats(sources, targets, good) | self._texts(sources, targets, source, target)
        judged |= self._scripts(source, target)
        off = np.abs(log_ratio(source.length, target.length) - self.normal.ratio)
        judged["ratio"] = off > max(RATIO_FLOOR, 6 * self.normal.spread)
        judged["script"] &= ~judged["identical"]
        return masks | {code: mask & good for code, mask in judged.items()}

    def _repeats(self, sources: list[str], targets: list[str], good: Array) -> dict[str, Array]:
        hashes = Hashes.of(sources, targets)
        known, again = contains(self.normal.repeated, hashes[1]) & good, np.zeros(len(good), bool)
        for row in np.flatnonzero(known).tolist():
            place = int(np.searchsorted(self.normal.repeated, hashes[1][row]))
            again[row], self.met[place] = self.met[place], True
        return {"duplicate": again, "ambiguous": contains(self.normal.ambiguous, hashes[0])}

    def _texts(self, sources: list[str], targets: list[str], source: Lines, target: Lines) -> dict[str, Array]:
        kinds = source.kinds + target.kinds
        named = {"control": CONTROL, "invisible": INVISIBLE, "private": PRIVATE}
        named |= {"replacement": REPLACEMENT, "metaspace": METASPACE}
        masks = {code: kinds[:, kind] > 0 for code, kind in named.items()}
        for code, pattern in (("markup", _MARKUP), ("mojibake", _MOJIBAKE)):
            masks[code] = _search(pattern, sources) | _search(pattern, targets)
        same = np.fromiter(map(str.__eq__, sources, targets), bool, len(sources))
        masks["identical"] = same & (source.scripts.sum(axis=1) > 0)
        words, length = np.maximum(source.words, target.words), np.maximum(source.length, target.length)
        masks["long"] = (words > LONG_WORDS) | (length > LONG_CHARACTERS)
        return masks

    def _scripts(self, source: Lines, target: Lines) -> dict[str, Array]:
        foreign = mixed = np.zeros(len(source.length), bool)
        for side, lines in enumerate((source, target)):
            home, other = self.normal.home[side], self.normal.home[1 - side]
            letters = lines.scripts.sum(axis=1)
            own, others = lines.scripts[:, home].sum(axis=1), lines.scripts[:, other & ~home].sum(axis=1)
            wrong = (letters >= 4) & (own < 0.1 * letters)
            foreign, mixed = foreign | wrong, mixed | (~wrong & (letters >= 10) & (others > 0.5 * letters))
        return {"script": foreign, "mixed_script": mixed}

"""Which pairs of a corpus are unusual: features of lines, statistics of all lines, and rules that compare the two.

Characters get classes, lines become arrays of counts and word hashes, and a corpus is read in windows of rows. The
first pass over it collects `CorpusStatistics`; the second applies `RULES` to each pair with `RuleChecker`.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from math import log
from typing import Any, Literal, NamedTuple

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


# --- statistics -------------------------------------------------------------------------------------------------

_MAX_COUNTED_LENGTH = 1 << 16
_RATIO_STEP, _MAX_RATIO = 0.005, 6.0  # of the histogram of log length ratios


@dataclass(frozen=True)
class LengthStatistics:
    """The distribution of line lengths; `histogram` is (from, to, lines), the last `to` is None."""

    minimum: int
    median: int
    mean: float
    p95: int
    p99: int
    maximum: int
    histogram: tuple[tuple[int, int | None, int], ...]


@dataclass(frozen=True)
class SideStatistics:
    """Statistics of one side; `scripts` is the share of lines that each script dominates."""

    language: str | None
    words: LengthStatistics
    characters: LengthStatistics
    scripts: dict[str, float]


class _Histogram:
    """Counts of lengths; lengths beyond the maximum are counted as the maximum."""

    def __init__(self) -> None:
        self.counts = np.zeros(_MAX_COUNTED_LENGTH + 1, np.int64)
        self.total, self.maximum = 0, 0

    def add(self, values: Array) -> None:
        counts = np.bincount(np.minimum(values, _MAX_COUNTED_LENGTH))
        self.counts[: len(counts)] += counts
        self.total += int(values.sum())
        self.maximum = max(self.maximum, int(values.max(initial=0)))

    def quantile(self, share: float) -> int:
        cumulative = np.cumsum(self.counts)
        return int(np.searchsorted(cumulative, max(1.0, share * cumulative[-1])))

    def summary(self) -> LengthStatistics:
        median, p95, p99 = (self.quantile(share) for share in (0.5, 0.95, 0.99))
        mean = self.total / max(1, int(self.counts.sum()))
        width = next((width for width in (1, 2, 5, 10, 20, 50, 100, 200, 500) if width * 10 >= p99), 1000)
        edges = range(1, 10 * width + 2, width)
        bars = [(low, high - 1, int(self.counts[low:high].sum())) for low, high in pairwise(edges)]
        rest = (edges[-1], None, int(self.counts[edges[-1] :].sum()))
        return LengthStatistics(self.quantile(0), median, mean, p95, p99, self.maximum, (*bars, rest))


def log_ratio(source: Array, target: Array) -> Array:
    """Return log(target length / source length); ten added characters keep the ratios of short lines moderate."""
    return np.asarray(np.log((target + 10) / (source + 10)))


def hash_pairs(sources: Iterable[str], targets: Iterable[str]) -> tuple[Array, Array]:
    """Return a 64-bit hash of each source and of each pair; ten million pairs collide with probability 0.000003."""
    source = np.fromiter(map(hash, sources), np.int64).view(np.uint64)
    target = np.fromiter(map(hash, targets), np.int64).view(np.uint64)
    mixed = (source ^ (source >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + target
    return source, (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)


def contains(sorted_values: Array, values: Array) -> Array:
    if not len(sorted_values):
        return np.zeros(len(values), bool)
    index = np.minimum(np.searchsorted(sorted_values, values), len(sorted_values) - 1)
    return np.asarray(sorted_values[index] == values)


class Baseline(NamedTuple):
    """The usual properties of this corpus; hashes are sorted."""

    ratio: float
    spread: float
    home_scripts: tuple[Array, Array]  # of source and target
    repeated_pairs: Array
    ambiguous_sources: Array
    all_pairs: Array


class CorpusStatistics:
    """Sums over the first pass; only lines with text on both sides count."""

    def __init__(self) -> None:
        self.usable = 0
        self.words, self.characters = (_Histogram(), _Histogram()), (_Histogram(), _Histogram())
        self.dominant_scripts = np.zeros((2, NUM_CLASSES - FIRST_SCRIPT), np.int64)
        self.ratios = np.zeros(round(2 * _MAX_RATIO / _RATIO_STEP) + 1, np.int64)
        self._source_hashes: list[Array] = []
        self._pair_hashes: list[Array] = []

    def add(self, window: Window, source: Lines, target: Lines) -> None:
        good = ~source.blank & ~target.blank
        self.usable += int(good.sum())
        for side, lines in enumerate((source, target)):
            self.words[side].add(lines.words[good])
            self.characters[side].add(lines.length[good])
            with_letters = lines.scripts[good & (lines.scripts.sum(axis=1) > 0)]
            counts = np.bincount(with_letters.argmax(axis=1), minlength=self.dominant_scripts.shape[1])
            self.dominant_scripts[side] += counts
        ratio = np.clip(log_ratio(source.length[good], target.length[good]), -_MAX_RATIO, _MAX_RATIO)
        bins = np.rint((ratio + _MAX_RATIO) / _RATIO_STEP).astype(np.int64)
        self.ratios += np.bincount(bins, minlength=len(self.ratios))
        source_hashes, pair_hashes = hash_pairs(window.sources, window.targets)
        self._source_hashes.append(source_hashes[good])
        self._pair_hashes.append(pair_hashes[good])

    def baseline(self) -> Baseline:
        """Return the baseline, and release the memory of the hashes."""
        values = np.arange(len(self.ratios)) * _RATIO_STEP - _MAX_RATIO
        median = _weighted_median(values, self.ratios)
        spread = max(0.05, 1.4826 * _weighted_median(np.abs(values - median), self.ratios))
        none = [np.zeros(0, np.uint64)]
        sources, pairs = np.concatenate(self._source_hashes or none), np.concatenate(self._pair_hashes or none)
        self._source_hashes, self._pair_hashes = [], []
        distinct, first, counts = np.unique(pairs, return_index=True, return_counts=True)
        sorted_sources = np.sort(sources[first])
        ambiguous = np.unique(sorted_sources[1:][sorted_sources[1:] == sorted_sources[:-1]])
        home = self.home_scripts(0), self.home_scripts(1)
        return Baseline(median, spread, home, distinct[counts > 1], ambiguous, distinct)

    def home_scripts(self, side: int) -> Array:
        """Return which scripts each dominate a fifth of the lines of a side; kana includes Han."""
        counts = self.dominant_scripts[side]
        home = counts >= max(1.0, 0.2 * float(counts.sum()))
        home[HAN - FIRST_SCRIPT] |= home[KANA - FIRST_SCRIPT]
        return np.asarray(home)

    def side(self, side: int, language: str | None) -> SideStatistics:
        shares = self.dominant_scripts[side] / max(1, int(self.dominant_scripts[side].sum()))
        ranked = sorted(zip(shares.tolist(), SCRIPTS, strict=False), reverse=True)
        scripts = {name: share for share, name in ranked[:5] if share}
        return SideStatistics(language, self.words[side].summary(), self.characters[side].summary(), scripts)


def _weighted_median(values: Array, counts: Array) -> float:
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(counts[order])
    if not cumulative[-1]:
        return 0.0
    return float(values[order][np.searchsorted(cumulative, max(1.0, cumulative[-1] / 2))])


# --- rules ------------------------------------------------------------------------------------------------------

MAX_WORDS, MAX_CHARACTERS = 200, 2_000
MIN_RATIO_LIMIT = log(3)  # a factor of three is never extreme
Level = Literal["fatal", "warning", "note"]


class Rule(NamedTuple):
    """A property of unusual pairs; `drop` tells `fix` to remove them."""

    level: Level
    message: str
    drop: bool = False


RULES = {
    "empty": Rule("warning", "empty on both sides", True),
    "one_sided": Rule("warning", "text on one side only", True),
    "duplicate": Rule("warning", "repetition of an earlier pair", True),
    "ratio": Rule("warning", "length ratio extreme for this corpus", True),
    "script": Rule("warning", "a side in a script that is unusual there", True),
    "replacement": Rule("warning", "U+FFFD, left by an earlier decoding error"),
    "mojibake": Rule("warning", "wrongly decoded letters (UTF-8 read as latin1, such as Ã© for é)"),
    "control": Rule("warning", "control characters"),
    "private": Rule("warning", "private-use or unassigned characters"),
    "long": Rule("warning", f"more than {MAX_WORDS} words or {MAX_CHARACTERS:,} characters"),
    "markup": Rule("warning", "HTML entities or tags"),
    "metaspace": Rule("note", "a literal ▁, which SentencePiece reads as a space"),
    "invisible": Rule("note", "invisible formatting characters"),
    "mixed_script": Rule("note", "a side mostly in the script of the other side"),
    "ambiguous": Rule("note", "same source as a pair with a different target"),
    "identical": Rule("note", "same text on both sides"),
}
_CLASS_RULES = {
    "control": CONTROL,
    "invisible": INVISIBLE,
    "private": PRIVATE,
    "replacement": REPLACEMENT,
    "metaspace": METASPACE,
}
_PATTERN_RULES = {
    "markup": re.compile(
        r"&(?:[A-Za-z][A-Za-z0-9]{1,9}|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});"
        r"|</?[A-Za-z][A-Za-z0-9]{0,14}(?: [^<>\n]{0,200})?/?>"
    ),
    "mojibake": re.compile("[ÃÂ][\u0080-\u00bf]|â€|ï¿½"),
}


class RuleChecker:
    """Applies all rules to windows of pairs in order; marks which repeated pairs it has seen."""

    def __init__(self, baseline: Baseline) -> None:
        self.baseline = baseline
        self.seen = np.zeros(len(baseline.repeated_pairs), bool)

    def check(self, sources: list[str], targets: list[str], source: Lines, target: Lines) -> dict[str, Array]:
        """Return a mask of pairs for each rule."""
        both = ~source.blank & ~target.blank
        masks = self._duplicate_masks(sources, targets, both) | self._script_masks(source, target)
        counts = source.class_counts + target.class_counts
        masks |= {code: counts[:, index] > 0 for code, index in _CLASS_RULES.items()}
        for code, pattern in _PATTERN_RULES.items():
            masks[code] = _lines_with(pattern, sources) | _lines_with(pattern, targets)
        same = np.fromiter(map(str.__eq__, sources, targets), bool, len(sources))
        masks["identical"] = same & (source.scripts.sum(axis=1) > 0)
        masks["script"] &= ~masks["identical"]
        words, length = np.maximum(source.words, target.words), np.maximum(source.length, target.length)
        masks["long"] = (words > MAX_WORDS) | (length > MAX_CHARACTERS)
        deviation = np.abs(log_ratio(source.length, target.length) - self.baseline.ratio)
        masks["ratio"] = deviation > max(MIN_RATIO_LIMIT, 6 * self.baseline.spread)
        masks = {code: mask & both for code, mask in masks.items()}
        return masks | {"empty": source.blank & target.blank, "one_sided": source.blank ^ target.blank}

    def _duplicate_masks(self, sources: list[str], targets: list[str], both: Array) -> dict[str, Array]:
        source_hashes, pair_hashes = hash_pairs(sources, targets)
        duplicate = np.zeros(len(both), bool)
        for row in np.flatnonzero(contains(self.baseline.repeated_pairs, pair_hashes) & both).tolist():
            index = int(np.searchsorted(self.baseline.repeated_pairs, pair_hashes[row]))
            duplicate[row], self.seen[index] = self.seen[index], True
        return {"duplicate": duplicate, "ambiguous": contains(self.baseline.ambiguous_sources, source_hashes)}

    def _script_masks(self, source: Lines, target: Lines) -> dict[str, Array]:
        foreign = mixed = np.zeros(len(source.length), bool)
        for side, lines in enumerate((source, target)):
            home, other = self.baseline.home_scripts[side], self.baseline.home_scripts[1 - side]
            letters = lines.scripts.sum(axis=1)
            at_home, of_other = lines.scripts[:, home].sum(axis=1), lines.scripts[:, other & ~home].sum(axis=1)
            wrong = (letters >= 4) & (at_home < 0.1 * letters)
            foreign, mixed = foreign | wrong, mixed | (~wrong & (letters >= 10) & (of_other > 0.5 * letters))
        return {"script": foreign, "mixed_script": mixed}


def _lines_with(pattern: re.Pattern[str], lines: Sequence[str]) -> Array:
    """Return which lines match, searching all of them as one text."""
    hits = [match.start() for match in pattern.finditer("\n".join(lines))]
    ends = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)) + 1)
    mask = np.zeros(len(lines), bool)
    mask[np.searchsorted(ends, hits, side="right")] = True
    return mask

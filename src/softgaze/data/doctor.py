"""The data doctor behind `softgaze check`: what is odd about a parallel corpus, where, and what can be kept of it.

Knows text and arrays; no model, no dictionary, no list of languages. Everything is judged against the corpus itself:
its own length ratio, its own scripts, and a lexicon of its own words.

The files are read twice, as a stream. Memory holds about 28 bytes a pair (two 8-byte hashes to find repeats, twelve
bytes of evidence for shifts), more for a moment while hashes are sorted, and a sample of at most `SAMPLE` pairs.

How shifted ranges are found. Words are cut to a prefix and given vectors from the pairs they occur in, so that a word
and its translation, which occur in the same pairs, get like vectors. A small logistic regression on likeness of
vectors, shared names and numbers, length and last punctuation tells pairs as they stand from pairs a few lines apart;
its log odds are the evidence that source line n belongs with target line n + k. The best path through all offsets k,
where each change of offset costs, is the answer. Lines are judged by a lexicon learned from *other* lines, otherwise a
shifted range would look right by its own rare words.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, pairwise
from math import log
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softgaze.data.corpus import Corpus, LineError, Part, Row, writing
from softgaze.errors import DataError

Array = NDArray[Any]
Level = Literal["fatal", "warning", "note"]
Progress = Callable[[int, int], None]

EXAMPLES = 5  # shown for each finding
SAMPLE = 200_000  # pairs from which the lexicon is learned
REACH = 5  # offsets from -5 to +5 are compared
FAR = 1_000  # files that differ by more lines than this are not searched for the place
LONG_WORDS, LONG_CHARACTERS = 200, 2_000
RATIO_FLOOR = log(3)  # a side may always be three times longer or shorter than usual

# --------------------------------------------------------------------------------------------------------------- report


@dataclass(frozen=True)
class Example:
    """One place in the corpus: file (empty where there is but one part), line from 1, byte where known, the text."""

    file: str
    line: int
    byte: int | None
    text: str

    @property
    def place(self) -> str:
        """Say where it is, in words."""
        byte = "" if self.byte is None else f", byte {self.byte:,}"
        return f"{self.file}, line {self.line:,}{byte}" if self.file else f"line {self.line:,}{byte}"


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing: `fatal` would stop training, `warning` may spoil it, `note` is good to know."""

    code: str
    level: Level
    count: int
    message: str
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class Lengths:
    """How long the lines of one side are; `histogram` is (from, to, lines), the last `to` None for "and more"."""

    minimum: int
    median: int
    mean: float
    p95: int
    p99: int
    maximum: int
    histogram: tuple[tuple[int, int | None, int], ...]


@dataclass(frozen=True)
class Side:
    """One side of the corpus in numbers; `scripts` gives the share of lines that each script dominates."""

    language: str | None
    words: Lengths
    characters: Lengths
    scripts: dict[str, float]


@dataclass(frozen=True)
class Report:
    """What `examine` found. `usable` pairs are readable and have text on both sides."""

    files: tuple[str, ...]
    pairs: int
    usable: int
    source: Side | None
    target: Side | None
    findings: tuple[Finding, ...]
    diagnosis: "_Diagnosis | None" = field(default=None, repr=False, compare=False)

    @property
    def exit_code(self) -> int:
        """3 if something here would stop training, else 0."""
        return 3 if any(finding.level == "fatal" for finding in self.findings) else 0

    def to_json(self) -> str:
        """Everything as a JSON object, for programs."""
        record = {name: getattr(self, name) for name in ("files", "pairs", "usable", "source", "target", "findings")}
        record["exit_code"] = self.exit_code
        return json.dumps(record, default=lambda value: vars(value), ensure_ascii=False, indent=2)

    def lines(self) -> Iterator[str]:
        """Everything as plain text, for people."""
        if self.pairs:
            yield f"{self.pairs:,} pairs, {self.usable:,} of them readable with text on both sides"
        for name, side in (("source", self.source), ("target", self.target)):
            if side is not None:
                yield from _side_lines(name, side)
        for finding in self.findings:
            yield f"{finding.level}: {finding.message}"
            yield from (f"    {example.place}: {example.text}" for example in finding.examples)
        if not self.findings:
            yield "nothing to complain about"


def _side_lines(name: str, side: Side) -> Iterator[str]:
    scripts = ", ".join(f"{script} {share:.1%}" for script, share in side.scripts.items())
    yield f"{name}{f' ({side.language})' if side.language else ''}: {scripts or 'no letters'}"
    for unit, lengths in (("words", side.words), ("characters", side.characters)):
        spread = f"median {lengths.median:,}, mean {lengths.mean:,.1f}, 95 % {lengths.p95:,}, 99 % {lengths.p99:,}"
        yield f"    {unit}: {lengths.minimum:,} to {lengths.maximum:,}, {spread}"


def _shown(text: str, width: int = 70) -> str:
    """Text safe to print: cut, and with everything a terminal would act on or hide spelled out."""
    cut = text if len(text) <= width else text[: width - 1] + "…"
    spaced = "".join(" " if unicodedata.category(c) == "Zs" else c for c in cut)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in spaced)


# ----------------------------------------------------------------------------------------------------------- characters

_OTHER, _SPACE, _DIGIT, _MARK, _CONTROL, _INVISIBLE, _PRIVATE, _REPLACEMENT, _METASPACE = range(9)
_FIRST_SCRIPT, _KINDS, _UNSEEN = 9, 64, 255
_SCRIPTS = re.findall(
    r"\w+",
    "Latin Greek Cyrillic Armenian Hebrew Arabic Syriac Thaana Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu "
    "Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Georgian Ethiopic Cherokee Khmer Mongolian Hangul Kana Han "
    "Bopomofo Yi Tifinagh Javanese Balinese",
)
_SCRIPT_KIND = {name.upper(): kind for kind, name in enumerate(_SCRIPTS, _FIRST_SCRIPT)}
_HAN, _KANA, _HANGUL = (_SCRIPT_KIND[name] for name in ("HAN", "KANA", "HANGUL"))
_SCRIPT_KIND |= {"CJK": _HAN, "IDEOGRAPHIC": _HAN, "HIRAGANA": _KANA, "KATAKANA": _KANA}
_ENDINGS = {
    mark: 1 + number
    for number, marks in enumerate((".。．।۔", "?？؟", "!！", ":：", ",，、;；", ")）]」”\"'»"))
    for mark in marks
}
_UNSPACED = [_HAN, _KANA, *(_SCRIPT_KIND[name] for name in ("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"))]


def _script_of(character: str) -> int:
    """Which script a letter belongs to, by the first word of its Unicode name; letters of no script are _OTHER."""
    words = unicodedata.name(character, "").replace("-", " ").split(" ")
    while words[0] in ("FULLWIDTH", "HALFWIDTH"):
        words = words[1:]
    return _SCRIPT_KIND.get(words[0], _OTHER)


def _kind_of(character: str) -> int:
    special = {"\t": _SPACE, "\ufffd": _REPLACEMENT, "▁": _METASPACE, "\u2028": _CONTROL, "\u2029": _CONTROL}
    # The two joiners shape letters and emoji: ordinary text in Persian, Hindi and any chat.
    special |= {"\u200c": _MARK, "\u200d": _MARK}
    if character in special:
        return special[character]
    category = unicodedata.category(character)
    by_category = {"Cc": _CONTROL, "Cf": _INVISIBLE, "Co": _PRIVATE, "Cn": _PRIVATE, "Nd": _DIGIT}
    if category in by_category:
        return by_category[category]
    if category[0] in "LM":
        return _script_of(character) or (_MARK if category[0] == "M" else _OTHER)
    return _SPACE if character.isspace() else _OTHER


class _Characters:
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
            self.kind[code] = _kind_of(chr(code))
            self.lower[code] = ord(chr(code).lower()[0])
        return self.kind[codes]


@cache
def _characters() -> _Characters:
    return _Characters()


# ---------------------------------------------------------------------------------------------------- lines as arrays

_IS_WORD = np.zeros(_KINDS, bool)  # kinds of which words are made
_IS_WORD[[_DIGIT, _MARK, *range(_FIRST_SCRIPT, _KINDS)]] = True
_IS_UNSPACED = np.zeros(_KINDS, bool)
_IS_UNSPACED[_UNSPACED] = True
_PREFIX = np.full(_KINDS, 5)  # letters that stand for a word: a crude stem, for any language
_PREFIX[[_HANGUL, *_UNSPACED]] = 2  # syllables carry more than letters
_PREFIX[_DIGIT] = 9


class _Lines(NamedTuple):
    """Some lines of one side, measured. n lines, m tokens; a token is the hash of a word's beginning in lower case."""

    length: Array  # (n,) characters
    words: Array  # (n,)
    kinds: Array  # (n, _KINDS) characters of each kind
    blank: Array  # (n,) nothing can be seen
    ending: Array  # (n,) class of the last punctuation, 0 for none
    token: Array  # (m,) uint64
    token_line: Array  # (m,) ascending
    token_is_number: Array  # (m,)

    @property
    def scripts(self) -> Array:
        """Letters of each script, (n, scripts)."""
        return self.kinds[:, _FIRST_SCRIPT:]

    def cut(self, rows: slice) -> "_Lines":
        """Only some lines."""
        low, high = np.searchsorted(self.token_line, [rows.start, rows.stop])
        length, words, kinds, blank, ending = (values[rows] for values in self[:5])
        token, token_line, is_number = (values[low:high] for values in self[5:])
        return _Lines(length, words, kinds, blank, ending, token, token_line - rows.start, is_number)


def _measure(lines: Sequence[str]) -> _Lines:
    count, length = len(lines), np.fromiter(map(len, lines), np.int64, len(lines))
    codes = np.frombuffer("".join(lines).encode("utf-32-le"), "<u4")
    kinds = _characters().kinds(codes)
    line = np.repeat(np.arange(count), length)
    opens = np.diff(line, prepend=-1) > 0  # the first character of each line
    solid = (kinds != _SPACE) & (kinds != _CONTROL)
    starts = solid & (opens | ~_before(solid))
    ending = np.zeros(count, np.uint8)
    ending[line[solid]] = _characters().ending[codes[solid]]  # the last character of a line is assigned last
    tokens, at = _tokens(codes, kinds, opens)
    counts = np.bincount(line * _KINDS + kinds, minlength=count * _KINDS).reshape(count, _KINDS)
    return _Lines(
        length,
        np.bincount(line[starts], minlength=count),
        counts,
        length == counts[:, [_SPACE, _CONTROL, _INVISIBLE]].sum(axis=1),
        ending,
        tokens,
        line[at],
        kinds[at] == _DIGIT,
    )


def _before(values: Array) -> Array:
    """Each position's predecessor; zero before the first."""
    shifted = np.zeros_like(values)
    shifted[1:] = values[:-1]
    return shifted


def _tokens(codes: Array, kinds: Array, opens: Array) -> tuple[Array, Array]:
    """Hash the beginning of each word (each pair of characters in scripts without spaces); and where they start."""
    word, last = _IS_WORD[kinds], _before(kinds)
    changes = (kinds != last) & (kinds != _MARK) & (last != _MARK)
    at = np.flatnonzero(word & (opens | ~_before(word) | changes | _IS_UNSPACED[kinds]))
    own, hashes = kinds[at], _characters().lower[codes[at]].astype(np.uint64)
    alive = np.arange(len(at))
    for step in range(1, int(_PREFIX.max())):
        position = at[alive] + step
        alive, position = alive[position < len(codes)], position[position < len(codes)]
        same = (kinds[position] == own[alive]) | (kinds[position] == _MARK)
        goes_on = same & ~opens[position] & (_PREFIX[own[alive]] > step)
        alive, position = alive[goes_on], position[goes_on]
        hashes[alive] = hashes[alive] * np.uint64(1099511628211) + _characters().lower[codes[position]]
    return hashes * np.uint64(0x9E3779B97F4A7C15), at


class _Window(NamedTuple):
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


def _windows(rows: Iterator[Row], size: int, reach: int) -> Iterator[_Window]:
    start, before, ahead = 0, list[Row](), list(islice(rows, size + reach))
    while ahead:
        now, ahead = ahead[:size], ahead[size:]
        ahead += islice(rows, size + reach - len(ahead))
        reached = [target for _, target in (*before, *now, *ahead[:reach])]
        yield _Window(start, now, reached, len(before))
        start += len(now)
        before = (before + now)[-reach:] if reach else []


# ------------------------------------------------------------------------------------------- first reading: the corpus

_LONGEST_COUNTED = 1 << 16
_RATIO_STEP, _RATIO_LIMIT = 0.005, 6.0


class _Histogram:
    """Counts of whole numbers, from which every quantile follows; what is beyond the limit counts as the limit."""

    def __init__(self) -> None:
        self.counts = np.zeros(_LONGEST_COUNTED + 1, np.int64)
        self.total, self.maximum = 0, 0

    def add(self, values: Array) -> None:
        """Count `values`."""
        counts = np.bincount(np.minimum(values, _LONGEST_COUNTED))
        self.counts[: len(counts)] += counts
        self.total += int(values.sum())
        self.maximum = max(self.maximum, int(values.max(initial=0)))

    def quantile(self, share: float) -> int:
        """Find the smallest number with at least this share of all at or below it."""
        running = np.cumsum(self.counts)
        return int(np.searchsorted(running, max(1.0, share * running[-1])))

    def summary(self) -> Lengths:
        """Describe the distribution in a few numbers."""
        quantiles = (self.quantile(share) for share in (0.5, 0.95, 0.99))
        median, p95, p99 = quantiles
        count = int(self.counts.sum())
        mean = self.total / max(1, count)
        return Lengths(self.quantile(0), median, mean, p95, p99, self.maximum, self._bars(p99))

    def _bars(self, p99: int) -> tuple[tuple[int, int | None, int], ...]:
        width = next((nice for nice in (1, 2, 5, 10, 20, 50, 100, 200, 500) if nice * 10 >= p99), 1000)
        edges = range(1, 10 * width + 2, width)
        bars = [(low, high - 1, int(self.counts[low:high].sum())) for low, high in pairwise(edges)]
        return (*bars, (edges[-1], None, int(self.counts[edges[-1] :].sum())))


def _log_ratio(source: Array, target: Array) -> Array:
    """How much longer the target is; ten added characters keep short lines from looking extreme."""
    return np.asarray(np.log((target + 10) / (source + 10)))


class _Hashes:
    """Eight bytes for each pair and eight for each source, to find repeats; equal texts always meet, others never do.

    Python's own string hashes have 64 bits: among ten million pairs the chance of one false repeat is 0.000003.
    """

    def __init__(self) -> None:
        self._sources: list[Array] = []
        self._pairs: list[Array] = []

    @staticmethod
    def of(sources: Iterable[str], targets: Iterable[str]) -> tuple[Array, Array]:
        """Hash each source, and each pair."""
        source = np.fromiter(map(hash, sources), np.int64).view(np.uint64)
        target = np.fromiter(map(hash, targets), np.int64).view(np.uint64)
        mixed = (source ^ (source >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + target
        return source, (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)

    def add(self, sources: Array, pairs: Array) -> None:
        """Remember the hashes of some pairs."""
        self._sources.append(sources)
        self._pairs.append(pairs)

    def repeats(self) -> tuple[Array, Array, Array]:
        """Sort out pairs met more than once, sources met with more than one target, and all pairs. Forgets the rest."""
        sources, pairs = (np.concatenate(parts or [np.zeros(0, np.uint64)]) for parts in (self._sources, self._pairs))
        self._sources, self._pairs = [], []
        distinct, first, counts = np.unique(pairs, return_index=True, return_counts=True)
        own = np.sort(sources[first])
        return distinct[counts > 1], np.unique(own[1:][own[1:] == own[:-1]]), distinct


def _contains(table: Array, values: Array) -> Array:
    """Which of `values` are in the sorted `table`."""
    if not len(table):
        return np.zeros(len(values), bool)
    place = np.minimum(np.searchsorted(table, values), len(table) - 1)
    return np.asarray(table[place] == values)


class _Survey:
    """What the first reading adds up, and from it the corpus' own idea of normal."""

    def __init__(self) -> None:
        self.rows = self.usable = 0
        self.words, self.characters = (_Histogram(), _Histogram()), (_Histogram(), _Histogram())
        self.dominated = np.zeros((2, _KINDS - _FIRST_SCRIPT), np.int64)
        self.ratios = np.zeros(round(2 * _RATIO_LIMIT / _RATIO_STEP) + 1, np.int64)
        self.hashes = _Hashes()
        self.sample: list[_Piece] = []

    def add(self, window: _Window, source: _Lines, target: _Lines) -> None:
        """Count one window, of which only lines with text on both sides matter."""
        good = ~source.blank & ~target.blank
        self.rows += len(good)
        self.usable += int(good.sum())
        for side, lines in enumerate((source, target)):
            self.words[side].add(lines.words[good])
            self.characters[side].add(lines.length[good])
            lettered = lines.scripts[good & (lines.scripts.sum(axis=1) > 0)]
            self.dominated[side] += np.bincount(lettered.argmax(axis=1), minlength=self.dominated.shape[1])
        ratio = np.clip(_log_ratio(source.length[good], target.length[good]), -_RATIO_LIMIT, _RATIO_LIMIT)
        bins = np.rint((ratio + _RATIO_LIMIT) / _RATIO_STEP).astype(np.int64)
        self.ratios += np.bincount(bins, minlength=len(self.ratios))
        hashes = _Hashes.of(window.sources, window.targets)
        self.hashes.add(hashes[0][good], hashes[1][good])

    def ratio(self) -> tuple[float, float]:
        """Median log ratio, and its spread as a robust standard deviation."""
        values = np.arange(len(self.ratios)) * _RATIO_STEP - _RATIO_LIMIT
        median = _weighted_median(values, self.ratios)
        return median, max(0.05, 1.4826 * _weighted_median(np.abs(values - median), self.ratios))

    def home_scripts(self, side: int) -> Array:
        """Mark the scripts at home on a side: each dominates a fifth of its lines. Kana brings Han along."""
        home = self.dominated[side] >= max(1.0, 0.2 * float(self.dominated[side].sum()))
        home[_HAN - _FIRST_SCRIPT] |= home[_KANA - _FIRST_SCRIPT]
        return np.asarray(home)

    def side(self, side: int, language: str | None) -> Side:
        """Describe one side."""
        shares = self.dominated[side] / max(1, int(self.dominated[side].sum()))
        ranked = sorted(zip(shares.tolist(), _SCRIPTS, strict=False), reverse=True)
        scripts = {name: share for share, name in ranked[:5] if share}
        return Side(language, self.words[side].summary(), self.characters[side].summary(), scripts)


def _weighted_median(values: Array, counts: Array) -> float:
    order = np.argsort(values, kind="stable")
    running = np.cumsum(counts[order])
    return float(values[order][np.searchsorted(running, max(1.0, running[-1] / 2))]) if running[-1] else 0.0


# --------------------------------------------------------------------------------------- second reading: pair by pair


class _Rule(NamedTuple):
    level: Level
    message: str  # what such pairs have
    drops: bool = False  # whether `fix` leaves such pairs out


_RULES = {
    "empty": _Rule("warning", "empty on both sides", True),
    "one_sided": _Rule("warning", "text on one side only", True),
    "duplicate": _Rule("warning", "a repeat of an earlier pair", True),
    "ratio": _Rule("warning", "a length ratio that is extreme for this corpus", True),
    "script": _Rule("warning", "a side written in a script that is foreign there", True),
    "replacement": _Rule("warning", "U+FFFD, the mark of text damaged before it came here"),
    "mojibake": _Rule("warning", "letters that look decoded wrongly (UTF-8 read as latin1, such as Ã© for é)"),
    "control": _Rule("warning", "control characters"),
    "private": _Rule("warning", "private-use or unassigned characters"),
    "long": _Rule("warning", f"more than {LONG_WORDS} words or {LONG_CHARACTERS:,} characters"),
    "markup": _Rule("warning", "HTML entities or tags"),
    "metaspace": _Rule("note", "a literal ▁, which subwords cannot tell from a space"),
    "invisible": _Rule("note", "invisible formatting characters"),
    "mixed_script": _Rule("note", "a side mostly in the script of the other side"),
    "ambiguous": _Rule("note", "the same source as a pair with a different target"),
    "identical": _Rule("note", "the same text on both sides"),
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


class _Normal(NamedTuple):
    """What the first reading found normal for this corpus."""

    ratio: float
    spread: float
    home: tuple[Array, Array]  # scripts of source and target
    repeated: Array
    ambiguous: Array
    pairs: Array  # sorted hashes of all pairs


class _Judge:
    """Marks the odd pairs of a window against what is normal; remembers which repeated pairs it has met."""

    def __init__(self, normal: _Normal) -> None:
        self.normal = normal
        self.met = np.zeros(len(normal.repeated), bool)

    def __call__(self, sources: list[str], targets: list[str], source: _Lines, target: _Lines) -> dict[str, Array]:
        """Give a mask of pairs for each rule."""
        blank = source.blank, target.blank
        good = ~blank[0] & ~blank[1]
        masks = {"empty": blank[0] & blank[1], "one_sided": blank[0] ^ blank[1]}
        judged = self._repeats(sources, targets, good) | self._texts(sources, targets, source, target)
        judged |= self._scripts(source, target)
        off = np.abs(_log_ratio(source.length, target.length) - self.normal.ratio)
        judged["ratio"] = off > max(RATIO_FLOOR, 6 * self.normal.spread)
        judged["script"] &= ~judged["identical"]
        return masks | {code: mask & good for code, mask in judged.items()}

    def _repeats(self, sources: list[str], targets: list[str], good: Array) -> dict[str, Array]:
        hashes = _Hashes.of(sources, targets)
        known, again = _contains(self.normal.repeated, hashes[1]) & good, np.zeros(len(good), bool)
        for row in np.flatnonzero(known).tolist():
            place = int(np.searchsorted(self.normal.repeated, hashes[1][row]))
            again[row], self.met[place] = self.met[place], True
        return {"duplicate": again, "ambiguous": _contains(self.normal.ambiguous, hashes[0])}

    def _texts(self, sources: list[str], targets: list[str], source: _Lines, target: _Lines) -> dict[str, Array]:
        kinds = source.kinds + target.kinds
        named = {"control": _CONTROL, "invisible": _INVISIBLE, "private": _PRIVATE}
        named |= {"replacement": _REPLACEMENT, "metaspace": _METASPACE}
        masks = {code: kinds[:, kind] > 0 for code, kind in named.items()}
        for code, pattern in (("markup", _MARKUP), ("mojibake", _MOJIBAKE)):
            masks[code] = _search(pattern, sources) | _search(pattern, targets)
        same = np.fromiter(map(str.__eq__, sources, targets), bool, len(sources))
        masks["identical"] = same & (source.scripts.sum(axis=1) > 0)
        words, length = np.maximum(source.words, target.words), np.maximum(source.length, target.length)
        masks["long"] = (words > LONG_WORDS) | (length > LONG_CHARACTERS)
        return masks

    def _scripts(self, source: _Lines, target: _Lines) -> dict[str, Array]:
        foreign = mixed = np.zeros(len(source.length), bool)
        for side, lines in enumerate((source, target)):
            home, other = self.normal.home[side], self.normal.home[1 - side]
            letters = lines.scripts.sum(axis=1)
            own, others = lines.scripts[:, home].sum(axis=1), lines.scripts[:, other & ~home].sum(axis=1)
            wrong = (letters >= 4) & (own < 0.1 * letters)
            foreign, mixed = foreign | wrong, mixed | (~wrong & (letters >= 10) & (others > 0.5 * letters))
        return {"script": foreign, "mixed_script": mixed}


# ------------------------------------------------------------------------------------------------------ shifted ranges

_WIDTH, _ANCHOR_WIDTH, _NUMBER_WIDTH = 64, 64, 16
_VOCABULARY = 30_000
_SCALE = 32  # evidence is kept as whole 1/32 of a nat, from -3.97 to 3.97: one byte, and no line shouts down the others
_LEAST_PAIRS, _ENOUGH_PAIRS = 200, 2_000  # to try to learn a lexicon; to be sure that there is none to learn


def _overlap(rows: int, others: int, shift: int) -> tuple[slice, slice]:
    """Which of `rows` have a partner `shift` further on among `others`, and which are these partners."""
    first, last = max(0, -shift), max(0, -shift, min(rows, others - shift))
    return slice(first, last), slice(first + shift, last + shift)


class _Piece(NamedTuple):
    """Some consecutive rows kept for learning, with the offset at which their targets are believed to stand."""

    fold: int  # which half of the corpus they belong to
    source: _Lines
    reached: _Lines  # the targets, and some before and after
    left: int  # how many before
    offsets: Array  # all that may be
    offset: int

    def spans(self, offset: int) -> tuple[slice, slice]:
        """Which source lines have a target line at `offset`, and which these are among `reached`."""
        return _overlap(len(self.source.length), len(self.reached.length), self.left + offset)

    def paired(self) -> tuple[_Lines, _Lines]:
        """Both sides, row by row, at the believed offset."""
        here, there = self.spans(self.offset)
        return self.source.cut(here), self.reached.cut(there)


class _Lexicon:
    """Vectors for the words of both sides, near each other where words occur in the same pairs.

    There are two sets, each learned from one half of the sample, so that lines are judged by words of other lines.
    """

    def __init__(self, sample: list[_Piece]) -> None:
        folds = [[piece.paired() for piece in sample if piece.fold == fold] for fold in (0, 1)]
        self.pairs = sum(len(pair[0].length) for pairs in folds for pair in pairs)
        words = [self._words([pair[side] for pairs in folds for pair in pairs]) for side in (0, 1)]
        self.vocabulary, self.rarity = [word[0] for word in words], [word[1] for word in words]
        self.vectors = [[self._learn([pair[side] for pair in pairs], side) for side in (0, 1)] for pairs in folds]

    def _words(self, pieces: list[_Lines]) -> tuple[Array, Array]:
        words, counts = np.unique(np.concatenate([lines.token for lines in pieces]), return_counts=True)
        keep = (counts >= 3) & (counts < 0.3 * self.pairs)
        least = np.sort(counts[keep])[-_VOCABULARY:][:1]
        keep &= counts >= (least[0] if len(least) else 1)
        return words[keep], np.log(self.pairs / counts[keep])

    def _learn(self, pieces: list[_Lines], side: int) -> Array:
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

    def look_up(self, lines: _Lines, side: int) -> tuple[Array, Array]:
        """Which tokens are in the vocabulary of a side, and their numbers."""
        table = self.vocabulary[side]
        if not len(table):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        place = np.minimum(np.searchsorted(table, lines.token), len(table) - 1)
        known = np.flatnonzero(table[place] == lines.token)
        return known, place[known]

    def embed(self, lines: _Lines, side: int, fold: int) -> Array:
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


class _Clues(NamedTuple):
    """All that is compared between a source line and a target line, a row each."""

    meaning: Array  # unit vectors from the lexicon
    anchors: Array  # unit vectors from the words as spelled
    numbers: Array  # unit vectors from the numbers as spelled, zero without any
    length: Array
    ending: Array

    def cut(self, rows: slice) -> "_Clues":
        """Only some rows."""
        return _Clues(*(values[rows] for values in self))


def _clues(lines: _Lines, lexicon: _Lexicon, side: int, fold: int) -> _Clues:
    count, number = len(lines.length), lines.token_is_number
    return _Clues(
        lexicon.embed(lines, side, fold),
        _hashed(lines.token[~number], lines.token_line[~number], count, _ANCHOR_WIDTH),
        _hashed(lines.token[number], lines.token_line[number], count, _NUMBER_WIDTH),
        lines.length,
        lines.ending,
    )


def _compare(source: _Clues, target: _Clues, ratio: float, spread: float) -> Array:
    """Turn the clues of n source and n target lines into (n, 13) numbers for the regression."""
    meaning, anchors, numbers = (np.einsum("nd,nd->n", a, b) for a, b in zip(source[:3], target[:3], strict=True))
    known = source.meaning.any(axis=1) & target.meaning.any(axis=1)
    counted = [clues.numbers.any(axis=1) for clues in (source, target)]
    off = np.minimum(4.0, np.abs(_log_ratio(source.length, target.length) - ratio) / spread)
    ends_alike = (source.ending == target.ending) & (source.ending > 0)
    brief = 10 / (10 + np.minimum(source.length, target.length))  # a short line says less, whatever it says
    columns = [np.ones(len(meaning)), meaning, np.maximum(0.0, meaning) ** 2, known, brief, brief * meaning, anchors]
    columns += [numbers, counted[0] & counted[1], counted[0] ^ counted[1], off, off**2, ends_alike]
    return np.stack(columns, axis=1).astype(np.float64)


def _regress(right: Array, wrong: Array) -> Array:
    """Fit a logistic regression by Newton's method, with a little ridge; both classes weigh the same."""
    inputs = np.concatenate([right, wrong])
    answers = np.repeat([1.0, 0.0], [len(right), len(wrong)])
    weight = np.repeat([0.5 / len(right), 0.5 / len(wrong)], [len(right), len(wrong)]) * len(inputs)
    parameters, ridge = np.zeros(inputs.shape[1]), np.eye(inputs.shape[1])
    for _ in range(12):
        guess = 1 / (1 + np.exp(-np.clip(inputs @ parameters, -30, 30)))
        slope = inputs.T @ (weight * (answers - guess)) - ridge @ parameters
        curve = (inputs * (weight * guess * (1 - guess))[:, None]).T @ inputs + ridge
        parameters += np.linalg.solve(curve, slope)
    return parameters


class _Scorer:
    """Log odds that a source line and a target line belong together, learned from the corpus itself."""

    def __init__(self, sample: list[_Piece], lexicon: _Lexicon, ratio: float, spread: float) -> None:
        self.lexicon, self.ratio, self.spread = lexicon, ratio, spread
        right, wrong = [], []
        chance = np.random.default_rng(0)
        rows = sum(len(piece.source.length) for piece in sample)
        for piece in sample[:: max(1, rows // 20_000)]:
            source, reached = (_clues(lines, lexicon, side, piece.fold) for side, lines in enumerate(piece[1:3]))
            right.append(self._features(piece, source, reached, piece.offset))
            for offset in chance.choice(_NEIGHBOURS, 2).tolist():
                wrong.append(self._features(piece, source, reached, piece.offset + offset))
        features = np.concatenate(right), np.concatenate(wrong)
        self.parameters = _regress(*features)
        # How many nats better a right pair looks than a wrong one.
        self.power = float((features[0] @ self.parameters).mean() - (features[1] @ self.parameters).mean())

    def _features(self, piece: _Piece, source: _Clues, reached: _Clues, offset: int) -> Array:
        here, there = piece.spans(offset)
        both = ~piece.source.blank[here] & ~piece.reached.blank[there]
        return _compare(source.cut(here), reached.cut(there), self.ratio, self.spread)[both]

    def evidence(self, source: _Clues, target: _Clues) -> Array:
        """Score n source lines against n target lines, in nats."""
        return np.asarray(_compare(source, target, self.ratio, self.spread) @ self.parameters)


_NEIGHBOURS = np.array([offset for offset in range(-REACH, REACH + 1) if offset])
_WEAK, _UNRELATED = 1.0, 0.4  # nats by which a right pair beats a wrong one: real corpora have 2 to 8


def _best_offset(piece: _Piece, lexicon: _Lexicon) -> int:
    """Where the targets of a piece stand, by likeness alone."""
    source, reached = (_clues(lines, lexicon, side, piece.fold) for side, lines in enumerate(piece[1:3]))
    likeness: dict[int, float] = {}
    for offset in piece.offsets.tolist():
        here, there = piece.spans(offset)
        alike = sum(np.einsum("nd,nd->n", a[here], b[there]) for a, b in zip(source[:3], reached[:3], strict=True))
        likeness[offset] = float(np.mean(alike)) if here.stop - here.start >= len(piece.source.length) // 2 else 0.0
    return max(likeness, key=lambda offset: likeness[offset])


def _settle(sample: list[_Piece]) -> tuple[list[_Piece], _Lexicon]:
    """Learn a lexicon, move each piece to where it fits best by it, and again: for corpora that are mostly shifted."""
    lexicon = _Lexicon(sample)
    for _ in range(4):
        moved = [piece._replace(offset=_best_offset(piece, lexicon)) for piece in sample]
        if all(new.offset == old.offset for new, old in zip(moved, sample, strict=True)):
            break
        sample, lexicon = moved, _Lexicon(moved)
    return sample, lexicon


def _learn_scorer(sample: list[_Piece], ratio: float, spread: float) -> _Scorer:
    """Learn from pairs as they stand; if nothing goes together there, the corpus may be shifted as a whole: look on."""
    best = _Scorer(*_settle(sample), ratio, spread)
    if best.power >= _WEAK:
        return best
    few = sample[:: max(1, sum(len(piece.source.length) for piece in sample) // 20_000)]
    for offset in _NEIGHBOURS.tolist():
        tried = [piece._replace(offset=offset) for piece in few]
        if _Scorer(tried, _Lexicon(tried), ratio, spread).power > max(_WEAK, best.power):
            everywhere = [piece._replace(offset=offset) for piece in sample]
            best = max(best, _Scorer(*_settle(everywhere), ratio, spread), key=lambda scorer: scorer.power)
    return best


class Shift(NamedTuple):
    """Rows `start` to before `stop` of a part whose source lines fit the target lines `offset` on, or nowhere."""

    start: int
    stop: int
    offset: int
    confident: bool  # whether the pairs at that offset look as right as the corpus usually does


_NOWHERE = 1 << 20  # stands for an offset: no target line near fits, and the evidence for that is always zero
_SWITCH = 12.0  # nats a change of offset must earn: chance gains that much once in 160,000 tries
_LEAST_GAIN, _EXPECTED_GAIN = 30.0, 10.0  # for a range to count; less at the end of files of different length
_LEAST_NOWHERE = 20  # rows
_NOTICE, _AROUND = 8, 60  # rows over which another offset must look better to start a search, and how far it goes


def _gather(scorer: _Scorer, window: _Window, fold: int, offsets: Array) -> tuple[Array, _Lines, _Lines]:
    """Score each row of a window at each offset, as bytes; both sides measured come along."""
    source, reached = _measure(window.sources), _measure([target or "" for target in window.reached])
    clues = [_clues(lines, scorer.lexicon, side, fold) for side, lines in enumerate((source, reached))]
    count = len(window.rows)
    evidence = np.zeros((count, len(offsets)), np.int8)
    for column, offset in enumerate(offsets[:-1].tolist()):
        here, there = _overlap(count, len(window.reached), window.left + offset)
        seen = ~source.blank[here] & ~reached.blank[there]
        nats = scorer.evidence(clues[0].cut(here), clues[1].cut(there)) * seen
        evidence[here, column] = np.rint(np.clip(nats * _SCALE, -127, 127))
    return evidence, source, reached.cut(slice(window.left, window.left + count))


def _suspicious(evidence: Array, home: int) -> list[tuple[int, int]]:
    """Find the stretches in which another offset looks better for a few rows: only there a path is worth searching."""
    rows, marked = len(evidence), np.zeros(len(evidence) + 1, np.int64)
    for start in range(0, rows, 1 << 16):
        piece = evidence[start : start + (1 << 16) + _NOTICE].astype(np.int32)
        running = np.cumsum(np.concatenate([piece[:1] * 0, piece - piece[:, [home]]]), axis=0)
        better = np.flatnonzero((running[_NOTICE:] - running[:-_NOTICE]).max(axis=1, initial=0) > 0) + start
        marked += np.bincount(np.maximum(0, better - _AROUND), minlength=rows + 1)
        marked -= np.bincount(np.minimum(rows, better + _NOTICE + _AROUND), minlength=rows + 1)
    inside = np.concatenate([[False], np.cumsum(marked)[:rows] > 0, [False]])
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    return [(int(low), int(high)) for low, high in edges.reshape(-1, 2)]


def _best_path(evidence: Array, opening: Array, closing: Array) -> Array:
    """Choose an offset for each row (Viterbi); `opening` and `closing` price the offsets at both ends."""
    states = np.arange(evidence.shape[1])
    came_from = np.empty(evidence.shape, np.int8)
    score, nats = -opening, evidence / _SCALE
    for row in range(len(evidence)):
        best = int(score.argmax())
        switched = score[best] - _SWITCH
        came_from[row] = np.where(score >= switched, states, best)
        score = np.maximum(score, switched) + nats[row]
    path = np.empty(len(evidence), np.int64)
    state = int((score - closing).argmax())
    for row in range(len(evidence) - 1, -1, -1):
        path[row], state = state, came_from[row, state]
    return path


def _find_shifts(evidence: Array, offsets: Array, difference: int) -> list[Shift]:
    """Find the ranges where another offset is clearly better; files of different length may end at `difference`."""
    home = int(np.flatnonzero(offsets == 0)[0])
    usual = float(evidence[:, home].mean()) / _SCALE if len(evidence) else 0.0
    shifts: list[Shift] = []
    for low, high in _suspicious(evidence, home):
        away = np.where(offsets == 0, 0.0, _SWITCH)
        barred = np.where(offsets == 0, 0.0, np.inf)
        closing = np.where(offsets == difference, 0.0, away) if high == len(evidence) else barred
        path = _best_path(evidence[low:high], away if low == 0 else barred, closing)
        edges = np.flatnonzero(np.diff(path, prepend=-1, append=-1))
        for start, stop in pairwise((edges + low).tolist()):
            expected = stop == len(evidence) and difference != 0 and offsets[path[start - low]] == difference
            least = _EXPECTED_GAIN if expected else _LEAST_GAIN
            found = _weigh(evidence[start:stop], start, int(path[start - low]), offsets, usual, least)
            shifts += [found] if found else []
    return _joined(shifts)


def _weigh(evidence: Array, start: int, column: int, offsets: Array, usual: float, least: float) -> Shift | None:
    """Make a `Shift` of a stretch of the path, unless it is at home or gains too little."""
    offset, stop = int(offsets[column]), start + len(evidence)
    there, here = (evidence[:, which].astype(np.float64).ravel() / _SCALE for which in (column, offsets == 0))
    gain, level = float((there - here).sum()), float(there.mean())
    if offset == _NOWHERE:
        return Shift(start, stop, offset, False) if gain >= 2 * least and len(evidence) >= _LEAST_NOWHERE else None
    if offset == 0 or gain < least or level <= 0.25:
        return None
    return Shift(start, stop, offset, level > 0.5 * max(usual, 0.5))


def _joined(shifts: list[Shift]) -> list[Shift]:
    """Join ranges of one offset with but a few rows between them, which were too few to tell."""
    joined: list[Shift] = []
    for shift in shifts:
        last = joined[-1] if joined else None
        if last and last.offset == shift.offset and shift.start - last.stop <= _AROUND:
            shift = Shift(last.start, shift.stop, shift.offset, last.confident and shift.confident)
            joined.pop()
        joined.append(shift)
    return joined


# -------------------------------------------------------------------------------------------------------------- examine


class _PartDiagnosis(NamedTuple):
    """One part of the corpus: its line counts, shifted ranges, and whether its end is known to be aligned."""

    part: Part
    counts: tuple[int, int]
    shifts: list[Shift]
    settled: bool


class _Diagnosis(NamedTuple):
    """Everything `fix` needs to know."""

    normal: _Normal
    parts: list[_PartDiagnosis]


class _Tally:
    """Counts what the second reading finds, with the first few places of each kind."""

    def __init__(self, corpus: Corpus) -> None:
        self.counts: Counter[str] = Counter()
        self.places: dict[str, list[Example]] = {}
        self.errors: dict[tuple[Path, str], list[LineError]] = {}
        self.error_counts: Counter[tuple[Path, str]] = Counter()
        self.several = len(corpus.parts) > 1

    def complain(self, error: LineError) -> None:
        """Note a line that cannot be read."""
        key = (error.path, error.remedy)
        self.error_counts[key] += 1
        if len(kept := self.errors.setdefault(key, [])) < EXAMPLES:
            kept.append(error)

    def add(self, part: Part, window: _Window, masks: dict[str, Array]) -> None:
        """Note the odd pairs of a window."""
        for code, mask in masks.items():
            rows = np.flatnonzero(mask)
            self.counts[code] += len(rows)
            kept = self.places.setdefault(code, [])
            kept += [self.example(part, window, row) for row in rows[: EXAMPLES - len(kept)].tolist()]

    def example(self, part: Part, window: _Window, row: int) -> Example:
        """Quote one pair."""
        source, target = (_shown(text or "") for text in window.rows[row])
        return Example(part.paths[0].name if self.several else "", window.start + row + 1, None, f"{source} | {target}")

    def findings(self) -> Iterator[Finding]:
        """Turn what was noted into findings, in the order of the rules."""
        for key, kept in self.errors.items():
            count, first = self.error_counts[key], kept[0]
            more = f" ({count:,} such lines in this file)" if count > 1 else ""
            examples = tuple(Example(first.path.name, error.line, error.byte, error.why) for error in kept)
            yield Finding("unreadable", "fatal", count, f"{first}{more}", examples)
        for code, rule in _RULES.items():
            if self.counts[code]:
                count = self.counts[code]
                message = f"{count:,} {'pair' if count == 1 else 'pairs'}: {rule.message}"
                yield Finding(code, rule.level, count, message, tuple(self.places[code]))


class _Examination:
    """One run of `examine`: two readings over every readable part."""

    def __init__(self, corpus: Corpus, progress: Progress | None) -> None:
        self.corpus, self.progress = corpus, progress or (lambda done, total: None)
        self.failures: dict[str, Finding] = {}
        self.counts = {part: counts for part in corpus.parts if (counts := self._count(part))}
        self.total = sum(map(max, self.counts.values()))
        self.size = min(2048, max(32, self.total // 32))
        self.done = 0
        self.windows = 0
        self.survey, self.tally = _Survey(), _Tally(corpus)
        self.scorer: _Scorer | None = None

    def _count(self, part: Part) -> tuple[int, int] | None:
        try:
            return part.counts()
        except DataError as error:
            self._fail(error)
            return None

    def _fail(self, error: DataError) -> None:
        self.failures[str(error)] = Finding("file", "fatal", 1, str(error))

    def _read(self, part: Part, reach: int, complain: Callable[[LineError], None]) -> Iterator[_Window]:
        try:
            for window in _windows(iter(part.survey(complain)), self.size, reach):
                yield window
                self.done += len(window.rows)
                self.progress(self.done, 2 * self.total)
        except DataError as error:
            self._fail(error)

    def _offsets(self, part: Part) -> Array:
        """All offsets worth comparing: the near ones, and the one at which files of different length must end."""
        source, target = self.counts[part]
        difference = target - source if abs(target - source) <= FAR else 0
        return np.unique([*range(-REACH, REACH + 1), difference, _NOWHERE])

    def first_reading(self) -> None:
        """Measure the corpus, and sample it for the lexicon."""
        step = -(-self.total // SAMPLE) or 1
        number = 0
        for part in self.counts:
            offsets = self._offsets(part)
            for window in self._read(part, int(np.abs(offsets[:-1]).max()), lambda error: None):
                source, reached = _measure(window.sources), _measure([target or "" for target in window.reached])
                self.survey.add(window, source, reached.cut(slice(window.left, window.left + len(window.rows))))
                if number // 2 % step == 0 and len(window.rows) > 2 * REACH:
                    sides = [lines._replace(kinds=lines.kinds[:, :0].copy()) for lines in (source, reached)]
                    self.survey.sample.append(_Piece(number % 2, sides[0], sides[1], window.left, offsets[:-1], 0))
                number += 1

    def second_reading(self) -> _Diagnosis:
        """Judge each pair, and look for shifted ranges."""
        ratio, spread = self.survey.ratio()
        home = self.survey.home_scripts(0), self.survey.home_scripts(1)
        normal = _Normal(ratio, spread, home, *self.survey.hashes.repeats())
        if self.survey.usable >= _LEAST_PAIRS:
            self.scorer = _learn_scorer(self.survey.sample, ratio, spread)
        self.survey.sample = []
        judge = _Judge(normal)
        return _Diagnosis(normal, [self._judge_part(part, judge) for part in self.counts])

    def _judge_part(self, part: Part, judge: _Judge) -> _PartDiagnosis:
        offsets = self._offsets(part)
        evidence = np.zeros((min(self.counts[part]), len(offsets)), np.int8)
        for window in self._read(part, int(np.abs(offsets[:-1]).max()), self.tally.complain):
            if self.scorer is None:
                source, target = _measure(window.sources), _measure(window.targets)
            else:
                scores, source, target = _gather(self.scorer, window, self.windows % 2, offsets)
                rows = evidence[window.start : window.start + len(scores)]
                rows[:] = scores[: len(rows)]
            readable = np.array([None not in row for row in window.rows])
            masks = judge(window.sources, window.targets, source, target)
            self.tally.add(part, window, {code: mask & readable for code, mask in masks.items()})
            self.windows += 1
        return _diagnose(part, self.counts[part], evidence, offsets)

    def findings(self, diagnosis: _Diagnosis) -> Iterator[Finding]:
        """Everything found, the worst first."""
        yield from self.failures.values()
        for part in diagnosis.parts:
            yield from _mismatch(part)
        found = list(self.tally.findings())
        yield from (finding for finding in found if finding.level == "fatal")
        if not self.survey.usable and not self.failures:
            yield Finding("nothing", "fatal", 1, "there is no pair with text on both sides")
        yield from self._unrelated()
        yield from self._shifts(diagnosis)
        yield from (finding for finding in found if finding.level == "warning")
        yield from (finding for finding in found if finding.level == "note")

    def _unrelated(self) -> Iterator[Finding]:
        """Say when shifted lines could not be looked for, and when nothing at all goes together."""
        usable = self.survey.usable
        if self.scorer and self.scorer.power < _UNRELATED and usable >= _ENOUGH_PAIRS:
            message = (
                "the two sides look unrelated: no words go together; are these the right files, in the same order?"
            )
            yield Finding("unrelated", "warning", usable, message)
        elif usable and (self.scorer is None or self.scorer.power < _UNRELATED):
            yield Finding(
                "too_small", "note", usable, f"{usable:,} pairs are too little text to look for shifted lines"
            )

    def _shifts(self, diagnosis: _Diagnosis) -> Iterator[Finding]:
        for part in diagnosis.parts:
            name = f"{part.part.paths[0].name}: " if self.tally.several else ""
            shown = part.shifts[:_SHIFTS_SHOWN]
            for shift in shown:
                code = "nowhere" if shift.offset == _NOWHERE else "shifted"
                message = f"{name}pairs {shift.start + 1:,}–{shift.stop:,} {_direction(shift.offset)}"
                yield Finding(code, "warning", shift.stop - shift.start, message)
            if more := part.shifts[_SHIFTS_SHOWN:]:
                rows = sum(shift.stop - shift.start for shift in more)
                message = f"{name}{len(more):,} more ranges look shifted ({rows:,} pairs)"
                yield Finding("shifted", "warning", rows, message)

    def report(self, diagnosis: _Diagnosis) -> Report:
        """Put everything together."""
        try:
            languages = self.corpus.languages()
        except DataError:  # already among the findings
            languages = (None, None)
        sides = [self.survey.side(side, languages[side]) if self.survey.usable else None for side in (0, 1)]
        files, findings = tuple(map(str, self.corpus.paths)), tuple(self.findings(diagnosis))
        return Report(files, self.total, self.survey.usable, sides[0], sides[1], findings, diagnosis)


def _diagnose(part: Part, counts: tuple[int, int], evidence: Array, offsets: Array) -> _PartDiagnosis:
    """Find the shifted ranges of a part, and whether its last lines are known to fit."""
    difference = counts[1] - counts[0]
    shifts = _find_shifts(evidence, offsets, difference)
    last = shifts[-1] if shifts and shifts[-1].stop == len(evidence) else Shift(0, len(evidence), 0, True)
    end = evidence[max(last.start, len(evidence) - 200) :, offsets == last.offset]
    fits = len(evidence) > 0 and end.mean() > 0.5 * _SCALE
    return _PartDiagnosis(part, counts, shifts, difference == 0 or bool(fits and last.offset in (0, difference)))


def _direction(offset: int) -> str:
    if offset == _NOWHERE:
        return "look unrelated: no target line near fits its source line"
    return f"look shifted by {abs(offset):,} (source line n fits target line n{offset:+,})"


def _mismatch(diagnosis: _PartDiagnosis) -> Iterator[Finding]:
    """Name different line counts, and where the files probably slip."""
    source, target = diagnosis.counts
    if source == target:
        return
    paths = diagnosis.part.paths
    counts = f"{paths[0]} has {source:,} lines, {paths[1]} {target:,}"
    shifts = [shift for shift in diagnosis.shifts if abs(shift.offset) <= abs(target - source)]
    if diagnosis.settled and shifts and shifts[-1].stop == min(source, target):
        where = "the first line that no longer fits is near line " + _slip(diagnosis.shifts)
    elif diagnosis.settled:
        where = "all lines fit up to the end of the shorter file: the longer one has extra lines there"
    else:
        where = "where they slip could not be found: look for a line that was lost or split"
    yield Finding("line_counts", "fatal", abs(target - source), f"{counts}; {where}")


def _slip(shifts: list[Shift]) -> str:
    """Name the row where the last unbroken run of shifts starts, for it leads to the end of the file."""
    start = shifts[-1].start
    for shift in reversed(shifts):
        start = shift.start if abs(shift.stop - start) <= _EDGE or shift is shifts[-1] else start
    return f"{start + 1:,}"


def examine(corpus: Corpus, progress: Progress | None = None) -> Report:
    """Read a corpus twice and report what is odd about it. Never fails on bad data: that is what it reports.

    `progress(done, total)` is called now and then.
    """
    examination = _Examination(corpus, progress)
    examination.first_reading()
    return examination.report(examination.second_reading())


# ------------------------------------------------------------------------------------------------------------------ fix


@dataclass(frozen=True)
class Fixed:
    """What `fix` wrote: pairs kept, how many of them moved to the line they fit, and pairs left out by reason."""

    kept: int
    realigned: int
    dropped: dict[str, int]


def fix(corpus: Corpus, out_source: Path, out_target: Path, report: Report | None = None) -> Fixed:
    """Write the pairs worth keeping to two plain files.

    Left out: lines that cannot be read, empty or one-sided pairs, repeats, extreme length ratios, foreign scripts. A
    shifted range is put right where its pairs then look as good as the rest, less a few lines at its edges; else left
    out. Files of different length are paired only if it is known where they slip. Files that cannot be read at all, or
    nothing to keep, is a `DataError`, and nothing is written. `report` saves examining again.
    """
    diagnosis = (report or examine(corpus)).diagnosis
    if diagnosis is None or len(diagnosis.parts) < len(corpus.parts):
        corpus.count()  # raises for the file that could not be read
        raise ValueError("this report is not about this corpus")
    for part in diagnosis.parts:
        if not part.settled:
            raise DataError(f"{next(_mismatch(part)).message}; it cannot be fixed without knowing")
    with ExitStack() as files:
        write = files.enter_context(writing(out_source)), files.enter_context(writing(out_target))
        return _Repair(diagnosis, write).run()


_EDGE = 4  # rows by which a range may be off: left out on both sides of its edges, together with the offset
_LEFT_OUT = np.iinfo(np.int64).max
_SHIFTS_SHOWN = 20


class _Repair:
    """One run of `fix`."""

    def __init__(self, diagnosis: _Diagnosis, write: tuple[Callable[[str], None], Callable[[str], None]]) -> None:
        self.diagnosis, self.write = diagnosis, write
        self.judge = _Judge(diagnosis.normal)
        self.kept = self.realigned = 0
        self.dropped: Counter[str] = Counter()
        self.moved: set[int] = set()  # hashes of realigned pairs, to drop repeats among them

    def run(self) -> Fixed:
        """Read, choose and write."""
        for part in self.diagnosis.parts:
            reach = max((abs(shift.offset) for shift in part.shifts if shift.confident), default=0)
            for window in _windows(iter(part.part.survey(lambda error: None)), 2048, reach):
                self._window(window, _plan(part, window.start, len(window.rows)))
        if not self.kept:
            raise DataError("nothing in this corpus can be kept")
        return Fixed(self.kept, self.realigned, dict(self.dropped))

    def _window(self, window: _Window, plan: Array) -> None:
        found = [self._partner(window, row, offset) for row, offset in enumerate(plan.tolist())]
        sources, targets = window.sources, [target or "" for target in found]
        masks = self.judge(sources, targets, _measure(sources), _measure(targets))
        unreadable = np.array([s is None or t is None for (s, _), t in zip(window.rows, found, strict=True)])
        reasons = {"shifted": plan == _LEFT_OUT, "unreadable": unreadable}
        reasons |= {code: mask for code, mask in masks.items() if _RULES[code].drops}
        reasons["duplicate"] |= self._repeats(sources, targets, (plan != 0) & (plan != _LEFT_OUT))
        keep = np.ones(len(plan), bool)
        for code, mask in reasons.items():
            self.dropped[code] += int((mask & keep).sum())
            keep &= ~mask
        for row in np.flatnonzero(keep).tolist():
            self.write[0](sources[row].lstrip("\ufeff"))
            self.write[1](targets[row].lstrip("\ufeff"))
        self.kept += int(keep.sum())
        self.realigned += int((keep & (plan != 0)).sum())

    @staticmethod
    def _partner(window: _Window, row: int, offset: int) -> str | None:
        place = window.left + row + offset
        return window.reached[place] if 0 <= place < len(window.reached) else None

    def _repeats(self, sources: list[str], targets: list[str], moved: Array) -> Array:
        """Mark realigned pairs that the corpus has elsewhere: the first reading could not know these."""
        hashes = _Hashes.of(sources, targets)[1]
        again = _contains(self.diagnosis.normal.pairs, hashes) & moved
        for row in np.flatnonzero(moved & ~again).tolist():
            again[row] = int(hashes[row]) in self.moved
            self.moved.add(int(hashes[row]))
        return again


def _plan(diagnosis: _PartDiagnosis, start: int, count: int) -> Array:
    """Say for each row of a window at which offset its partner stands, or that it is left out."""
    plan, shorter = np.zeros(count, np.int64), min(diagnosis.counts)
    edges = []
    for shift in diagnosis.shifts:
        stop = shift.stop if shift.stop < shorter else max(diagnosis.counts)
        plan[max(0, shift.start - start) : max(0, stop - start)] = shift.offset if shift.confident else _LEFT_OUT
        margin = _EDGE + (abs(shift.offset) if shift.confident else 0)
        edges += [(edge, margin) for edge in (shift.start, stop) if 0 < edge < shorter]
    if diagnosis.counts[0] != diagnosis.counts[1] and not any(shift.stop == shorter for shift in diagnosis.shifts):
        edges.append((shorter, _NOTICE))  # too near the end to see which line is the extra one
    for edge, margin in edges:
        plan[max(0, edge - margin - start) : max(0, edge + margin - start)] = _LEFT_OUT
    return plan

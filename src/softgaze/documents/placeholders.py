"""Placeholders in text, which a translation must contain exactly as often as its source.

A placeholder is a format directive, a variable, a tag, an address, a number with a unit or code that a translation must
not change. `softgaze.documents.inline` takes them out or masks them before a translation.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from softgaze.errors import UsageError

Span = tuple[int, int]

# Symbols of units that no language translates; words such as "in" and "a" are not among them.
UNITS = (
    r"[kMGT]?(?:Hz|eV|Wh|bps|bit/s|B/s)|[kKMGTP]i?B|[kcmµμn]?m[²³]?|km/h|m/s|kph|mph|[kmµμ]?g|[mcdµμ]?[lL]|[mµμn]?s|kW|MW|GW"
    r"|[kmMhH]?Pa|[kM]?Ω|[mk]?V|mAh?|kJ|kcal|°[CF]?|px|dpi|ppi|fps|dB|rpm|%(?![(%@$*#]|[-+.]\d)|‰|kN|Nm|ha"
)
PATTERNS = (
    r"(?:https?|ftp|file)://[^\s<>\"'`{}|\\^]*[^\s<>\"'`{}|\\^.,;:!?()\[\]]",  # addresses
    r"\bwww\.[\w-]+\.[^\s<>\"'`{}|\\^]*[\w/]",
    r"(?:mailto:)?\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.\w\w+",
    r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)",  # code
    r"%\([^()\s]*\)[-+#0 ]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa]",  # %(name)s
    r"%(?:\d+\$)?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|L|z|j|t|q)?[diouxXeEfFgGaAcspn@]",  # %s %1$d %.2f
    r"%%|%[A-Z][A-Z0-9_]+%",
    r"\[X\d+X\]",  # Weblate
    r"<[A-Za-z/!?][^<>\n]*>",  # tags
    r"(?<![\w\\])\$\w+\$?",
    rf"(?<![\w.,])[-+±]?\d+(?:[.,]\d+)*[ \u00a0\u202f]?(?:{UNITS})(?![\w°²³/-])",  # 5 km, 3.5 GB, 20 °C
)
VARIABLE = re.compile(
    r"[\w.\-\[\]:!@#$<>=^,%+'*?/&|]*|\s*\w+\s*,.*", re.DOTALL
)  # in braces: a name, or an ICU argument
PERCENT_OF_NUMBER = re.compile(r"\d%[a-zA-Z]")


@dataclass(frozen=True)
class Placeholders:
    """The patterns of text that translations keep."""

    patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, protect: Sequence[str] = ()) -> "Placeholders":
        """Return the known patterns and those of a user, which come first."""
        patterns = []
        for pattern in protect:
            try:
                patterns.append(re.compile(pattern))
            except re.error as error:
                raise UsageError(f"--protect {pattern}: not a regular expression: {error}") from None
        return cls((*patterns, *map(re.compile, PATTERNS)))

    def find(self, text: str) -> list[Span]:
        """Return the spans of placeholders, which do not overlap, in order; the longest of those that start first."""
        candidates = sorted({*self.candidates(text)}, key=lambda span: (span[0], -span[1]))
        spans: list[Span] = []
        for start, end in candidates:
            if start < end and (not spans or start >= spans[-1][1]):
                spans.append((start, end))
        return spans

    def candidates(self, text: str) -> Iterator[Span]:
        for pattern in self.patterns:
            for found in pattern.finditer(text):
                start, end = found.span()
                is_percentage = PERCENT_OF_NUMBER.match(text[max(0, start - 1) :]) and text[end : end + 1].isalpha()
                if not is_percentage:
                    yield start, end
        yield from braced(text)

    def values(self, text: str) -> Counter[str]:
        return Counter(text[start:end] for start, end in self.find(text))


PLACEHOLDERS = Placeholders.of()


def braced(text: str) -> Iterator[Span]:
    """Yield the outermost pairs of braces that contain a variable: {name}, {{ name }}, ${name}, ICU arguments."""
    opened: list[int] = []
    for index, character in enumerate(text):
        if character == "{":
            opened.append(index)
        elif character == "}" and opened:
            start = opened.pop()
            inner = text[start + 1 : index]
            is_doubled = inner.startswith("{") and inner.endswith("}")
            if is_doubled or VARIABLE.fullmatch(inner):
                yield start - (text[:start][-1:] in ("$", "%", "#", "@")), index + 1

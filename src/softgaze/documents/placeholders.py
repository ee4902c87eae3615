"""Placeholders in text: found, taken out or masked before a translation and restored after it, each exactly once.

A placeholder is a format directive, a variable, a tag, an address, a number with a unit or code that a translation must
not change. A mask is a number that is not in the text, which models copy more often than anything else.
`softgaze.documents.translate` decides which of both a text needs.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from softgaze.documents.inline import InlineElement, Segment
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
FIRST_MASK = 731


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


# --- masks ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MaskedSegment:
    """A segment with masks in its text."""

    segment: Segment
    masks: dict[str, str]  # mask: placeholder

    def restore(self, markup: str) -> str | None:
        """Return a translation with its placeholders, or None unless every mask is in it exactly once."""
        if not self.masks:
            return markup
        pieces = re.split(rf"(?<!\d)({'|'.join(self.masks)})(?!\d)", markup)
        if sorted(pieces[1::2]) != sorted(self.masks):
            return None
        pieces[1::2] = [self.segment.escape(self.masks[mask]) for mask in pieces[1::2]]
        return "".join(pieces)


def mask_segment(segment: Segment, spans: Sequence[Span]) -> MaskedSegment:
    """Return a segment with a mask in each span."""
    known = segment.text + segment.raw
    numbers = (str(number) for number in count(FIRST_MASK) if str(number) not in known)
    masks = {next(numbers): segment.text[start:end] for start, end in spans}
    return MaskedSegment(substitute(segment, spans, list(masks)), masks)


def substitute(segment: Segment, spans: Sequence[Span], texts: Sequence[str]) -> Segment:
    """Return a segment with other texts in these spans; offsets within a span go to its start."""
    pieces, position, shifts = [], 0, []
    for (start, end), text in zip(spans, texts, strict=True):
        pieces += [segment.text[position:start], text]
        position = end
        shifts.append((start, end, len(text) - (end - start)))

    def moved(offset: int) -> int:
        total = sum(shift for _, end, shift in shifts if end <= offset)
        return total + next((start for start, end, _ in shifts if start < offset < end), offset)

    def copy(element: InlineElement) -> InlineElement:
        children = [copy(child) for child in element.children]
        return replace(element, start=moved(element.start), end=moved(element.end), children=children)

    text = "".join([*pieces, segment.text[position:]])
    return replace(segment, text=text, elements=[copy(element) for element in segment.elements])


# --- elements ---------------------------------------------------------------------------------------------------

TAG_NAME = re.compile(r"<(/?)([A-Za-z][\w:.-]*)[^<>]*?(/?)>")


def placeholders_as_elements(segment: Segment, spans: Sequence[Span], padding: str = "") -> Segment:
    """Return a segment without the text of placeholders, which become inline elements without words."""
    elements = copy_elements(segment.elements)
    for start, end in spans:
        markup = f"{padding}{segment.escape(segment.text[start:end])}{padding}"
        insert_element(elements, InlineElement(markup, start, "", end))
    return substitute(replace(segment, elements=elements), spans, [""] * len(spans))


def copy_elements(elements: Sequence[InlineElement]) -> list[InlineElement]:
    return [replace(element, children=copy_elements(element.children)) for element in elements]


def insert_element(elements: list[InlineElement], new: InlineElement) -> None:
    """Insert an element into the innermost one around it, in the order of the text."""
    for element in elements:
        if element.start <= new.start and new.end <= element.end:
            insert_element(element.children, new)
            return
    index = next((at for at, element in enumerate(elements) if element.start >= new.start), len(elements))
    elements.insert(index, new)


def tags_as_elements(segment: Segment, spans: Sequence[Span]) -> Segment:
    """Return a plain text with its tags as inline elements: pairs around their words, others without words."""
    bare = substitute(segment, spans, [""] * len(spans))
    removed = 0
    roots: list[InlineElement] = []
    opened: list[tuple[str, InlineElement, list[InlineElement]]] = []
    for start, end in spans:
        tag = segment.text[start:end]
        found = TAG_NAME.fullmatch(tag)
        closes, name, is_empty = found.groups() if found else ("", "", "/")
        position = start - removed
        removed += end - start
        siblings = opened[-1][1].children if opened else roots
        if closes and opened and opened[-1][0] == name:
            _, element, _ = opened.pop()
            element.after, element.end = segment.escape(tag), position
        else:
            siblings.append(InlineElement(segment.escape(tag), position, "", position))
            if not closes and not is_empty:
                opened.append((name, siblings[-1], siblings))
    for _, element, siblings in reversed(opened):  # never closed: the tag stands alone
        siblings += element.children
        element.children = []
    return replace(bare, elements=roots)

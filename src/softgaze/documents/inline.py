"""Inline elements of a text, and their positions in its translation: tags move with their words by alignment.

A `Segment` is a text with its inline elements: tags of HTML or XML, runs of office documents, placeholders. An element
keeps the markup before and after its words, so the same code serves every format.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from softgaze.alignment import StatisticalAligner
    from softgaze.explain import Attention
    from softgaze.term_placement import PlacedTerm

Span = tuple[int, int]


@dataclass
class InlineElement:
    """An inline element or an atom within the text of a segment."""

    before: str  # the opening tag, or the whole atom
    start: int  # in characters of the source text
    after: str = ""
    end: int = 0
    children: list["InlineElement"] = field(default_factory=list)
    first: int = 0  # target words, from first up to last
    last: int = 0

    def move_to(self, word: int) -> None:
        """Move an element without words, and its children, before a target word."""
        self.first = self.last = word
        for child in self.children:
            child.move_to(word)


@dataclass
class Segment:
    """Text that is translated as one, and the inline elements in it."""

    text: str = ""
    raw: str = ""  # its markup in the document
    elements: list[InlineElement] = field(default_factory=list)
    escape: Callable[[str], str] = str  # text to markup
    finish: Callable[[str], str] = str  # the markup of a translation to that of the document
    is_filled: bool = False  # the translation is added to the source, instead of replacing it


def restore_whitespace(line: str, translated: str) -> str:
    """Surround a translation with the leading and trailing white space of its source line."""
    body = line.strip()
    if not body:
        return line
    start = line.index(body)
    return f"{line[:start]}{translated}{line[start + len(body) :]}"


# --- items: from the markup of a format to segments ---------------------------------------------------------------

TEXT, OPEN, CLOSE, ATOM, BARRIER = "text", "open", "close", "atom", "barrier"


class Item(NamedTuple):
    """Text, an inline tag, an atom (markup that may stand within a sentence), or a barrier between segments."""

    kind: str
    raw: str  # its markup in the document; the items tile the document
    text: str = ""
    key: str = ""  # of tags: an opening tag matches the next closing tag with its key
    inline: str | None = None  # its markup within a translated segment, if that is another


def split_items(items: Sequence[Item], escape: Callable[[str], str]) -> list[str | Segment]:
    """Return markup and segments in order; tags without a match in their segment are markup between segments."""
    matched = match_tags(items)
    parts: list[str | Segment] = []
    run: list[Item] = []
    for index, item in enumerate([*items, None]):
        if item is not None and (item.kind in (TEXT, ATOM) or index in matched):
            run.append(item)
            continue
        if run:
            parts.append(build_segment(run, escape))
            run = []
        if item is not None:
            parts.append(item.raw)
    return parts


def lone_ranges_as_atoms(items: Sequence[Item]) -> list[Item]:
    """Return the items with every opening or closing item whose other end is not among them as an atom."""
    ends = {kind: {item.key for item in items if item.kind == kind} for kind in (OPEN, CLOSE)}
    other = {OPEN: CLOSE, CLOSE: OPEN}
    return [
        item._replace(kind=ATOM) if item.kind in other and item.key not in ends[other[item.kind]] else item
        for item in items
    ]


def match_tags(items: Sequence[Item]) -> set[int]:
    """Return the indices of tags that form elements without a barrier in them."""
    matched: set[int] = set()
    opened: list[int] = []
    for index, item in enumerate(items):
        if item.kind == OPEN:
            opened.append(index)
        elif item.kind == CLOSE and opened and items[opened[-1]].key == item.key:
            matched |= {opened.pop(), index}
        elif item.kind in (CLOSE, BARRIER):
            opened.clear()
    return matched


def build_segment(items: Sequence[Item], escape: Callable[[str], str]) -> Segment:
    """Build a segment from items whose tags are all matched."""
    segment = Segment(raw="".join(item.raw for item in items), escape=escape)
    opened: list[InlineElement] = []
    for item in items:
        siblings = opened[-1].children if opened else segment.elements
        position = len(segment.text)
        if item.kind == TEXT:
            segment.text += item.text
        elif item.kind == CLOSE:
            element = opened.pop()
            element.after, element.end = item.raw if item.inline is None else item.inline, position
        else:
            before = item.raw if item.inline is None else item.inline
            siblings.append(InlineElement(before, position, "", position))
            if item.kind == OPEN:
                opened.append(siblings[-1])
    return segment


# --- positions of the tags in the translation ------------------------------------------------------------------------


@dataclass(frozen=True)
class AlignedSegment:
    """A text, its translation, the character spans of their words, and the alignment."""

    source: str
    target: str
    source_spans: list[Span]
    target_spans: list[Span]
    links: frozenset[tuple[int, int]]  # (source word, target word)

    @classmethod
    def of(
        cls, source: str, target: str, attention: "Attention | None", statistics: "StatisticalAligner | None" = None
    ) -> "AlignedSegment":
        """Align a text by attention, and by the `statistics` of the bundle if it has some.

        Without words, if there is no attention or a poor model's words are not in the texts.
        """
        from softgaze.alignment import combined_alignment

        if attention is not None:
            source_spans = find_words(source, attention.recording.source.words)
            target_spans = find_words(target, attention.recording.target.words)
            if source_spans is not None and target_spans is not None:
                alignment = combined_alignment(attention, statistics) if statistics else attention.alignment()
                return cls(source, target, source_spans, target_spans, alignment.links)
        return cls(source, target, [], [], frozenset())

    def with_terms(self, terms: "Sequence[PlacedTerm]") -> "AlignedSegment":
        """Link the words of each term of the glossary to those of its translation, and to no others."""
        links, position = set(self.links), 0
        searched: dict[str, int] = {}  # how far the target was searched for each text
        for term in terms:
            start = self.source.find(term.source, position)
            at = self.target.find(term.target, searched.get(term.target, 0))
            if start < 0 or at < 0:
                continue
            position, searched[term.target] = start + len(term.source), at + len(term.target)
            one, other = (
                {word for word, (low, high) in enumerate(spans) if low < end and high > first}
                for spans, first, end in (
                    (self.source_spans, start, position),
                    (self.target_spans, at, at + len(term.target)),
                )
            )
            links = {link for link in links if link[0] not in one and link[1] not in other}
            links |= {(source, target) for source in one for target in other}
        return replace(self, links=frozenset(links))

    def aligned(self, words: Sequence[int]) -> list[int]:
        """Return the target words aligned to source words."""
        return sorted({target for source, target in self.links if source in words})

    def is_attached(self, element: InlineElement) -> bool:
        """Return whether an element follows the text before it without a space."""
        return element.start > 0 and not self.source[element.start - 1].isspace()

    def longest_run(self, words: Sequence[int], free: set[int]) -> range:
        """Return the longest run of target words; unaligned free words between them count as part of it."""
        unaligned = free - {target for _, target in self.links}
        best = run = range(0)
        for word in words:
            joins = bool(run) and unaligned.issuperset(range(run.stop, word))
            run = range(run.start if joins else word, word + 1)
            best = max(best, run, key=len)
        return best

    def insertion_point(self, element: InlineElement, first: int, last: int) -> int:
        """Return the target word before which an element without words goes: by its neighbour in the source."""
        before = [word for word, (start, _) in enumerate(self.source_spans) if start < element.start]
        after = [word for word, (start, _) in enumerate(self.source_spans) if start >= element.end]
        if before and self.is_attached(element):
            points = [word + 1 for word in self.aligned(before[-1:])][-1:]
        else:
            points = self.aligned(after[:1])[:1]
        if not points:
            points = [round(after[0] / len(self.source_spans) * len(self.target_spans)) if after else last]
        return min(last, max(first, points[0]))


def find_words(text: str, words: Sequence[str]) -> list[Span] | None:
    """Return the span of each word in a text, or None if one is missing."""
    spans, position = [], 0
    for word in words:
        start = text.find(word, position)
        if start < 0:
            return None
        position = start + len(word)
        spans.append((start, position))
    return spans


def assign_words(
    elements: Sequence[InlineElement], pair: AlignedSegment, scope: Sequence[int], first: int, last: int
) -> None:
    """Assign target words from `first` up to `last` to elements: no word twice, and children within their parents.

    `scope` are the source words of the parent. Longer elements choose first.
    """
    free = set(range(first, last))
    for element in sorted(elements, key=lambda element: element.start - element.end):
        words = [
            word
            for word, (start, end) in enumerate(pair.source_spans)
            if element.start < element.end and start < element.end and end > element.start
        ]
        if words and words == [*scope] and len(free) == last - first:
            span = range(first, last)
        else:
            span = pair.longest_run([word for word in pair.aligned(words) if word in free], free)
        if not span:
            point = pair.insertion_point(element, first, last)
            span = range(point, point)
        element.first, element.last = span.start, span.stop
        free -= set(span)
        assign_words(element.children, pair, words, element.first, element.last)
    for element in elements:  # an element without words goes behind a sibling, never into it
        for other in elements:
            if element.first == element.last and other.first < element.first < other.last:
                element.move_to(other.last)


def render_segment(segment: Segment, pair: AlignedSegment) -> str:
    """Return the translation of a segment with its tags, which surround the whole text if it has no words."""
    assign_words(segment.elements, pair, range(len(pair.source_spans)), 0, len(pair.target_spans))
    return insert_tags(pair.target, position_tags(segment.elements, pair, 0, len(pair.target)), segment.escape)


def insert_tags(text: str, tags: Iterator[tuple[int, str]], escape: Callable[[str], str]) -> str:
    """Return the escaped text with markup inserted at character offsets, which must be in order."""
    output, position = "", 0
    for offset, markup in tags:
        output += escape(text[position:offset]) + markup
        position = offset
    return output + escape(text[position:])


def position_tags(
    elements: Sequence[InlineElement], pair: AlignedSegment, low: int, high: int, *, is_spaced: bool = True
) -> Iterator[tuple[int, str]]:
    """Yield the character offset and markup of each tag in order, all from `low` to `high`.

    `is_spaced`: add the spaces that elements without words need; their parent has them if it has no words itself.
    """
    for element in sorted(elements, key=lambda element: (element.first, element.last, element.start)):
        start, end = element_span(element, pair, low, high)
        is_empty = element.start == element.end
        leading, trailing = missing_spaces(element, pair, start) if is_empty and is_spaced else ("", "")
        yield start, leading + element.before
        yield from position_tags(element.children, pair, start, end, is_spaced=not is_empty)
        yield end, element.after + trailing
        low = end


def element_span(element: InlineElement, pair: AlignedSegment, low: int, high: int) -> Span:
    """Return the characters of an element in the translation; punctuation outside of it stays outside."""
    spans, target = pair.target_spans, pair.target
    if element.first == element.last:
        attached = element.first and pair.is_attached(element)
        if element.first == len(spans) and not pair.source[element.end :]:  # after trailing white space
            offset = len(pair.target)
        elif attached or element.first == len(spans) > 0:
            offset = spans[element.first - 1][1]
        else:
            offset = spans[element.first][0] if element.first < len(spans) else len(pair.target)
        return (min(high, max(low, offset)),) * 2
    (start, first_end), (last_start, end) = spans[element.first], spans[element.last - 1]
    start += min(leading_punctuation(pair.source[: element.start][::-1]), leading_punctuation(target[start:first_end]))
    end -= min(leading_punctuation(pair.source[element.end :]), leading_punctuation(target[last_start:end][::-1]))
    start = min(high, max(low, start))
    return start, min(high, max(start, end))


def leading_punctuation(text: str) -> int:
    """Return the number of characters before the first letter, digit or space of a text."""
    return next((index for index, each in enumerate(text) if each.isalnum() or each.isspace()), len(text))


def missing_spaces(element: InlineElement, pair: AlignedSegment, offset: int) -> tuple[str, str]:
    """Return the spaces around an element without words: those of the source, and those that keep it from a word."""
    before, after = pair.source[: element.start][-1:], pair.source[element.start : element.start + 1]
    left, right = pair.target[:offset][-1:], pair.target[offset : offset + 1]
    leading = (before.isspace() and left and not left.isspace()) or (not before and left.isalnum())
    trailing = (after.isspace() and right and not right.isspace()) or (not after.isalnum() and right.isalnum())
    return " " * bool(leading), " " * bool(trailing)


# --- placeholders as masks ----------------------------------------------------------------------------------------

FIRST_MASK = 731  # a mask is a number that is not in the text, which models copy more often than anything else


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


# --- placeholders and tags as elements ----------------------------------------------------------------------------

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

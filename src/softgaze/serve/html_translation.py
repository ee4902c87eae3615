"""Translate HTML: every tag is kept and closed in order, and text is escaped.

Block tags split the text into segments that are translated one by one. Inline tags move with their words along the
alignment by attention, and by the statistical aligner of the bundle if it has one. A model without attention
translates the text between any two tags.
"""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING, NamedTuple

from softgaze.alignment import combined_alignment
from softgaze.search.options import SearchOptions
from softgaze.serve.explain_jobs import MAX_EXPLAINED_CHARACTERS
from softgaze.serve.model_registry import ServedModel
from softgaze.serve.translate_jobs import restore_whitespace
from softgaze.translator import Translation

if TYPE_CHECKING:
    from softgaze.alignment import StatisticalAligner
    from softgaze.explain import Attention


def tag_set(names: str) -> frozenset[str]:
    return frozenset(names.split())


INLINE_TAGS = tag_set(
    "a abbr acronym b bdi bdo big cite data del dfn em font g i img ins label mark ph q rp rt ruby s small span strike "
    "strong sub sup time tt u wbr x"
)
VOID_TAGS = tag_set("area base br col embed hr img input link meta param source track wbr")
OPAQUE_TAGS = tag_set("code kbd math noscript samp script style svg template textarea var")  # not translated
INVISIBLE_TAGS = tag_set("script style template")

TEXT, OPEN, CLOSE, ATOM = "text", "open", "close", "atom"  # atom: kept as it is; may stand within a sentence
INLINE_ATOM, BLOCK_ATOM = "span", "!"  # the tags of atoms that are no single tag

Span = tuple[int, int]


class HtmlToken(NamedTuple):
    """Text, a tag, or raw HTML that is kept as it is."""

    kind: str
    raw: str  # of text: unescaped
    tag: str = ""


class HtmlTokenizer(HTMLParser):
    """Split HTML into tokens; the content of opaque elements is part of one token."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tokens: list[HtmlToken] = []
        self.opaque: list[str] = []  # open opaque elements
        self.opaque_raw = ""  # their HTML so far

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raw = self.get_starttag_text() or f"<{tag}>"
        if self.opaque or tag in OPAQUE_TAGS or ("translate", "no") in attrs:
            self.opaque_raw += raw
            if tag not in VOID_TAGS:
                self.opaque.append(tag)
            elif not self.opaque:
                self.end_opaque(tag)
        else:
            self.tokens.append(HtmlToken(ATOM if tag in VOID_TAGS else OPEN, raw, tag))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.add_atom(self.get_starttag_text() or f"<{tag}/>", tag)

    def handle_endtag(self, tag: str) -> None:
        """Handle a closing tag; within an opaque element, one that closes nothing is kept."""
        raw = f"</{tag}>"
        if not self.opaque:
            self.tokens.append(HtmlToken(CLOSE, raw, tag))
            return
        self.opaque_raw += raw
        if tag in self.opaque:
            del self.opaque[len(self.opaque) - 1 - self.opaque[::-1].index(tag) :]
        if not self.opaque:
            self.end_opaque(tag)

    def handle_data(self, data: str) -> None:
        """Handle text; the parser unescapes it except in scripts and styles."""
        if self.opaque:
            self.opaque_raw += data if self.cdata_elem else escape(data)
        elif self.tokens and self.tokens[-1].kind == TEXT:
            self.tokens[-1] = HtmlToken(TEXT, self.tokens[-1].raw + data)
        else:
            self.tokens.append(HtmlToken(TEXT, data))

    def handle_comment(self, data: str) -> None:
        self.add_atom(f"<!--{data}-->", INLINE_ATOM)

    def handle_decl(self, decl: str) -> None:
        self.add_atom(f"<!{decl}>", BLOCK_ATOM)

    def unknown_decl(self, data: str) -> None:
        self.add_atom(f"<![{data}]>", BLOCK_ATOM)

    def handle_pi(self, data: str) -> None:
        self.add_atom(f"<?{data}>", BLOCK_ATOM)

    def add_atom(self, raw: str, tag: str) -> None:
        """Add HTML without translatable content."""
        if self.opaque:
            self.opaque_raw += raw
        else:
            self.tokens.append(HtmlToken(ATOM, raw, tag))

    def end_opaque(self, tag: str) -> None:
        self.tokens.append(HtmlToken(ATOM, self.opaque_raw, BLOCK_ATOM if tag in INVISIBLE_TAGS else INLINE_ATOM))
        self.opaque_raw = ""


def tokenize_html(document: str) -> list[HtmlToken]:
    """Return the tokens of HTML, which may be incomplete."""
    tokenizer = HtmlTokenizer()
    tokenizer.feed(document)
    tokenizer.close()
    if tokenizer.opaque_raw:
        tokenizer.tokens.append(HtmlToken(ATOM, tokenizer.opaque_raw, BLOCK_ATOM))
    return tokenizer.tokens


def escape(text: str) -> str:
    return html.escape(text, quote=False)


# --- segments ---------------------------------------------------------------------------------------------------


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
class HtmlSegment:
    """Text that is translated as one, and the inline elements in it."""

    raw: str = ""
    text: str = ""
    elements: list[InlineElement] = field(default_factory=list)

    @property
    def is_translatable(self) -> bool:
        """Whether the text contains a letter."""
        return any(map(str.isalpha, self.text))


def split_segments(tokens: Sequence[HtmlToken], *, inline: bool) -> list[str | HtmlSegment]:
    """Return raw HTML and segments in order; without `inline`, every tag ends a segment."""
    pairs = match_inline_tags(tokens) if inline else set()
    parts: list[str | HtmlSegment] = []
    run: list[HtmlToken] = []
    for index, token in enumerate([*tokens, None]):
        if token is not None and (
            token.kind == TEXT or index in pairs or (inline and token.kind == ATOM and token.tag in INLINE_TAGS)
        ):
            run.append(token)
            continue
        characters = sum(len(part.raw) for part in run if part.kind == TEXT)
        if characters > MAX_EXPLAINED_CHARACTERS and len(run) > 1:  # too long for attention
            parts += split_segments(run, inline=False)
        elif run:
            parts.append(build_segment(run))
        run = []
        if token is not None:
            parts.append(token.raw)
    return parts


def match_inline_tags(tokens: Sequence[HtmlToken]) -> set[int]:
    """Return the indices of inline tags that form elements without block tags in them."""
    matched: set[int] = set()
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind == TEXT or (token.kind == ATOM and token.tag in INLINE_TAGS):
            continue
        if token.tag not in INLINE_TAGS:
            opened.clear()
        elif token.kind == OPEN:
            opened.append(index)
        elif opened and tokens[opened[-1]].tag == token.tag:
            matched |= {opened.pop(), index}
        else:
            opened.clear()
    return matched


def build_segment(tokens: Sequence[HtmlToken]) -> HtmlSegment:
    """Build a segment from tokens whose tags are all matched."""
    segment = HtmlSegment()
    opened: list[InlineElement] = []
    for token in tokens:
        siblings = opened[-1].children if opened else segment.elements
        position = len(segment.text)
        segment.raw += escape(token.raw) if token.kind == TEXT else token.raw
        if token.kind == TEXT:
            segment.text += token.raw
        elif token.kind == CLOSE:
            element = opened.pop()
            element.after, element.end = token.raw, position
        else:
            siblings.append(InlineElement(token.raw, position, "", position))
            if token.kind == OPEN:
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
        if attention is not None:
            source_spans = find_words(source, attention.recording.source.words)
            target_spans = find_words(target, attention.recording.target.words)
            if source_spans is not None and target_spans is not None:
                alignment = combined_alignment(attention, statistics) if statistics else attention.alignment()
                return cls(source, target, source_spans, target_spans, alignment.links)
        return cls(source, target, [], [], frozenset())

    def aligned(self, words: Sequence[int]) -> list[int]:
        """Return the target words aligned to source words."""
        return sorted({target for source, target in self.links if source in words})

    def is_attached(self, element: InlineElement) -> bool:
        """Return whether an element follows the text before it without a space."""
        return not self.source[: element.start][-1:].isspace()

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


def render_segment(segment: HtmlSegment, pair: AlignedSegment) -> str:
    """Return the translation of a segment with its tags, which surround the whole text if it has no words."""
    assign_words(segment.elements, pair, range(len(pair.source_spans)), 0, len(pair.target_spans))
    output, position = "", 0
    for offset, raw in position_tags(segment.elements, pair, 0, len(pair.target)):
        output += escape(pair.target[position:offset]) + raw
        position = offset
    return output + escape(pair.target[position:])


def position_tags(
    elements: Sequence[InlineElement], pair: AlignedSegment, low: int, high: int
) -> Iterator[tuple[int, str]]:
    """Yield the character offset and HTML of each tag in order, all from `low` to `high`."""
    for element in sorted(elements, key=lambda element: (element.first, element.last, element.start)):
        start, end = element_span(element, pair, low, high)
        leading, trailing = missing_spaces(element, pair, start) if element.start == element.end else ("", "")
        yield start, leading + element.before
        yield from position_tags(element.children, pair, start, end)
        yield end, element.after + trailing
        low = end


def element_span(element: InlineElement, pair: AlignedSegment, low: int, high: int) -> Span:
    """Return the characters of an element in the translation; punctuation outside of it stays outside."""
    spans = pair.target_spans
    if element.first == element.last:
        attached = element.first and pair.is_attached(element)
        if attached or element.first == len(spans) > 0:
            offset = spans[element.first - 1][1]
        else:
            offset = spans[element.first][0] if element.first < len(spans) else len(pair.target)
        return (min(high, max(low, offset)),) * 2
    (start, first_end), (last_start, end) = spans[element.first], spans[element.last - 1]
    if is_punctuation(pair.source[: element.start][-1:]):
        start += leading_punctuation(pair.target[start:first_end])
    if is_punctuation(pair.source[element.end : element.end + 1]):
        end -= leading_punctuation(pair.target[last_start:end][::-1])
    start = min(high, max(low, start))
    return start, min(high, max(start, end))


def is_punctuation(character: str) -> bool:
    return bool(character) and not character.isspace() and not character.isalnum()


def leading_punctuation(word: str) -> int:
    """Return the number of characters before the first letter or digit of a word; 0 if it has none."""
    return next((index for index, character in enumerate(word) if character.isalnum()), 0)


def missing_spaces(element: InlineElement, pair: AlignedSegment, offset: int) -> tuple[str, str]:
    """Return the spaces that an element without words has around it in the source but not at its new offset."""
    source, target = pair.source, pair.target
    leading = source[: element.start][-1:].isspace() and offset > 0 and not target[offset - 1].isspace()
    trailing = source[element.start : element.start + 1].isspace() and not target[offset : offset + 1].isspace()
    return " " * leading, " " * (trailing and offset < len(target))


# --- job --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TranslateHtmlJob:
    model: ServedModel
    options: SearchOptions

    def run(self, documents: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Return each document and its alternatives; the segments of all documents are translated in one batch."""
        split = [split_segments(tokenize_html(document), inline=self.model.has_attention) for document in documents]
        segments = [part for parts in split for part in parts if isinstance(part, HtmlSegment) and part.is_translatable]
        translated = list(self.model.translator.translate_lines([segment.text for segment in segments], self.options))
        rendered = iter(self.render(segments, translated))
        results = []
        for parts in split:
            columns = [
                [part] if isinstance(part, str) else next(rendered) if part.is_translatable else [part.raw]
                for part in parts
            ]
            ranks = range(max(map(len, columns), default=1))
            best, *others = dict.fromkeys(
                "".join(column[min(rank, len(column) - 1)] for column in columns) for rank in ranks
            )
            results.append((best, others))
        return results

    def render(self, segments: Sequence[HtmlSegment], translated: Sequence[Translation]) -> list[list[str]]:
        """Return the HTML of each segment: the translation, then its alternatives."""
        ranked = [(segment, [best, *best.alternatives]) for segment, best in zip(segments, translated, strict=True)]
        tagged = [hypothesis for segment, ranks in ranked if segment.elements for hypothesis in ranks]
        recorded = iter(self.model.prepare_attention().attentions(tagged) if tagged else [])
        rendered = []
        for segment, hypotheses in ranked:
            pairs = [
                AlignedSegment.of(
                    segment.text,
                    restore_whitespace(segment.text, hypothesis.text),
                    next(recorded) if segment.elements else None,
                    self.model.translator.statistical_aligner,
                )
                for hypothesis in hypotheses
            ]
            rendered.append([render_segment(segment, pair) for pair in pairs])
        return rendered

"""HTML in, HTML out: every tag comes back, once and closed where it must be, and text comes back escaped.

Block tags divide the text into segments that are translated for themselves. Inline tags move with their words, by the
links that attention gives; a model without attention translates what stands between any two tags.
"""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from typing import TYPE_CHECKING, NamedTuple

from softgaze.search.settings import Search
from softgaze.serve.looks import LONGEST
from softgaze.serve.shelf import Model
from softgaze.serve.texts import framed
from softgaze.translator import Translation

if TYPE_CHECKING:
    from softgaze.gaze import Attention

PHRASING = (
    "a abbr acronym b bdi bdo big cite data del dfn em font i img ins label mark q rp rt ruby s small span strike"
)
INLINE = frozenset([*PHRASING.split(), "strong", "sub", "sup", "time", "tt", "u", "wbr", "x", "g", "ph"])
VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
KEPT = frozenset(  # not for translation
    ("code", "kbd", "math", "noscript", "samp", "script", "style", "svg", "template", "textarea", "var")
)

Links = frozenset[tuple[int, int]]  # (source word, target word)


# --- reading ----------------------------------------------------------------------------------------------------


class Token(NamedTuple):
    """One piece of HTML."""

    kind: str  # "text", "open", "close" or "atom": what is kept as it is, and may stand within a sentence
    raw: str  # of a text: what it says, without escapes
    tag: str = ""


class Reader(HTMLParser):
    """Cuts HTML into tokens; whatever is between kept tags is one of them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tokens: list[Token] = []
        self.kept: list[str] = []  # open tags whose content is kept
        self.held = ""  # what was kept so far

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag that opens."""
        raw = self.get_starttag_text() or f"<{tag}>"
        if self.kept or tag in KEPT or ("translate", "no") in attrs:
            self.held += raw
            if tag not in VOID:
                self.kept.append(tag)
            elif not self.kept:
                self.release(tag)
        else:
            self.tokens.append(Token("atom" if tag in VOID else "open", raw, tag))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag that opens and closes."""
        self.atom(self.get_starttag_text() or f"<{tag}/>", tag)

    def handle_endtag(self, tag: str) -> None:
        """A tag that closes; one that closes nothing of what is kept stays in it."""
        raw = f"</{tag}>"
        if not self.kept:
            self.tokens.append(Token("close", raw, tag))
            return
        self.held += raw
        if tag in self.kept:
            del self.kept[len(self.kept) - 1 - self.kept[::-1].index(tag) :]
        if not self.kept:
            self.release(tag)

    def handle_data(self, data: str) -> None:
        """Text; within scripts and styles as it stands, elsewhere without escapes."""
        if self.kept:
            self.held += data if self.cdata_elem else html.escape(data, quote=False)
        elif self.tokens and self.tokens[-1].kind == "text":
            self.tokens[-1] = Token("text", self.tokens[-1].raw + data)
        else:
            self.tokens.append(Token("text", data))

    def handle_comment(self, data: str) -> None:
        """A comment."""
        self.atom(f"<!--{data}-->", "span")

    def handle_decl(self, decl: str) -> None:
        """A doctype."""
        self.atom(f"<!{decl}>", "!")

    def unknown_decl(self, data: str) -> None:
        """A marked section."""
        self.atom(f"<![{data}]>", "!")

    def handle_pi(self, data: str) -> None:
        """A processing instruction."""
        self.atom(f"<?{data}>", "!")

    def atom(self, raw: str, tag: str) -> None:
        """Something without content."""
        if self.kept:
            self.held += raw
        else:
            self.tokens.append(Token("atom", raw, tag))

    def release(self, tag: str) -> None:
        """What was kept, as one token; inline if it stands for a word."""
        self.tokens.append(Token("atom", self.held, "span" if tag not in ("script", "style", "template") else "!"))
        self.held = ""

    def finish(self) -> list[Token]:
        """All tokens, also of HTML that ends too soon."""
        self.close()
        if self.held:
            self.release("!")
        return self.tokens


def read(text: str) -> list[Token]:
    """The tokens of some HTML."""
    reader = Reader()
    reader.feed(text)
    return reader.finish()


# --- segments ---------------------------------------------------------------------------------------------------


@dataclass
class Element:
    """An inline element, or something without content, at its place in the text of a segment."""

    before: str  # the opening tag, or all of it
    start: int
    after: str = ""
    end: int = 0
    children: list["Element"] = field(default_factory=list)
    first: int = 0  # target words, once it is placed
    last: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there are no words in it."""
        return self.start == self.end


@dataclass
class Segment:
    """Text that is translated as one, and the elements in it."""

    raw: str = ""
    text: str = ""
    elements: list[Element] = field(default_factory=list)

    @property
    def is_text(self) -> bool:
        """Whether there is anything to translate."""
        return any(map(str.isalpha, self.text))


def segments(tokens: Sequence[Token], *, inline: bool) -> list[str | Segment]:
    """Raw HTML and segments, in order."""
    pairs = matched(tokens) if inline else {}
    found: list[str | Segment] = []
    for run in runs(tokens, pairs, inline=inline):
        if isinstance(run, Token):
            found.append(run.raw)
        elif sum(len(each.raw) for each in run if each.kind == "text") > LONGEST and len(run) > 1:
            found += segments(run, inline=False)
        else:
            found.append(segment_of(run))
    return found


def matched(tokens: Sequence[Token]) -> dict[int, int]:
    """Inline tags that belong together: {number of the opening one: of the closing one}, and the other way round."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for number, token in enumerate(tokens):
        if token.kind == "text" or (token.kind == "atom" and token.tag in INLINE):
            continue
        if token.tag not in INLINE:
            opened.clear()  # an inline element around a block is not one of a sentence
        elif token.kind == "open":
            opened.append(number)
        elif opened and tokens[opened[-1]].tag == token.tag:
            start = opened.pop()
            pairs[start], pairs[number] = number, start
        else:
            opened.clear()
    return pairs


def runs(tokens: Sequence[Token], pairs: dict[int, int], *, inline: bool) -> Iterator[Token | list[Token]]:
    """Tokens that divide, and what stands between two of them."""
    run: list[Token] = []
    for number, token in enumerate(tokens):
        within = token.kind == "text" or number in pairs or (inline and token.kind == "atom" and token.tag in INLINE)
        if within:
            run.append(token)
            continue
        if run:
            yield run
        yield token
        run = []
    if run:
        yield run


def segment_of(run: Sequence[Token]) -> Segment:
    """Text and elements of tokens whose tags are all matched."""
    found = Segment()
    opened: list[Element] = []
    for token in run:
        siblings = opened[-1].children if opened else found.elements
        place = len(found.text)
        found.raw += escape(token.raw) if token.kind == "text" else token.raw
        if token.kind == "text":
            found.text += token.raw
        elif token.kind == "close":
            opened[-1].after, opened[-1].end = token.raw, place
            opened.pop()
        else:
            siblings.append(Element(token.raw, place, "", place))
            if token.kind == "open":
                opened.append(siblings[-1])
    return found


# --- placing ----------------------------------------------------------------------------------------------------


Span = tuple[int, int]


@dataclass(frozen=True)
class Sides:
    """The words of a text and of its translation, and which mean which."""

    source: str
    target: str
    source_spans: list[Span]
    target_spans: list[Span]
    links: Links

    @classmethod
    def of(cls, source: str, target: str, attention: "Attention") -> "Sides | None":
        """None if the words are not those of the texts: a model that has learnt little may write such."""
        sides = attention.recording.source.words, attention.recording.target.words
        spans = [spans_of(text, words) for text, words in zip((source, target), sides, strict=True)]
        if spans[0] is None or spans[1] is None:
            return None
        return cls(source, target, spans[0], spans[1], attention.alignment().links)

    def words_in(self, element: Element) -> list[int]:
        """Source words that an element has something of."""
        return [
            word for word, (start, end) in enumerate(self.source_spans) if start < element.end and end > element.start
        ]

    def neighbours(self, element: Element) -> tuple[int | None, int | None]:
        """The source words before and after an element."""
        before = [word for word, (start, _) in enumerate(self.source_spans) if start < element.start]
        after = [word for word, (start, _) in enumerate(self.source_spans) if start >= element.end]
        return before[-1] if before else None, after[0] if after else None

    def linked(self, words: Sequence[int]) -> list[int]:
        """Target words of source words."""
        return sorted({target for source, target in self.links if source in words})

    @cached_property
    def spoken(self) -> set[int]:
        """Target words that mean something."""
        return {target for _, target in self.links}

    def start_of(self, word: int) -> int:
        """The first character of a target word, or the end of them all."""
        return self.target_spans[word][0] if word < len(self.target_spans) else len(self.target)


def spans_of(text: str, words: Sequence[str]) -> list[Span] | None:
    """Where words stand in a text."""
    found, place = [], 0
    for word in words:
        start = text.find(word, place)
        if start < 0:
            return None
        place = start + len(word)
        found.append((start, place))
    return found


def place(elements: Sequence[Element], sides: Sides, scope: Sequence[int], first: int, last: int) -> None:
    """Give each element its target words, from `first` up to `last`: no word twice, and children within parents.

    `scope` are the source words that they share.
    """
    free = set(range(first, last))
    for element in sorted(elements, key=lambda each: each.start - each.end):
        words = [] if element.is_empty else sides.words_in(element)
        own = longest_run([word for word in sides.linked(words) if word in free], sides, free)
        if words and words == [*scope] and len(free) == last - first:
            own = range(first, last)
        if not own:
            spot = position(element, sides, first, last)
            own = range(spot, spot)
        element.first, element.last = own.start, own.stop
        free -= set(own)
        place(element.children, sides, words, element.first, element.last)
    settle(elements)


def settle(elements: Sequence[Element]) -> None:
    """Who has no word of its own stands beside those that have, never in the middle of one."""
    for element in elements:
        for other in elements:
            if element.first == element.last and other.first < element.first < other.last:
                move(element, other.last)


def move(element: Element, spot: int) -> None:
    """Somewhere else, with all that is in it."""
    element.first = element.last = spot
    for child in element.children:
        move(child, spot)


def longest_run(words: Sequence[int], sides: Sides, free: set[int]) -> range:
    """The most of these words that stand together, but for words between them that mean nothing else."""
    best = run = range(0)
    for word in words:
        joins = bool(run) and all(each in free and each not in sides.spoken for each in range(run.stop, word))
        run = range(run.start, word + 1) if joins else range(word, word + 1)
        best = max(best, run, key=len)
    return best


def position(element: Element, sides: Sides, first: int, last: int) -> int:
    """Before which target word stands what has no words: where its neighbour among the source words went."""
    before, after = sides.neighbours(element)
    if before is not None and is_attached(sides.source, element.start):
        spots = [word + 1 for word in sides.linked([before])][-1:]
    else:
        spots = sides.linked([] if after is None else [after])[:1]
    if not spots:
        spots = [last if after is None else round(after / len(sides.source_spans) * len(sides.target_spans))]
    return min(last, max(first, spots[0]))


def is_attached(text: str, place: int) -> bool:
    """Whether no space stands before a place."""
    return not text[:place][-1:].isspace()


# --- writing ----------------------------------------------------------------------------------------------------


def written(segment: Segment, sides: Sides) -> str:
    """The translation of a segment, its tags among the words."""
    count = len(sides.target_spans)
    place(segment.elements, sides, range(len(sides.source_spans)), 0, count)
    out, at = "", 0
    for spot, raw in tags(segment.elements, sides, 0, len(sides.target)):
        out += escape(sides.target[at:spot]) + raw
        at = spot
    return out + escape(sides.target[at:])


def tags(elements: Sequence[Element], sides: Sides, low: int, high: int) -> Iterator[tuple[int, str]]:
    """Where in the translation each tag goes, in order; none before `low` or after `high`."""
    for element in sorted(elements, key=lambda each: (each.first, each.last, each.start)):
        start, end = edges(element, sides, low, high)
        ahead, behind = spaces(element, sides, start) if element.is_empty else ("", "")
        yield start, ahead + element.before
        yield from tags(element.children, sides, start, end)
        yield end, element.after + behind
        low = end


def edges(element: Element, sides: Sides, low: int, high: int) -> Span:
    """Where an element begins and ends, in characters; punctuation it did not have stays outside."""
    spans = sides.target_spans
    if element.first == element.last:
        attached = element.first and is_attached(sides.source, element.start)
        spot = (
            spans[element.first - 1][1]
            if attached or element.first == len(spans) > 0
            else sides.start_of(element.first)
        )
        return (min(high, max(low, spot)),) * 2
    (start, first_end), (last_start, end) = spans[element.first], spans[element.last - 1]
    if is_mark(sides.source[: element.start][-1:]):
        start += leading_marks(sides.target[start:first_end])
    if is_mark(sides.source[element.end : element.end + 1]):
        end -= leading_marks(sides.target[last_start:end][::-1])
    start = min(high, max(low, start))
    return start, min(high, max(start, end))


def is_mark(character: str) -> bool:
    """Whether it is punctuation."""
    return bool(character) and not character.isspace() and not character.isalnum()


def leading_marks(word: str) -> int:
    """How much of a word is punctuation before its first letter; none of a word that has no letter."""
    return next((place for place, each in enumerate(word) if each.isalnum()), 0)


def spaces(element: Element, sides: Sides, spot: int) -> tuple[str, str]:
    """The spaces that something without words had around it, where its new place has none."""
    before, after = sides.source[: element.start][-1:], sides.source[element.start : element.start + 1]
    ahead = before.isspace() and spot > 0 and not sides.target[spot - 1].isspace()
    behind = after.isspace() and spot < len(sides.target) and not sides.target[spot].isspace()
    return " " * ahead, " " * behind


def escape(text: str) -> str:
    """As HTML has it."""
    return html.escape(text, quote=False)


# --- work -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TranslateMarkup:
    """HTML in; HTML and its alternatives out."""

    model: Model
    search: Search

    def run(self, documents: Sequence[str]) -> list[tuple[str, list[str]]]:
        """One for each, all segments of all documents together."""
        every = [segments(read(document), inline=self.model.looks) for document in documents]
        wanted = [each for own in every for each in own if isinstance(each, Segment) and each.is_text]
        found = list(self.model.translator.translate_block([each.text for each in wanted], self.search))
        ranked = iter(self.rendered(wanted, found))
        return [self.document(own, ranked) for own in every]

    def rendered(self, wanted: Sequence[Segment], found: Sequence[Translation]) -> list[list[str]]:
        """Each segment in HTML: the translation, then its alternatives."""
        ranks = [[best, *best.alternatives] for best in found]
        tagged = [each for own, segment in zip(ranks, wanted, strict=True) if segment.elements for each in own]
        looks = iter(self.model.ready_to_look().attentions(tagged) if tagged else [])
        return [
            [self.one(segment, each, next(looks) if segment.elements else None) for each in own]
            for own, segment in zip(ranks, wanted, strict=True)
        ]

    def one(self, segment: Segment, translation: Translation, attention: "Attention | None") -> str:
        """A segment in HTML; where words cannot be told apart, its tags stand around everything."""
        text = framed(segment.text, translation.text)
        if not segment.elements:
            return escape(text)
        sides = Sides.of(segment.text, text, attention) if attention else None
        return written(segment, sides or Sides(segment.text, text, [], [], frozenset()))

    def document(self, parts: Sequence[str | Segment], ranked: Iterator[list[str]]) -> tuple[str, list[str]]:
        """Raw parts and segments put together again, for each rank."""
        columns = [[part] if isinstance(part, str) else next(ranked) if part.is_text else [part.raw] for part in parts]
        depth = max(map(len, columns), default=1)
        every = ["".join(own[min(rank, len(own) - 1)] for own in columns) for rank in range(depth)]
        return every[0], [each for each in dict.fromkeys(every) if each != every[0]]

"""HTML: every tag is kept and closed in order, and text is escaped.

Block tags split the text into segments. Inline tags belong to the segment. HTML may be incomplete or wrong.
"""

import html
import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import NamedTuple

from softgaze.documents.base import DocumentOptions, TextDocument, decode_declared
from softgaze.documents.inline import ATOM, BARRIER, CLOSE, OPEN, TEXT, Item, Segment, split_items


def tag_set(names: str) -> frozenset[str]:
    return frozenset(names.split())


INLINE_TAGS = tag_set(
    "a abbr acronym b bdi bdo big cite data del dfn em font g i img ins label mark ph q rp rt ruby s small span strike "
    "strong sub sup time tt u wbr x"
)
VOID_TAGS = tag_set("area base br col embed hr img input link meta param source track wbr")
OPAQUE_TAGS = tag_set("code kbd math noscript samp script style svg template textarea var")  # not translated
INVISIBLE_TAGS = tag_set("script style template")


class TagRules(NamedTuple):
    """Which tags end a segment and which elements are not translated."""

    is_xml: bool = False  # every tag is inline unless it splits
    splitting: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()

    def is_inline(self, tag: str) -> bool:
        return tag not in self.splitting and (self.is_xml or tag in INLINE_TAGS)

    def is_void(self, tag: str) -> bool:
        return not self.is_xml and tag in VOID_TAGS

    def is_opaque(self, tag: str) -> bool:
        return tag in self.ignored or (not self.is_xml and tag in OPAQUE_TAGS)


HTML_RULES = TagRules()
ENCODING = re.compile(
    rb"""<(?:meta|\?xml)\b[^<>]*\b(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9._-]+)""", re.IGNORECASE
)


class HtmlTokenizer(HTMLParser):
    """Split HTML into items; the content of opaque elements is part of one item. The items tile the document."""

    def __init__(self, document: str, rules: TagRules = HTML_RULES) -> None:
        super().__init__(convert_charrefs=True)
        self.rules = rules
        self.line_starts = [0, *(index + 1 for index, character in enumerate(document) if character == "\n")]
        self.found: list[tuple[int, Item]] = []  # with their offsets in the document
        self.opaque: list[str] = []  # open opaque elements
        self.opaque_start = 0
        self.feed(document)
        self.close()
        if self.opaque:
            self.found.append((self.opaque_start, Item(BARRIER, "")))
        starts = [0, *(start for start, _ in self.found[1:]), len(document)]
        found = [item for _, item in self.found] or [Item(BARRIER, "")]
        self.items = [
            item._replace(raw=document[start:end]) for item, (start, end) in zip(found, pairwise(starts), strict=True)
        ]

    def position(self) -> int:
        line, column = self.getpos()
        return self.line_starts[line - 1] + column

    def add(self, kind: str, text: str = "", key: str = "") -> None:
        """Add an item that starts here, unless it is within an opaque element."""
        if not self.opaque:
            self.found.append((self.position(), Item(kind, "", text, key)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.opaque or self.rules.is_opaque(tag) or ("translate", "no") in attrs:
            self.opaque_start = self.opaque_start if self.opaque else self.position()
            if not self.rules.is_void(tag):
                self.opaque.append(tag)
            elif not self.opaque:
                self.add(ATOM)
        else:
            kind = BARRIER if not self.rules.is_inline(tag) else ATOM if self.rules.is_void(tag) else OPEN
            self.add(kind, key=tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.add(ATOM if self.rules.is_inline(tag) else BARRIER)

    def handle_endtag(self, tag: str) -> None:
        """Handle a closing tag; within an opaque element, one that closes nothing is kept."""
        if not self.opaque:
            self.add(CLOSE if self.rules.is_inline(tag) else BARRIER, key=tag)
            return
        if tag in self.opaque:
            del self.opaque[len(self.opaque) - 1 - self.opaque[::-1].index(tag) :]
        if not self.opaque:
            self.found.append((self.opaque_start, Item(BARRIER if tag in INVISIBLE_TAGS else ATOM, "")))

    def handle_data(self, data: str) -> None:
        """Handle text, which the parser has unescaped."""
        if not self.opaque and self.found and self.found[-1][1].kind == TEXT:
            start, item = self.found[-1]
            self.found[-1] = start, item._replace(text=item.text + data)
        else:
            self.add(TEXT, data)

    def handle_comment(self, data: str) -> None:
        self.add(ATOM)

    def handle_decl(self, decl: str) -> None:
        self.add(BARRIER)

    def unknown_decl(self, data: str) -> None:
        self.add(BARRIER)

    def handle_pi(self, data: str) -> None:
        self.add(BARRIER)


def split_html(document: str, rules: TagRules = HTML_RULES) -> list[str | Segment]:
    """Return markup and segments of HTML, which may be incomplete."""
    return split_items(HtmlTokenizer(document, rules).items, escape)


def escape(text: str) -> str:
    return html.escape(text, quote=False)


def parse(content: bytes, options: DocumentOptions) -> TextDocument:
    """Open an HTML file."""
    file = decode_declared(content, ENCODING)
    return TextDocument(split_html(file.text), file)

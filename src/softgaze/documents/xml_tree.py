"""A lossless tree of an XML file: the markup of all nodes, joined, is the file.

Expat checks the file first; a file that declares entities is rejected, so nothing expands and nothing is fetched.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat

from softgaze.documents.base import TextFile, decode_declared
from softgaze.documents.inline import (
    ATOM,
    BARRIER,
    CLOSE,
    OPEN,
    TEXT,
    Item,
    Segment,
    lone_ranges_as_atoms,
    split_items,
)
from softgaze.errors import DataError

MAX_DEPTH = 200
MAX_BYTES = 32 << 20  # of one XML file: its tree takes about 20 times as much memory
TOKEN = re.compile(
    r"""<!--.*?--> | <\?.*?\?> | <!\[CDATA\[.*?\]\]> | <(?:[^>"']++|"[^"]*+"|'[^']*+')*+> | [^<]+""",
    re.DOTALL | re.VERBOSE,
)
ATTRIBUTE = re.compile(r"""([^\s=<>"'/]+)\s*=\s*("[^"]*"|'[^']*')""")
ENCODING = re.compile(rb"""^<\?xml[^>]*encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
CHARACTERS, MARKUP = "#text", "#markup"  # names of nodes that are not elements
NAMESPACES = {  # the prefix that we use for a namespace, whichever one the file uses
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
    "http://purl.oclc.org/ooxml/drawingml/main": "a",
    "urn:oasis:names:tc:opendocument:xmlns:text:1.0": "text",
    "urn:oasis:names:tc:opendocument:xmlns:office:1.0": "office",
    "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0": "draw",
    "urn:oasis:names:tc:opendocument:xmlns:presentation:1.0": "presentation",
    "urn:oasis:names:tc:xliff:document:1.2": "",
    "urn:oasis:names:tc:xliff:document:1.1": "",
    "urn:oasis:names:tc:xliff:document:2.0": "",
    "urn:oasis:names:tc:xliff:document:2.1": "",
    "urn:oasis:names:tc:xliff:document:2.2": "",
    "http://www.lisa.org/tmx14": "",
    "http://www.daisy.org/z3986/2005/ncx/": "",
}


@dataclass
class XmlNode:
    name: str  # with our prefix; of text and other markup: with #
    start: str = ""  # the opening tag, or the whole markup
    end: str = ""
    children: list["XmlNode"] = field(default_factory=list)

    @property
    def raw(self) -> str:
        """The markup of the node."""
        return "".join(self.pieces())

    def pieces(self) -> Iterator[str]:
        yield self.start
        for child in self.children:
            yield from child.pieces()
        yield self.end

    @property
    def text(self) -> str:
        """The unescaped text in the node."""
        if self.name == CHARACTERS:
            return unescape(self.start)
        return "".join(child.text for child in self.children)

    @property
    def prefix(self) -> str:
        """The namespace prefix in the file, colon included."""
        return self.tag[: self.tag.rfind(":") + 1]

    @property
    def tag(self) -> str:
        """The name in the file."""
        match = re.match(r"<([^\s/>]+)", self.start)
        return match[1] if match else ""

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes; their names have the prefixes of the file."""
        return {name: html.unescape(value[1:-1]) for name, value in ATTRIBUTE.findall(self.start)}

    def elements(self, *names: str) -> list["XmlNode"]:
        """Return the children of these names."""
        return [child for child in self.children if child.name in names]

    def walk(self, skip: Iterable[str] = ()) -> Iterator["XmlNode"]:
        """Yield all elements below this one, children before their parents; not below elements to skip."""
        for child in self.children:
            if child.children and child.name not in skip:
                yield from child.walk(skip)
            yield child

    def set_attribute(self, name: str, value: str) -> None:
        """Set an attribute in the opening tag."""
        markup = f'{name}="{html.escape(value)}"'
        pattern = re.compile(rf"""(?<=\s){re.escape(name)}\s*=\s*("[^"]*"|'[^']*')""")
        if pattern.search(self.start):
            self.start = pattern.sub(lambda _: markup, self.start, count=1)
        else:
            self.start = re.sub(r"\s*(/?>)$", lambda end: f" {markup}{end[1]}", self.start)

    def set_content(self, markup: str) -> None:
        """Replace the children by markup."""
        if not self.end:
            self.start, self.end = re.sub(r"\s*/>$", ">", self.start), f"</{self.tag}>"
        self.children = [XmlNode(MARKUP, markup)]


def unescape(markup: str) -> str:
    if markup.startswith("<![CDATA["):
        return markup[len("<![CDATA[") : -len("]]>")]
    return html.unescape(markup)


def escape(text: str) -> str:
    return html.escape(text, quote=False)


# --- reading ----------------------------------------------------------------------------------------------------


def decode_xml(content: bytes) -> TextFile:
    """Decode a file; raise unless it is well-formed XML of moderate size and depth without entity declarations."""
    if len(content) > MAX_BYTES:
        raise DataError(f"the XML has {len(content):,} bytes; at most {MAX_BYTES:,} are read")
    file = decode_declared(content, ENCODING)
    depth = 0

    def on_start(_: str, __: object) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise DataError(f"the XML is nested deeper than {MAX_DEPTH} elements")

    def on_end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def on_entity(name: str, *_: object) -> None:
        raise DataError(f"the XML declares an entity ({name[:40]}); entities are not expanded")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = on_start, on_end
    parser.EntityDeclHandler = on_entity
    try:
        parser.Parse(file.text, True)
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code)
        raise DataError(f"line {error.lineno}: not well-formed XML: {message}") from None
    return file


def parse_xml(content: bytes) -> tuple[XmlNode, TextFile]:
    """Return the tree of an XML file; its root is a node without markup around all that is in the file."""
    file = decode_xml(content)
    root = XmlNode("")
    opened: list[tuple[XmlNode, dict[str, str]]] = [(root, {})]
    for token in TOKEN.findall(file.text):
        parent, namespaces = opened[-1]
        if token[0] != "<" or token.startswith("<![CDATA["):
            parent.children.append(XmlNode(CHARACTERS, token))
        elif token[1] in "!?":
            parent.children.append(XmlNode(MARKUP, token))
        elif token[1] == "/":
            opened.pop()[0].end = token
        else:
            node = XmlNode("", token)
            if "xmlns" in token:
                own = {name[6:]: uri for name, uri in node.attributes.items() if name.startswith("xmlns")}
                namespaces = {**namespaces, **own}
            prefix, _, local = node.tag.rpartition(":")
            prefix = NAMESPACES.get(namespaces.get(prefix, ""), prefix)
            node.name = f"{prefix}:{local}" if prefix else local
            parent.children.append(node)
            if not token.endswith("/>"):
                opened.append((node, namespaces))
    return root, file


# --- segments ---------------------------------------------------------------------------------------------------


class XmlDocument:
    """An XML file in which the markup of segments is replaced by marks; a segment may contain marks of others."""

    def __init__(self, root: XmlNode, file: TextFile) -> None:
        self.root, self.file = root, file
        self.segments: list[Segment] = []

    def mark(self, part: str | Segment) -> str:
        """Return the markup of a part; of a segment, a mark. No XML file contains NUL."""
        if isinstance(part, str):
            return part
        self.segments.append(part)
        return f"\0{len(self.segments) - 1}\0"

    def set_parts(self, node: XmlNode, parts: Iterable[str | Segment]) -> None:
        """Replace the children of a node by markup and segments."""
        node.children = [XmlNode(MARKUP, self.mark(part)) for part in parts]

    def fill(self, target: XmlNode, source: XmlNode, inline: frozenset[str], pair_key: "PairKey") -> None:
        """Replace the children of `target` by segments of the text in `source`, which stays as it is."""
        parts = split_items(lone_ranges_as_atoms([*mixed_items(source.children, inline, pair_key=pair_key)]), escape)
        for part in parts:
            if isinstance(part, Segment):
                part.is_filled = True
        target.set_content("".join(map(self.mark, parts)))

    def write(self, translations: Sequence[str]) -> bytes:
        """Return the file with each mark replaced by a translation."""

        def expand(markup: str) -> str:
            return re.sub("\0(\\d+)\0", lambda mark: expand(translations[int(mark[1])]), markup)

        return self.file.encode(expand(self.root.raw))


PairKey = Callable[[XmlNode], tuple[str, str] | None]


def mixed_items(
    nodes: Iterable[XmlNode],
    inline: frozenset[str],
    barriers: frozenset[str] = frozenset(),
    pair_key: PairKey = lambda _: None,
) -> Iterator[Item]:
    """Yield the items of mixed content: `inline` elements contain text, `barriers` end a segment, others are atoms.

    `pair_key` returns (kind, key) of an empty element that opens or closes a range, or (TEXT, the text it stands for).
    """
    for index, node in enumerate(nodes):
        if node.name == CHARACTERS:
            yield Item(TEXT, node.start, node.text)
        elif node.name in inline and node.end:
            yield Item(OPEN, node.start, key=f"#{index}")
            yield from mixed_items(node.children, inline, barriers, pair_key)
            yield Item(CLOSE, node.end, key=f"#{index}")
        elif node.name in barriers:
            yield Item(BARRIER, node.raw)
        else:
            kind, key = pair_key(node) or (ATOM, "")
            yield Item(kind, node.raw, key if kind == TEXT else "", key)

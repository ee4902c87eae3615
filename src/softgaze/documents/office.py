"""Word and PowerPoint (docx, pptx): the runs of a paragraph are one segment; formatting moves with its words.

The formatting of most characters is the base; runs of another format are inline elements in it. Every run keeps its
properties. Fields, bookmarks and comment ranges are elements around their words; breaks and tabs end a segment.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from softgaze.documents.archive import ArchiveDocument
from softgaze.documents.base import Document, DocumentOptions
from softgaze.documents.inline import ATOM, BARRIER, CLOSE, OPEN, TEXT, Item, Segment, lone_ranges_as_atoms, split_items
from softgaze.documents.xml_tree import CHARACTERS, XmlDocument, XmlNode, escape, parse_xml

DOCX_TEXT = re.compile(r"word/(document|header\d*|footer\d*|footnotes|endnotes)\.xml")
PPTX_TEXT = re.compile(r"ppt/(slides|notesSlides)/[^/]+\.xml|ppt/diagrams/data\d+\.xml")


@dataclass(frozen=True)
class Dialect:
    """The names of the elements of a paragraph."""

    paragraph: str
    run: str
    properties: str
    text: str
    containers: frozenset[str]  # of runs
    barriers: frozenset[str]  # end a segment
    dropped: frozenset[str]  # marks of the last layout or spell check, wrong after a translation
    text_attributes: str = ""


WORD = Dialect(
    paragraph="w:p",
    run="w:r",
    properties="w:rPr",
    text="w:t",
    containers=frozenset({"w:hyperlink", "w:smartTag", "w:ins", "w:fldSimple"}),
    barriers=frozenset({"w:pPr", "w:tab", "w:br", "w:cr", "w:ptab"}),
    dropped=frozenset({"w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen"}),
    text_attributes=' xml:space="preserve"',
)
SLIDES = Dialect(
    paragraph="a:p",
    run="a:r",
    properties="a:rPr",
    text="a:t",
    containers=frozenset(),
    barriers=frozenset({"a:pPr", "a:endParaRPr", "a:br"}),
    dropped=frozenset(),
)
RANGES = {  # opening element: its closing element; both have the same w:id
    "w:bookmarkStart": "w:bookmarkEnd",
    "w:commentRangeStart": "w:commentRangeEnd",
    "w:permStart": "w:permEnd",
    "w:moveFromRangeStart": "w:moveFromRangeEnd",
    "w:moveToRangeStart": "w:moveToRangeEnd",
}
RANGE_ENDS = {end: start for start, end in RANGES.items()}
TEXT_FIELD = re.compile(
    r"<(?:\w+:)?instrText[^>]*>\s*(?:HYPERLINK|TOC|INDEX|IF|QUOTE)\b"
)  # fields whose result is text
FIELD_KINDS = {"begin": OPEN, "end": CLOSE}  # "separate", before the result, is joined to the opening item


class ParagraphReader:
    """Turns the runs of one paragraph into items."""

    def __init__(self, paragraph: XmlNode, dialect: Dialect) -> None:
        self.dialect, self.paragraph = dialect, paragraph
        self.formats = {"": 0} | dict(Counter(self.count_formats(paragraph)))
        self.base = max(self.formats, key=lambda key: self.formats[key])
        prefix = next((node.prefix for node in paragraph.walk() if node.name == dialect.run), "")
        local = [name.partition(":")[2] for name in (dialect.run, dialect.text)]
        self.run, self.text = f"{prefix}{local[0]}", f"{prefix}{local[1]}"
        self.close = f"</{self.text}></{self.run}>"

    def open(self, properties: str) -> str:
        return f"<{self.run}>{properties}<{self.text}{self.dialect.text_attributes}>"

    def count_formats(self, node: XmlNode) -> Iterator[str]:
        """Yield the properties of the run of each character."""
        for child in node.children:
            if child.name == self.dialect.run:
                characters = sum(len(text.text) for text in child.elements(self.dialect.text))
                yield from [properties_of(child, self.dialect)] * characters
            elif child.name in self.dialect.containers:
                yield from self.count_formats(child)

    def items(self, nodes: Sequence[XmlNode]) -> Iterator[Item]:
        """Yield the items of children of the paragraph or of a container."""
        for index, node in enumerate(nodes):
            if node.name == self.dialect.run:
                yield from self.run_items(node)
            elif node.name in self.dialect.containers and node.end:
                yield self.between_runs(OPEN, f"container {index}", node.start)
                yield from self.items(node.children)
                yield self.between_runs(CLOSE, f"container {index}", node.end)
            elif node.elements("w:sdtContent"):
                [content] = node.elements("w:sdtContent")
                before, after = node.raw.split(content.raw) if node.raw.count(content.raw) == 1 else (node.raw, "")
                yield Item(BARRIER, before + content.start * bool(after))
                yield from self.items(content.children if after else [])
                yield Item(BARRIER, content.end * bool(after) + after)
            elif node.name in self.dialect.dropped or node.name == CHARACTERS:
                yield Item(TEXT, node.raw)
            elif node.name in self.dialect.barriers:
                yield Item(BARRIER, node.raw)
            else:
                yield self.between_runs(*range_kind(node), node.raw)

    def run_items(self, run: XmlNode) -> Iterator[Item]:
        """Yield an item for each text, field mark or other content of a run; a run of several becomes several runs."""
        properties = properties_of(run, self.dialect)
        contents = [node for node in run.children if node.name != self.dialect.properties]
        for node in contents:
            markup = run.raw if len(contents) == 1 else f"{run.start}{properties}{node.raw}{run.end}"
            if node.name in self.dialect.dropped or node.name.startswith("#"):
                yield Item(TEXT, markup if node.name in self.dialect.dropped else "")
            elif node.name == self.dialect.text:
                yield from self.text_items(node.text, properties, markup)
            elif node.name in self.dialect.barriers:
                yield Item(BARRIER, markup)
            elif node.name == "w:fldChar":
                kind = next((value for name, value in node.attributes.items() if name.endswith("fldCharType")), "")
                yield self.between_runs(FIELD_KINDS.get(kind, ATOM), f"field {kind}", markup)
            else:
                yield self.between_runs(ATOM, "", markup)

    def text_items(self, text: str, properties: str, markup: str) -> Iterator[Item]:
        """Yield a text; in an element of its own if its format is not the base."""
        if properties == self.base:
            yield Item(TEXT, markup, text)
            return
        yield Item(OPEN, "", key=properties, inline=self.close + self.open(properties))
        yield Item(TEXT, markup, text)
        yield Item(CLOSE, "", key=properties, inline=self.close + self.open(self.base))

    def between_runs(self, kind: str, key: str, markup: str) -> Item:
        """Return an item that stands between runs of the base format."""
        return Item(kind, markup, key=key, inline=f"{self.close}{markup}{self.open(self.base)}")

    def finish(self, tagged: str) -> str:
        """Return the runs of a translated segment, without empty ones."""
        runs = f"{self.open(self.base)}{tagged}{self.close}"
        for properties in self.formats:
            runs = runs.replace(self.open(properties) + self.close, "")
        return runs

    def parts(self) -> list[str | Segment]:
        """Return the markup and the segments of the paragraph."""
        items = join_formats(join_fields([*self.items(self.paragraph.children)]))
        parts = split_items(lone_ranges_as_atoms([*items]), escape)
        for part in parts:
            if isinstance(part, Segment):
                part.finish = self.finish
        return parts


def join_fields(items: Sequence[Item]) -> list[Item]:
    """Join the start of a field, its instruction and the mark before its result to one opening item.

    The order of these must not change. A field without a result is an atom, and so is one whose result Word computes,
    such as a page number. One that begins or ends in another paragraph has barriers instead.
    """
    joined: list[Item] = []
    index = opened = 0
    while index < len(items):
        item = items[index]
        index += 1
        if item.key == "field begin":
            ends = [at for at in range(index, len(items)) if items[at].key.startswith("field ")]
            found = items[index - 1 : ends[0] + 1 if ends else len(items)]
            if found[-1].key == "field separate" and not TEXT_FIELD.search("".join(part.raw for part in found)):
                found = items[index - 1 : ends[1] + 1] if ends[1:] else found
            index += len(found) - 1
            is_open = found[-1].key == "field separate" and any(items[at].key == "field end" for at in ends)
            opened += is_open
            kind = OPEN if is_open else ATOM if found[-1].key == "field end" else BARRIER
            item = join_items(kind, "field end", found)
        elif item.key == "field separate" or (item.key == "field end" and not opened):
            item = item._replace(kind=BARRIER)
        elif item.key == "field end":
            opened -= 1
        joined.append(item)
    return joined


def join_items(kind: str, key: str, items: Sequence[Item]) -> Item:
    inline = "".join(item.raw if item.inline is None else item.inline for item in items)
    return Item(kind, "".join(item.raw for item in items), key=key, inline=inline)


def join_formats(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items without the tags between two texts of the same format."""
    rest = [*items]
    index = 0
    while index < len(rest):
        pair = rest[index : index + 2]
        if [item.kind for item in pair] == [CLOSE, OPEN] and pair[0].key == pair[1].key and not pair[0].raw:
            index += 2
        else:
            yield rest[index]
            index += 1


def properties_of(run: XmlNode, dialect: Dialect) -> str:
    return "".join(node.raw for node in run.elements(dialect.properties))


def range_kind(node: XmlNode) -> tuple[str, str]:
    """Return (kind, key) of an element that opens or closes a range of text, else of an atom."""
    identity = next((value for name, value in node.attributes.items() if name.endswith("id")), "")
    if node.name in RANGES:
        return OPEN, f"{node.name} {identity}"
    if node.name in RANGE_ENDS:
        return CLOSE, f"{RANGE_ENDS[node.name]} {identity}"
    return ATOM, ""


def parse_part(content: bytes, dialect: Dialect) -> Document:
    """Open one XML file of a document."""
    root, file = parse_xml(content)
    document = XmlDocument(root, file)
    for node in root.walk():
        if node.name == dialect.paragraph and node.children:
            document.set_parts(node, ParagraphReader(node, dialect).parts())
    return document


def parse_docx(content: bytes, options: DocumentOptions) -> ArchiveDocument:
    """Open a Word document: the text, headers, footers, footnotes and endnotes; comments stay as they are."""
    return ArchiveDocument(
        content, lambda name, member: parse_part(member, WORD) if DOCX_TEXT.fullmatch(name) else None
    )


def parse_pptx(content: bytes, options: DocumentOptions) -> ArchiveDocument:
    """Open a PowerPoint presentation: slides, notes and diagrams."""
    return ArchiveDocument(
        content, lambda name, member: parse_part(member, SLIDES) if PPTX_TEXT.fullmatch(name) else None
    )

"""OpenDocument text and presentations (odt, odp): paragraphs with spans, links, notes and frames in them."""

from softgaze.documents.archive import ArchiveDocument
from softgaze.documents.base import Document, DocumentOptions
from softgaze.documents.inline import CLOSE, OPEN, TEXT, lone_ranges_as_atoms, split_items
from softgaze.documents.xml_tree import XmlDocument, XmlNode, escape, mixed_items, parse_xml

PARAGRAPHS = frozenset({"text:p", "text:h"})
INLINE = frozenset({"text:span", "text:a", "text:ruby", "text:ruby-base", "text:meta"})
BARRIERS = frozenset({"text:tab", "text:line-break", "text:soft-page-break"})
KEPT = frozenset({"office:annotation", "text:tracked-changes"})  # comments and deleted text
MEMBERS = ("content.xml", "styles.xml")  # styles.xml has headers and footers
RANGES = {  # opening element: its closing element, and the attribute that both have
    "text:bookmark-start": ("text:bookmark-end", "text:name"),
    "text:reference-mark-start": ("text:reference-mark-end", "text:name"),
    "text:change-start": ("text:change-end", "text:change-id"),
    "text:toc-mark-start": ("text:toc-mark-end", "text:id"),
    "text:user-index-mark-start": ("text:user-index-mark-end", "text:id"),
    "text:alphabetical-index-mark-start": ("text:alphabetical-index-mark-end", "text:id"),
    "office:annotation": ("office:annotation-end", "office:name"),
}
RANGE_ENDS = {end: (start, attribute) for start, (end, attribute) in RANGES.items()}


def range_kind(node: XmlNode) -> tuple[str, str] | None:
    """Return (kind, key) of an element that opens or closes a range of text, or that stands for spaces."""
    if node.name == "text:s":
        return TEXT, " "
    if node.name in RANGES:
        _, attribute = RANGES[node.name]
        return OPEN, f"{node.name} {node.attributes.get(attribute, '')}"
    if node.name in RANGE_ENDS:
        start, attribute = RANGE_ENDS[node.name]
        return CLOSE, f"{start} {node.attributes.get(attribute, '')}"
    return None


def parse_part(content: bytes) -> Document:
    """Open one XML file of a document."""
    root, file = parse_xml(content)
    document = XmlDocument(root, file)
    for node in root.walk(skip=KEPT):
        if node.name in PARAGRAPHS and node.children:
            parts = split_items(
                lone_ranges_as_atoms([*mixed_items(node.children, INLINE, BARRIERS, range_kind)]), escape
            )
            document.set_parts(node, parts)
    return document


def parse(content: bytes, options: DocumentOptions) -> ArchiveDocument:
    """Open an OpenDocument file: text, headers, footers, notes and text in drawings; comments stay as they are."""
    return ArchiveDocument(content, lambda name, member: parse_part(member) if name in MEMBERS else None)

"""OpenDocument text and presentations (odt, odp): paragraphs with spans, links, notes and frames in them."""

from softgaze.documents.archive import ArchiveDocument
from softgaze.documents.base import Document, DocumentOptions
from softgaze.documents.inline import split_items
from softgaze.documents.xml_tree import MARKUP, XmlDocument, XmlNode, escape, mixed_items, parse_xml

PARAGRAPHS = frozenset({"text:p", "text:h"})
INLINE = frozenset({"text:span", "text:a", "text:ruby", "text:ruby-base", "text:meta"})
BARRIERS = frozenset({"text:tab", "text:line-break", "text:soft-page-break"})
KEPT = frozenset({"office:annotation", "text:tracked-changes"})  # comments and deleted text
MEMBERS = ("content.xml", "styles.xml")  # styles.xml has headers and footers


def parse_part(content: bytes) -> Document:
    """Open one XML file of a document."""
    root, file = parse_xml(content)
    document = XmlDocument(root, file)
    for node in root.walk(skip=KEPT):
        if node.name in PARAGRAPHS and node.children:
            parts = split_items([*mixed_items(node.children, INLINE, BARRIERS)], escape)
            node.children = [XmlNode(MARKUP, document.mark(part)) for part in parts]
    return document


def parse(content: bytes, options: DocumentOptions) -> ArchiveDocument:
    """Open an OpenDocument file: text, headers, footers, notes and text in drawings; comments stay as they are."""
    return ArchiveDocument(content, lambda name, member: parse_part(member) if name in MEMBERS else None)

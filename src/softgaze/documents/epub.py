"""E-books (epub): the XHTML of the chapters and the labels of the table of contents."""

from softgaze.documents import html
from softgaze.documents.archive import ArchiveDocument
from softgaze.documents.base import Document, DocumentOptions, TextDocument, decode
from softgaze.documents.inline import split_items
from softgaze.documents.xml_tree import (
    ENCODING,
    MARKUP,
    XmlDocument,
    XmlNode,
    check_xml,
    escape,
    mixed_items,
    parse_xml,
)

CHAPTER_SUFFIXES = (".xhtml", ".html", ".htm")


def parse_member(name: str, content: bytes) -> Document | None:
    if name.lower().endswith(CHAPTER_SUFFIXES):
        check_xml(content)
        declared = ENCODING.match(content)
        file = decode(content, declared[1].decode() if declared else "utf-8")
        return TextDocument(html.split_html(file.text), file)
    return parse_contents(content) if name.lower().endswith(".ncx") else None


def parse_contents(content: bytes) -> Document:
    """Open the table of contents of EPUB 2."""
    root, file = parse_xml(content)
    document = XmlDocument(root, file)
    for node in root.walk():
        if node.name == "text" and node.children:
            parts = split_items([*mixed_items(node.children, frozenset())], escape)
            node.children = [XmlNode(MARKUP, document.mark(part)) for part in parts]
    return document


def parse(content: bytes, options: DocumentOptions) -> ArchiveDocument:
    """Open an e-book."""
    return ArchiveDocument(content, parse_member)

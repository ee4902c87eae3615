"""E-books (epub): the XHTML of the chapters and the labels of the table of contents."""

from softgaze.documents import html
from softgaze.documents.archive import ArchiveDocument
from softgaze.documents.base import Document, DocumentOptions, TextDocument
from softgaze.documents.inline import split_items
from softgaze.documents.xml_tree import (
    XmlDocument,
    decode_xml,
    escape,
    mixed_items,
    parse_xml,
)

CHAPTER_SUFFIXES = (".xhtml", ".html", ".htm")


def parse_member(name: str, content: bytes) -> Document | None:
    if name.lower().endswith(CHAPTER_SUFFIXES):
        file = decode_xml(content)
        return TextDocument(html.split_html(file.text), file)
    return parse_contents(content) if name.lower().endswith(".ncx") else None


def parse_contents(content: bytes) -> Document:
    """Open the table of contents of EPUB 2."""
    root, file = parse_xml(content)
    document = XmlDocument(root, file)
    for node in root.walk():
        if node.name == "text" and node.children:
            parts = split_items([*mixed_items(node.children, frozenset())], escape)
            document.set_parts(node, parts)
    return document


def parse(content: bytes, options: DocumentOptions) -> ArchiveDocument:
    """Open an e-book."""
    return ArchiveDocument(content, parse_member)

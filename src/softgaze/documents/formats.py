"""Which format a file has, by its name and content, and the function that opens it."""

import re
from importlib import import_module
from pathlib import PurePath
from typing import NamedTuple

from softgaze.documents.base import Document, DocumentOptions
from softgaze.errors import DataError, pick


class FormatEntry(NamedTuple):
    """A format of documents."""

    suffixes: tuple[str, ...]
    module: str  # imported when a document of this format is opened
    function: str = "parse"

    def parse(self, content: bytes, options: DocumentOptions) -> Document:
        parse = getattr(import_module(f"softgaze.documents.{self.module}"), self.function)
        document: Document = parse(content, options)
        return document


FORMATS = {
    "txt": FormatEntry((".txt",), "base", "parse_text"),
    "md": FormatEntry((".md", ".markdown"), "markdown"),
    "html": FormatEntry((".html", ".htm", ".xhtml"), "html"),
    "docx": FormatEntry((".docx", ".docm"), "office", "parse_docx"),
    "pptx": FormatEntry((".pptx", ".pptm"), "office", "parse_pptx"),
    "odt": FormatEntry((".odt",), "odf"),
    "odp": FormatEntry((".odp",), "odf"),
    "epub": FormatEntry((".epub",), "archive", "parse_epub"),
    "srt": FormatEntry((".srt",), "subtitles", "parse_srt"),
    "vtt": FormatEntry((".vtt",), "subtitles", "parse_vtt"),
    "po": FormatEntry((".po", ".pot"), "po"),
    "xliff": FormatEntry((".xlf", ".xliff"), "xliff"),
    "tmx": FormatEntry((".tmx",), "tmx"),
    "json": FormatEntry((".json", ".arb"), "json_strings"),
    "properties": FormatEntry((".properties",), "properties"),
    "android": FormatEntry((".xml",), "android"),
    "strings": FormatEntry((".strings",), "apple_strings"),
}
SUFFIXES = {suffix: name for name, entry in FORMATS.items() for suffix in entry.suffixes}
XML_ROOTS = {b"xliff": "xliff", b"tmx": "tmx", b"resources": "android", b"html": "html"}
ROOT = re.compile(rb"<(?:\w+:)?([A-Za-z]+)")  # of an XML file: declarations start with <? or <!
ZIPPED = frozenset({"docx", "pptx", "odt", "odp", "epub"})


def detect_format(name: str, content: bytes) -> str | None:
    """Return the name of a file's format by its suffix; of an XML file, by its first element."""
    suffix = PurePath(name).suffix.lower()
    if suffix == ".xml":
        root = ROOT.search(content)
        return XML_ROOTS.get(root[1]) if root else None
    return SUFFIXES.get(suffix)


def open_document(
    content: bytes, name: str, options: DocumentOptions = DocumentOptions(), format_name: str | None = None
) -> Document:
    """Open a document; `name` is that of its file and appears in errors. `format_name` overrides the detection."""
    found = format_name or detect_format(name, content)
    if found is None:
        raise DataError(f"{name}: unknown document format; known: {', '.join(SUFFIXES)}; or give --format")
    entry = pick("document format", found, FORMATS)
    if found in ZIPPED and not content.startswith(b"PK"):
        raise DataError(f"{name}: not a {found} file, which is a zip archive")
    try:
        return entry.parse(content, options)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None

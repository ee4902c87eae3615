"""Which format a file has, by its name and content, and the function that opens it."""

import re
from collections.abc import Callable
from pathlib import PurePath
from typing import NamedTuple

from softgaze.documents import (
    android,
    apple_strings,
    base,
    epub,
    html,
    json_strings,
    markdown,
    odf,
    office,
    po,
    properties,
    subtitles,
    tmx,
    xliff,
)
from softgaze.documents.base import Document, DocumentOptions
from softgaze.errors import DataError, pick


class FormatEntry(NamedTuple):
    """A format of documents."""

    suffixes: tuple[str, ...]
    parse: Callable[[bytes, DocumentOptions], Document]


FORMATS = {
    "txt": FormatEntry((".txt",), base.parse_text),
    "md": FormatEntry((".md", ".markdown"), markdown.parse),
    "html": FormatEntry((".html", ".htm", ".xhtml"), html.parse),
    "docx": FormatEntry((".docx", ".docm"), office.parse_docx),
    "pptx": FormatEntry((".pptx", ".pptm"), office.parse_pptx),
    "odt": FormatEntry((".odt",), odf.parse),
    "odp": FormatEntry((".odp",), odf.parse),
    "epub": FormatEntry((".epub",), epub.parse),
    "srt": FormatEntry((".srt",), subtitles.parse_srt),
    "vtt": FormatEntry((".vtt",), subtitles.parse_vtt),
    "po": FormatEntry((".po", ".pot"), po.parse),
    "xliff": FormatEntry((".xlf", ".xliff"), xliff.parse),
    "tmx": FormatEntry((".tmx",), tmx.parse),
    "json": FormatEntry((".json", ".arb"), json_strings.parse),
    "properties": FormatEntry((".properties",), properties.parse),
    "android": FormatEntry((".xml",), android.parse),
    "strings": FormatEntry((".strings",), apple_strings.parse),
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

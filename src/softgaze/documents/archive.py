"""Office documents and e-books: zip archives of XML files. Members without text are copied byte for byte.

Archives come from strangers: the number, size and compression of members are limited and their names are checked.
Macros are members like any other: copied, never run.
"""

import io
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from softgaze.documents import html
from softgaze.documents.base import Document, DocumentOptions, TextDocument
from softgaze.documents.inline import Segment, split_items
from softgaze.documents.xml_tree import (
    XmlDocument,
    decode_xml,
    escape,
    mixed_items,
    parse_xml,
)
from softgaze.errors import DataError

MAX_MEMBERS = 10_000
MAX_TOTAL_BYTES = 512 << 20  # uncompressed
MAX_TEXT_BYTES = 32 << 20  # of all members with text: their trees take about 20 times as much memory
MAX_RATIO = 100  # of uncompressed to compressed bytes, for members above a size
RATIO_FREE_BYTES = 1 << 20

ParseMember = Callable[[str, bytes], Document | None]  # None: copied


class ArchiveDocument:
    """A zip archive whose members are documents or copied."""

    def __init__(self, content: bytes, parse: ParseMember) -> None:
        self.content = content
        self.documents: dict[str, Document] = {}
        text_bytes = 0
        with open_archive(content) as archive:
            for info in archive.infolist():
                try:
                    member = read_member(archive, info)
                    document = parse(info.filename, member)
                except DataError as error:
                    raise DataError(f"{info.filename}: {error}") from None
                text_bytes += len(member) if document is not None else 0
                if text_bytes > MAX_TEXT_BYTES:
                    raise DataError(f"the archive has more than {MAX_TEXT_BYTES:,} bytes of text")
                if document is not None and document.segments:
                    self.documents[info.filename] = document

    @property
    def segments(self) -> list[Segment]:
        """The segments of all members."""
        return [segment for document in self.documents.values() for segment in document.segments]

    def write(self, translations: Sequence[str]) -> bytes:
        """Return the archive with the same members in the same order."""
        output, start = io.BytesIO(), 0
        with open_archive(self.content) as archive, zipfile.ZipFile(output, "w") as written:
            for info in archive.infolist():
                member = archive.read(info)
                document = self.documents.get(info.filename)
                if document is not None:
                    end = start + len(document.segments)
                    member, start = document.write(translations[start:end]), end
                written.writestr(info, member, info.compress_type)
        return output.getvalue()


def open_archive(content: bytes) -> zipfile.ZipFile:
    """Open a zip archive, or raise if it exceeds the limits or has a member outside of it."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"not a zip archive: {error}") from None
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise DataError(f"the archive has {len(members):,} members; at most {MAX_MEMBERS:,} are read")
    total = sum(info.file_size for info in members)
    if total > MAX_TOTAL_BYTES:
        raise DataError(f"the archive has {total:,} bytes uncompressed; at most {MAX_TOTAL_BYTES:,} are read")
    if len({info.filename for info in members}) < len(members):
        raise DataError("the archive has two members of the same name")
    for info in members:
        check_member(info)
    return archive


def check_member(info: zipfile.ZipInfo) -> None:
    path = PurePosixPath(info.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in "".join(path.parts[:1]):  # a drive
        raise DataError(f"the archive has a member outside of it: {info.filename[:80]!r}")
    if info.flag_bits & 1:
        raise DataError("the archive is encrypted; save it without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{info.filename[:80]}: unknown compression method {info.compress_type}")
    if info.file_size > RATIO_FREE_BYTES and info.file_size > MAX_RATIO * max(1, info.compress_size):
        raise DataError(f"{info.filename[:80]}: compressed more than {MAX_RATIO} times; not read")


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Read a member; `zipfile` stops at the size in the directory, and checks the checksum."""
    try:
        return archive.read(info)
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, zlib.error) as error:
        raise DataError(f"damaged: {error}") from None


# --- e-books

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


def parse_epub(content: bytes, options: DocumentOptions) -> ArchiveDocument:
    """Open an e-book."""
    return ArchiveDocument(content, parse_member)

"""A document: the segments to translate, and a function that writes their translations back.

Formats keep the whole file as a list of markup and segments, so that everything untranslated stays byte for byte.
"""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from softgaze.documents.inline import InlineElement, Segment
from softgaze.errors import DataError

Part = str | Segment


@dataclass(frozen=True)
class DocumentOptions:
    """How to read a document."""

    source_language: str = ""
    target_language: str = ""
    overwrite: bool = False  # translate units of PO, XLIFF and TMX that have a translation, too


class Document(Protocol):
    @property
    def segments(self) -> list[Segment]:
        """The texts to translate, in order."""

    def write(self, translations: Sequence[str]) -> bytes:
        """Return the file with the markup of each segment's translation."""


class TextFile(NamedTuple):
    """The content of a text file, and how it was encoded."""

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"  # that each newline of the text is written as

    def with_plain_newlines(self) -> "TextFile":
        """Return the file with the line ends of Windows as newlines, if it has no others."""
        if self.text.count("\n") != self.text.count("\r\n"):
            return self
        return self._replace(text=self.text.replace("\r\n", "\n"), newline="\r\n")

    def encode(self, text: str) -> bytes:
        return self.bom + text.replace("\n", self.newline).encode(self.encoding, "xmlcharrefreplace")


BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
DECLARATION_BYTES = 1024  # of a file, as browsers read


def decode(content: bytes, encoding: str = "utf-8") -> TextFile:
    """Decode a text file, by its byte order mark if it has one."""
    bom, encoding = next(((bom, name) for bom, name in BOMS if content.startswith(bom)), (b"", encoding))
    try:
        return TextFile(content[len(bom) :].decode(encoding), encoding, bom)
    except UnicodeDecodeError as error:
        raise DataError(f"the file is not {encoding.upper()} at byte {len(bom) + error.start + 1}") from None
    except (LookupError, UnicodeError):
        raise DataError(f"unknown encoding {encoding[:40]!r}") from None


def decode_declared(content: bytes, declaration: re.Pattern[bytes]) -> TextFile:
    """Decode a file in the encoding that its start declares, else in UTF-8."""
    declared = declaration.search(content, 0, DECLARATION_BYTES)
    return decode(content, declared[1].decode() if declared else "utf-8")


@dataclass
class TextDocument:
    """A text file as markup and segments."""

    parts: list[Part]
    file: TextFile

    @property
    def segments(self) -> list[Segment]:
        """The segments among the parts."""
        return [part for part in self.parts if isinstance(part, Segment)]

    def write(self, translations: Sequence[str]) -> bytes:
        """Return the file with each segment replaced."""
        rest = iter(translations)
        return self.file.encode("".join(part if isinstance(part, str) else next(rest) for part in self.parts))


def line_parts(
    text: str, escape: Callable[[str], str] = str, raw: str | None = None, *, is_filled: bool = False
) -> list[Part]:
    """Return a text of several lines as a segment for each line, and the white space between them as markup.

    `raw` is the markup of the whole text, if it is known; it is kept for a text of one line. Of an ICU message, each
    branch is a segment.
    """
    message = message_parts(text, escape, is_filled=is_filled)
    if message is not None:
        return message
    parts: list[Part] = []
    for piece in re.split(r"(\s*[\r\n]\s*|^\s+|\s+$)", text):
        if not piece:
            continue
        if piece.isspace():
            parts.append(escape(piece))
        else:
            markup = raw if raw is not None and piece == text else escape(piece)
            parts.append(Segment(piece, markup, escape=escape, is_filled=is_filled))
    return parts


def parse_text(content: bytes, options: DocumentOptions) -> TextDocument:
    """Open a text file; each line is a segment."""
    file = decode(content)
    return TextDocument(line_parts(file.text), file)


# --- ICU messages that are one plural or select argument ----------------------------------------------------------

# The text of each branch of {count, plural, one {# file} other {# files}} is a segment, the rest is markup. An argument
# within a sentence is a placeholder.

START = re.compile(r"\s*\{\s*[\w.]+\s*,\s*(plural|selectordinal|select)\s*,\s*(?:offset:\s*\d+)?")
BRANCH = re.compile(r"\s*(?:=\d+|[\w-]+)\s*\{")
QUOTED = re.compile(r"'[{}#|]")  # braces that are text
END = re.compile(r"\s*\}\s*")


def message_parts(text: str, escape: Callable[[str], str], *, is_filled: bool = False) -> list[str | Segment] | None:
    """Return the markup and the segments of a message, or None if it is not one argument with branches."""
    start = START.match(text)
    if start is None or QUOTED.search(text):
        return None
    parts: list[str | Segment] = [escape(start[0])]
    position = start.end()
    while (branch := BRANCH.match(text, position)) is not None:
        end = closing_brace(text, branch.end())
        if end is None:
            return None
        inner = text[branch.end() : end]
        own = message_parts(inner, escape, is_filled=is_filled)
        parts += [escape(branch[0]), *(own or branch_parts(inner, escape, start[1] != "select", is_filled)), "}"]
        position = end + 1
    end_mark = END.fullmatch(text, position)
    return [*parts, escape(end_mark[0])] if end_mark and len(parts) > 1 else None


def closing_brace(text: str, position: int) -> int | None:
    """Return where the brace that is open at a position closes."""
    depth = 1
    for found in re.finditer(r"[{}]", text[position:]):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return position + found.start()
    return None


def branch_parts(text: str, escape: Callable[[str], str], has_number: bool, is_filled: bool) -> Iterator[str | Segment]:
    """Yield the text of a branch; # stands for the number of a plural."""
    body = text.strip()
    before, after = text[: text.find(body)], text[text.find(body) + len(body) :] if body else ""
    yield escape(before)
    if body:
        pieces = body.split("#") if has_number else [body]
        offsets = [sum(map(len, pieces[: index + 1])) for index in range(len(pieces) - 1)]
        elements = [InlineElement("#", offset, "", offset) for offset in offsets]

        def escape_text(text: str) -> str:  # an apostrophe before a brace would quote it
            return escape(re.sub(r"'(?=[{}#|]|\Z)", "''", text))

        yield Segment("".join(pieces), escape(body), elements, escape=escape_text, is_filled=is_filled)
    yield escape(after)

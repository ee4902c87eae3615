"""Java .properties files: the values are segments; comments, keys and layout stay as they are."""

import re

from softgaze.documents.base import DocumentOptions, Part, TextDocument, TextFile, decode, line_parts
from softgaze.errors import DataError

# A comment or blank line, or a key, its separator and its value with continuation lines.
ENTRY = re.compile(
    r"""(?P<comment>[ \t\f]*(?:[\#!][^\r\n]*)?(?:\r\n|[\r\n]|\Z))
      | (?P<key>[ \t\f]*(?:[^\s:=\\]|\\(?:\r\n|.))+[ \t\f]*[:=]?[ \t\f]*)
        (?P<value>(?:[^\\\r\n]|\\(?:\r\n|.)|\\\Z)*)(?P<end>(?:\r\n|[\r\n])?)""",
    re.VERBOSE | re.DOTALL,
)
ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(\r\n|[\r\n])[ \t\f]*|(.))", re.DOTALL)
CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


def unescape(value: str) -> str:
    def character(found: re.Match[str]) -> str:
        code, line_end, other = found.groups()
        return chr(int(code, 16)) if code else "" if line_end else CONTROLS.get(other, other)

    text = ESCAPED.sub(character, value)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # \uD83D\uDE00 is one character


def escape(text: str) -> str:
    text = text.replace("\\", "\\\\")
    for name, control in CONTROLS.items():
        text = text.replace(control, f"\\{name}")
    return re.sub(r"^ ", r"\\ ", text)


def escape_ascii(text: str) -> str:
    """Escape all but ASCII, as Java before version 9 needs it."""
    units = escape(text).encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 else f"\\u{code:04X}" for code in codes)


def parse(content: bytes, options: DocumentOptions) -> TextDocument:
    """Open a .properties file in UTF-8 or Latin-1; a file in ASCII stays in ASCII."""
    try:
        file = decode(content)
    except DataError:
        file = TextFile(content.decode("latin-1"), "latin-1")
    to_markup = escape if file.encoding == "utf-8" and not file.text.isascii() else escape_ascii
    parts: list[Part] = []
    position = 0
    while position < len(file.text):
        entry = ENTRY.match(file.text, position)
        if entry is None or entry.end() == position:
            line = file.text.count("\n", 0, position) + 1
            raise DataError(f"line {line}: expected a comment or key=value")
        position = entry.end()
        if entry["comment"] is not None:
            parts.append(entry[0])
        else:
            parts += [entry["key"], *line_parts(unescape(entry["value"]), to_markup, entry["value"]), entry["end"]]
    return TextDocument(parts, file)

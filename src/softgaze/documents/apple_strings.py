"""String files of iOS and macOS (.strings): "key" = "value"; with comments."""

import re

from softgaze.documents.base import DocumentOptions, Part, TextDocument, decode, line_parts
from softgaze.errors import DataError

TOKEN = re.compile(r"/\*.*?\*/|//[^\r\n]*|\"(?:[^\"\\]|\\.)*\"|[=;]|\s+|[\w.$/-]+", re.DOTALL)
ESCAPED = re.compile(r"\\(?:[uU]([0-9a-fA-F]{4})|(.))", re.DOTALL)
CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}


def unescape(markup: str) -> str:
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else CONTROLS.get(found[2], found[2]), markup)


def escape(text: str) -> str:
    text = re.sub(r'([\\"])', r"\\\1", text)
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def parse(content: bytes, options: DocumentOptions) -> TextDocument:
    """Open a .strings file in UTF-8 or UTF-16."""
    file = decode(content)
    parts: list[Part] = []
    position, is_value = 0, False
    while position < len(file.text):
        token = TOKEN.match(file.text, position)
        if token is None:
            line = file.text.count("\n", 0, position) + 1
            raise DataError(f'line {line}: expected "key" = "value";')
        position = token.end()
        if token[0].startswith('"') and is_value:
            parts += ['"', *line_parts(unescape(token[0][1:-1]), escape, token[0][1:-1]), '"']
        else:
            parts.append(token[0])
        if token[0] in "=;":
            is_value = token[0] == "="
    return TextDocument(parts, file)

"""Markdown: paragraphs, headings, list items and table cells are segments; code, HTML blocks and addresses stay.

The parser finds the lines of each block; the markup within them is kept by its offsets in the file.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from softgaze.documents.base import DocumentOptions, Part, TextDocument, decode
from softgaze.documents.inline import ATOM, BARRIER, CLOSE, OPEN, TEXT, Item, split_items

FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
PREFIX = re.compile(r"(?:[ \t]*(?:>|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t])|\#{1,6}(?=[ \t]|$)|\[[ xX]\](?=[ \t])))*[ \t]*")
UNDERLINE = re.compile(r"[ \t>]*(?:=+|-+)[ \t]*")
CELL = re.compile(r"(\s*(?<!\\)\|\s*)")
TOKEN = re.compile(
    r"""(?P<code>(?<!`)(`+)(?!`).*?(?<!`)\2(?!`))
      | (?P<image>!\[[^\[\]]*\]\([^()\s]*(?:\s+"[^"]*")?\))
      | (?P<open>\[)(?=[^\[\]]*\](?:\(|\[))
      | (?P<close>\](?:\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:\s+"[^"]*")?\)|\[[^\[\]]*\]))
      | (?P<atom><(?:https?:|mailto:)[^<>\s]*>|<!--.*?-->|</?[a-zA-Z][^<>]*>|\[\^[^\]\s]+\]:?|\\\n|[ ]{2,}\n)
      | (?P<escaped>\\[!-/:-@\[-`{-~])
      | (?P<mark>\*{1,3}|(?<![^\W_])_{1,3}(?=\S)|(?<=\S)_{1,3}(?![^\W_])|~~)""",
    re.VERBOSE | re.DOTALL,
)
SPECIAL = re.compile(r"([\\`*_\[\]<])")


def parse(content: bytes, options: DocumentOptions) -> TextDocument:
    """Open a Markdown file; front matter stays as it is."""
    from markdown_it import MarkdownIt

    file = decode(content).with_plain_newlines()
    front = FRONT_MATTER.match(file.text)
    start = front.end() if front else 0
    lines = re.findall(r"[^\n]*\n|[^\n]+", file.text[start:])
    parts: list[Part] = [file.text[:start]]
    done = 0
    for token in MarkdownIt().enable("table").parse("".join(lines)):
        if token.map is None or token.map[0] < done or token.type not in ("inline", "table_open"):
            continue
        first, last = token.map
        parts.append("".join(lines[done:first]))
        block = lines[first:last]
        done = last
        parts += table_parts(block) if token.type == "table_open" else block_parts(block)
    return TextDocument([*parts, "".join(lines[done:])], file)


def table_parts(lines: list[str]) -> Iterator[Part]:
    """Yield the cells of a table; its second line has no text."""
    for number, line in enumerate(lines):
        if number == 1:
            yield line
            continue
        for piece in CELL.split(line):
            yield from [piece] if CELL.fullmatch(piece) or not piece.strip() else inline_parts(piece, escape_cell)


def block_parts(lines: list[str]) -> Iterator[Part]:
    """Yield the lines of a paragraph or heading; a translation is written on one line."""
    prefix = PREFIX.match(lines[0])
    first = prefix.end() if prefix else 0
    ending = ""
    if len(lines) > 1 and UNDERLINE.fullmatch(lines[-1].rstrip("\n")):
        ending = lines[-1]
        lines = lines[:-1]
    text = "".join(lines)
    stripped = text.rstrip()
    yield text[:first]
    yield from inline_parts(stripped[first:], escape)
    yield text[len(stripped) :] + ending


def inline_parts(text: str, to_markup: Callable[[str], str]) -> list[Part]:
    return split_items([*inline_items(text)], to_markup)


def inline_items(text: str) -> Iterator[Item]:
    """Yield the items of inline markup; emphasis marks that open come after white space or another mark."""
    tokens = [*TOKEN.finditer(text)]
    opened: list[str] = []
    bounds = [0, *(bound for token in tokens for bound in token.span()), len(text)]
    for index, (start, end) in enumerate(pairwise(bounds)):
        raw = text[start:end]
        if index % 2 == 0:
            if raw:
                yield Item(TEXT, raw, re.sub(r"\n[ \t>]*", lambda found: " ", raw))
            continue
        kind = tokens[index // 2].lastgroup
        if kind == "escaped":
            yield Item(TEXT, raw, raw[1:])
        elif kind == "mark" and raw in opened and not text[:start][-1:].isspace():
            opened.remove(raw)
            yield Item(CLOSE, raw, key=raw)
        elif kind == "mark" and not text[end : end + 1].isspace() and end < len(text):
            opened.append(raw)
            yield Item(OPEN, raw, key=raw)
        elif kind == "mark":
            yield Item(TEXT, raw, raw)
        elif raw.endswith("\n"):
            yield Item(BARRIER, raw)
        else:
            yield Item({"open": OPEN, "close": CLOSE}.get(kind or "", ATOM), raw, key="link")


def escape(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text)


def escape_cell(text: str) -> str:
    return escape(text).replace("|", "\\|")

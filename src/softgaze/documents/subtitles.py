"""Subtitles (SubRip .srt, WebVTT .vtt): the text of each cue is a segment; numbers, timing and settings stay.

A translated cue is wrapped to lines of at most 42 characters, or the longest line of the cue in the source if that is
longer; it has no more lines than needed.
"""

import html
import re
from collections.abc import Callable, Iterator
from functools import partial
from unicodedata import east_asian_width

from softgaze.documents.base import DocumentOptions, Part, TextDocument, TextFile, decode
from softgaze.documents.inline import ATOM, CLOSE, OPEN, TEXT, Item, build_segment, match_tags
from softgaze.errors import DataError

MAX_LINE = 42  # characters, as broadcasters recommend; East Asian characters count as two
TIMING = re.compile(r"[^\n]*\d\d?:\d\d[:.,]\d+[^\n]*-->[^\n]*")
TAG = re.compile(r"(</?[a-zA-Z][^<>\n]*>|<\d[\d:.]*>|\{\\[^{}\n]*\})")
NAME = re.compile(r"</?([a-zA-Z]+)")
DASH = re.compile(r"^[-–—][ \t]*(?=\S)", re.MULTILINE)  # before the words of each of two speakers


def parse_srt(content: bytes, options: DocumentOptions) -> TextDocument:
    """Open SubRip subtitles in UTF-8 or Latin-1."""
    try:
        file = decode(content)
    except DataError:
        file = TextFile(content.decode("latin-1"))  # written as UTF-8, since translations may need it
    return TextDocument([*split_cues(file.text, lambda text: text, lambda text: text)], file)


def parse_vtt(content: bytes, options: DocumentOptions) -> TextDocument:
    """Open WebVTT subtitles; notes and styles stay as they are."""
    file = decode(content)
    if not file.text.startswith("WEBVTT"):
        raise DataError("line 1: expected WEBVTT")
    return TextDocument([*split_cues(file.text, html.unescape, partial(html.escape, quote=False))], file)


def split_cues(text: str, unescape: Callable[[str], str], escape: Callable[[str], str]) -> Iterator[Part]:
    """Yield the markup and the segments of the cues: a timing line and the lines up to the next empty one."""
    is_cue = False
    block: list[str] = []
    for line in [*text.splitlines(keepends=True), ""]:
        if is_cue and line.strip():
            block.append(line)
            continue
        if block:
            yield from cue_parts("".join(block), unescape, escape)
            block = []
        is_cue = bool(TIMING.fullmatch(line.strip()))
        yield line


def cue_parts(cue: str, unescape: Callable[[str], str], escape: Callable[[str], str]) -> Iterator[Part]:
    """Yield the text of one cue; the lines of two speakers are segments of their own."""
    body = cue.rstrip("\r\n")
    is_dialogue = len(DASH.findall(body)) > 1
    pieces = re.split(r"(\r?\n|^[-–—][ \t]*)", body, flags=re.MULTILINE) if is_dialogue else [body]
    newline = "\r\n" if "\r\n" in cue else "\n"
    for piece in pieces:
        if not piece.strip("-–— \t\r\n"):
            yield piece
            continue
        items = [
            tag_item(part) if TAG.fullmatch(part) else Item(TEXT, part, unescape(part))
            for part in TAG.split(piece)
            if part
        ]
        matched = match_tags(items)
        items = [
            item._replace(kind=ATOM) if item.kind in (OPEN, CLOSE) and index not in matched else item
            for index, item in enumerate(items)
        ]
        segment = build_segment(items, escape)
        longest = max(map(display_width, piece.splitlines()))
        segment.text = re.sub(r"\r?\n", lambda found: " " * len(found[0]), segment.text)  # same offsets
        segment.finish = partial(wrap_cue, width=max(MAX_LINE, longest), newline=newline)
        yield segment
    yield cue[len(body) :]


def tag_item(tag: str) -> Item:
    name = NAME.match(tag)
    if name is None:
        return Item(ATOM, tag)
    return Item(CLOSE if tag.startswith("</") else OPEN, tag, key=name[1].lower())


def display_width(markup: str) -> int:
    """Return the width of a text without its tags; wide characters count as two."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in TAG.sub("", markup))


def wrap_cue(markup: str, width: int, newline: str) -> str:
    """Break a cue at spaces into as few lines as the width allows, of similar length; tags have no width."""
    words = re.findall(r"(?:<[^<>]*>|[^\s<]|<)+", markup)
    fewest = len(fill_lines(words, width))
    shortest = display_width(" ".join(words)) // max(1, fewest)
    for limit in range(shortest, width + 1):
        lines = fill_lines(words, limit)
        if len(lines) == fewest:
            return newline.join(lines)
    return newline.join(fill_lines(words, width))


def fill_lines(words: list[str], width: int) -> list[str]:
    """Fill lines up to a width; a longer word is a line."""
    lines: list[str] = []
    for word in words:
        if lines and display_width(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines

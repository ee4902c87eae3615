"""ICU messages that are one plural or select argument: the text of each branch is a segment, the rest is markup.

`{count, plural, one {# file} other {# files}}`. An argument within a sentence is a placeholder (`placeholders`).
"""

import re
from collections.abc import Callable, Iterator
from functools import partial

from softgaze.documents.inline import InlineElement, Segment

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
        escape_text = partial(escape_branch, escape=escape)
        yield Segment("".join(pieces), escape(body), elements, escape=escape_text, is_filled=is_filled)
    yield escape(after)


def escape_branch(text: str, escape: Callable[[str], str]) -> str:
    """Escape a text in braces: an apostrophe before one would quote it."""
    return escape(re.sub(r"'(?=[{}#|]|\Z)", "''", text))

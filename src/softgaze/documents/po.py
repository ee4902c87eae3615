"""Gettext catalogues (PO, POT): entries without a translation, or marked fuzzy, are filled and marked fuzzy."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from softgaze.documents.base import DocumentOptions, Part, TextDocument, decode, line_parts
from softgaze.documents.inline import Segment
from softgaze.errors import DataError

KEYWORD = re.compile(r'(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)[ \t]*(".*)')
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"[ \t]*')
ESCAPED = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{2}|.)")
CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def unescape(markup: str) -> str:
    return ESCAPED.sub(lambda found: CONTROLS.get(found[1], found[1]), markup)


def escape(text: str) -> str:
    text = re.sub(r'([\\"])', r"\\\1", text)
    for name, control in CONTROLS.items():
        text = text.replace(control, f"\\{name}")
    return text


@dataclass
class Entry:
    """One message: its lines in the file, and the texts of its keywords."""

    lines: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)  # by keyword
    starts: dict[str, int] = field(default_factory=dict)  # the line of each keyword

    @property
    def targets(self) -> list[str]:
        return [name for name in self.texts if name.startswith("msgstr")]

    @property
    def is_fuzzy(self) -> bool:
        return any(line.startswith("#,") and "fuzzy" in re.split(r"[,\s]+", line) for line in self.lines)

    def is_pending(self, overwrite: bool) -> bool:
        """Return whether the entry is to be translated; the header has an empty msgid."""
        if not self.texts.get("msgid") or not self.targets:
            return False
        return overwrite or self.is_fuzzy or not all(self.texts[name] for name in self.targets)


def parse(content: bytes, options: DocumentOptions) -> TextDocument:
    """Open a catalogue in UTF-8."""
    file = decode(content)
    parts: list[Part] = []
    for entry in read_entries(file.text):
        parts += fill_entry(entry) if entry.is_pending(options.overwrite) else entry.lines
    return TextDocument(parts, file)


def read_entries(text: str) -> Iterator[Entry]:
    """Yield the entries; one ends at a blank line, or at a comment, msgctxt or msgid after its msgstr."""
    entry, keyword = Entry(), ""
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        body = line.strip()
        found = KEYWORD.fullmatch(body)
        begins = not body or body.startswith("#") or (found is not None and found[1] in ("msgctxt", "msgid"))
        if begins and entry.targets and not body.startswith("#~"):
            yield entry
            entry, keyword = Entry(), ""
        if found is not None:
            keyword, body = found[1], found[2]
            entry.texts[keyword], entry.starts[keyword] = "", len(entry.lines)
        if body and not body.startswith("#"):
            string = STRING.fullmatch(body)
            if string is None or not keyword:
                raise DataError(f'line {number}: expected a comment, a keyword or a "string"')
            entry.texts[keyword] += unescape(string[1])
        entry.lines.append(line)
    yield entry


def fill_entry(entry: Entry) -> Iterator[Part]:
    """Yield the entry with a segment for each msgstr; the last plural forms come from msgid_plural."""
    line_end = re.search(r"(\r?\n)?$", entry.lines[0])
    newline = line_end[0] if line_end and line_end[0] else "\n"
    first = min(entry.starts.values())
    yield from fuzzy_lines(entry.lines[:first], entry.is_fuzzy, newline)
    starts = sorted(entry.starts.values())
    for name, start in entry.starts.items():
        end = next((other for other in starts if other > start), len(entry.lines))
        if name not in entry.targets:
            yield from entry.lines[start:end]
            continue
        is_plural = "msgid_plural" in entry.texts and (name != "msgstr[0]" or len(entry.targets) == 1)
        yield from string_parts(name, entry.texts["msgid_plural" if is_plural else "msgid"], newline)
        yield from (line for line in entry.lines[start:end] if line.startswith("#"))


def fuzzy_lines(lines: list[str], is_fuzzy: bool, newline: str) -> Iterator[str]:
    """Yield the comments of an entry with the flag fuzzy, which goes before the previous msgid (#|)."""
    pending = not is_fuzzy
    for line in lines:
        if pending and line.startswith("#,"):
            line, pending = line.replace("#,", "#, fuzzy,", 1), False
        elif pending and line.startswith("#|"):
            yield f"#, fuzzy{newline}"
            pending = False
        yield line
    if pending:
        yield f"#, fuzzy{newline}"


def string_parts(name: str, text: str, newline: str) -> list[Part]:
    """Return a keyword and its string; a text of several lines has one line of the file for each."""
    to_markup: Callable[[str], str] = escape
    parts = line_parts(text, to_markup, is_filled=True)
    if sum(isinstance(part, Segment) for part in parts) < 2:
        return [f'{name} "', *parts, f'"{newline}']
    broken: list[Part] = [f'{name} ""{newline}"']
    for index, part in enumerate(parts):
        broken.append(part)
        if isinstance(part, str) and "\\n" in part and index < len(parts) - 1:
            broken.append(f'"{newline}"')
    return [*broken, f'"{newline}']

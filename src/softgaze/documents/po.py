"""Gettext catalogues (PO, POT): entries without a translation, or marked fuzzy, are filled and marked fuzzy."""

import io
import re
from collections.abc import Callable, Iterator

from softgaze.data.bilingual import CONTROLS, PoEntry, read_po_entries
from softgaze.documents.base import DocumentOptions, Part, TextDocument, decode, line_parts
from softgaze.documents.inline import Segment


def escape(text: str) -> str:
    text = re.sub(r'([\\"])', r"\\\1", text)
    for name, control in CONTROLS.items():
        text = text.replace(control, f"\\{name}")
    return text


def is_pending(entry: PoEntry, overwrite: bool) -> bool:
    """Return whether an entry is to be translated; the header has an empty msgid."""
    if not entry.texts.get("msgid") or not entry.targets:
        return False
    return overwrite or entry.is_fuzzy or not all(entry.texts[name] for name in entry.targets)


def parse(content: bytes, options: DocumentOptions) -> TextDocument:
    """Open a catalogue in UTF-8."""
    file = decode(content)
    parts: list[Part] = []
    for entry in read_po_entries([*io.StringIO(file.text, newline="")]):
        parts += fill_entry(entry) if is_pending(entry, options.overwrite) else entry.lines
    return TextDocument(parts, file)


def fill_entry(entry: PoEntry) -> Iterator[Part]:
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
        yield from string_parts(name, entry.texts[entry.source_of(name)], newline)
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

"""Bilingual files (TMX, XLIFF, PO, tables with a header) as a stream of sentence pairs.

Memory holds one unit, never the file. Markup within a text is left out, and white space counts as one space. Units
without a finished translation are skipped. XML that declares entities is rejected, so nothing expands.
"""

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from xml.parsers import expat

from softgaze.errors import DataError, UsageError

XML_SUFFIXES = (".tmx", ".xlf", ".xliff")
SUFFIXES = (*XML_SUFFIXES, ".po", ".csv")
COLUMN_NAMES = (("source", "target"), ("src", "tgt"))
CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
UNTRANSLATED_STATES = frozenset({"", "new", "needs-translation", "initial"})  # of XLIFF
MAX_CELL = 1 << 24  # characters, as of a line

Texts = dict[str, str]  # a unit: the text of each language, in the order of the file


@dataclass(frozen=True)
class LanguageChoice:
    """The source and the target language to read; an empty code is chosen by the first unit."""

    source: str = ""
    target: str = ""

    def of_unit(self, unit: Texts) -> "LanguageChoice":
        """Return the choice completed by a unit: its first language is the source, its only other one the target."""
        source = self.source or next((code for code in unit if not same_language(code, self.target)), "")
        others = [code for code in unit if not same_language(code, source)]
        if not self.target and len(others) > 1:
            codes = ", ".join(unit)
            raise UsageError(f"the file has the languages {codes}; name it corpus.SOURCE-TARGET.tmx to choose two")
        return LanguageChoice(source, self.target or (others[0] if others else ""))

    def pair(self, unit: Texts) -> tuple[str, str] | None:
        """Return both texts of a unit, or None if one is missing."""
        source, target = (
            next((text for code, text in unit.items() if same_language(code, language)), "")
            for language in (self.source, self.target)
        )
        return (source, target) if source and target else None


def same_language(code: str, other: str) -> bool:
    """Return whether two language codes name the same language, whichever their regions."""
    first, second = (re.split("[-_]", each.lower())[0] for each in (code, other))
    return bool(first) and first == second


def read_units(chunks: Iterable[bytes], suffix: str, languages: tuple[str, str] = ("", "")) -> Iterator[Texts]:
    """Yield the units of a bilingual file; `languages` are those of its name, for files that do not state their own."""
    if suffix in XML_SUFFIXES:
        return read_xml(chunks)
    if suffix == ".po":
        return read_po(decode_lines(chunks), languages)
    return read_table(decode_lines(chunks))


def read_pairs(
    chunks: Iterable[bytes], suffix: str, languages: tuple[str, str] = ("", "")
) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs of a bilingual file."""
    choice = LanguageChoice(*languages)
    for unit in read_units(chunks, suffix, languages):
        if not (choice.source and choice.target):
            choice = choice.of_unit(unit)
        pair = choice.pair(unit)
        if pair is not None:
            yield pair


def find_languages(chunks: Iterable[bytes], suffix: str) -> tuple[str | None, str | None]:
    """Return the languages of the first unit that has two."""
    for unit in read_units(chunks, suffix):
        choice = LanguageChoice().of_unit(unit)
        if choice.pair(unit):
            source, target = (re.split("[-_]", code)[0].lower() for code in (choice.source, choice.target))
            is_named = (source, target) not in COLUMN_NAMES and CODE.fullmatch(source) and CODE.fullmatch(target)
            return (source, target) if is_named else (None, None)
    return None, None


def decode_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of UTF-8 or UTF-16 text, with their line ends."""
    stream = iter(chunks)
    first = next(stream, b"")
    encoding = "utf-16" if first[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    decoder, rest = codecs.getincrementaldecoder(encoding)(), ""
    try:
        for chunk, is_last in chain(((chunk, False) for chunk in chain([first], stream)), [(b"", True)]):
            *lines, rest = re.split(r"(?<=\n)", rest + decoder.decode(chunk, is_last))
            yield from lines
    except UnicodeDecodeError as error:
        raise DataError(f"not {encoding.removesuffix('-sig').upper()}: {error.reason}") from None
    if rest:
        yield rest


def one_line(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())


# --- TMX and XLIFF ----------------------------------------------------------------------------------------------

KEPT_INLINE = frozenset({"hi", "g", "mrk", "pc", "sub"})  # their content is text; that of other inline elements is code


class UnitReader:
    """Collects the units of TMX, XLIFF 1.2 or 2.x from the events of a parser."""

    def __init__(self) -> None:
        self.units: list[Texts] = []
        self.root = ""
        self.languages = ["", ""]  # of XLIFF; of TMX, that of its sources
        self.unit: Texts = {}
        self.language = ""  # of the text that is being read
        self.text: list[str] | None = None
        self.code_depth = 0  # open elements whose content is code
        self.is_finished = True
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler, self.parser.EndElementHandler = self.on_start, self.on_end
        self.parser.CharacterDataHandler = self.on_text
        self.parser.EntityDeclHandler = self.on_entity

    def on_entity(self, name: str, *_: object) -> None:
        raise DataError(f"the XML declares an entity ({name[:40]}); entities are not expanded")

    def on_start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        self.root = self.root or name
        if self.text is not None:
            self.code_depth += bool(self.code_depth) or name not in KEPT_INLINE
        elif name in ("tu", "trans-unit", "segment"):
            self.unit = {}
            self.is_finished = attributes.get("state", "final") not in UNTRANSLATED_STATES
        elif name in ("xliff", "file"):
            self.languages = [
                attributes.get(long, attributes.get(short, known))
                for long, short, known in zip(
                    ("source-language", "target-language"), ("srcLang", "trgLang"), self.languages, strict=True
                )
            ]
        elif name == "header":
            self.languages[0] = attributes.get("srclang", "")
        elif name == "tuv":
            self.language = attributes.get("xml:lang", attributes.get("lang", ""))
        elif name == "target":
            self.is_finished &= attributes.get("state", "final") not in UNTRANSLATED_STATES
        if self.text is None and name in ("seg", "source", "target"):
            self.text = []
            if name != "seg":
                self.language = self.languages[name == "target"] or name

    def on_text(self, text: str) -> None:
        if self.text is not None and not self.code_depth:
            self.text.append(text)

    def on_end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if self.code_depth:
            self.code_depth -= 1
        elif self.text is not None and name in ("seg", "source", "target"):
            self.unit.setdefault(self.language, one_line("".join(self.text)))
            self.text = None
        elif name in ("tu", "trans-unit", "segment") and self.is_finished and len(self.unit) > 1:
            self.units.append(dict(sorted(self.unit.items(), key=self.is_target)))

    def is_target(self, text: tuple[str, str]) -> bool:
        """Return whether a text of a unit is in another language than the sources of the file."""
        return bool(self.languages[0]) and not same_language(text[0], self.languages[0])


def read_xml(chunks: Iterable[bytes]) -> Iterator[Texts]:
    """Yield the units of TMX or XLIFF."""
    reader = UnitReader()
    try:
        for chunk, is_last in chain(((chunk, False) for chunk in chunks), [(b"", True)]):
            reader.parser.Parse(chunk, is_last)
            yield from reader.units
            reader.units.clear()
    except expat.ExpatError as error:
        raise DataError(f"line {error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}") from None
    if reader.root not in ("tmx", "xliff"):
        raise DataError(f"expected a <tmx> or <xliff> element, got <{reader.root[:40]}>")


# --- PO ---------------------------------------------------------------------------------------------------------

KEYWORD = re.compile(r'(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)[ \t]*(".*)')
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"[ \t]*')
ESCAPED = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{2}|.)")
CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass
class PoEntry:
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

    def source_of(self, target: str) -> str:
        """Return the keyword that a msgstr translates; the last plural forms translate msgid_plural."""
        is_plural = "msgid_plural" in self.texts and (target != "msgstr[0]" or len(self.targets) == 1)
        return "msgid_plural" if is_plural else "msgid"


def read_po_entries(lines: Iterable[str]) -> Iterator[PoEntry]:
    """Yield the entries; one ends at a blank line, or at a comment, msgctxt or msgid after its msgstr."""
    entry, keyword = PoEntry(), ""
    for number, line in enumerate(lines, 1):
        body = line.strip()
        found = KEYWORD.fullmatch(body)
        begins = not body or body.startswith("#") or (found is not None and found[1] in ("msgctxt", "msgid"))
        if begins and entry.targets and not body.startswith("#~"):
            yield entry
            entry, keyword = PoEntry(), ""
        if found is not None:
            keyword, body = found[1], found[2]
            entry.texts[keyword], entry.starts[keyword] = "", len(entry.lines)
        if body and not body.startswith("#"):
            string = STRING.fullmatch(body)
            if string is None or not keyword:
                raise DataError(f'line {number}: expected a comment, a keyword or a "string"')
            entry.texts[keyword] += ESCAPED.sub(lambda escaped: CONTROLS.get(escaped[1], escaped[1]), string[1])
        entry.lines.append(line)
    yield entry


def read_po(lines: Iterable[str], languages: tuple[str, str]) -> Iterator[Texts]:
    """Yield the translated entries that are not fuzzy: each singular, and the last plural form."""
    source, target = languages[0] or "source", languages[1]
    for entry in read_po_entries(lines):
        if not entry.texts.get("msgid"):
            header = re.search(r"(?m)^Language:[ \t]*(\w+)", entry.texts.get("msgstr", ""))
            target = target or (header[1] if header else "target")
        elif not entry.is_fuzzy:
            chosen = dict.fromkeys([*entry.targets[:1], *entry.targets[-1:]])
            for name in chosen:
                texts = one_line(entry.texts[entry.source_of(name)]), one_line(entry.texts[name])
                yield dict(zip((source, target or "target"), texts, strict=True))


# --- tables -----------------------------------------------------------------------------------------------------


def named_columns(cells: Sequence[str]) -> tuple[int, int] | None:
    """Return the columns that a header calls source and target."""
    names = [cell.strip().lower() for cell in cells]
    for source, target in COLUMN_NAMES:
        if source in names and target in names:
            return names.index(source), names.index(target)
    return None


def read_table(lines: Iterable[str]) -> Iterator[Texts]:
    """Yield the rows of a table whose first row names its columns; its separator is a tab, comma or semicolon."""
    csv.field_size_limit(MAX_CELL)
    stream = iter(lines)
    first = next(stream, "")
    separator = max("\t,;", key=first.count)
    reader = csv.reader(chain([first], stream), delimiter=separator)
    names = next(reader, [])
    codes = [index for index, cell in enumerate(names) if CODE.fullmatch(cell.strip())]
    columns = named_columns(names) or ((codes[0], codes[1]) if len(codes) == len(names) == 2 else None)
    if columns is None:
        raise DataError("line 1: expected a header with the columns source and target, or two language codes")
    try:
        for row in reader:
            if row and max(columns) >= len(row):
                raise DataError(f"line {reader.line_num}: expected {len(names)} columns, got {len(row)}")
            if row:
                yield {names[column].strip(): one_line(row[column]) for column in columns}
    except csv.Error as error:
        raise DataError(f"line {reader.line_num}: {error}") from None

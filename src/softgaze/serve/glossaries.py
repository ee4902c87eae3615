"""Glossaries that clients store on the server, one JSON file each, which all workers read."""

import csv
import io
import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from softgaze.atomic_io import write_text
from softgaze.errors import DataError
from softgaze.glossary import Glossary, Term
from softgaze.serve.errors import HTTPError

MAX_GLOSSARIES = 1000
MAX_NAME = 1024  # characters
GLOSSARY_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FORMATS = ("tsv", "csv")


@dataclass(frozen=True)
class Dictionary:
    """The terms of one language pair, as lines of a glossary file."""

    source_lang: str
    target_lang: str
    entries: str

    @property
    def pair(self) -> tuple[str, str]:
        return self.source_lang, self.target_lang

    @property
    def entry_count(self) -> int:
        return self.entries.count("\n") + bool(self.entries)

    def merged(self, other: "Dictionary") -> "Dictionary":
        """Return these terms with those of another dictionary, which win."""
        lines = (*self.entries.split("\n"), *other.entries.split("\n"))
        terms = {term.key: str(term) for term in map(Term.parse, lines)}
        return replace(self, entries="\n".join(terms.values()))


@dataclass(frozen=True)
class StoredGlossary:
    """A named glossary of one or several language pairs."""

    glossary_id: str
    name: str
    creation_time: str
    dictionaries: tuple[Dictionary, ...]

    def dictionary(self, source: str, target: str) -> Dictionary:
        """Return the dictionary of a language pair, or raise 404."""
        found = next((one for one in self.dictionaries if one.pair == (source, target)), None)
        if found is None:
            raise HTTPError(404, f"The glossary has no dictionary from {source} to {target}")
        return found

    def with_dictionary(self, new: Dictionary) -> "StoredGlossary":
        """Return this glossary with a dictionary instead of the one of the same languages."""
        others = tuple(one for one in self.dictionaries if one.pair != new.pair)
        return replace(self, dictionaries=(*others, new))


def parse_entries(entries: str, entries_format: str) -> str:
    """Return entries as the lines of a glossary file, or raise 400."""
    if entries_format not in FORMATS:
        raise HTTPError(400, f"Invalid request: entries_format must be {' or '.join(FORMATS)}")
    if entries_format == "csv":
        try:
            rows = [row for row in csv.reader(io.StringIO(entries, newline="")) if row]
        except csv.Error as error:
            raise HTTPError(400, f"Invalid request: entries: is not CSV: {error}") from None
        if any(len(row) < 2 for row in rows):
            raise HTTPError(400, "Invalid request: entries: a row needs a source and a target")
        entries = "\n".join("\t".join(" ".join(column.split()) for column in row[:2]) for row in rows)
    try:
        glossary = Glossary.parse(entries, "entries")
    except DataError as error:
        raise HTTPError(400, f"Invalid request: {error}") from None
    if not glossary:
        raise HTTPError(400, "Invalid request: entries: there are no terms")
    return "\n".join(map(str, glossary.terms))


class GlossaryStore:
    """The glossaries in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def create(self, name: str, dictionaries: Sequence[Dictionary]) -> StoredGlossary:
        """Store a new glossary."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sum(1 for _ in self.directory.glob("*.json")) >= MAX_GLOSSARIES:
            raise HTTPError(456, f"Quota exceeded: there are {MAX_GLOSSARIES:,} glossaries; delete some first")
        created = datetime.fromtimestamp(time.time(), UTC).isoformat().replace("+00:00", "Z")
        return self.save(StoredGlossary(str(uuid.uuid4()), name, created, tuple(dictionaries)))

    def save(self, glossary: StoredGlossary) -> StoredGlossary:
        if not 0 < len(glossary.name) <= MAX_NAME:
            raise HTTPError(400, f"Invalid request: name must have 1 to {MAX_NAME:,} characters")
        write_text(self.directory / f"{glossary.glossary_id}.json", json.dumps(asdict(glossary), ensure_ascii=False))
        return glossary

    def all(self) -> Iterator[StoredGlossary]:
        """Yield the glossaries, the oldest first."""
        found = [read_stored(path, path.stat().st_mtime_ns) for path in self.directory.glob("*.json")]
        yield from sorted(found, key=lambda glossary: glossary.creation_time)

    def get(self, glossary_id: str) -> StoredGlossary:
        """Return a glossary, or raise 404."""
        path = self.directory / f"{glossary_id}.json"
        try:
            if GLOSSARY_ID.fullmatch(glossary_id):
                return read_stored(path, path.stat().st_mtime_ns)
        except FileNotFoundError:
            pass
        raise HTTPError(404, "Glossary not found")

    def delete(self, glossary_id: str) -> None:
        (self.directory / f"{self.get(glossary_id).glossary_id}.json").unlink(missing_ok=True)

    def terms(self, glossary_ids: Iterable[str], source: str, target: str) -> Glossary:
        """Return the terms of glossaries for a language pair; those of the first win."""
        return parsed(tuple(self.get(each).dictionary(source, target).entries for each in glossary_ids))


@lru_cache(64)
def read_stored(path: Path, modified: int) -> StoredGlossary:
    """Read a file; `modified` is part of the key, because another worker may write it."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    return StoredGlossary(**{**stored, "dictionaries": tuple(Dictionary(**one) for one in stored["dictionaries"])})


@lru_cache(16)
def parsed_lines(text: str) -> Glossary:
    """Parse a glossary of a request; clients send the same one again and again."""
    return Glossary.parse(text)


@lru_cache(64)
def parsed(entries: tuple[str, ...]) -> Glossary:
    """Return one object for the same terms, so that requests with them share batches."""
    terms = [Term.parse(line) for text in reversed(entries) for line in text.split("\n")]
    return Glossary(terms)

"""Terms with fixed translations: read from a file, and found in a text.

A file has a line for each term: `source TAB target`, with `|` between several target forms, and flags in a third
column: `case` for a term that matches in this case only; other words, such as the part of speech, are kept as a note.
A term alone on its line stays unchanged.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from softgaze.errors import DataError

CASE = "case"  # the flag of terms that match in their own case only
MAX_BYTES = 10 << 20  # of a file
MAX_TERM_BYTES = 1024
SPLIT_FORMS = re.compile(r"(?<!\\)\|")
# Scripts without spaces: Thai to Khmer, kana, Han; a term may start and end anywhere in them.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")
PARTICLE = re.compile(  # a Korean noun may have these attached
    "(?:들)?(?:은|는|이|가|을|를|의|도|만|와|과|나|랑|로|든|에|께|고|며|란|인"
    "|에(?:는|도|만|서|서는|서도|서의|게|게는|게서)|께서|으로|(?:으)?로(?:는|도|만|서|써|부터|의)|부터|까지|까지는|까지도"
    "|처럼|보다|마다|조차|밖에|하고|이나|이랑|이든|이고|이며|이란|이다|입니다|라고|이라고|라는|이라는|였다|이었다)?(?!\\w)"
)


@dataclass(frozen=True)
class Term:
    """A source term and its target forms."""

    source: str
    forms: tuple[str, ...] = ()  # none: the term stays unchanged
    is_case_sensitive: bool = False
    note: str = ""  # part of speech or other information

    @classmethod
    def parse(cls, line: str) -> "Term":
        """Parse a line of a file."""
        columns = [" ".join(unicodedata.normalize("NFC", column).split()) for column in line.split("\t")]
        if len(columns) > 3:
            raise DataError(f"expected source, target and flags, got {len(columns)} columns")
        source, target, flags = (*columns, "", "")[:3]
        forms = tuple(form.replace("\\|", "|").strip() for form in SPLIT_FORMS.split(target)) if target else ()
        if not source:
            raise DataError("the source term is missing")
        if "" in forms or (len(columns) == 2 and not forms):
            raise DataError(f"{source[:80]!r} has an empty target; a term alone on its line stays unchanged")
        for text in (source, *forms):
            if len(text.encode()) > MAX_TERM_BYTES:
                raise DataError(f"{text[:40]!r}… is longer than {MAX_TERM_BYTES:,} bytes")
            if any(unicodedata.category(character) == "Cc" for character in text):
                raise DataError(f"{text[:80]!r} contains a control character")
        words = flags.split()
        return cls(source, forms, CASE in words, " ".join(word for word in words if word != CASE))

    @property
    def key(self) -> tuple[str, bool]:
        """The key that is equal for terms that match the same text."""
        return self.source if self.is_case_sensitive else fold(self.source), self.is_case_sensitive

    def __str__(self) -> str:
        """Format as a line of a file."""
        target = "|".join(form.replace("|", "\\|") for form in self.forms)
        flags = " ".join(filter(None, [CASE * self.is_case_sensitive, self.note]))
        return "\t".join([self.source, target, flags] if flags else [self.source, *[target] * bool(target)])


class TermMatch(NamedTuple):
    """A term in a text."""

    start: int  # in characters
    end: int
    source: str  # as in the text
    forms: tuple[str, ...]
    is_case_sensitive: bool


class Glossary:
    """Terms by their source. Two glossaries are never equal, which keeps search options cheap to compare."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self.terms = tuple(terms)
        self.exact = {term.source: term for term in self.terms if term.is_case_sensitive}
        self.folded = {fold(term.source): term for term in self.terms if not term.is_case_sensitive}

    @classmethod
    def read(cls, path: str | Path) -> "Glossary":
        """Read a file of terms; errors have its name and the line."""
        try:
            if Path(path).stat().st_size > MAX_BYTES:
                raise DataError(f"{path}: is larger than {MAX_BYTES >> 20} MiB")
            text = Path(path).read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise DataError(f"{path}, line {line:,}: is not UTF-8") from error
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, name: str = "glossary") -> "Glossary":
        """Parse the lines of a file; empty lines are skipped."""
        terms: list[Term] = []
        first: dict[tuple[str, bool], tuple[int, Term]] = {}
        for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
            if not line.strip():
                continue
            try:
                term = Term.parse(line)
            except DataError as error:
                raise DataError(f"{name}, line {number:,}: {error}") from None
            before, earlier = first.setdefault(term.key, (number, term))
            if earlier.forms != term.forms:
                raise DataError(f"{name}, line {number:,}: {term.source!r} has another target in line {before:,}")
            terms.append(term)
        return cls(terms)

    def __len__(self) -> int:
        return len(self.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the terms."""
        return sha256("\n".join(map(str, self.terms)).encode()).hexdigest()

    @cached_property
    def lengths(self) -> dict[str, list[int]]:
        """The lengths of the terms that start with a character, longest first."""
        found: dict[str, set[int]] = {}
        for source in (*self.folded, *map(fold, self.exact)):
            found.setdefault(source[0], set()).add(len(source))
        return {first: sorted(sizes, reverse=True) for first, sizes in found.items()}

    def find(self, text: str) -> list[TermMatch]:
        """Return the terms in a normalised text, which do not overlap: from the left, the longest first."""
        folded, matches, position = fold(text), [], 0
        while position < len(text):
            match = self.match_at(text, folded, position)
            matches += [match] if match else []
            position = match.end if match else position + 1
        return matches

    def match_at(self, text: str, folded: str, start: int) -> TermMatch | None:
        """Return the longest term that starts at a character."""
        sizes = self.lengths.get(folded[start])
        if sizes is None or not is_start(text, start):
            return None
        for size in sizes:
            end = start + size
            term = self.exact.get(text[start:end]) or self.folded.get(folded[start:end])
            if term is not None and end <= len(text) and is_end(text, end):
                return TermMatch(start, end, text[start:end], term.forms or (text[start:end],), term.is_case_sensitive)
        return None


def fold(text: str) -> str:
    """Return a text in lower case and with plain apostrophes, of the same length."""
    lower = text.replace("’", "'").lower()
    if len(lower) != len(text) or "ς" in lower:
        lower = "".join(one if len(one.lower()) != 1 else one.lower() for one in text.replace("’", "'"))
    return lower


def is_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.combining(character) > 0


def is_start(text: str, start: int) -> bool:
    """Return whether a term may start at a character: not within a word."""
    before, first = text[start - 1 : start], text[start]
    if not before or not is_word(before) or not is_word(first):
        return True
    return bool(UNSPACED.match(first) or UNSPACED.match(before))


def is_end(text: str, end: int) -> bool:
    """Return whether a term may end before a character: not within a word, but before Korean particles."""
    last, after = text[end - 1], text[end : end + 1]
    if not after or not is_word(after) or not is_word(last):
        return True
    if HANGUL.match(after):
        return PARTICLE.match(text, end) is not None
    return bool(UNSPACED.match(after) or UNSPACED.match(last))


Span = tuple[int, int]


def find_forms(text: str, matches: Sequence[TermMatch]) -> list[Span | None]:
    """Return the span of a form of each term in a translation, or None; no span serves two terms.

    The first letter of a form may be a capital, as at the start of a sentence.
    """
    spans = [form_spans(text, match) for match in matches]
    found: list[Span | None] = [None] * len(matches)

    def assign(index: int, tried: set[Span]) -> bool:
        """Find a span for a term; the term that has it may move to another one."""
        for span in spans[index]:
            if span in tried:
                continue
            tried.add(span)
            owners = [other for other, own in enumerate(found) if own and own[0] < span[1] and span[0] < own[1]]
            if not owners or (len(owners) == 1 and assign(owners[0], tried)):
                found[index] = span
                return True
        return False

    for index in range(len(matches)):
        assign(index, set())
    return found


def form_spans(text: str, match: TermMatch) -> list[Span]:
    """Return the spans of all forms of a term as words of a text, the longest forms first."""
    variants = {*match.forms} if match.is_case_sensitive else {*match.forms, *map(capitalised, match.forms)}
    return [
        (start, start + len(variant))
        for variant in sorted(variants, key=len, reverse=True)
        for start in occurrences(text, variant)
        if is_start(text, start) and is_end(text, start + len(variant))
    ]


def occurrences(text: str, part: str) -> Iterator[int]:
    """Yield where a part starts in a text."""
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + 1)


def capitalised(form: str) -> str:
    return form[:1].upper() + form[1:]

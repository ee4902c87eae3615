r"""Parallel text on disk, read as a stream: two plain files, or one table (TSV, JSONL), each also with `.gz` added.

Knows bytes, lines and pairs; nothing about words, tokens or scripts. Nothing is guessed silently:

* A line ends at ``\n`` and nowhere else: U+2028, U+0085, a form feed or a lone carriage return stay inside it. One
  carriage return right before the ``\n`` (files from Windows) is dropped. A last line without ``\n`` counts; a final
  ``\n`` opens no further line.
* Text is UTF-8 without byte-order mark and without NUL. Anything else is a `LineError` that names file, line (from 1)
  and byte (from 0, of the uncompressed file) and says how to mend it.
* A `.tsv` row is ``source<TAB>target``, no header, no quoting. A third column is an error.
* A `.jsonl` (or `.ndjson`) row is an object with the strings "source" and "target", or "src" and "tgt" (further keys
  are ignored), or else exactly two strings under language codes, alone or inside "translation". There the first row
  decides: its first code is the source. Every other row must have the same two codes, in any order.

Memory holds one chunk and the longest line, never the file.
"""

import gzip
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, NoReturn, cast

from softgaze.errors import DataError, UsageError, absent
from softgaze.files import TEMPORARY, sync_directory, sync_file
from softgaze.files import sha256_of as fingerprint

CHUNK = 1 << 18  # large enough that per-chunk work vanishes, small enough to stay in the processor's cache
LONGEST_LINE = 1 << 24  # a "line" beyond 16 MiB is a file without newlines, and would otherwise be read whole

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]{2,8})*")
_NOT_A_LANGUAGE = re.compile("txt|src|tgt|trg|ref|hyp|out|raw|tok|bpe|spm|tsv|csv|xml|sgm|doc|lst|log|old|new|bak")
_NAMED_KEYS = (("source", "target"), ("src", "tgt"))


class Pair(NamedTuple):
    """One sentence and its translation, as they stand in the files."""

    source: str
    target: str


Row = tuple[str | None, str | None]  # None where that side of the row cannot be read


class LineError(DataError):
    """One line that cannot be read: `path`, `line` (from 1), `byte` (from 0, uncompressed), why, and what helps."""

    def __init__(self, path: Path, line: int, byte: int, why: str, remedy: str) -> None:
        super().__init__(f"{path}, line {line:,}, byte {byte:,}: {why}; {remedy}")
        self.path, self.line, self.byte, self.why, self.remedy = path, line, byte, why, remedy


Complain = Callable[[LineError], None]


def _refuse(error: LineError) -> NoReturn:
    raise error


# ---------------------------------------------------------------------------------------------------------------- bytes


@contextmanager
def _explained(path: Path, doing: str = "read") -> Iterator[None]:
    """Turn what the system says about a file into one line for the user."""
    try:
        yield
    except FileNotFoundError as error:
        raise absent(path if doing == "read" else f"{path}: the folder {path.parent}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is cut short or damaged ({error}); copy or download it again") from error
    except OSError as error:
        raise DataError(f"{path} cannot be {doing}: {(error.strerror or str(error)).lower()}") from error


def _check_kind(path: Path) -> None:
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise DataError(f"{path} is a directory; name a file inside it")
    if not stat.S_ISREG(mode):
        raise DataError(f"{path} is not a regular file (a pipe cannot be read twice); write its text to a file first")


def _open(path: Path) -> BinaryIO:
    _check_kind(path)
    with path.open("rb") as file:
        start, named = file.read(2), path.suffix == ".gz"
    if not start:
        raise DataError(f"{path} is empty")
    if named == (start == _GZIP):
        return cast(BinaryIO, gzip.open(path)) if named else path.open("rb")
    if named:
        raise DataError(f"{path} is not gzip although its name says so; remove .gz from the name or compress it")
    raise DataError(f"{path} is gzip although its name does not say so; add .gz to the name")


def _chunks(path: Path) -> Iterator[bytes]:
    with _explained(path), _open(path) as file:
        chunk = file.read(CHUNK)
        if not chunk:
            raise DataError(f"{path} is empty")
        if chunk[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise DataError(f"{path} is UTF-16; convert with iconv -f utf-16 -t utf-8")
        while chunk:
            yield chunk
            chunk = file.read(CHUNK)


def first_chunk(path: Path) -> bytes:
    """How a file begins, for those who look before they read."""
    return next(_chunks(path))


@dataclass(frozen=True)
class _Block:
    """Whole lines of a file: number of the first (from 1), its byte in the file, all bytes but the last newline."""

    number: int
    offset: int
    raw: bytes

    @cached_property
    def starts(self) -> list[int]:
        """Where in the file each line starts; worked out only when a line must be named."""
        return list(accumulate((len(line) + 1 for line in self.raw.split(b"\n")), initial=self.offset))


def _blocks(path: Path, chunks: Iterable[bytes]) -> Iterator[_Block]:
    number, offset, rest = 1, 0, b""
    for chunk in chunks:
        cut = chunk.rfind(b"\n")
        if cut < 0:
            rest += chunk
            if len(rest) > LONGEST_LINE:
                remedy = "write one sentence on each line"
                raise LineError(path, number, offset, f"no line end within {LONGEST_LINE >> 20} MiB", remedy)
            continue
        raw = rest + chunk[:cut]
        yield _Block(number, offset, raw)
        number, offset, rest = number + raw.count(b"\n") + 1, offset + len(raw) + 1, chunk[cut + 1 :]
    if rest:
        yield _Block(number, offset, rest)


def count_lines(path: Path) -> int:
    """How many lines `read_lines` will give, from the newlines alone: no decoding."""
    count, last = 0, b""
    for chunk in _chunks(path):
        count += chunk.count(b"\n")
        last = chunk
    return count + (not last.endswith(b"\n"))


def sha256_of(path: Path) -> str:
    """Compute the SHA-256 of a file as it lies on disk (compressed if it is): what `sha256sum` prints."""
    with _explained(path):
        _check_kind(path)
        return fingerprint(path)


# ---------------------------------------------------------------------------------------------------------------- lines


def _without_bom(path: Path, block: _Block, complain: Complain) -> _Block:
    if block.number > 1 or not block.raw.startswith(_BOM):
        return block
    remedy = r"remove it with sed '1s/^\xEF\xBB\xBF//' (sed -i for a file)"
    complain(LineError(path, 1, 0, "the text starts with a byte-order mark", remedy))
    return _Block(1, len(_BOM), block.raw[len(_BOM) :])


def _decode_line(path: Path, number: int, byte: int, raw: bytes, complain: Complain) -> str | None:
    nul = raw.find(b"\0")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        if nul < 0 or error.start < nul:
            why = f"not UTF-8 (0x{raw[error.start]:02X}, {error.reason})"
            complain(LineError(path, number, byte + error.start, why, "convert with iconv -f latin1 -t utf-8"))
            return None
    if nul >= 0:
        remedy = r"remove it with tr -d '\000', or convert with iconv -f utf-16 -t utf-8 if every other byte is one"
        complain(LineError(path, number, byte + nul, "holds a NUL byte", remedy))
        return None
    return text.removesuffix("\r")


def _decode_each(path: Path, block: _Block, complain: Complain) -> Iterator[str | None]:
    byte = block.offset
    for number, raw in enumerate(block.raw.split(b"\n"), block.number):
        yield _decode_line(path, number, byte, raw, complain)
        byte += len(raw) + 1


def _decode(path: Path, block: _Block, complain: Complain) -> list[str | None]:
    """All lines of a block at once; one by one only where something in it is wrong."""
    try:
        text = block.raw.decode()
    except UnicodeDecodeError:
        return list(_decode_each(path, block, complain))
    if "\0" in text:
        return list(_decode_each(path, block, complain))
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in lines] if "\r" in text else cast(list[str | None], lines)


def _decode_all(path: Path, chunks: Iterable[bytes], complain: Complain) -> Iterator[str | None]:
    for block in _blocks(path, chunks):
        yield from _decode(path, _without_bom(path, block, complain), complain)


def survey_lines(path: Path, complain: Complain) -> Iterator[str | None]:
    """Every line of a file, None for one that cannot be read; `complain` is told why. A byte-order mark costs no line.

    What makes the whole file unreadable (missing, a directory, empty, damaged gzip) is a `DataError` all the same.
    """
    return _decode_all(path, _chunks(path), complain)


def read_lines(path: Path) -> Iterator[str]:
    """Every line of a file, without its line end; the first that cannot be read is a `LineError`."""
    return cast(Iterator[str], survey_lines(path, _refuse))


def read_text(path: Path) -> str:
    """All of a file that is no list of lines, such as JSON; by the rules of lines, but with no longest one."""
    whole = _without_bom(path, _Block(1, 0, b"".join(_chunks(path))), _refuse)
    return "\n".join(cast(list[str], _decode(path, whole, _refuse)))


def stream_lines(stream: BinaryIO, name: Path) -> Iterator[str]:
    """Every line of a stream that can be read but once, each as soon as it is there; the rules are those of a file.

    `name` stands for the stream where a `LineError` names the file. An empty stream has no lines and is no error.
    """
    with stream:
        chunks = iter(lambda: stream.readline(LONGEST_LINE + 1), b"")
        yield from cast(Iterator[str], _decode_all(name, chunks, _refuse))


# ---------------------------------------------------------------------------------------------------------------- pairs


def read_pairs(source: Path, target: Path) -> Iterator[Pair]:
    """Line by line from two files; if one ends before the other, a `DataError` gives both line counts."""
    try:
        yield from map(Pair._make, zip(read_lines(source), read_lines(target), strict=True))
    except DataError:
        raise
    except ValueError as error:  # what zip raises when the lengths differ
        raise DataError(_counts_differ(source, target)) from error


def _counts_differ(source: Path, target: Path) -> str:
    counts = f"{source} has {count_lines(source):,} lines, {target} {count_lines(target):,}"
    return f"{counts}; line n must translate line n: find the line that was lost or split (softgaze check looks for it)"


class _UnfitError(ValueError):
    """A row that is text but not a pair: why, what helps, and at which character."""

    def __init__(self, why: str, remedy: str, character: int = 0) -> None:
        super().__init__(why)
        self.why, self.remedy, self.character = why, remedy, character


def _pair_from_columns(line: str) -> Pair:
    columns = line.split("\t")
    if len(columns) == 2:
        return Pair(*columns)
    if len(columns) == 1:
        raise _UnfitError("has no tab", "write source<TAB>target on each line")
    third = len(columns[0]) + len(columns[1]) + 2
    raise _UnfitError(f"has {len(columns)} columns", "keep two, source<TAB>target (cut -f1,2)", third)


class _JsonRows:
    """Pairs from JSON objects; remembers which two keys the first row chose."""

    def __init__(self) -> None:
        self.keys: tuple[str, str] | None = None

    def __call__(self, line: str) -> Pair:
        record = self._record(line)
        keys = next((named for named in _NAMED_KEYS if named[0] in record and named[1] in record), None)
        source, target = keys or self._by_language(record)
        return Pair(_clean(record, source), _clean(record, target))

    @staticmethod
    def _record(line: str) -> dict[str, Any]:
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise _UnfitError(f"not JSON ({error.msg})", "write one object on each line", error.pos) from error
        except (RecursionError, ValueError) as error:  # too deep, or a number of thousands of digits
            raise _UnfitError(f"not JSON we can read ({error})", "write one flat object on each line") from error
        if isinstance(record, dict) and isinstance(record.get("translation"), dict):
            record = record["translation"]
        if not isinstance(record, dict):
            raise _UnfitError("not a JSON object", 'write {"source": "…", "target": "…"}')
        return record

    def _by_language(self, record: dict[str, Any]) -> tuple[str, str]:
        texts = [key for key, value in record.items() if isinstance(value, str)]
        if len(texts) != 2 or not all(map(is_language, texts)):
            found = ", ".join(map(repr, record)) or "none"
            raise _UnfitError(f"which keys are source and target? (keys: {found})", 'name them "source" and "target"')
        if self.keys is None:
            self.keys = (texts[0], texts[1])
        if set(texts) != set(self.keys):
            raise _UnfitError(f"has the keys {texts[0]!r} and {texts[1]!r}", f"the rows before had {self.keys}")
        return self.keys


def _clean(record: dict[str, Any], key: str) -> str:
    """Take the text under `key`, refused where it could never be a line: JSON can spell what text files cannot hold."""
    text = record[key]
    if not isinstance(text, str):
        raise _UnfitError(f"{key!r} is not a string", "write it in quotes")
    for character, name in (("\n", "a line end"), ("\0", "a NUL character")):
        if character in text:
            raise _UnfitError(f"{key!r} holds {name}", "replace it with a space")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise _UnfitError(f"{key!r} holds half a surrogate pair", "write the whole character")
    return text


def _row_parser(path: Path) -> Callable[[str], Pair]:
    ending = _plain_name(path).suffix
    if ending == ".tsv":
        return _pair_from_columns
    if ending in (".jsonl", ".ndjson"):
        return _JsonRows()
    raise UsageError(
        f"{path}: a table of pairs is named .tsv or .jsonl (or either with .gz), not {ending or 'nothing'!r}"
    )


def survey_table(path: Path, complain: Complain) -> Iterator[Pair | None]:
    """Every row of a table, None for one that cannot be read; `complain` is told why."""
    parse = _row_parser(path)
    for found in _blocks(path, _chunks(path)):
        block = _without_bom(path, found, complain)
        for index, line in enumerate(_decode(path, block, complain)):
            try:
                pair = None if line is None else parse(line)
            except _UnfitError as error:
                byte = block.starts[index] + len((line or "")[: error.character].encode())
                complain(LineError(path, block.number + index, byte, error.why, error.remedy))
                pair = None
            yield pair


def read_table(path: Path) -> Iterator[Pair]:
    """Every pair of a `.tsv` or `.jsonl` file; the first row that cannot be read is a `LineError`."""
    return cast(Iterator[Pair], survey_table(path, _refuse))


# --------------------------------------------------------------------------------------------------------------- corpus


def _plain_name(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == ".gz" else path


def is_language(code: str) -> bool:
    """Whether a word looks like a language code (en, pt-BR, zh_Hans), and is not a usual file ending."""
    return _LANGUAGE.fullmatch(code) is not None and _NOT_A_LANGUAGE.fullmatch(code) is None


def language_of(path: Path) -> str | None:
    """Read the language off a file's ending: `train.en.gz` is "en", `train.txt` is None."""
    ending = _plain_name(path).suffix[1:]
    return ending if is_language(ending) else None


Languages = tuple[str | None, str | None]


@dataclass(frozen=True)
class FilePair:
    """Two plain files; line n of one translates line n of the other."""

    source: Path
    target: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, source first."""
        return (self.source, self.target)

    def __iter__(self) -> Iterator[Pair]:
        return read_pairs(self.source, self.target)

    def survey(self, complain: Complain) -> Iterator[Row]:
        """Every row up to the end of the longer file; None where a side cannot be read or has ended."""
        return zip_longest(survey_lines(self.source, complain), survey_lines(self.target, complain))

    def counts(self) -> tuple[int, int]:
        """Lines of source and target."""
        return count_lines(self.source), count_lines(self.target)

    def languages(self) -> Languages:
        """Read them off the endings."""
        return language_of(self.source), language_of(self.target)


@dataclass(frozen=True)
class Table:
    """One file that holds both sides of each pair: TSV or JSONL, by its ending."""

    path: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one file."""
        return (self.path,)

    def __iter__(self) -> Iterator[Pair]:
        return read_table(self.path)

    def survey(self, complain: Complain) -> Iterator[Row]:
        """Every row; both sides None where it cannot be read."""
        return ((None, None) if pair is None else pair for pair in survey_table(self.path, complain))

    def counts(self) -> tuple[int, int]:
        """Rows, once for each side."""
        rows = count_lines(self.path)
        return rows, rows

    def languages(self) -> Languages:
        """From the name (`train.en-de.tsv`), else from the keys of the first JSON row."""
        codes = _plain_name(self.path).with_suffix("").suffix[1:].split("-")
        if len(codes) == 2 and all(map(is_language, codes)):
            return codes[0], codes[1]
        parse = _row_parser(self.path)
        if isinstance(parse, _JsonRows):
            with suppress(_UnfitError):  # reading the rows will say what is wrong
                parse(next(read_lines(self.path)))
            return parse.keys or (None, None)
        return None, None


Part = FilePair | Table


@dataclass(frozen=True)
class Corpus:
    """Pairs from any number of files, one part after the other; iterating reads them anew each time."""

    parts: tuple[Part, ...]
    reader: ClassVar[None] = None  # text is read by a tokenizer that learns from it

    @classmethod
    def of(cls, files: Iterable[tuple[Path, Path]] = (), tables: Iterable[Path] = ()) -> "Corpus":
        """From pairs of plain files and from tables, in this order."""
        parts: list[Part] = [FilePair(Path(source), Path(target)) for source, target in files]
        parts += [Table(Path(path)) for path in tables]
        if not parts:
            raise UsageError("no files: name a source and a target file, or one table with --pairs")
        return cls(tuple(parts))

    def __iter__(self) -> Iterator[Pair]:
        for part in self.parts:
            yield from part

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file, in reading order."""
        return tuple(path for part in self.parts for path in part.paths)

    def count(self) -> int:
        """How many pairs, from newlines alone; a `DataError` if the two files of a part differ."""
        total = 0
        for part in self.parts:
            source, target = part.counts()
            if source != target:
                raise DataError(_counts_differ(*part.paths))
            total += source
        return total

    def sources(self) -> int:
        """How many sources: one for each pair."""
        return self.count()

    def pairs_of(self, sources: frozenset[int]) -> frozenset[int]:
        """The numbers of the pairs that have one of these sources."""
        return sources

    def sha256(self) -> dict[Path, str]:
        """Compute the SHA-256 of each file as it lies on disk."""
        return {path: sha256_of(path) for path in self.paths}

    def languages(self) -> Languages:
        """Source and target language where file endings or JSON keys name them; a `UsageError` if parts disagree."""
        named = [part.languages() for part in self.parts]
        return _agreed("source", [source for source, _ in named]), _agreed("target", [target for _, target in named])


def _agreed(side: str, codes: list[str | None]) -> str | None:
    known = sorted({code for code in codes if code})
    if len(known) > 1:
        raise UsageError(f"the files name several {side} languages ({', '.join(known)}); say --{side}-lang")
    return known[0] if known else None


# -------------------------------------------------------------------------------------------------------------- writing


def _check_line(line: str, first: bool) -> None:
    if "\n" in line or "\0" in line:
        raise ValueError(f"a line cannot hold a line end or NUL: {line[:60]!r}")
    if first and line.startswith("\ufeff"):
        raise ValueError("the first line would start with a byte-order mark")


@contextmanager
def writing(path: Path) -> Iterator[Callable[[str], None]]:
    r"""Give a function that adds one line to `path`; the file appears only when all went well: written aside, renamed.

    Compressed if named `.gz`, without a time stamp: equal lines, equal bytes. A line may not hold ``\n`` or NUL, nor
    may the first begin with U+FEFF, for these could not be read back; a carriage return at its end is lost on reading.
    """
    aside, first = path.with_name(f"{TEMPORARY}{path.name}"), True

    def write(line: str) -> None:
        nonlocal first
        _check_line(line, first)
        first = False
        file.write(line.encode() + b"\n")

    try:
        with _explained(path, "written"):
            with aside.open("wb") as raw, _compressed(raw) if path.suffix == ".gz" else nullcontext(raw) as file:
                yield write
            sync_file(aside)
            aside.replace(path)
            sync_directory(path.parent)
    finally:
        aside.unlink(missing_ok=True)


def _compressed(raw: BinaryIO) -> AbstractContextManager[BinaryIO]:
    return cast(AbstractContextManager[BinaryIO], gzip.GzipFile("", "wb", 6, raw, mtime=0))


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write lines to `path` (compressed if named `.gz`), all or nothing; how many there were. See `writing`."""
    count = 0
    with writing(path) as write:
        for line in lines:
            write(line)
            count += 1
    return count

r"""Parallel text on disk, read as a stream: two plain files, or a file of pairs; each optionally `.gz`.

* A line ends at ``\n`` and nowhere else: U+2028, U+0085, a form feed or a lone carriage return stay inside it. One
  carriage return right before the ``\n`` (Windows) is dropped. A last line without ``\n`` counts.
* Text is UTF-8 without byte-order mark and without NUL. Anything else is a `LineError` with file, line (from 1), byte
  (from 0, uncompressed) and a way to fix it.
* A `.tsv` row is ``source<TAB>target`` without header or quoting, unless the first row names the columns:
  source and target, src and tgt, or the languages of the file name (`train.en-de.tsv`).
* `.tmx`, `.xlf`, `.xliff`, `.po` and `.csv` files, and `.tsv` with a header: see `softgaze.data.bilingual`.
* A `.jsonl` (or `.ndjson`) row is an object with the strings "source" and "target", or "src" and "tgt" (further keys
  are ignored), or exactly two strings under language codes, alone or inside "translation". The first row decides: its
  first code is the source, and every other row must have the same two codes, in any order.
* A line of a `FastAlignFile` is ``source ||| target``, the input format of fast_align.

Memory holds one chunk and the longest line, never the file.
"""

import gzip
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, cast

from softgaze import atomic_io
from softgaze.data import bilingual
from softgaze.errors import DataError, UsageError, absent, raise_error

CHUNK = 1 << 18  # bytes: large enough to amortise the work per chunk, small enough for the processor cache
MAX_LINE = 1 << 24  # bytes: a longer "line" is a file without newlines, which must not be read whole

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]{2,8})*")
_NOT_A_LANGUAGE = re.compile("txt|src|tgt|trg|ref|hyp|out|raw|tok|bpe|spm|tsv|csv|xml|sgm|doc|lst|log|old|new|bak")
_NAMED_KEYS = (("source", "target"), ("src", "tgt"))

Languages = tuple[str | None, str | None]
ScannedPair = tuple[str | None, str | None]  # None: this side cannot be read


class Pair(NamedTuple):
    source: str
    target: str


class LineError(DataError):
    """A line that cannot be read; `line` counts from 1, `byte` from 0 in the uncompressed file."""

    def __init__(self, path: Path, line: int, byte: int, why: str, remedy: str) -> None:
        super().__init__(f"{path}, line {line:,}, byte {byte:,}: {why}; {remedy}")
        self.path, self.line, self.byte, self.why, self.remedy = path, line, byte, why, remedy


class RowError(ValueError):
    """Text that is not a valid row of a table; `character` is the position of the error."""

    def __init__(self, why: str, remedy: str, character: int = 0) -> None:
        super().__init__(why)
        self.why, self.remedy, self.character = why, remedy, character


OnLineError = Callable[[LineError], None]


# --- bytes ------------------------------------------------------------------------------------------------------


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Convert errors of the system and of gzip to a `DataError`."""
    try:
        yield
    except FileNotFoundError as error:
        raise absent(path) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is truncated or damaged ({error}); copy or download it again") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error


def _check_regular_file(path: Path) -> None:
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise DataError(f"{path} is a directory; give a file")
    if not stat.S_ISREG(mode):
        raise DataError(f"{path} is not a regular file (a pipe cannot be read twice); write its text to a file first")


def _open(path: Path) -> BinaryIO:
    _check_regular_file(path)
    with path.open("rb") as file:
        start, named_gzip = file.read(2), path.suffix == ".gz"
    if not start:
        raise DataError(f"{path} is empty")
    if named_gzip == (start == _GZIP):
        return cast(BinaryIO, gzip.open(path)) if named_gzip else path.open("rb")
    if named_gzip:
        raise DataError(f"{path} is not gzip despite its name; remove .gz from the name or compress it")
    raise DataError(f"{path} is gzip despite its name; add .gz to the name")


def _chunks(path: Path, *, any_encoding: bool = False) -> Iterator[bytes]:
    with _read_errors(path), _open(path) as file:
        chunk = file.read(CHUNK)
        if not chunk:
            raise DataError(f"{path} is empty")
        if chunk[:2] in (b"\xff\xfe", b"\xfe\xff") and not any_encoding:
            raise DataError(f"{path} is UTF-16; convert with iconv -f utf-16 -t utf-8")
        while chunk:
            yield chunk
            chunk = file.read(CHUNK)


def first_chunk(path: Path) -> bytes:
    """Return the beginning of a file, uncompressed."""
    return next(_chunks(path))


def count_lines(path: Path) -> int:
    """Count the lines that `read_lines` yields, without decoding them."""
    count, last = 0, b""
    for chunk in _chunks(path):
        count += chunk.count(b"\n")
        last = chunk
    return count + (not last.endswith(b"\n"))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as stored on disk."""
    with _read_errors(path):
        _check_regular_file(path)
        return atomic_io.sha256_of(path)


# --- lines ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Block:
    """Whole lines: the number of the first, its offset in the file, and all bytes but the last newline."""

    number: int
    offset: int
    raw: bytes

    @cached_property
    def starts(self) -> list[int]:
        """Return the byte of the file where each line starts."""
        return list(accumulate((len(line) + 1 for line in self.raw.split(b"\n")), initial=self.offset))


def _blocks(path: Path, chunks: Iterable[bytes], on_error: OnLineError) -> Iterator[_Block]:
    number, offset, rest = 1, 0, b""
    for chunk in chunks:
        end = chunk.rfind(b"\n")
        if end < 0:
            rest += chunk
            if len(rest) > MAX_LINE:
                why = f"no line end within {MAX_LINE >> 20} MiB"
                raise LineError(path, number, offset, why, "write one sentence per line")
            continue
        raw = rest + chunk[:end]
        yield _skip_bom(path, _Block(number, offset, raw), on_error)
        number, offset, rest = number + raw.count(b"\n") + 1, offset + len(raw) + 1, chunk[end + 1 :]
    if rest:
        yield _skip_bom(path, _Block(number, offset, rest), on_error)


def _skip_bom(path: Path, block: _Block, on_error: OnLineError) -> _Block:
    if block.number > 1 or not block.raw.startswith(_BOM):
        return block
    remedy = r"remove it with sed '1s/^\xEF\xBB\xBF//' (sed -i for a file)"
    on_error(LineError(path, 1, 0, "the text starts with a byte-order mark", remedy))
    return _Block(1, len(_BOM), block.raw[len(_BOM) :])


def _decode(path: Path, block: _Block, on_error: OnLineError) -> list[str | None]:
    """Decode all lines at once, or one by one if there is an error in them."""
    try:
        text = block.raw.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        lines = text.split("\n")
        return [line.removesuffix("\r") for line in lines] if "\r" in text else cast(list[str | None], lines)
    return [
        _decode_line(path, number, byte, raw, on_error)
        for number, (byte, raw) in enumerate(zip(block.starts, block.raw.split(b"\n"), strict=False), block.number)
    ]


def _decode_line(path: Path, number: int, byte: int, raw: bytes, on_error: OnLineError) -> str | None:
    nul = raw.find(b"\0")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        if nul < 0 or error.start < nul:
            why = f"not UTF-8 (0x{raw[error.start]:02X}, {error.reason})"
            on_error(LineError(path, number, byte + error.start, why, "convert with iconv -f ENCODING -t utf-8"))
            return None
    if nul >= 0:
        remedy = r"remove it with tr -d '\000', or convert with iconv -f utf-16 -t utf-8 if every other byte is NUL"
        on_error(LineError(path, number, byte + nul, "contains a NUL byte", remedy))
        return None
    return text.removesuffix("\r")


def scan_lines(path: Path, on_error: OnLineError) -> Iterator[str | None]:
    """Yield every line of a file, None for one that cannot be read; a byte-order mark is reported and skipped.

    A file that cannot be read at all (missing, a directory, empty, damaged gzip) is a `DataError` nevertheless.
    """
    for block in _blocks(path, _chunks(path), on_error):
        yield from _decode(path, block, on_error)


def read_lines(path: Path) -> Iterator[str]:
    """Yield every line of a file without its line end; raise a `LineError` for the first that cannot be read."""
    return cast(Iterator[str], scan_lines(path, raise_error))


def read_text(path: Path) -> str:
    """Return a whole file, such as JSON, whose lines may have any length."""
    block = _skip_bom(path, _Block(1, 0, b"".join(_chunks(path))), raise_error)
    return "\n".join(cast(list[str], _decode(path, block, raise_error)))


def stream_lines(stream: BinaryIO, name: Path) -> Iterator[str]:
    """Yield every line of a stream as soon as it arrives; `name` identifies the stream in errors."""
    with stream:
        chunks = iter(lambda: stream.readline(MAX_LINE + 1), b"")
        for block in _blocks(name, chunks, raise_error):
            yield from cast(list[str], _decode(name, block, raise_error))


# --- pairs ------------------------------------------------------------------------------------------------------


def read_pairs(source: Path, target: Path) -> Iterator[Pair]:
    """Yield the pairs of two files; raise a `DataError` if their line counts differ."""
    try:
        yield from map(Pair._make, zip(read_lines(source), read_lines(target), strict=True))
    except DataError:
        raise
    except ValueError as error:  # of zip
        raise _line_counts_differ(source, target) from error


def read_fast_align(path: Path) -> Iterator[Pair]:
    """Yield the pairs of a file in the format of fast_align; a side may be empty."""
    for number, line in enumerate(read_lines(path), 1):
        source, separator, target = f" {line} ".partition(" ||| ")
        if not separator:
            raise DataError(f"{path}, line {number:,}: no ' ||| '; write 'source ||| target', or give SRC and TGT")
        yield Pair(source.strip(), target.strip())


def _line_counts_differ(source: Path, target: Path) -> DataError:
    counts = f"{source} has {count_lines(source):,} lines, {target} {count_lines(target):,}"
    return DataError(f"{counts}; line n must translate line n: softgaze check finds a line that was lost or split")


class _TsvParser:
    def parse(self, line: str) -> Pair:
        columns = line.split("\t")
        if len(columns) == 2:
            return Pair(*columns)
        if len(columns) == 1:
            raise RowError("no tab", "write source<TAB>target on each line")
        third = len(columns[0]) + len(columns[1]) + 2
        raise RowError(f"expected 2 columns, got {len(columns)}", "keep source<TAB>target (cut -f1,2)", third)


class _JsonParser:
    """Stores the two language codes of the first row."""

    languages: tuple[str, str] | None = None

    def parse(self, line: str) -> Pair:
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise RowError(f"not JSON ({error.msg})", "write one object per line", error.pos) from error
        except (RecursionError, ValueError) as error:  # nested too deeply, or a number of thousands of digits
            raise RowError(f"not readable JSON ({error})", "write one flat object per line") from error
        if isinstance(record, dict) and isinstance(record.get("translation"), dict):
            record = record["translation"]
        if not isinstance(record, dict):
            raise RowError("not a JSON object", 'write {"source": "…", "target": "…"}')
        named = next((keys for keys in _NAMED_KEYS if keys[0] in record and keys[1] in record), None)
        source, target = named or self._language_keys(record)
        return Pair(_text_of(record, source), _text_of(record, target))

    def _language_keys(self, record: dict[str, Any]) -> tuple[str, str]:
        texts = [key for key, value in record.items() if isinstance(value, str)]
        if len(texts) != 2 or not all(map(is_language, texts)):
            keys = ", ".join(map(repr, record)) or "none"
            raise RowError(f"ambiguous source and target (keys: {keys})", 'name them "source" and "target"')
        if self.languages is None:
            self.languages = (texts[0], texts[1])
        if set(texts) != set(self.languages):
            raise RowError(f"unexpected keys {texts[0]!r} and {texts[1]!r}", f"earlier rows have {self.languages}")
        return self.languages


def _text_of(record: dict[str, Any], key: str) -> str:
    """Return the text of a key; reject characters that JSON can express but a line of a text file cannot."""
    text = record[key]
    if not isinstance(text, str):
        raise RowError(f"{key!r} is not a string", "write it in quotes")
    for character, name in (("\n", "a line end"), ("\0", "a NUL character")):
        if character in text:
            raise RowError(f"{key!r} contains {name}", "replace it with a space")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise RowError(f"{key!r} contains half a surrogate pair", "write the whole character")
    return text


def _row_parser(path: Path) -> _TsvParser | _JsonParser:
    suffix = _without_gz(path).suffix
    if suffix == ".tsv":
        return _TsvParser()
    if suffix in (".jsonl", ".ndjson"):
        return _JsonParser()
    known = ", ".join((".tsv", ".jsonl", *bilingual.SUFFIXES))
    raise UsageError(f"{path}: expected a file of pairs ({known}, or with .gz), got {suffix or 'no suffix'!r}")


def _bilingual_suffix(path: Path) -> str | None:
    """Return the suffix of a file that `softgaze.data.bilingual` reads, else None."""
    suffix = _without_gz(path).suffix.lower()
    if suffix == ".tsv":
        names = first_chunk(path).partition(b"\n")[0].decode(errors="replace").strip().split("\t")
        is_header = bilingual.named_columns(names) or tuple(names) == _named_languages(path)
        return suffix if is_header else None
    return suffix if suffix in bilingual.SUFFIXES else None


def _named_languages(path: Path) -> tuple[str, str]:
    """Return the languages in the name of a file (`train.en-de.tsv`); empty if there are none."""
    codes = _without_gz(path).with_suffix("").suffix[1:].split("-")
    return (codes[0], codes[1]) if len(codes) == 2 and all(map(is_language, codes)) else ("", "")


def _read_bilingual(path: Path, suffix: str) -> Iterator[Pair]:
    try:
        chunks = _chunks(path, any_encoding=True)
        yield from map(Pair._make, bilingual.read_pairs(chunks, suffix, _named_languages(path)))
    except LineError:
        raise
    except (DataError, UsageError) as error:
        prefix = "" if str(path) in str(error) else f"{path}: "
        raise type(error)(f"{prefix}{error}") from error


def scan_table(path: Path, on_error: OnLineError) -> Iterator[Pair | None]:
    """Yield every pair of a table, None for a row that cannot be read."""
    suffix = _bilingual_suffix(path)
    if suffix is not None:
        yield from _read_bilingual(path, suffix)
        return
    parser = _row_parser(path)
    for block in _blocks(path, _chunks(path), on_error):
        for index, line in enumerate(_decode(path, block, on_error)):
            try:
                pair = None if line is None else parser.parse(line)
            except RowError as error:
                byte = block.starts[index] + len((line or "")[: error.character].encode())
                on_error(LineError(path, block.number + index, byte, error.why, error.remedy))
                pair = None
            yield pair


def read_table(path: Path) -> Iterator[Pair]:
    """Yield every pair of a file of pairs; raise a `LineError` for the first row that cannot be read."""
    return cast(Iterator[Pair], scan_table(path, raise_error))


# --- corpus -----------------------------------------------------------------------------------------------------


def _without_gz(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == ".gz" else path


def is_language(code: str) -> bool:
    """Return whether a word has the form of a language code (en, pt-BR, zh_Hans) and is not a common file suffix."""
    return _LANGUAGE.fullmatch(code) is not None and _NOT_A_LANGUAGE.fullmatch(code) is None


def language_of(path: Path) -> str | None:
    """Return the language of a file name: "en" for `train.en.gz`, None for `train.txt`."""
    suffix = _without_gz(path).suffix[1:]
    return suffix if is_language(suffix) else None


@dataclass(frozen=True)
class FilePair:
    """Two plain files; line n of one translates line n of the other."""

    source: Path
    target: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.source, self.target)

    def __iter__(self) -> Iterator[Pair]:
        return read_pairs(self.source, self.target)

    def scan(self, on_error: OnLineError) -> Iterator[ScannedPair]:
        """Yield every row up to the end of the longer file; None where a side is unreadable or has ended."""
        return zip_longest(scan_lines(self.source, on_error), scan_lines(self.target, on_error))

    def counts(self) -> tuple[int, int]:
        return count_lines(self.source), count_lines(self.target)

    def languages(self) -> Languages:
        return language_of(self.source), language_of(self.target)


@dataclass(frozen=True)
class FastAlignFile:
    """One file with `source ||| target` on each line."""

    path: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    def __iter__(self) -> Iterator[Pair]:
        return read_fast_align(self.path)


@dataclass(frozen=True)
class PairTable:
    """One file with both sides of each pair: a table or a bilingual file."""

    path: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    def __iter__(self) -> Iterator[Pair]:
        return read_table(self.path)

    def scan(self, on_error: OnLineError) -> Iterator[ScannedPair]:
        """Yield every row; both sides are None where it cannot be read."""
        return ((None, None) if pair is None else pair for pair in scan_table(self.path, on_error))

    def counts(self) -> tuple[int, int]:
        """Return the number of rows, once per side."""
        rows = count_lines(self.path) if _bilingual_suffix(self.path) is None else sum(1 for _ in self)
        return rows, rows

    def languages(self) -> Languages:
        """Return the languages of the name (`train.en-de.tsv`), else those in the file."""
        source, target = _named_languages(self.path)
        if source:
            return source, target
        suffix = _bilingual_suffix(self.path)
        if suffix is not None:
            with suppress(DataError):  # reported when the pairs are read
                return bilingual.find_languages(_chunks(self.path, any_encoding=True), suffix)
            return None, None
        parser = _row_parser(self.path)
        if isinstance(parser, _JsonParser):
            with suppress(RowError):  # reported when the rows are read
                parser.parse(next(read_lines(self.path)))
            return parser.languages or (None, None)
        return None, None


CorpusPart = FilePair | PairTable


@dataclass(frozen=True)
class Corpus:
    """Pairs from any number of files, in order; every iteration reads them from disk."""

    parts: tuple[CorpusPart, ...]
    processor: ClassVar[None] = None  # text is split by a tokenizer that is trained on it

    @classmethod
    def of(cls, files: Iterable[tuple[Path, Path]] = (), tables: Iterable[Path] = ()) -> "Corpus":
        """Create a corpus from pairs of plain files and from tables."""
        parts: list[CorpusPart] = [FilePair(Path(source), Path(target)) for source, target in files]
        parts += [PairTable(Path(path)) for path in tables]
        if not parts:
            raise UsageError("no files: give a source and a target file, or a table with --pairs")
        return cls(tuple(parts))

    def __iter__(self) -> Iterator[Pair]:
        for part in self.parts:
            yield from part

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(path for part in self.parts for path in part.paths)

    def count(self) -> int:
        """Count the pairs by newlines; raise a `DataError` if the line counts of two files differ."""
        total = 0
        for part in self.parts:
            source, target = part.counts()
            if source != target:
                raise _line_counts_differ(*part.paths)
            total += source
        return total

    def num_sources(self) -> int:
        """Return the number of sources: one per pair."""
        return self.count()

    def pairs_with_sources(self, sources: frozenset[int]) -> frozenset[int]:
        return sources

    def sha256(self) -> dict[Path, str]:
        return {path: sha256_of(path) for path in self.paths}

    def languages(self) -> Languages:
        """Return source and target language, if file names or JSON keys have them and agree."""
        named = [part.languages() for part in self.parts]
        languages: list[str | None] = []
        for side, codes in zip(("source", "target"), zip(*named, strict=True), strict=True):
            known = sorted({code for code in codes if code})
            if len(known) > 1:
                raise UsageError(f"the files have several {side} languages ({', '.join(known)}); give --{side}-lang")
            languages.append(known[0] if known else None)
        return languages[0], languages[1]


# --- writing ----------------------------------------------------------------------------------------------------


@contextmanager
def line_writer(path: Path) -> Iterator[Callable[[str], None]]:
    r"""Yield a function that adds a line to `path`; the file is replaced only if all lines were written.

    A line with ``\n`` or NUL, or a first line that starts with U+FEFF, is a `ValueError`: it could not be read back.
    """
    first = True
    with atomic_io.replace_file(path) as file:

        def write(line: str) -> None:
            nonlocal first
            if "\n" in line or "\0" in line:
                raise ValueError(f"a line cannot contain a line end or NUL: {line[:60]!r}")
            if first and line.startswith("\ufeff"):
                raise ValueError("the first line cannot start with a byte-order mark")
            first = False
            file.write(line.encode() + b"\n")

        yield write


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file, gzipped if it is named `.gz`; see `line_writer`."""
    with line_writer(path) as write:
        for line in lines:
            write(line)

"""Readers and writers: every way a file can be wrong is one line with file, line, byte and remedy."""

import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errors import one_line_error
from softgaze.data import corpus as corpus_module
from softgaze.data.corpus import (
    Corpus,
    LineError,
    Pair,
    count_lines,
    is_language,
    language_of,
    line_writer,
    read_lines,
    read_pairs,
    read_table,
    scan_lines,
    scan_table,
    stream_lines,
    write_lines,
)
from softgaze.errors import DataError, ResourceError, UsageError

line_text = st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=40)
lines_of_text = st.lists(line_text, min_size=1, max_size=30).filter(lambda lines: not lines[0].startswith("\ufeff"))


def put(path: Path, raw: bytes) -> Path:
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


@given(lines=lines_of_text, zipped=st.booleans(), chunk=st.integers(1, 64))
def test_what_is_written_is_read_again(tmp_path_factory, lines, zipped, chunk):
    path = tmp_path_factory.mktemp("written") / ("text.en.gz" if zipped else "text.en")
    write_lines(path, lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "CHUNK", chunk)
        assert list(read_lines(path)) == [line.removesuffix("\r") for line in lines]
        assert count_lines(path) == len(lines)


@pytest.mark.parametrize("name", ["t.en", "t.en.gz"])
@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"\n", [""]),
        (b"a\n\n", ["a", ""]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\r\n", ["a\r"]),
        (b"a\rb\x0cc\n", ["a\rb\x0cc"]),
        ("x\u2028y\u0085z\x1e\n".encode(), ["x\u2028y\u0085z\x1e"]),
    ],
)
def test_lines_end_at_newlines_only(tmp_path, name, raw, lines):
    path = put(tmp_path / name, raw)
    assert list(read_lines(path)) == lines
    assert count_lines(path) == len(lines)


@pytest.mark.parametrize("name", ["t.en", "t.en.gz"])
@pytest.mark.parametrize(
    ("raw", "line", "byte", "why"),
    [
        (b"good\ncaf\xe9\n", 2, 8, "not UTF-8 (0xE9"),
        (b"caf\xc3", 1, 3, "not UTF-8"),
        (b"a\nb\xed\xa0\x80\n", 2, 3, "not UTF-8"),
        (b"a\nbc\0d\n", 2, 4, "NUL"),
        (b"\xef\xbb\xbfa\n", 1, 0, "byte-order mark"),
    ],
)
def test_a_bad_line_is_reported_with_its_position(tmp_path, name, raw, line, byte, why):
    path = put(tmp_path / name, raw)
    with one_line_error(LineError, f"{path}, line {line}, byte {byte}:", why) as caught:
        list(read_lines(path))
    assert (caught.value.line, caught.value.byte) == (line, byte)


@pytest.mark.parametrize("chunk", [1, 3, 7, 1 << 18])
def test_bad_lines_are_found_wherever_chunks_end(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(corpus_module, "CHUNK", chunk)
    raw = b"\xef\xbb\xbfone\n\xfftwo\nthr\0ee\nfour \xe2\x82\xac\nf\xc3\nsix"
    errors = []
    lines = list(scan_lines(put(tmp_path / "t.en", raw), errors.append))
    assert lines == ["one", None, None, "four €", None, "six"]
    positions = [(1, 0), (2, 7), (3, raw.index(b"\0")), (5, raw.index(b"\xc3"))]
    assert [(error.line, error.byte) for error in errors] == positions
    put(tmp_path / "t.en", b"one\r\n\xff\r\nthree\r\n")
    assert list(scan_lines(tmp_path / "t.en", errors.append)) == ["one", None, "three"]


@given(raw=st.lists(st.sampled_from([b"a", b"\r", b"\n", b"\0", b"\xff", b"\xef\xbb\xbf", "é".encode()]), min_size=1))
def test_a_stream_reads_as_a_file_does(tmp_path_factory, raw):
    path = put(tmp_path_factory.mktemp("stream") / "t.en", b"".join(raw))

    def outcome(read: Iterator[str]) -> tuple[list[str], str]:
        lines: list[str] = []
        try:
            lines.extend(read)
        except LineError as error:
            return [], str(error)
        return lines, ""

    assert outcome(stream_lines(path.open("rb"), path)) == outcome(read_lines(path))


def test_a_stream_gives_each_line_as_soon_as_it_is_there():
    reading, writing = os.pipe()
    lines = stream_lines(os.fdopen(reading, "rb"), Path("pipe"))
    for text in ("one", "", "three"):
        os.write(writing, text.encode() + b"\n")
        assert next(lines) == text
    os.close(writing)
    assert list(lines) == []


def test_files_that_are_no_text(tmp_path):
    damaged = bytearray(gzip.compress(os.urandom(5000)))
    damaged[2000] ^= 255
    files = {
        "empty.en": (b"", "is empty"),
        "hollow.en.gz": (gzip.compress(b""), "is empty"),
        "void.en.gz": (b"", "is empty"),
        "plain.en.gz": (b"not compressed\n", "is not gzip"),
        "zipped.en": (gzip.compress(b"compressed\n"), "is gzip"),
        "short.en.gz": (gzip.compress(b"text that is cut short\n" * 99)[:-9], "truncated or damaged"),
        "damaged.en.gz": (damaged, "truncated or damaged"),
        "wide.en": ("wide".encode("utf-16"), "UTF-16"),
    }
    for name, (raw, _) in files.items():
        (tmp_path / name).write_bytes(raw)
    os.mkfifo(tmp_path / "pipe.en")
    reasons = {tmp_path / name: why for name, (_, why) in files.items()} | {tmp_path: "is a directory"}
    reasons |= {tmp_path / "missing.en": "does not exist", tmp_path / "pipe.en": "not a regular file"}
    for path, why in reasons.items():
        for read in (read_lines, count_lines):
            with one_line_error(DataError, path, why):
                list(read(path))


def test_text_without_line_ends_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "MAX_LINE", 1 << 20)
    path = put(tmp_path / "endless.en", b"x\n" + b"y" * (3 << 20))
    for lines in (read_lines(path), stream_lines(path.open("rb"), path)):
        assert next(lines) == "x"
        with one_line_error(LineError, path, "line 2, byte 2: no line end"):
            next(lines)


def test_pairs_and_different_line_counts(tmp_path):
    source, target = put(tmp_path / "t.en", b"a\nb\nc\n"), put(tmp_path / "t.de.gz", b"A\nB\nC")
    assert list(read_pairs(source, target)) == [Pair("a", "A"), Pair("b", "B"), Pair("c", "C")]
    for longer, shorter in ((b"a\n" * 1003, b"b\n" * 1001), (b"b\n" * 1001, b"a\n" * 1003)):
        put(source, longer)
        put(target, shorter)
        for read in (lambda: list(read_pairs(source, target)), Corpus.of([(source, target)]).count):
            with one_line_error(DataError, source, target, f"{len(longer) // 2:,}", f"{len(shorter) // 2:,}"):
                read()


def test_an_error_in_a_file_of_a_pair_is_about_that_line(tmp_path):
    source, target = put(tmp_path / "t.en", b"a\nb\n"), put(tmp_path / "t.de", b"A\n\xff\n")
    with one_line_error(LineError, f"{target}, line 2, byte 2"):
        list(read_pairs(source, target))


def test_tsv(tmp_path):
    assert list(read_table(put(tmp_path / "t.tsv.gz", b"a\tA\r\n\t\n"))) == [("a", "A"), ("", "")]
    path = put(tmp_path / "t.tsv", "a\tA\né\tB\tC\n".encode())
    with one_line_error(LineError, f"{path}, line 2, byte 9: expected 2 columns, got 3"):
        list(read_table(path))
    with one_line_error(LineError, "line 1, byte 0: no tab"):
        list(read_table(put(path, b"a A\n")))
    with one_line_error(UsageError, ".tsv, .jsonl, .tmx"):
        list(read_table(tmp_path / "t.ods"))


@pytest.mark.parametrize(
    "rows",
    [
        ['{"source": "a", "target": "A", "id": "7"}', '{"target": "B", "source": "b"}'],
        ['{"src": "a", "tgt": "A"}', '{"tgt": "B", "src": "b", "score": 0.5}'],
        ['{"en": "a", "de": "A", "id": 1}', '{"de": "B", "en": "b"}'],
        ['{"translation": {"en": "a", "de": "A"}}', '{"translation": {"de": "B", "en": "b"}}'],
    ],
)
def test_jsonl(tmp_path, rows):
    path = put(tmp_path / "t.jsonl.gz", "\n".join(rows).encode())
    assert list(read_table(path)) == [("a", "A"), ("b", "B")]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("", "not JSON"),
        ('{"source": "a", ', "not JSON"),
        ('["a", "A"]', "not a JSON object"),
        ("{}", "keys: none"),
        ('{"source": "a"}', "ambiguous source and target"),
        ('{"en": "a", "de": "A", "fr": "Â"}', "ambiguous source and target"),
        ('{"text": "a", "note": "A"}', "ambiguous source and target"),
        ('{"fr": "a", "de": "A"}', "unexpected keys 'fr' and 'de'"),
        ('{"source": "a", "target": 3}', "'target' is not a string"),
        ('{"source": "a\\nb", "target": "A"}', "a line end"),
        ('{"source": "a\\u0000", "target": "A"}', "a NUL character"),
        ('{"source": "a\\ud800", "target": "A"}', "half a surrogate pair"),
        ("[" * 100_000, "JSON"),
        ('{"source": "a", "target": "A", "id": ' + "1" * 5000 + "}", "JSON"),
    ],
)
def test_malformed_jsonl_rows_are_reported(tmp_path, row, words):
    first = '{"en": "a", "de": "A"}\n'
    path = put(tmp_path / "t.jsonl", f"{first}{row}\n{first}".encode())
    with one_line_error(LineError, f"{path}, line 2, byte ", words):
        list(read_table(path))
    errors = []
    assert list(scan_table(path, errors.append)) == [("a", "A"), None, ("a", "A")]
    [error] = errors
    assert error.byte >= len(first)


def test_a_json_error_names_its_byte(tmp_path):
    path = put(tmp_path / "t.jsonl", '{"source": "é", "target": "A"}\n{"source": "é", oops}\n'.encode())
    raw = path.read_bytes()
    with pytest.raises(LineError) as caught:
        list(read_table(path))
    assert caught.value.byte == raw.index(b"oops")


def test_a_corpus_of_several_parts(tmp_path):
    files = put(tmp_path / "a.en", b"a\n"), put(tmp_path / "a.de", b"A\n")
    rows = json.dumps({"en": "b", "de": "B"}).encode()
    corpus = Corpus.of([files], [put(tmp_path / "b.jsonl", rows), put(tmp_path / "c.en-de.tsv.gz", b"c\tC\n")])
    assert list(corpus) == list(corpus) == [("a", "A"), ("b", "B"), ("c", "C")]
    assert corpus.count() == 3
    assert [path.name for path in corpus.paths] == ["a.en", "a.de", "b.jsonl", "c.en-de.tsv.gz"]
    assert corpus.languages() == ("en", "de")
    assert corpus.sha256() == {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in corpus.paths}
    with pytest.raises(UsageError, match="no files"):
        Corpus.of()


def test_languages_come_from_endings_or_not_at_all(tmp_path):
    named = {"train.en.gz": "en", "t.pt-BR": "pt-BR", "t.zh_Hans": "zh_Hans", "t.yue": "yue"}
    unnamed = ["train.txt", "train.src", "train", "train.gz", "t.english"]
    assert {name: language_of(Path(name)) for name in named} == named
    assert [language_of(Path(name)) for name in unnamed] == [None] * len(unnamed)
    assert not is_language("EN")
    other = Corpus.of([(Path("a.en"), Path("a.de")), (Path("b.en"), Path("b.fr"))])
    with one_line_error(UsageError, "--target-lang"):
        other.languages()
    assert Corpus.of([], [put(tmp_path / "t.jsonl", b"oops\n")]).languages() == (None, None)


def test_writing_is_all_or_nothing(tmp_path):
    path = tmp_path / "t.en.gz"
    write_lines(path, ["before"])

    def fail_half_way() -> None:
        with line_writer(path) as write:
            write("after")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert list(read_lines(path)) == ["before"]
    for bad in (["a\nb"], ["a\0"], ["\ufeffa"]):
        with pytest.raises(ValueError, match="line"):
            write_lines(path, bad)
    assert [file.name for file in tmp_path.iterdir()] == ["t.en.gz"]
    assert list(read_lines(path)) == ["before"]
    missing = tmp_path / "no" / "t.en"
    with one_line_error(ResourceError, missing):
        write_lines(missing, ["a"])


def test_equal_lines_give_equal_compressed_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_lines(tmp_path / name, ["same"])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()

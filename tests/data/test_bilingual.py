"""The same three pairs in every bilingual format; units without a finished translation are not among them."""

import gzip
import tracemalloc

import pytest

from softgaze.data.corpus import Corpus, PairTable, write_lines
from softgaze.errors import SoftgazeError

PAIRS = [("The red dog runs.", "빨간 개가 달려요."), ("one & two", "하나, 둘"), ("files", "파일들")]
TMX = """<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en-US"/><body>
<tu><tuv xml:lang="ko"><seg>빨간 개가
 달려요.</seg></tuv><tuv xml:lang="en-US">
<seg>The <bpt i="1">&lt;b></bpt>red<ept i="1">&lt;/b></ept> <hi>dog</hi> runs.</seg></tuv></tu>
<tu><tuv xml:lang="EN"><seg>one &amp; two</seg></tuv><tuv xml:lang="ko-KR"><seg>하나, 둘</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>only English</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>files</seg></tuv><tuv xml:lang="ko"><seg>파일들</seg></tuv></tu></body></tmx>"""
XLIFF_1 = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="ko"><body>
<trans-unit id="1"><source>The <g id="1">red</g> dog <x id="2"/>runs.</source>
<target>빨간 개가 달려요.</target></trans-unit>
<trans-unit id="2"><source>one &amp; two</source><target state="translated">하나, 둘</target>
<alt-trans><source>no</source><target>아니</target></alt-trans></trans-unit>
<trans-unit id="3"><source>new</source><target state="new">새</target></trans-unit>
<trans-unit id="4"><source>missing</source></trans-unit>
<trans-unit id="5"><source>files</source><target>파일들</target></trans-unit></body></file></xliff>"""
XLIFF_2 = """<xliff version="2.0" srcLang="en" trgLang="ko" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f">
<unit id="1"><segment><source>The <pc id="1">red</pc> dog<ph id="2"/> runs.</source>
<target>빨간 개가 달려요.</target></segment>
<segment state="initial"><source>no</source><target>아니</target></segment></unit>
<unit id="2"><segment state="final"><source>one &amp; two</source><target>하나, 둘</target></segment>
<segment><source>files</source><target>파일들</target></segment></unit></file></xliff>"""
PO = r"""msgid ""
msgstr "Language: ko\n"

#: a.c:1
msgid ""
"The red "
"dog runs."
msgstr "빨간 개가 달려요."

msgctxt "menu"
msgid "one & two"
msgstr "하나, 둘"

#, fuzzy
msgid "maybe"
msgstr "아마"

msgid "empty"
msgstr ""

msgid "%d file"
msgid_plural "files"
msgstr[0] "파일들"
"""
CSV = (
    'note,source,target\n1,"The red dog\nruns.",빨간 개가 달려요.\n\n2,one & two,"하나, 둘"\n3,empty,\n4,files,파일들\n'
)
FILES = {
    "a.tmx": TMX.format(encoding="UTF-8").encode(),
    "utf16.en-ko.tmx": TMX.format(encoding="UTF-16").encode("utf-16"),
    "a.tmx.gz": gzip.compress(TMX.format(encoding="UTF-8").encode()),
    "a.xlf": XLIFF_1.encode(),
    "a.xliff": XLIFF_2.encode(),
    "a.po": PO.encode(),
    "a.csv": b"\xef\xbb\xbf" + CSV.encode(),
    "semicolon.csv": 'en;ko\nThe red dog runs.;빨간 개가 달려요.\none & two;"하나, 둘"\nfiles;파일들\n'.encode(),
    "a.tsv": "src\ttgt\nThe red dog runs.\t빨간 개가 달려요.\none & two\t하나, 둘\nfiles\t파일들\n".encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_pairs(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    part = PairTable(path)
    assert [*part] == PAIRS
    assert part.counts() == (3, 3)
    assert [*part.scan(lambda error: None)] == PAIRS
    languages = part.languages()
    assert languages in (("en", "ko"), (None, None))
    assert (languages == ("en", "ko")) == (name not in ("a.po", "a.csv", "a.tsv"))


def test_direction_of_a_memory(tmp_path):
    path = tmp_path / "b.ko-en.tmx"
    path.write_bytes(FILES["a.tmx"])
    assert [*PairTable(path)] == [(target, source) for source, target in PAIRS]
    path = tmp_path / "all.tmx"
    text = TMX.format(encoding="UTF-8").replace("<seg>one", '<seg>x</seg></tuv><tuv xml:lang="fr"><seg>one')
    path.write_text(text.replace("<tuv", '<tuv xml:lang="de"><seg>d</seg></tuv><tuv', 1))
    with pytest.raises(SoftgazeError, match=r"all\.tmx: the file has the languages en-US, de, ko"):
        [*PairTable(path)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tmx", b"<tmx><body>", "line 1: not well-formed"),
        ("a.tmx", b'<!DOCTYPE x [<!ENTITY a "b">]><tmx/>', "declares an entity"),
        ("a.xlf", b"<html/>", "expected a <tmx> or <xliff>"),
        ("a.po", b'msgid "a', "line 1: expected"),
        ("a.po", b'msgid "\xff"\n', "not UTF-8"),
        ("a.csv", b"a,b,c\n1,2,3\n", "line 1: expected a header"),
        ("a.csv", b"source,target\na\n", "line 2: expected 2 columns, got 1"),
    ],
)
def test_errors_name_the_file_in_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SoftgazeError) as error:
        [*Corpus.of(tables=[path])]
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_memory_does_not_grow_with_the_file(tmp_path):
    unit = '<tu><tuv xml:lang="en"><seg>the dog</seg></tuv><tuv xml:lang="ko"><seg>개</seg></tuv></tu>'
    path = tmp_path / "big.tmx"
    write_lines(path, ["<tmx><body>", *[unit] * 60_000, "</body></tmx>"])  # 6 MB
    tracemalloc.start()
    count = sum(1 for _ in PairTable(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 60_000
    assert peak < 3 << 20

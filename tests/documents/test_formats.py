import io
import json
import re
import zipfile
from xml.etree import ElementTree

import pytest

from documents.samples import DOCX, FILLED, HTML, MACRO, SAMPLES, SRT, W, zipped
from softgaze.data.bilingual import read_po_entries
from softgaze.documents import archive as archives
from softgaze.documents import xml_tree
from softgaze.documents.base import DocumentOptions
from softgaze.documents.formats import FORMATS, SUFFIXES, detect_format, open_document
from softgaze.documents.po import is_pending
from softgaze.documents.translate import flatten
from softgaze.errors import SoftgazeError

OPTIONS = DocumentOptions("en", "ko")
SAMPLE = pytest.mark.parametrize("name", SAMPLES)


def opened(name, content=None, options=OPTIONS):
    return open_document(SAMPLES[name][0] if content is None else content, name, options)


def translated(name, content=None, options=OPTIONS, change=str.upper):
    """Write a document with each text changed, and all markup where it was."""
    document = opened(name, content, options)
    return document.write([segment.finish(changed(segment, change)) for segment in document.segments])


def changed(segment, change):
    return "".join(segment.escape(change(piece)) if is_text else piece for is_text, piece in flatten(segment))


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def test_every_format_has_a_sample():
    assert {detect_format(name, content) for name, (content, _) in SAMPLES.items()} == {*FORMATS}


@SAMPLE
def test_segments_are_the_texts(name):
    assert [segment.text for segment in opened(name).segments if segment.text.strip()] == [
        text for text in SAMPLES[name][1] if text
    ]


@SAMPLE
def test_untouched_segments_give_back_the_bytes(name):
    document = opened(name)
    content = SAMPLES[name][0]
    written = document.write([segment.raw for segment in document.segments])
    if name == "a.po":
        entries = [read_po_entries(each.decode().splitlines(True)) for each in (content, written)]
        for before, after in zip(*entries, strict=True):
            pending = is_pending(before, overwrite=False)
            assert after.is_fuzzy == pending
            own = {key: text for key, text in before.texts.items() if not (pending and key in before.targets)}
            assert after.texts == own | {key: after.texts[after.source_of(key)] for key in before.targets if pending}
    elif name in FILLED:
        assert open_document(written, name, OPTIONS).segments == []  # every unit is filled now
    elif content.startswith(b"PK"):
        assert {key: value.replace(b"</w:r><w:r>", b"") for key, value in members(written).items()} == {
            key: value.replace(b"</w:r><w:r>", b"") for key, value in members(content).items()
        }
    else:
        assert written == content


@SAMPLE
def test_translated_texts_are_read_again(name):
    options = DocumentOptions("ko" if name == "a.tmx" else "en", "en" if name == "a.tmx" else "ko", overwrite=True)
    written = translated(name)
    if name in FILLED:  # the source is still there, the target is new
        assert all(segment.text.strip().upper().encode()[:3] in written for segment in opened(name).segments)
        opened(name, written, options)
        return
    expected = [text.upper().split() for text in SAMPLES[name][1] if text.split()]
    assert [segment.text.split() for segment in opened(name, written).segments if segment.text.split()] == expected


@SAMPLE
def test_special_characters_are_escaped(name):
    text = "a < b & \"c\" 'd' \\ * 개"
    document = opened(name)
    written = document.write([segment.finish(segment.escape(text)) for segment in document.segments])
    texts = [segment.text for segment in opened(name, written).segments if any(map(str.isalpha, segment.text))]
    if name not in FILLED and name not in ("a.srt",):
        assert {" ".join(each.split()) for each in texts} == {text}


# --- formats ----------------------------------------------------------------------------------------------------


def test_po_fills_what_is_missing_and_marks_it():
    written = translated("a.po").decode()
    assert '#, fuzzy, c-format\nmsgid "a %s dog"\nmsgstr "A %S DOG"' in written
    assert 'msgid "done"\nmsgstr "fertig"' in written
    assert 'msgstr ""\n"FIRST\\n"\n"SECOND\\n"' in written
    assert 'msgstr[0] "%D FILE"\nmsgstr[1] "%D FILES"' in written
    assert written.count("fuzzy") == 3
    assert written.startswith(SAMPLES["a.po"][0].decode()[:40])
    assert written.endswith('#~ msgid "gone"\n#~ msgstr "weg"\n')


def test_overwrite_translates_finished_units():
    for name in FILLED:
        assert b"DONE" not in translated(name)
        assert b"DONE" in translated(name, options=DocumentOptions("en", "ko", overwrite=True))


def test_xliff_targets_are_marked_for_review():
    root = ElementTree.fromstring(translated("a.xlf"))
    space = "{urn:oasis:names:tc:xliff:document:1.2}"
    assert [("".join(node.itertext()), node.get("state")) for node in root.iter(f"{space}target")] == [
        ("THE RED DOG", "needs-review-translation"),
        ("fertig", "final"),
        ("NEW", "needs-review-translation"),
    ]
    assert root.find(f"{space}file").get("target-language") == "ko"
    second = ElementTree.fromstring(translated("b.xliff"))
    assert [node.get("state") for node in second.iter("{urn:oasis:names:tc:xliff:document:2.0}segment")] == [
        "translated",
        "final",
    ]


@pytest.mark.parametrize(("version", "unit", "inner"), [("1.2", "trans-unit", ""), ("2.0", "unit", "segment")])
def test_xliff_units_inherit_that_they_are_not_translated(version, unit, inner):
    def markup(text, attribute=""):
        source = f"<source>{text}</source>"
        return f'<{unit} id="{text}"{attribute}>{f"<{inner}>{source}</{inner}>" if inner else source}</{unit}>'

    group = f'<group translate="no">{markup("a")}{markup("b", """ translate="yes" """)}</group>{markup("c")}'
    content = f'<xliff version="{version}"><file>{group}</file></xliff>'.encode()
    assert [segment.text for segment in opened("a.xlf", content).segments] == ["b", "c"]


def test_tmx_gets_the_target_language():
    root = ElementTree.fromstring(translated("a.tmx"))
    lang = "{http://www.w3.org/XML/1998/namespace}lang"
    assert [(node.get(lang), "".join(node.itertext())) for node in root.iter("tuv")] == [
        ("en-US", "the <b>dog</b>"),
        ("ko", "THE <b>DOG</b>"),
        ("en", "done"),
        ("ko", "fertig"),
    ]


def test_subtitles_keep_their_timing_and_wrap_their_lines():
    sentence = "this sentence is much too long for one line of a subtitle and needs three lines or so to be read"
    document = opened("a.srt")
    written = document.write([segment.finish(sentence) for segment in document.segments]).decode()
    assert re.findall(r".*-->.*", written) == re.findall(r".*-->.*", SRT)
    lines = written.split("\r\n\r\n")[0].split("\r\n")[2:]
    assert " ".join(lines) == sentence
    assert len(lines) == 3
    assert max(map(len, lines)) <= 42
    assert min(map(len, lines)) >= 25


def test_json_keeps_keys_and_metadata():
    written = json.loads(translated("a.json"))
    assert written == {
        "title": "A DOG",
        "n": 3,
        "list": ["ONE\nTWO", True],
        "@title": {"description": "kept"},
        "last": "THE END",
    }


def test_ascii_properties_stay_ascii():
    assert translated("a.properties", change=lambda _: "개").isascii()
    assert "개".encode() in translated("a.properties", "a=é".encode(), change=lambda _: "개")


def test_word_runs_fields_and_macros_are_kept():
    written = members(translated("a.docx"))
    assert written["word/vbaProject.bin"] == MACRO
    assert written["word/comments.xml"] == members(DOCX)["word/comments.xml"]
    ElementTree.fromstring(written["word/document.xml"])
    assert (
        b'<w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t xml:space="preserve">A DOG &amp; A CAT</w:t></w:r></w:p>'
        in (written["word/document.xml"])
    )


MARKDOWN = "---\ntitle: kept\n---\n\nHeading\n===\n\nSome text  \nnext line.\n\n| a | b |\n|---|---|\n| c | d |\n"


def test_markdown_with_the_line_ends_of_windows():
    windows = MARKDOWN.replace("\n", "\r\n").encode()
    assert [one.text for one in opened("a.md", windows).segments] == [
        one.text for one in opened("a.md", MARKDOWN.encode()).segments
    ]
    assert translated("a.md", windows) == translated("a.md", MARKDOWN.encode()).replace(b"\n", b"\r\n")


@pytest.mark.parametrize(
    "start", ['<meta charset="ISO-8859-1">', "<META http-equiv=x content='text/html; charset=latin1'>"]
)
def test_html_is_read_and_written_in_its_declared_encoding(start):
    html = f"{start}<p>café</p>"
    assert translated("a.html", html.encode("latin-1")) == html.replace("café", "CAFÉ").encode("latin-1")
    korean = translated("a.html", html.encode("latin-1"), change=lambda text: "개")
    assert b"&#44060;" in korean  # the encoding has no such character


def test_xhtml_is_read_in_its_declared_encoding():
    content = '<?xml version="1.0" encoding="iso-8859-1"?><html><p>café</p></html>'
    assert translated("a.xhtml", content.encode("latin-1")) == content.replace("café", "CAFÉ").encode("latin-1")


def test_only_line_ends_split_the_lines_of_a_catalogue():
    content = 'msgid "a\u2028dog"\nmsgstr ""\n'.encode()
    assert [segment.text for segment in opened("a.po", content).segments] == ["a\u2028dog"]


def test_html_in_capitals_is_kept():
    assert translated("a.html").startswith(HTML.encode()[:30])


# --- hostile files ----------------------------------------------------------------------------------------------

LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
PARAGRAPH = f"<w:document {W}><w:p><w:r><w:t>a</w:t></w:r></w:p></w:document>"
HOSTILE = {
    "entities": ("a.xlf", LAUGHS + "<xliff>&b;</xliff>", "entity"),
    "external entity": ("a.tmx", '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><tmx>&a;</tmx>', "entity"),
    "entities in a document": ("a.docx", zipped({"word/document.xml": LAUGHS + PARAGRAPH}), "entity"),
    "depth": ("strings.xml", "<resources>" + "<a>" * 300 + "</a>" * 300 + "</resources>", "nested deeper"),
    "not well-formed": ("a.xlf", "<xliff><a></xliff>", "line 1: not well-formed"),
    "outside": ("a.docx", zipped({"../x": "", "word/document.xml": PARAGRAPH}), "outside"),
    "drive": ("a.docx", zipped({"C:\\x": "", "word/document.xml": PARAGRAPH}), "outside"),
    "absolute": ("a.odt", zipped({"/etc/x": "", "content.xml": "<a/>"}), "outside"),
    "not a zip": ("a.docx", b"text", "zip archive"),
    "cut": ("a.docx", DOCX[: len(DOCX) // 2], "zip archive"),
    "not JSON": ("a.json", b'{"a": }', "not JSON"),
    "deep JSON": ("a.json", b"[" * 100_000, "not JSON"),
    "not UTF-8": ("a.txt", b"ab\xff", "not UTF-8 at byte 3"),
    "unusable encoding": ("a.xlf", b'<?xml version="1.0" encoding="undefined"?><xliff/>', "encoding"),
    "unknown encoding": ("a.html", b'<meta charset="klingon">', "unknown encoding 'klingon'"),
    "unknown format": ("a.xyz", b"", "unknown document format"),
    "no resources": ("b.xml", b"<resources", "not well-formed"),
    "not subtitles": ("a.vtt", b"hello", "expected WEBVTT"),
    "not PO": ("a.po", b'msgid "a\nnonsense', "line 1"),
}


@pytest.mark.parametrize(("name", "content", "message"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_rejected_in_one_line(name, content, message):
    content = content.encode() if isinstance(content, str) else content
    with pytest.raises(SoftgazeError) as error:
        open_document(content, name)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{name}: ")
    assert "\n" not in str(error.value)


def test_zip_bomb_is_rejected_before_it_is_read():
    bomb = zipped({"word/document.xml": b"<a>" + b" " * (4 << 20) + b"</a>"})
    with pytest.raises(SoftgazeError, match="compressed more than"):
        open_document(bomb, "a.docx")


@pytest.mark.parametrize(
    ("module", "limit", "value", "message"),
    [
        (archives, "MAX_MEMBERS", 2, "members"),
        (archives, "MAX_TOTAL_BYTES", 100, "uncompressed"),
        (archives, "MAX_TEXT_BYTES", 1500, "1,500 bytes of text"),
        (xml_tree, "MAX_BYTES", 100, "at most 100 are read"),
    ],
)
def test_limits(monkeypatch, module, limit, value, message):
    monkeypatch.setattr(module, limit, value)
    with pytest.raises(SoftgazeError, match=message):
        opened("a.docx")


def test_detection_by_suffix_and_content():
    assert detect_format("A.DOCX", b"") == "docx"
    assert detect_format("any.xml", b"<?xml?><tmx>") == "tmx"
    assert detect_format("any.xml", b"<other/>") is None
    assert all(name in FORMATS for name in SUFFIXES.values())
    assert [segment.text for segment in open_document(b"a b", "a.unknown", format_name="txt").segments] == ["a b"]

"""The official LibreTranslate client against our server, and other behaviour that its clients rely on."""

import io
import json
import zipfile
from pathlib import Path
from urllib.parse import urlencode

import pytest
from libretranslatepy import LibreTranslateAPI

from documents.html_checks import check_same_tags
from documents.samples import MACRO, SAMPLES, zipped
from softgaze.data.tokenizer import normalise
from softgaze.documents.base import DocumentOptions
from softgaze.documents.formats import open_document
from softgaze.documents.placeholders import PLACEHOLDERS

ENGLISH, KOREAN = "The small dog sees a tree.", "작은 고양이 자요."


@pytest.fixture(scope="module")
def client(server):
    return LibreTranslateAPI(server.url)


def test_client_translate(client, tiny):
    assert client.translate(ENGLISH, "en", "ko") == tiny.translate(ENGLISH).text


def test_client_detect(client):
    assert client.detect(ENGLISH)[0] == {"language": "en", "confidence": pytest.approx(100, abs=1)}
    assert client.detect(KOREAN)[0]["language"] == "ko"


def test_client_languages_which_sends_a_body_with_get(client):
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["ko"]},
        {"code": "ko", "name": "Korean", "targets": ["en"]},
    ]


ENCODINGS = {
    "json": lambda server, fields: server.post("/translate", fields),
    "form": lambda server, fields: server.form("/translate", fields),
    "query": lambda server, fields: server.request("POST", "/translate?" + urlencode(fields)),
    "multipart": lambda server, fields: server.upload("/translate", ("none", "x.txt", b""), **fields),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_request_encoding(server, tiny, encoding):
    response = ENCODINGS[encoding](server, {"q": ENGLISH, "source": "en", "target": "ko"})
    assert (response.status, response.json) == (200, {"translatedText": tiny.translate(ENGLISH).text})


def test_detected_language_and_alternatives_only_on_request(server):
    result = server.post("/translate", {"q": ENGLISH, "source": "auto", "target": "ko", "alternatives": 3}).json
    assert set(result) == {"translatedText", "detectedLanguage", "alternatives"}
    assert result["detectedLanguage"]["language"] == "en"
    assert 1 <= len(result["alternatives"]) <= 3
    assert result["translatedText"] not in result["alternatives"]


def test_lists(server, tiny):
    texts = [ENGLISH, "", "old man\n\n red tree", "the"]
    result = server.post("/translate", {"q": texts, "source": "auto", "target": "ko", "alternatives": 1}).json
    translated = result["translatedText"]
    for index in (0, 3):
        assert normalise(translated[index]) == tiny.translate(texts[index]).text
    assert translated[1] == ""
    assert translated[2].count("\n") == 2
    assert [each["language"] for each in result["detectedLanguage"]] == ["en"] * 4
    assert [len(each) for each in result["alternatives"]] == [1, 0, 1, 1]


def test_html_keeps_tags_and_escapes(server):
    page = '<p class="a">The <b>dog</b> &amp; a <a href="?a=1&amp;b=2">cat</a></p><script>1 < 2</script>'
    result = server.post("/translate", {"q": page, "source": "en", "target": "ko", "format": "html"}).json
    check_same_tags(page.replace("1 < 2", ""), result["translatedText"].replace("1 < 2", ""))
    assert "<script>1 < 2</script>" in result["translatedText"]


def test_text_in_the_target_language_is_unchanged(server):
    result = server.post("/translate", {"q": KOREAN, "source": "auto", "target": "ko"}).json
    assert result["translatedText"] == KOREAN


ERRORS = {  # LibreTranslate's own messages are compared in full: clients test for them
    "no q": ({"source": "en", "target": "ko"}, "Invalid request: missing q parameter"),
    "empty q": ({"q": "", "source": "en", "target": "ko"}, "Invalid request: missing q parameter"),
    "no texts": ({"q": [], "source": "en", "target": "ko"}, "Invalid request: missing q parameter"),
    "no source": ({"q": "a", "target": "ko"}, "Invalid request: missing source parameter"),
    "no target": ({"q": "a", "source": "en"}, "Invalid request: missing target parameter"),
    "unknown source": ({"q": "a", "source": "zz", "target": "ko"}, "zz is not supported"),
    "unknown target": ({"q": "a", "source": "en", "target": "zz"}, "zz is not supported"),
    "unknown format": ({"q": "a", "source": "en", "target": "ko", "format": "pdf"}, "pdf format is not supported"),
    "long text": (
        {"q": "a" * 10_001, "source": "en", "target": "ko"},
        "Invalid request: request (10001) exceeds text limit (10000)",
    ),
    "many texts": ({"q": ["a"] * 129, "source": "en", "target": "ko"}, "Invalid request: 129 texts"),
    "alternatives": ({"q": "a", "source": "en", "target": "ko", "alternatives": 11}, "Invalid request: num_hypotheses"),
    "number as q": ({"q": 1, "source": "en", "target": "ko"}, "Invalid request: q: "),
}


@pytest.mark.parametrize(("fields", "error"), ERRORS.values(), ids=ERRORS)
def test_error_messages(server, fields, error):
    response = server.post("/translate", fields)
    assert response.status == 400
    assert response.error.startswith(error)


def test_wrong_method(server):
    assert server.get("/translate").status == 405
    assert server.get("/translate").error


def test_country_codes_are_ignored(server):
    assert server.post("/translate", {"q": "a", "source": "en-US", "target": "KO_kr"}).status == 200


def test_frontend_settings(server):
    settings = server.get("/frontend/settings").json
    assert settings["charLimit"] == 10_000
    assert settings["keyRequired"] is False
    assert {".txt", ".docx", ".po", ".srt"} <= {*settings["supportedFilesFormat"]}


# --- files ------------------------------------------------------------------------------------------------------


def test_file_is_translated_line_by_line(server, tiny):
    lines = [ENGLISH, "", "  a cat", *(["old man"] * 150)]
    content = ("\ufeff" + "\r\n".join(lines)).encode()
    response = server.upload("/translate_file", ("file", "../../etc/name.txt", content), source="en", target="ko")
    url = response.json["translatedFileUrl"]
    assert url.startswith(f"{server.url}/download_file/")
    assert "name" not in url
    download = server.get(url.removeprefix(server.url))
    assert download.headers["content-disposition"] == 'attachment; filename="translated.txt"'
    translated = download.body.decode("utf-8-sig").split("\r\n")
    assert [line.strip() for line in translated] == [tiny.translate(line).text for line in lines]


@pytest.mark.parametrize("name", ["a.docx", "a.odt", "a.po", "strings.xml", "a.html"])
def test_documents_are_translated(server, name):
    content = SAMPLES[name][0]
    response = server.upload("/translate_file", ("file", name, content), source="en", target="ko")
    download = server.get(response.json["translatedFileUrl"].removeprefix(server.url))
    assert download.headers["content-type"] == "application/octet-stream"
    assert download.headers["content-disposition"] == f'attachment; filename="translated{Path(name).suffix}"'
    options = DocumentOptions("en", "ko", overwrite=True)
    assert len(open_document(download.body, name, options).segments) >= len(SAMPLES[name][1]) > 0


@pytest.mark.parametrize("text", ["the %s dog", "see [X0X] and {name}", "a <b>red</b> dog at https://x.y/z"])
def test_placeholders_of_plain_text_are_kept(server, text):
    translated = server.post("/translate", {"q": text, "source": "en", "target": "ko"}).json["translatedText"]
    assert PLACEHOLDERS.values(translated) == PLACEHOLDERS.values(text)
    [own] = server.post("/v1/translate", {"q": text, "source": "en", "target": "ko"}).json["translations"]
    assert PLACEHOLDERS.values(own["text"]) == PLACEHOLDERS.values(text)


BAD_FILES = {
    "format": (("file", "a.png", b"a"), "Invalid request: file format not supported"),
    "other XML": (("file", "a.xml", b"<a/>"), "Invalid request: file format not supported"),
    "no archive": (("file", "a.docx", b"a"), "Invalid request: not a zip archive: File is not a zip file"),
    "entities": (
        ("file", "a.tmx", b'<!DOCTYPE x [<!ENTITY a "b">]><tmx/>'),
        "Invalid request: the XML declares an entity (a); entities are not expanded",
    ),
    "zip bomb": (
        ("file", "a.docx", zipped({"word/document.xml": b"<a>" + b" " * (4 << 20) + b"</a>"})),
        "Invalid request: word/document.xml: compressed more than 100 times; not read",
    ),
    "name outside": (
        ("file", "a.odt", zipped({"../content.xml": b"<a/>"})),
        "Invalid request: the archive has a member outside of it: '../content.xml'",
    ),
    "entities in an archive": (
        ("file", "a.epub", zipped({"a.xhtml": b'<!DOCTYPE x [<!ENTITY a "b">]><html/>'})),
        "Invalid request: a.xhtml: the XML declares an entity (a); entities are not expanded",
    ),
    "deep XML": (
        ("file", "a.xlf", b"<a>" * 300 + b"</a>" * 300),
        "Invalid request: the XML is nested deeper than 200 elements",
    ),
    "empty": (("file", "a.txt", b""), "Invalid request: empty file"),
    "not UTF-8": (("file", "a.txt", b"ab\xff"), "Invalid request: the file is not UTF-8 at byte 3"),
    "no file": (("other", "a.txt", b"a"), "Invalid request: missing file parameter"),
}


@pytest.mark.parametrize(("file", "error"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files(server, file, error):
    response = server.upload("/translate_file", file, source="en", target="ko")
    assert (response.status, response.error) == (400, error)


def test_100_megabytes_are_rejected_while_they_arrive(server):
    response = server.upload("/translate_file", ("file", "a.tmx", b" " * 100_000_000), source="en", target="ko")
    assert (response.status, response.error) == (413, "Invalid request: the body exceeds the limit of 16777216 bytes")
    assert server.get("/health").status == 200


def test_macros_are_kept_and_progress_is_reported(server):
    response = server.upload(
        "/translate_file", ("file", "a.docm", SAMPLES["a.docx"][0]), source="en", target="ko", stream="true"
    )
    *progress, (name, done) = [
        (event.partition("\n")[0], json.loads(event.partition("data: ")[2]))
        for event in response.body.decode().split("\n\n")
        if event
    ]
    assert name == "event: done"
    assert progress[-1] == ("event: progress", {"done": 8, "total": 8})
    download = server.get(done["translatedFileUrl"].removeprefix(server.url))
    with zipfile.ZipFile(io.BytesIO(download.body)) as archive:
        assert archive.read("word/vbaProject.bin") == MACRO


@pytest.mark.parametrize("name", ["no.txt", "..%2F..%2Fetc%2Fpasswd", "%2e%2e/x", "a" * 32 + ".txt"])
def test_no_other_file_can_be_downloaded(server, name):
    assert server.get(f"/download_file/{name}").status == 404

"""The real client library, over a real socket; and what else of the API other clients rely on."""

from urllib.parse import urlencode

import pytest
from libretranslatepy import LibreTranslateAPI

from serve.tags import check_tags
from softgaze.data.tokens import normalise

ENGLISH, KOREAN = "The small dog sees a tree.", "작은 고양이 자요."


@pytest.fixture(scope="module")
def client(server):
    return LibreTranslateAPI(server.url)


def test_the_client_translates(client, tiny):
    assert client.translate(ENGLISH, "en", "ko") == tiny.translate(ENGLISH).text


def test_the_client_detects(client):
    assert client.detect(ENGLISH)[0] == {"language": "en", "confidence": pytest.approx(100, abs=1)}
    assert client.detect(KOREAN)[0]["language"] == "ko"


def test_the_client_lists_languages_though_it_sends_a_body_with_its_get(client):
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["ko"]},
        {"code": "ko", "name": "Korean", "targets": ["en"]},
    ]


WAYS = {
    "json": lambda server, fields: server.post("/translate", fields),
    "form": lambda server, fields: server.form("/translate", fields),
    "query": lambda server, fields: server.ask("POST", "/translate?" + urlencode(fields)),
    "form with parts": lambda server, fields: server.upload("/translate", ("none", "x.txt", b""), **fields),
}


@pytest.mark.parametrize("way", WAYS)
def test_however_it_is_asked(server, tiny, way):
    found = WAYS[way](server, {"q": ENGLISH, "source": "en", "target": "ko"})
    assert (found.status, found.json) == (200, {"translatedText": tiny.translate(ENGLISH).text})


def test_detected_only_with_auto_and_alternatives_only_when_asked(server):
    found = server.post("/translate", {"q": ENGLISH, "source": "auto", "target": "ko", "alternatives": 3}).json
    assert set(found) == {"translatedText", "detectedLanguage", "alternatives"}
    assert found["detectedLanguage"]["language"] == "en"
    assert 1 <= len(found["alternatives"]) <= 3
    assert found["translatedText"] not in found["alternatives"]


def test_lists_for_a_batch(server, tiny):
    texts = [ENGLISH, "", "old man\n\n red tree", "the"]
    found = server.post("/translate", {"q": texts, "source": "auto", "target": "ko", "alternatives": 1}).json
    assert [normalise(each) for each in found["translatedText"]][::3] == [tiny.translate(text).text for text in texts][
        ::3
    ]
    assert found["translatedText"][1] == ""
    assert found["translatedText"][2].count("\n") == 2
    assert [each["language"] for each in found["detectedLanguage"]] == ["en"] * 4
    assert [len(each) for each in found["alternatives"]] == [1, 0, 1, 1]


def test_html_keeps_its_tags_and_its_escapes(server):
    page = '<p class="a">The <b>dog</b> &amp; a <a href="?a=1&amp;b=2">cat</a></p><script>1 < 2</script>'
    found = server.post("/translate", {"q": page, "source": "en", "target": "ko", "format": "html"}).json
    check_tags(page.replace("1 < 2", ""), found["translatedText"].replace("1 < 2", ""))
    assert "<script>1 < 2</script>" in found["translatedText"]


def test_text_that_is_there_already_stays(server):
    found = server.post("/translate", {"q": KOREAN, "source": "auto", "target": "ko"}).json
    assert found["translatedText"] == KOREAN


ERRORS = {
    "no q": ({"source": "en", "target": "ko"}, "Invalid request: missing q parameter"),
    "empty q": ({"q": "", "source": "en", "target": "ko"}, "Invalid request: missing q parameter"),
    "no texts": ({"q": [], "source": "en", "target": "ko"}, "Invalid request: missing q parameter"),
    "no source": ({"q": "a", "target": "ko"}, "Invalid request: missing source parameter"),
    "no target": ({"q": "a", "source": "en"}, "Invalid request: missing target parameter"),
    "unknown source": ({"q": "a", "source": "zz", "target": "ko"}, "zz is not supported"),
    "unknown target": ({"q": "a", "source": "en", "target": "zz"}, "zz is not supported"),
    "unknown format": ({"q": "a", "source": "en", "target": "ko", "format": "pdf"}, "pdf format is not supported"),
    "too long": (
        {"q": "a" * 10_001, "source": "en", "target": "ko"},
        "Invalid request: request (10001) exceeds text limit (10000)",
    ),
    "too many": (
        {"q": ["a"] * 129, "source": "en", "target": "ko"},
        "Invalid request: 129 texts exceed the limit of 128",
    ),
    "too wild": (
        {"q": "a", "source": "en", "target": "ko", "alternatives": 11},
        "Invalid request: alternatives is from 0 to 10",
    ),
    "a number": ({"q": 1, "source": "en", "target": "ko"}, "Invalid request: q: Input should be a valid string"),
}


@pytest.mark.parametrize(("fields", "error"), ERRORS.values(), ids=ERRORS)
def test_errors_are_those_that_clients_test_for(server, fields, error):
    found = server.post("/translate", fields)
    assert (found.status, found.error) == (400, error)


def test_a_method_that_is_not_there(server):
    found = server.get("/translate")
    assert (found.status, found.error) == (405, "this address does not take that method")


def test_countries_do_not_matter(server):
    assert server.post("/translate", {"q": "a", "source": "en-US", "target": "KO_kr"}).status == 200


def test_settings_for_a_page(server):
    found = server.get("/frontend/settings").json
    assert found["charLimit"] == 10_000
    assert found["keyRequired"] is False
    assert found["supportedFilesFormat"] == [".txt"]


# --- files ------------------------------------------------------------------------------------------------------


def test_a_file_comes_back_line_by_line(server, tiny):
    lines = [ENGLISH, "", "  a cat", *(["old man"] * 150)]
    content = ("\ufeff" + "\r\n".join(lines)).encode()
    found = server.upload("/translate_file", ("file", "../../etc/name.txt", content), source="en", target="ko")
    url = found.json["translatedFileUrl"]
    assert url.startswith(f"{server.url}/download_file/")
    assert "name" not in url
    fetched = server.get(url.removeprefix(server.url))
    assert fetched.headers["content-disposition"] == 'attachment; filename="translated.txt"'
    written = fetched.body.decode().split("\r\n")
    assert [each.strip() for each in written] == [tiny.translate(line).text for line in lines]


FILES = {
    "another format": (("file", "a.docx", b"a"), "Invalid request: file format not supported"),
    "empty": (("file", "a.txt", b""), "Invalid request: empty file"),
    "no text": (("file", "a.txt", b"ab\xff"), "Invalid request: the file is not UTF-8 at byte 3"),
    "no file": (("other", "a.txt", b"a"), "Invalid request: missing file parameter"),
}


@pytest.mark.parametrize(("file", "error"), FILES.values(), ids=FILES)
def test_files_that_are_refused(server, file, error):
    found = server.upload("/translate_file", file, source="en", target="ko")
    assert (found.status, found.error) == (400, error)


@pytest.mark.parametrize("name", ["no.txt", "..%2F..%2Fetc%2Fpasswd", "%2e%2e/x", "a" * 32 + ".txt"])
def test_no_other_file_can_be_fetched(server, name):
    assert server.get(f"/download_file/{name}").status == 404

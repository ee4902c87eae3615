"""What no client should send. The server answers in one line, goes on, and logs nothing of it."""

import json
import socket
import time

import pytest

from serving import serving

TEXTS = {
    "script": "</script><script>alert(1)</script>",
    "nul": "a\x00b",
    "controls": "\x1b[31m\x07\u202e\u2066x",
    "half a pair, written": "\\ud800",
    "emoji": "👩‍👩‍👧 ☃️ 𝔘𝔫𝔦",
    "combining": "e" + "\u0301" * 500,
    "one character": "개",
    "only marks": "?!… ---",
    "no spaces": "a" * 9_999,
    "spaces": " " * 9_999 + "x",
    "lines": "\n" * 9_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("path", ["/translate", "/v1/translate", "/v2/translate", "/detect"])
def test_any_text_gets_an_answer(server, path, text):
    fields = {
        "q": text,
        "text": text,
        "source": "en",
        "target": "ko",
        "target_lang": "KO",
        "source_lang": "EN",
        "beam": 1,
    }
    found = server.post(path, fields)
    assert found.status == 200, found.body
    assert found.headers["content-type"] == "application/json"
    assert found.headers["x-content-type-options"] == "nosniff"
    json.loads(found.body)


BODIES = {
    "half a pair": rb'{"q": "\ud800", "source": "en", "target": "ko"}',
    "half a pair in a list": rb'{"q": ["a", "\uDC00"], "source": "en", "target": "ko"}',
    "half a pair as a language": rb'{"q": "a", "source": "\udfff", "target": "ko"}',
    "half a pair as a key": rb'{"\ud800": "a"}',
    "nested": b"[" * 100_000,
    "nested objects": b'{"q":' * 100_000,
    "nested and closed": b'{"q":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "no JSON": b"{q: 1}",
    "no UTF-8": b'{"q": "\xff"}',
    "nothing": b"",
    "infinite": b'{"q": "a", "source": "en", "target": "ko", "alternatives": Infinity}',
    "a huge number": b'{"q": "a", "source": "en", "target": "ko", "alternatives": ' + b"9" * 5000 + b"}",
    "lists in lists": b'{"q": [["a"]], "source": "en", "target": "ko"}',
    "an object as text": b'{"q": {"a": 1}, "source": "en", "target": "ko"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("path", ["/translate", "/v1/translate", "/v1/what_if", "/v1/gaze", "/v1/caption", "/detect"])
def test_a_body_that_makes_no_sense_is_refused_in_a_line(server, path, body):
    found = server.ask("POST", path, body, Content_Type="application/json")
    assert found.status == 400
    assert "\n" not in found.error
    assert len(found.error) < 300


def test_forms_that_make_no_sense(server):
    for kind, body in {
        "application/x-www-form-urlencoded": b"q=%ff&source=en&target=ko",
        "multipart/form-data": b"--x\r\n",
        "multipart/form-data; boundary=x": b"--x\r\nContent-Disposition: form-data; name=q\r\n\r\nno end",
        "text/plain": b"q=a",
    }.items():
        assert server.ask("POST", "/translate", body, Content_Type=kind).status == 400


def test_ten_megabytes_are_refused_in_words(server):
    found = server.post("/translate", {"q": "a" * 10_000_000, "source": "en", "target": "ko"})
    assert (found.status, found.error) == (413, "Invalid request: the body exceeds the limit of 1048576 bytes")


def test_a_body_without_a_length_has_a_limit_too(server):
    chunks = (b"a" * 65_536 for _ in range(100))
    found = server.ask("POST", "/translate", chunks, Content_Type="application/json")
    assert found.status == 413


def test_no_address_reaches_other_files(server):
    for path in (
        "/static/../app.py",
        "/static/%2e%2e%2fapp.py",
        "/static//etc/passwd",
        "/../../etc/passwd",
        "/static/",
    ):
        assert server.get(path).status == 404


def test_every_answer_forbids_a_browser_what_it_need_not_do(server):
    for path in ("/", "/health", "/nothing", "/v1/models", "/docs", "/metrics"):
        headers = server.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_the_page_may_run_only_its_own_scripts(server):
    policy = server.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


def test_other_sites_may_not_read_answers(server):
    found = server.ask("OPTIONS", "/translate", Origin="https://evil.example", Access_Control_Request_Method="POST")
    assert "access-control-allow-origin" not in found.headers


# --- slow clients -----------------------------------------------------------------------------------------------


def test_slow_clients_are_sent_away_and_keep_nobody_waiting(folder):
    with serving(folder / "quick", "--read-seconds", "1") as server:
        slow = [socket.create_connection(server.address) for _ in range(20)]
        for each in slow:
            each.sendall(
                b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
            )
        assert server.get("/health").status == 200
        assert server.post("/translate", {"q": "the dog", "source": "en", "target": "ko"}).status == 200
        slow[0].settimeout(60)
        assert slow[0].recv(1000).startswith(b"HTTP/1.1 408")
        for each in slow:
            each.close()


# --- nothing is logged ------------------------------------------------------------------------------------------


def test_neither_texts_nor_keys_are_logged(folder, tmp_path):
    (tmp_path / "keys").write_text("s3cret\n")
    with serving(folder / "quick", "--api-keys", tmp_path / "keys") as server:
        asked = {"q": "p3rsonal", "source": "en", "target": "ko", "api_key": "s3cret"}
        assert server.post("/translate", asked).status == 200
        assert server.ask("POST", "/translate?q=p3rsonal&api_key=s3cret&source=p3rsonal&target=ko").status == 400
        assert server.ask("POST", "/translate", b'{"q": "p3rsonal', Content_Type="application/json").status in (
            400,
            403,
        )
        assert server.ask("GET", "/p3rsonal?api_key=s3cret").status == 404
        time.sleep(0.2)
        metrics = server.get("/metrics", X_Api_Key="s3cret").body.decode()
        server.end()
        said = server.process.stdout.read() + server.process.stderr.read() + metrics
    assert "p3rsonal" not in said
    assert "s3cret" not in said

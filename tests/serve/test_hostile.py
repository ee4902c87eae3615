"""Hostile requests: the server answers with a one-line error, keeps running and logs nothing of their contents."""

import json
import socket
import time

import pytest

from serving import serving

TEXTS = {
    "script": "</script><script>alert(1)</script>",
    "nul": "a\x00b",
    "controls": "\x1b[31m\x07\u202e\u2066x",
    "escaped surrogate as text": "\\ud800",
    "emoji": "👩‍👩‍👧 ☃️ 𝔘𝔫𝔦",
    "combining": "e" + "\u0301" * 500,
    "one character": "개",
    "punctuation": "?!… ---",
    "no spaces": "a" * 9_999,
    "spaces": " " * 9_999 + "x",
    "lines": "\n" * 9_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("path", ["/translate", "/v1/translate", "/v2/translate", "/detect"])
def test_any_text_gets_a_response(server, path, text):
    fields = {
        "q": text,
        "text": text,
        "source": "en",
        "target": "ko",
        "target_lang": "KO",
        "source_lang": "EN",
        "beam_size": 1,
    }
    response = server.post(path, fields)
    assert response.status == 200, response.body
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    json.loads(response.body)


BODIES = {
    "surrogate": rb'{"q": "\ud800", "source": "en", "target": "ko"}',
    "surrogate in a list": rb'{"q": ["a", "\uDC00"], "source": "en", "target": "ko"}',
    "surrogate as a language": rb'{"q": "a", "source": "\udfff", "target": "ko"}',
    "surrogate as a field name": rb'{"\ud800": "a"}',
    "nested": b"[" * 100_000,
    "nested objects": b'{"q":' * 100_000,
    "nested and closed": b'{"q":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "not JSON": b"{q: 1}",
    "not UTF-8": b'{"q": "\xff"}',
    "empty": b"",
    "infinite": b'{"q": "a", "source": "en", "target": "ko", "alternatives": Infinity}',
    "a huge number": b'{"q": "a", "source": "en", "target": "ko", "alternatives": ' + b"9" * 5000 + b"}",
    "lists in lists": b'{"q": [["a"]], "source": "en", "target": "ko"}',
    "an object as text": b'{"q": {"a": 1}, "source": "en", "target": "ko"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(
    "path", ["/translate", "/v1/translate", "/v1/what_if", "/v1/explain", "/v1/caption", "/detect"]
)
def test_invalid_body_gets_a_one_line_error(server, path, body):
    response = server.request("POST", path, body, Content_Type="application/json")
    assert response.status == 400
    assert "\n" not in response.error
    assert len(response.error) < 300


def test_invalid_forms(server):
    for kind, body in {
        "application/x-www-form-urlencoded": b"q=%ff&source=en&target=ko",
        "multipart/form-data": b"--x\r\n",
        "multipart/form-data; boundary=x": b"--x\r\nContent-Disposition: form-data; name=q\r\n\r\nno end",
        "text/plain": b"q=a",
    }.items():
        assert server.request("POST", "/translate", body, Content_Type=kind).status == 400


def test_large_body_gets_413(server):
    response = server.post("/translate", {"q": "a" * 10_000_000, "source": "en", "target": "ko"})
    assert response.status == 413
    assert "1048576 bytes" in response.error


def test_large_chunked_body_gets_413(server):
    chunks = (b"a" * 65_536 for _ in range(100))
    response = server.request("POST", "/translate", chunks, Content_Type="application/json")
    assert response.status == 413


def test_no_path_reaches_other_files(server):
    for path in (
        "/static/../app.py",
        "/static/%2e%2e%2fapp.py",
        "/static//etc/passwd",
        "/../../etc/passwd",
        "/static/",
    ):
        assert server.get(path).status == 404


def test_every_response_has_security_headers(server):
    for path in ("/", "/health", "/nothing", "/v1/models", "/docs", "/metrics"):
        headers = server.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_the_page_runs_only_its_own_scripts(server):
    policy = server.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


def test_other_sites_cannot_read_responses(server):
    response = server.request(
        "OPTIONS", "/translate", Origin="https://evil.example", Access_Control_Request_Method="POST"
    )
    assert "access-control-allow-origin" not in response.headers


# --- slow clients -----------------------------------------------------------------------------------------------


def test_slow_clients_get_408_and_block_no_others(folder):
    with serving(folder / "quick", "--read-seconds", "1") as server:
        slow = [socket.create_connection(server.address) for _ in range(20)]
        for client in slow:
            client.sendall(
                b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
            )
        assert server.get("/health").status == 200
        assert server.post("/translate", {"q": "the dog", "source": "en", "target": "ko"}).status == 200
        slow[0].settimeout(60)
        assert slow[0].recv(1000).startswith(b"HTTP/1.1 408")
        for client in slow:
            client.close()


# --- logs ------------------------------------------------------------------------------------------


def test_texts_and_keys_are_not_logged(folder, tmp_path):
    (tmp_path / "keys").write_text("s3cret\n")
    with serving(folder / "quick", "--api-keys", tmp_path / "keys") as server:
        fields = {"q": "p3rsonal", "source": "en", "target": "ko", "api_key": "s3cret"}
        assert server.post("/translate", fields).status == 200
        assert server.request("POST", "/translate?q=p3rsonal&api_key=s3cret&source=p3rsonal&target=ko").status == 400
        assert server.request("POST", "/translate", b'{"q": "p3rsonal', Content_Type="application/json").status in (
            400,
            403,
        )
        assert server.request("GET", "/p3rsonal?api_key=s3cret").status == 404
        time.sleep(0.2)
        metrics = server.get("/metrics", X_Api_Key="s3cret").body.decode()
        server.stop()
        output = server.process.stdout.read() + server.process.stderr.read() + metrics
    assert "p3rsonal" not in output
    assert "s3cret" not in output

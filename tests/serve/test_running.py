"""From the start of a process to its end."""

import json
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection

import pytest

from serving import PATIENCE, serving, text_file, wait_for

ASKED = {"q": "the old man sees a tree.", "source": "en", "target": "ko"}


@contextmanager
def connected(server):
    """A connection that is kept until the block ends."""
    connection = HTTPConnection(*server.address, timeout=PATIENCE)
    connection.connect()
    try:
        yield connection
    finally:
        connection.close()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_what_was_accepted_is_answered_before_the_end(folder, how):
    with serving(folder / "quick", "--window", "400", "--batch", "4") as server:
        with ExitStack() as stack:
            connections = [stack.enter_context(connected(server)) for _ in range(25)]
            for each in connections[1:]:  # the first says nothing
                each.request("POST", "/translate", json.dumps(ASKED), {"Content-Type": "application/json"})
            wait_for(lambda: server.metric("softgaze_texts_total") >= 24)
            server.process.send_signal(how)
            statuses = [each.getresponse().status for each in connections[1:]]
        assert statuses == [200] * 24
        assert server.process.wait(PATIENCE) == (0 if how == signal.SIGTERM else 130)
        assert server.process.stderr.read() == ""


def test_a_request_that_comes_with_the_end_is_answered(folder):
    with serving(folder / "quick") as server:
        with connected(server) as kept:
            kept.request("GET", "/health")
            kept.getresponse().read()
            server.process.send_signal(signal.SIGTERM)
            kept.request("POST", "/translate", json.dumps(ASKED), {"Content-Type": "application/json"})
            assert kept.getresponse().status == 200
        assert server.process.wait(PATIENCE) == 0


def test_workers_share_files_and_counts(folder):
    with serving(folder / "quick", "--workers", "2") as server:
        wait_for(lambda: server.get("/ready").status == 200)
        url = server.upload("/translate_file", ("file", "a.txt", b"the dog"), source="en", target="ko").json
        path = url["translatedFileUrl"].removeprefix(server.url)
        assert {server.get(path).status for _ in range(8)} == {200}
        with ThreadPoolExecutor(8) as pool:
            statuses = [*pool.map(lambda _: server.post("/translate", ASKED).status, range(40))]
        assert statuses == [200] * 40
        wait_for(lambda: server.metric("softgaze_texts_total") >= 41)
        assert server.end() == 0


def test_an_exported_model_is_served_without_torch(folder, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = None\n")  # an import now fails
    with serving(folder / "quick", PYTHONPATH=f"{tmp_path}:{':'.join(sys.path)}") as server:
        model = server.get("/v1/models").json["models"][0]
        assert (model["engine"], model["attention"], model["full"], model["what_if"]) == (
            "ctranslate2",
            True,
            False,
            False,
        )
        found = server.post("/v1/translate", {"q": ASKED["q"], "beam": 1, "attention": True}).json["translations"][0]
        assert found["attention"]["links"]
        assert server.post("/translate", {**ASKED, "q": "the <b>old</b> man", "format": "html"}).status == 200
        assert server.post("/v1/gaze", {"q": ASKED["q"]}).json == {"html": None}
        assert "cannot be made to look elsewhere" in server.post("/v1/what_if", {"q": ASKED["q"], "mask": [0]}).error
        stream = server.post("/v1/translate", {"q": ASKED["q"], "stream": True}).body.decode()
        assert stream.count("event: word") == len(found["text"].split())
        assert server.end() == 0


def test_everything_also_by_environment(folder, tmp_path):
    keys = text_file(tmp_path / "keys", "# ours", "", "one", "two")
    told = {"SOFTGAZE_MODELS": str(folder / "quick"), "SOFTGAZE_API_KEYS": str(keys), "SOFTGAZE_MAX_CHARACTERS": "5"}
    with serving(**told, SOFTGAZE_CORS="https://a.example") as server:
        assert server.get("/v1/models").json["limits"]["characters"] == 5
        assert server.get("/v1/models").json["key_required"] is True
        assert server.post("/translate", {**ASKED, "q": "the", "api_key": "two"}).status == 200
        assert server.post("/translate", {**ASKED, "api_key": "two"}).error.endswith("exceeds text limit (5)")
        assert server.post("/translate", ASKED).error == "Please contact the server operator to get an API key"
        assert server.post("/translate", {**ASKED, "api_key": "three"}).status == 403
        assert server.post("/translate", {**ASKED, "q": "the"}, Authorization="Bearer one").status == 200
        assert server.post("/translate", {**ASKED, "q": "the"}, X_Api_Key="one").status == 200
        assert server.get("/metrics").status == 403
        assert (
            server.get("/health", Origin="https://a.example").headers["access-control-allow-origin"]
            == "https://a.example"
        )
        assert "access-control-allow-origin" not in server.get("/health", Origin="https://b.example").headers


def test_a_full_queue_says_when_to_come_again(folder):
    with serving(folder / "quick", "--queue", "8", "--window", "500", "--batch", "8", "--threads", "1") as server:
        with ThreadPoolExecutor(40) as pool:
            answers = [*pool.map(lambda _: server.post("/translate", ASKED), range(40))]
        refused = [each for each in answers if each.status == 429]
        assert {each.status for each in answers} == {200, 429}
        assert {each.headers["retry-after"] for each in refused} == {"1"}
        assert refused[0].error.startswith("Slowdown")


def test_a_text_that_waits_too_long_is_not_begun(folder):
    with serving(folder / "quick", "--deadline", "0.1", "--window", "500") as server:
        found = server.post("/translate", ASKED)
        assert (found.status, found.headers["retry-after"]) == (429, "1")


def test_who_goes_away_costs_nothing_more(folder):
    with serving(folder / "quick", "--window", "3000") as server:
        gone = socket.create_connection(server.address)
        body = json.dumps(ASKED).encode()
        head = b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        gone.sendall(head % len(body) + body)
        wait_for(lambda: server.metric("softgaze_texts_total") == 1)
        gone.close()
        wait_for(
            lambda: (
                server.metric("softgaze_requests_total") > 0 and 'status="499"' in server.get("/metrics").body.decode()
            )
        )
        assert server.metric("softgaze_batch_texts_count") == 0


def test_health_is_quick_while_models_are_busy(folder):
    long = {**ASKED, "q": ["the old man sees a tree. " * 100] * 8}
    with serving(folder / "quick") as server:
        thread = threading.Thread(target=server.post, args=("/translate", long))
        thread.start()
        wait_for(lambda: server.metric("softgaze_texts_total") >= 8)
        asked = 0
        while thread.is_alive() and asked < 20:
            assert server.get("/health").json == {"status": "ok"}
            asked += 1
        assert asked > 0
        thread.join()


# --- what cannot be served --------------------------------------------------------------------------------------


def failed(*arguments):
    ran = subprocess.run(
        [sys.executable, "-m", "softgaze", "serve", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert len(ran.stderr.splitlines()) == 1, ran.stderr
    return ran.returncode, ran.stderr


def test_a_port_that_is_taken(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, error = failed(folder / "quick", "--port", taken.getsockname()[1])
    assert code == 4
    assert "choose another --port" in error


@pytest.mark.parametrize("workers", [1, 2])
def test_a_model_that_is_not_there(tmp_path, workers):
    code, error = failed(tmp_path / "none", "--workers", workers, "--port", 0)
    assert code == 3
    assert "there is no such model directory" in error


def test_a_file_without_keys(folder, tmp_path):
    code, error = failed(folder / "quick", "--port", 0, "--api-keys", text_file(tmp_path / "keys", "# none"))
    assert code == 3
    assert "holds no API key" in error

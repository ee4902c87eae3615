"""The server process from start to shutdown, its connection limits and its settings."""

import asyncio
import gc
import json
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from http.client import HTTPConnection
from types import SimpleNamespace

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from serving import TIMEOUT, run_async, serving, text_file, wait_until
from softgaze.errors import UsageError
from softgaze.serve.server import MAX_HEAD_BYTES, LimitedProtocol
from softgaze.serve.service import Disconnected, Service
from softgaze.serve.settings import ENVIRONMENT, Settings

FIELDS = {"q": "the old man sees a tree.", "source": "en", "target": "ko"}
JSON = {"Content-Type": "application/json"}


@contextmanager
def connection_to(server):
    """A connection that stays open until the block ends."""
    connection = HTTPConnection(*server.address, timeout=TIMEOUT)
    connection.connect()
    try:
        yield connection
    finally:
        connection.close()


# --- shutdown ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_accepted_requests_are_answered_before_exit(folder, signum):
    with serving(folder / "quick", "--window", "400", "--batch", "4") as server:
        with ExitStack() as stack:
            _idle, *connections = [stack.enter_context(connection_to(server)) for _ in range(25)]
            for connection in connections:
                connection.request("POST", "/translate", json.dumps(FIELDS), JSON)
            wait_until(lambda: server.metric("softgaze_texts_total") >= 24)
            server.process.send_signal(signum)
            statuses = [connection.getresponse().status for connection in connections]
        assert statuses == [200] * 24
        assert server.process.wait(TIMEOUT) == (0 if signum == signal.SIGTERM else 130)
        assert server.process.stderr.read() == ""


def test_a_request_during_shutdown_is_answered(folder):
    with serving(folder / "quick") as server:
        with connection_to(server) as connection:
            connection.request("GET", "/health")
            connection.getresponse().read()
            server.process.send_signal(signal.SIGTERM)
            connection.request("POST", "/translate", json.dumps(FIELDS), JSON)
            assert connection.getresponse().status == 200
        assert server.process.wait(TIMEOUT) == 0


# --- processes, engines and settings ----------------------------------------------------------------------------


def test_workers_share_files_and_metrics(folder):
    with serving(folder / "quick", "--workers", "2") as server:
        wait_until(lambda: server.get("/ready").status == 200)
        url = server.upload("/translate_file", ("file", "a.txt", b"the dog"), source="en", target="ko").json
        path = url["translatedFileUrl"].removeprefix(server.url)
        assert {server.get(path).status for _ in range(8)} == {200}
        with ThreadPoolExecutor(8) as pool:
            statuses = [*pool.map(lambda _: server.post("/translate", FIELDS).status, range(40))]
        assert statuses == [200] * 40
        wait_until(lambda: server.metric("softgaze_texts_total") >= 41)
        assert server.stop() == 0


def test_an_exported_model_is_served_without_torch(folder, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = None\n")  # imports of torch fail
    text = FIELDS["q"]
    with serving(folder / "quick", PYTHONPATH=f"{tmp_path}:{':'.join(sys.path)}") as server:
        [model] = server.get("/v1/models").json["models"]
        capabilities = {name: model[name] for name in ("engine", "attention", "explain", "what_if")}
        assert capabilities == {"engine": "ctranslate2", "attention": True, "explain": False, "what_if": False}
        [best] = server.post("/v1/translate", {"q": text, "beam_size": 1, "attention": True}).json["translations"]
        assert best["attention"]["alignment"]
        assert server.post("/translate", {**FIELDS, "q": "the <b>old</b> man", "format": "html"}).status == 200
        assert server.post("/v1/explain", {"q": text}).json == {"html": None}
        assert "does not support what-if" in server.post("/v1/what_if", {"q": text, "mask": [0]}).error
        stream = server.post("/v1/translate", {"q": text, "stream": True}).body.decode()
        assert stream.count("event: word") == len(best["text"].split())
        assert server.stop() == 0


def test_settings_from_the_environment(folder, tmp_path):
    environment = {
        "SOFTGAZE_MODELS": str(folder / "quick"),
        "SOFTGAZE_API_KEYS": str(text_file(tmp_path / "keys", "# ours", "", "one", "two")),
        "SOFTGAZE_MAX_CHARACTERS": "5",
        "SOFTGAZE_CORS": "https://a.example",
    }
    with serving(**environment) as server:
        models = server.get("/v1/models").json
        assert (models["limits"]["characters"], models["key_required"]) == (5, True)
        short = {**FIELDS, "q": "the"}
        assert server.post("/translate", {**short, "api_key": "two"}).status == 200
        assert server.post("/translate", short, Authorization="Bearer one").status == 200
        assert server.post("/translate", short, X_Api_Key="one").status == 200
        assert server.post("/translate", {**FIELDS, "api_key": "two"}).error.endswith("exceeds text limit (5)")
        assert server.post("/translate", FIELDS).error == "Please contact the server operator to get an API key"
        assert server.post("/translate", {**FIELDS, "api_key": "three"}).status == 403
        assert server.get("/metrics").status == 403
        header = "access-control-allow-origin"
        assert server.get("/health", Origin="https://a.example").headers[header] == "https://a.example"
        assert header not in server.get("/health", Origin="https://b.example").headers


def test_workers_receive_the_settings_of_their_parent(monkeypatch):
    settings = Settings(models=("a", "b c"), port=1, cors=("*",), api_keys="k", window=0.5, shared_dir="/x")
    monkeypatch.setenv(ENVIRONMENT, "")
    settings.to_environment()
    assert Settings.from_environment() == settings


MINIMUM = {setting.name: setting.metadata.get("minimum") for setting in fields(Settings)}


@pytest.mark.parametrize("name", [name for name, minimum in MINIMUM.items() if minimum is not None])
def test_settings_below_their_minimum(name):
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} must be at least"):
        Settings(**{name: MINIMUM[name] - 1})


def test_default_beam_above_the_limit():
    with pytest.raises(UsageError, match="--beam-size 5 exceeds --max-beam-size 4"):
        Settings(beam_size=5, max_beam_size=4)


# --- load -------------------------------------------------------------------------------------------------------


def test_a_full_queue_gives_429_with_retry_after(folder):
    with serving(folder / "quick", "--queue", "8", "--window", "500", "--batch", "8", "--threads", "1") as server:
        with ThreadPoolExecutor(40) as pool:
            responses = [*pool.map(lambda _: server.post("/translate", FIELDS), range(40))]
        rejected = [response for response in responses if response.status == 429]
        assert {response.status for response in responses} == {200, 429}
        assert {response.headers["retry-after"] for response in rejected} == {"1"}
        assert rejected[0].error.startswith("Slowdown")


def test_a_passed_deadline_gives_429(folder):
    with serving(folder / "quick", "--deadline", "0.1", "--window", "500") as server:
        response = server.post("/translate", FIELDS)
        assert (response.status, response.headers["retry-after"]) == (429, "1")


def test_the_text_of_a_disconnected_client_is_not_translated(folder):
    with serving(folder / "quick", "--window", "3000") as server:
        client = socket.create_connection(server.address)
        body = json.dumps(FIELDS).encode()
        head = b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        client.sendall(head % len(body) + body)
        wait_until(lambda: server.metric("softgaze_texts_total") == 1)
        client.close()
        wait_until(lambda: 'status="499"' in server.get("/metrics").body.decode())
        assert server.metric("softgaze_batch_texts_count") == 0


def test_a_disconnected_client_leaves_no_error_in_the_log():
    async def receive():
        return {"type": "http.disconnect"}

    async def disconnect(logged):
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context["message"]))
        batcher = SimpleNamespace(submit=lambda *_: [Future()])
        service = SimpleNamespace(batcher=batcher, settings=SimpleNamespace(deadline=60))
        with pytest.raises(Disconnected):
            await Service.run(service, SimpleNamespace(receive=receive), None, ["a"], [1])
        for _ in range(5):  # callbacks of the cancelled futures
            await asyncio.sleep(0)
        gc.collect()

    logged = []
    run_async(disconnect(logged))
    assert logged == []


def test_health_responds_while_models_are_busy(folder):
    texts = ["the old man sees a tree. " * 100] * 8
    with serving(folder / "quick") as server:
        thread = threading.Thread(target=server.post, args=("/translate", {**FIELDS, "q": texts}))
        thread.start()
        wait_until(lambda: server.metric("softgaze_texts_total") >= 8)
        responses = 0
        while thread.is_alive() and responses < 20:
            assert server.get("/health").json == {"status": "ok"}
            responses += 1
        assert responses > 0
        thread.join()


# --- errors at startup ------------------------------------------------------------------------------------------


def run_failing(*arguments):
    """Run `softgaze serve`, and return its exit code and its error message, which must be one line."""
    command = [sys.executable, "-m", "softgaze", "serve", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.returncode, result.stderr


def test_port_in_use(folder):
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, error = run_failing(folder / "quick", "--port", other.getsockname()[1])
    assert code == 4
    assert "--port" in error


@pytest.mark.parametrize("workers", [1, 2])
def test_missing_model(tmp_path, workers):
    code, error = run_failing(tmp_path / "none", "--workers", workers, "--port", 0)
    assert code == 3
    assert str(tmp_path / "none") in error


def test_empty_key_file(folder, tmp_path):
    keys = text_file(tmp_path / "keys", "# none")
    code, error = run_failing(folder / "quick", "--port", 0, "--api-keys", keys)
    assert code == 3
    assert str(keys) in error


# --- connections ------------------------------------------------------------------------------------------------


class HurriedProtocol(LimitedProtocol):
    head_timeout = 0.3


async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


@pytest.fixture
def address():
    config = uvicorn.Config(hello, port=0, http=HurriedProtocol, lifespan="off", log_config=None, timeout_keep_alive=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server._serve()))
    thread.start()
    wait_until(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()
    server.should_exit = True
    thread.join()


def read_response(client):
    data = b""
    while not data.endswith(b"hi"):
        data += client.recv(1000)
    return data


@pytest.mark.parametrize("data", [b"", b"GET / HTTP/1.1\r\nHost: a\r\nX: "], ids=["nothing", "partial head"])
def test_a_connection_without_a_request_is_closed(address, data):
    with socket.create_connection(address, timeout=60) as client:
        client.sendall(data)
        assert client.recv(100) == b""


def test_the_timeout_holds_after_each_response(address):
    with socket.create_connection(address, timeout=60) as client:
        for _ in range(2):
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            read_response(client)
        client.sendall(b"GET / HTTP/1.1\r\n")
        assert client.recv(100) == b""


HEADS = {"value": b"GET / HTTP/1.1\r\nX: ", "path": b"GET /", "headers": b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 9000}


@pytest.mark.parametrize("start", HEADS.values(), ids=HEADS)
def test_a_large_head_gets_400(address, start):
    with socket.create_connection(address, timeout=60) as client:
        client.sendall(start.ljust(MAX_HEAD_BYTES + 1, b"a"))
        assert client.recv(1000).startswith(b"HTTP/1.1 400 ")


def test_a_large_body_is_not_a_large_head(address):
    body = b"a" * (3 * MAX_HEAD_BYTES)
    with socket.create_connection(address, timeout=60) as client:
        for _ in range(2):
            client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            assert read_response(client).startswith(b"HTTP/1.1 200 ")


def test_answered_requests_are_freed(address):
    with socket.create_connection(address, timeout=60) as client:
        for _ in range(20):
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            read_response(client)
        gc.collect()
        assert sum(type(each) is RequestResponseCycle for each in gc.get_objects()) < 5

"""A real `softgaze serve` process on a free port, and a plain HTTP client."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

TIMEOUT = 240  # seconds; generous, since the machine may be busy


def run_async(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a thread: the browser of other tests keeps an event loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


class HttpResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The message of an error response, which has no other content."""
        assert set(self.json) <= {"error", "message"}
        return self.json["error"]


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen, url: str) -> None:
        self.process, self.url = process, url

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname, parts.port

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        """Send one request on its own connection."""
        connection = HTTPConnection(*self.address, timeout=TIMEOUT)
        try:
            renamed = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, {"Connection": "close", **renamed})
            response = connection.getresponse()
            response_headers = {name.lower(): value for name, value in response.getheaders()}
            return HttpResponse(response.status, response_headers, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.request("GET", path, **headers)

    def post(self, path: str, content: Any, **headers: str) -> HttpResponse:
        """Post JSON."""
        return self.request("POST", path, json.dumps(content), Content_Type="application/json", **headers)

    def form(self, path: str, fields: Any, **headers: str) -> HttpResponse:
        """Post a URL-encoded form."""
        content_type = "application/x-www-form-urlencoded"
        return self.request("POST", path, urlencode(fields, doseq=True), Content_Type=content_type, **headers)

    def upload(self, path: str, file: tuple[str, str, bytes], **fields: str) -> HttpResponse:
        """Post a multipart form with a file: its field, its name, its content."""
        boundary = "----softgaze"
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in fields.items()
        ]
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{file[0]}"; filename="{file[1]}"\r\n\r\n'
        body = b"".join([*parts, head.encode(), file[2], f"\r\n--{boundary}--\r\n".encode()])
        return self.request("POST", path, body, Content_Type=f"multipart/form-data; boundary={boundary}")

    def metric(self, name: str) -> float:
        """Return the sum of a metric over all its labels."""
        lines = self.get("/metrics").body.decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def stop(self, signum: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(signum)
        return self.process.wait(TIMEOUT)


@contextmanager
def serving(*arguments: Any, **environment: str) -> Iterator[Server]:
    """Run `softgaze serve` with these arguments on a free port until the block ends."""
    command = [sys.executable, "-m", "softgaze", "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        for line in process.stdout:
            if line.startswith("Serving on "):
                yield Server(process, line.split()[2])
                break
        else:
            raise AssertionError(f"the server did not start: {process.stderr.read()}")
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=TIMEOUT)


def wait_until(condition: Callable[[], bool], seconds: float = TIMEOUT) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.01)


def text_file(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path

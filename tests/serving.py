"""A real server: `softgaze serve` in a process of its own, on a real port, and the plainest of clients."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

PATIENCE = 240  # seconds: of a busy machine; nothing here is about time


def awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """In a thread of its own: the browser of other tests keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The one line of an error, which is all there is."""
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

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request on a connection of its own."""
        connection = HTTPConnection(*self.address, timeout=PATIENCE)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, {"Connection": "close", **named})
            found = connection.getresponse()
            return Answer(found.status, {name.lower(): own for name, own in found.getheaders()}, found.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, content: Any, **headers: str) -> Answer:
        """As JSON."""
        return self.ask("POST", path, json.dumps(content), Content_Type="application/json", **headers)

    def form(self, path: str, fields: Any, **headers: str) -> Answer:
        """As a form."""
        kind = "application/x-www-form-urlencoded"
        return self.ask("POST", path, urlencode(fields, doseq=True), Content_Type=kind, **headers)

    def upload(self, path: str, file: tuple[str, str, bytes], **fields: str) -> Answer:
        """As a form with a file: its field, its name, its bytes."""
        line = "----softgaze"
        parts = [
            f'--{line}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in fields.items()
        ]
        head = f'--{line}\r\nContent-Disposition: form-data; name="{file[0]}"; filename="{file[1]}"\r\n\r\n'
        body = b"".join([*parts, head.encode(), file[2], f"\r\n--{line}--\r\n".encode()])
        return self.ask("POST", path, body, Content_Type=f"multipart/form-data; boundary={line}")

    def metric(self, name: str) -> float:
        """The sum of a metric over all its labels."""
        lines = self.get("/metrics").body.decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def end(self, how: int = signal.SIGTERM) -> int:
        """Tell it to end, and wait until it has."""
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)


@contextmanager
def serving(*arguments: Any, **environment: str) -> Iterator[Server]:
    """`softgaze serve` with these arguments, on a free port, until the block ends."""
    command = [sys.executable, "-m", "softgaze", "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        yield Server(process, address(process))
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=PATIENCE)


def address(process: subprocess.Popen) -> str:
    """What it says it serves on."""
    for line in process.stdout:
        if line.startswith("Serving on "):
            return line.split()[2]
    raise AssertionError(f"it did not start: {process.stderr.read()}")


def wait_for(what: Any, seconds: float = PATIENCE) -> None:
    """Until it is true."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.01)


def text_file(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path

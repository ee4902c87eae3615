"""The server process: socket, HTTP protocol limits, worker processes and graceful shutdown."""

import asyncio
import logging
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from softgaze.bundle import Bundle
from softgaze.errors import ResourceError
from softgaze.serve.app import build_app
from softgaze.serve.model_registry import ModelRegistry, check_engines
from softgaze.serve.service import ApiKeys, Service
from softgaze.serve.settings import Settings

BACKLOG = 2048  # connections waiting to be accepted
KEEP_ALIVE_SECONDS = 30
MAX_HEAD_BYTES = 1 << 16
SHUTDOWN_GRACE_SECONDS = 0.5  # for a request that is in flight on an idle connection at shutdown


def serve(settings: Settings, echo: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `echo` prints a line for the user."""
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
    # The socket is bound before the models are loaded, so that a taken port is reported at once.
    with bound_socket(settings) as sock, tempfile.TemporaryDirectory(prefix="softgaze-serve-") as shared_dir:
        settings = replace(settings, shared_dir=shared_dir)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        url = f"http://{host}:{sock.getsockname()[1]}"
        if settings.workers == 1:
            service = Service(settings, ModelRegistry.open(settings.models, settings.device, settings.engine, echo))
            sock.listen(BACKLOG)
            echo(f"Serving on {url} (stop with Ctrl-C)")
            with ignore_sigterm():
                uvicorn.Server(uvicorn_config(build_app(service), settings)).run(sockets=[sock])
        else:
            # Problems with models or keys are reported here, not by each worker.
            check_engines([Bundle.open(Path(path)) for path in settings.models])
            ApiKeys.read(settings.api_keys)
            settings.to_environment()
            sock.listen(BACKLOG)
            echo(f"Serving on {url} with {settings.workers} workers (stop with Ctrl-C)")
            Multiprocess(uvicorn_config("softgaze.serve.app:create_worker_app", settings), sockets=[sock]).run()


def uvicorn_config(app: Any, settings: Settings) -> uvicorn.Config:
    """Return the uvicorn configuration; requests are not logged."""
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        workers=settings.workers,
        http=LimitedProtocol,
        ws="none",
        lifespan="on",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        access_log=False,
        log_config=None,
        server_header=False,
    )


@contextmanager
def bound_socket(settings: Settings) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((settings.host, settings.port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ResourceError(
                f"cannot serve on {settings.host}:{settings.port}: {reason}; choose another --port"
            ) from error
        sock.set_inheritable(True)
        yield sock


@contextmanager
def ignore_sigterm() -> Iterator[None]:
    """Exit with code 0 after SIGTERM: uvicorn handles the signal, then raises it again."""
    previous = signal.signal(signal.SIGTERM, lambda signum, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


class LimitedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with a time and a size limit for request heads, which uvicorn lacks, and a graceful shutdown."""

    head_timeout = 20.0  # seconds to receive the head of a request
    head_bytes: int | None = 0  # received of the current head; None once it is complete
    head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of the first request."""
        super().connection_made(transport)
        self.start_head_timer(self.head_timeout)

    def data_received(self, data: bytes) -> None:
        """Reject a head that exceeds the size limit."""
        super().data_received(data)
        if self.head_bytes is not None:
            self.head_bytes += len(data)
            if self.head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response(f"the request head exceeds {MAX_HEAD_BYTES} bytes")

    def on_message_begin(self) -> None:
        self.head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.head_bytes = None
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Start the timer of the next request; uvicorn closes connections that stay idle."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self.start_head_timer(self.head_timeout + self.timeout_keep_alive)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer, which references the last request."""
        if self.head_timer is not None:
            self.head_timer.cancel()
        super().connection_lost(exc)

    def start_head_timer(self, seconds: float) -> None:
        """Close the connection unless the next request begins within so many seconds."""
        if self.head_timer is not None:
            self.head_timer.cancel()  # one timer per connection: each keeps a request alive
        self.head_timer = self.loop.call_later(seconds, self.close_if_idle, self.cycle)

    def close_if_idle(self, previous: Any) -> None:
        if self.cycle is previous and not self.transport.is_closing():
            self.transport.close()

    def shutdown(self) -> None:
        """Wait a moment for a request in flight on an idle connection, and answer it."""
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(SHUTDOWN_GRACE_SECONDS, self.finish_shutdown)
        else:
            super().shutdown()

    def finish_shutdown(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()

"""From settings to a process that answers: the socket, the workers, and an end in which nothing is lost."""

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
from uvicorn.supervisors import Multiprocess

from softgaze.bundle import Bundle
from softgaze.errors import ResourceError
from softgaze.serve.app import make_app
from softgaze.serve.keys import Keys
from softgaze.serve.protocol import PatientProtocol
from softgaze.serve.service import Service
from softgaze.serve.settings import Settings
from softgaze.serve.shelf import Shelf, check_engines

Tell = Callable[[str], None]
WAITING = 2048  # connections that the system holds until they are accepted
KEPT_ALIVE = 30  # seconds that a connection is kept for another request


def serve(settings: Settings, tell: Tell) -> None:
    """Serve until told to end."""
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
    with listening(settings) as socket_, tempfile.TemporaryDirectory(prefix="softgaze-serve-") as shared:
        settings = replace(settings, shared=shared)
        run = serve_alone if settings.workers == 1 else serve_together
        run(settings, socket_, tell)


def serve_alone(settings: Settings, socket_: socket.socket, tell: Tell) -> None:
    """One process."""
    service = Service(settings, Shelf.open(settings.models, settings.device, tell))
    server = uvicorn.Server(config(make_app(service), settings))
    socket_.listen(WAITING)
    tell(f"Serving on {address(settings, socket_)} (Ctrl-C ends)")
    with ending_well():
        server.run(sockets=[socket_])


def serve_together(settings: Settings, socket_: socket.socket, tell: Tell) -> None:
    """Several processes behind one socket; what is wrong with the models is said before they start."""
    check_engines([Bundle.open(Path(path)) for path in settings.models])
    Keys.read(settings.api_keys)
    settings.to_environment()
    socket_.listen(WAITING)
    tell(f"Serving on {address(settings, socket_)} with {settings.workers} workers (Ctrl-C ends)")
    Multiprocess(config("softgaze.serve.app:create", settings), sockets=[socket_]).run()


def config(app: Any, settings: Settings) -> uvicorn.Config:
    """How uvicorn is to serve: it logs nothing of what is asked."""
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        workers=settings.workers,
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        timeout_keep_alive=KEPT_ALIVE,
        access_log=False,
        log_config=None,
        server_header=False,
    )


@contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """The socket, before anything slow: a port that is taken is said at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((settings.host, settings.port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ResourceError(
                f"cannot serve on {settings.host}:{settings.port}: {reason}; choose another --port"
            ) from error
        found.set_inheritable(True)
        yield found


def address(settings: Settings, socket_: socket.socket) -> str:
    """As a browser wants it."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{socket_.getsockname()[1]}"


@contextmanager
def ending_well() -> Iterator[None]:
    """To be told to end is no failure: uvicorn passes the signal on after it has done so."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

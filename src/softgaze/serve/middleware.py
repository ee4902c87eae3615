"""Middleware around every request: body limits, security headers, error responses and metrics.

It is plain ASGI: Starlette's BaseHTTPMiddleware costs as much time as a small translation.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders

from softgaze.serve.errors import HTTPError, error_response, log_error, to_http_error
from softgaze.serve.service import Disconnected, Service
from softgaze.serve.settings import Settings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
MAX_DRAIN = 16  # times the body limit is read and discarded, so that the client receives the 413
CLOSE = {"Connection": "close"}


class RequestMiddleware:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        status = None

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, LimitedBody(scope, receive, self.service.settings).receive, send_with_headers)
        except Disconnected:
            status = 499  # nginx's code for a client that closed the connection
        except Exception as exception:
            error = to_http_error(exception)
            if error.status >= 500:
                log_error(route_label(scope), exception)
            if status is None:
                await error_response(scope["path"], error)(scope, receive, send_with_headers)
        finally:
            method = scope["method"] if scope["method"] in METHODS else "OTHER"  # bounds the number of labels
            seconds = time.perf_counter() - start
            self.service.metrics.count_request(route_label(scope), method, status or 500, seconds)


def route_label(scope: Scope) -> str:
    """Return the path pattern of the route, never the requested path: that may contain anything."""
    return str(getattr(scope.get("route"), "path", "other"))


class LimitedBody:
    """The body of a request, limited in bytes and in the time to receive it."""

    def __init__(self, scope: Scope, receive: Receive, settings: Settings) -> None:
        self.receive_message = receive
        is_file = scope["path"].endswith("/translate_file")
        self.max_bytes, self.seconds = settings.max_file if is_file else settings.max_body, settings.read_seconds
        self.deadline = asyncio.get_running_loop().time() + self.seconds
        self.size, self.complete = 0, False
        length = Headers(scope=scope).get("content-length", "0")
        self.content_length = int(length) if length.isdecimal() else 0

    async def receive(self) -> Message:
        """Return the next message; after the body, that is the disconnect, which has no deadline."""
        if self.complete:
            return await self.receive_message()
        message = await self.next_message()
        if max(self.size, self.content_length) > self.max_bytes:
            while not self.complete and self.size <= MAX_DRAIN * self.max_bytes:
                await self.next_message()
            raise HTTPError(413, f"Invalid request: the body exceeds the limit of {self.max_bytes} bytes", CLOSE)
        return message

    async def next_message(self) -> Message:
        """Return the next part of the body, or fail at the deadline."""
        try:
            async with asyncio.timeout_at(self.deadline):  # cheaper than `wait_for`, which starts a task
                message = await self.receive_message()
        except TimeoutError:
            raise HTTPError(408, f"the request was not received within {self.seconds:g} seconds", CLOSE) from None
        self.size += len(message.get("body", b""))
        self.complete = message["type"] == "http.disconnect" or not message.get("more_body", False)
        return message

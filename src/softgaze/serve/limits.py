"""Around every request: how large and how slow it may be, what its answer forbids a browser, and that it is counted.

Plain ASGI, since what wraps requests in objects costs as much as a small translation.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request

from softgaze.serve.errors import Refused, error_response, log_unexpected, refusal
from softgaze.serve.service import Gone, Service

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
POLITE = 16  # times the limit are read and thrown away, so that a client hears why, and not that it was cut off


class Guard:
    """The outermost layer."""

    def __init__(self, app: App, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = Answer(send)
        begun = time.perf_counter()
        try:
            await self.app(scope, Body(scope, receive, self.service).receive, answer.send)
        except Gone:
            answer.status = 499  # as others count it: the client closed the connection
        except Exception as error:
            await self.failed(scope, receive, answer, error)
        finally:
            seconds = time.perf_counter() - begun
            self.service.metrics.answered(route_of(scope), method_of(scope), answer.status, seconds)

    async def failed(self, scope: Scope, receive: Receive, answer: "Answer", error: Exception) -> None:
        """Say so, if nothing was said yet."""
        refused = refusal(error)
        if refused.status >= 500:
            log_unexpected(route_of(scope), error)
        if not answer.begun:
            await error_response(scope["path"], refused)(scope, receive, answer.send)


class Answer:
    """An answer on its way out."""

    def __init__(self, send: Send) -> None:
        self.pass_on = send
        self.begun, self.status = False, 500

    async def send(self, message: Message) -> None:
        """With the headers that every answer has, unless it has its own."""
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await self.pass_on(message)


class Body:
    """A request's body on its way in: so many bytes at most, and in so much time."""

    def __init__(self, scope: Scope, receive: Receive, service: Service) -> None:
        self.pass_on = receive
        self.most, self.seconds = service.settings.max_body, service.settings.read_seconds
        self.until = time.monotonic() + self.seconds
        self.size, self.whole = 0, False
        self.announced = announced_length(scope)

    async def receive(self) -> Message:
        """The next part; after the last, only the end of the connection can come, which may take its time."""
        if self.whole:
            return await self.pass_on()
        message = await self.next_part()
        self.size += len(message.get("body", b""))
        if max(self.size, self.announced) > self.most:
            await self.drain(message)
            raise Refused(
                413, f"Invalid request: the body exceeds the limit of {self.most} bytes", {"Connection": "close"}
            )
        return message

    async def next_part(self) -> Message:
        """Within the time that is left."""
        try:
            message = await asyncio.wait_for(self.pass_on(), self.until - time.monotonic())
        except TimeoutError:
            raise Refused(
                408, f"the request did not arrive in {self.seconds:g} seconds", {"Connection": "close"}
            ) from None
        self.whole = message["type"] == "http.disconnect" or not message.get("more_body", False)
        return message

    async def drain(self, message: Message) -> None:
        """Throw away the rest."""
        while not self.whole and self.size <= POLITE * self.most:
            self.size += len((await self.next_part()).get("body", b""))


def announced_length(scope: Scope) -> int:
    """What a request says of its size."""
    length = Request(scope).headers.get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def route_of(scope: Scope) -> str:
    """The address as it is described, never as it was asked for: that may hold anything."""
    return str(getattr(scope.get("route"), "path", "other"))


METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def method_of(scope: Scope) -> str:
    """One that there is."""
    return scope["method"] if scope["method"] in METHODS else "OTHER"

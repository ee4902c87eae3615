"""HTTP as uvicorn speaks it, and more: no request that arrived is lost, nobody arrives for ever, no head is endless."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST = 1 << 16  # bytes of a head, which its parser keeps until it is whole
LINGER = 0.5  # seconds that a connection without a request stays open when the server is about to end


class PatientProtocol(HttpToolsProtocol):
    """One connection."""

    patience = 20.0  # seconds for the head of a request
    head: int | None = 0  # bytes that came of one, None where it is whole
    silence: asyncio.TimerHandle | None = None  # the clock that ends it

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client that connects has to say something."""
        super().connection_made(transport)
        self.expect_request(self.patience)

    def data_received(self, data: bytes) -> None:
        """Some bytes; a head that goes on and on is refused."""
        super().data_received(data)
        if self.head is not None:
            self.head += len(data)
            if self.head > LARGEST and not self.transport.is_closing():
                self.send_400_response("the head of the request is too large")

    def on_message_begin(self) -> None:
        """A head begins."""
        self.head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """And ends."""
        self.head = None
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """And again after each answer; one that is silent is sent away by uvicorn, sooner."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self.expect_request(self.patience + self.timeout_keep_alive)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        if self.silence is not None:
            self.silence.cancel()
        super().connection_lost(exc)

    def expect_request(self, seconds: float) -> None:
        """Within so many seconds. A connection has one clock: each holds a whole request until it ends."""
        if self.silence is not None:
            self.silence.cancel()
        self.silence = self.loop.call_later(seconds, self.hang_up_if_silent, self.requests_begun())

    def requests_begun(self) -> Any:
        """What changes with the next request."""
        return self.cycle

    def hang_up_if_silent(self, before: Any) -> None:
        """Where no request began since."""
        if self.requests_begun() is before and not self.transport.is_closing():
            self.transport.close()

    def shutdown(self) -> None:
        """A request may be on its way on a connection that seems idle: wait for it a moment, and answer it."""
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LINGER, self.finish)
        else:
            super().shutdown()

    def finish(self) -> None:
        """Now."""
        if not self.transport.is_closing():
            super().shutdown()

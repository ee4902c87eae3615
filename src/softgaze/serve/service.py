"""What all addresses of a server share: the models, the queue, the keys, the counts. Knows no API."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import Request

from softgaze.devices import behind_others
from softgaze.search.settings import Search
from softgaze.serve.batching import Batcher, Work
from softgaze.serve.detection import Detected, Detection
from softgaze.serve.errors import Refused, missing
from softgaze.serve.keys import Keys
from softgaze.serve.metrics import Metrics
from softgaze.serve.settings import Settings
from softgaze.serve.shelf import Model, Shelf, threads_for
from softgaze.serve.store import Store

AUTO = "auto"


class Gone(Exception):  # noqa: N818
    """Nobody waits for the answer any more."""


class Service:
    """A server behind its addresses."""

    def __init__(self, settings: Settings, shelf: Shelf) -> None:
        shared = Path(settings.shared)
        self.settings, self.shelf = settings, shelf
        self.keys = Keys.read(settings.api_keys)
        self.detection = Detection.of(model.bundle for model in shelf.texts) if shelf.texts else None
        self.metrics = Metrics(shared if settings.workers > 1 else None)
        self.store = Store(shared / "files", 60 * settings.keep_files)
        threads = settings.threads or threads_for(shelf.models, settings.workers)
        self.batcher = behind_others(
            lambda: Batcher(threads, settings.window / 1000, settings.batch, settings.queue, self.metrics)
        )

    # --- limits

    def texts(self, given: str | list[str]) -> list[str]:
        """The texts of a request, within the limits."""
        if not given:
            raise missing("q")
        texts = [given] if isinstance(given, str) else given
        if len(texts) > self.settings.max_texts:
            raise Refused(400, f"Invalid request: {len(texts)} texts exceed the limit of {self.settings.max_texts}")
        longest = max(map(len, texts))
        if longest > self.settings.max_characters:
            limit = self.settings.max_characters
            raise Refused(400, f"Invalid request: request ({longest}) exceeds text limit ({limit})")
        return texts

    def search(self, beam: int | None = None, alternatives: int = 0) -> Search:
        """How to search, within the limits; the beam is as wide as it must be for the alternatives."""
        settings = self.settings
        if not 1 <= (beam or 1) <= settings.max_beam or beam == 0:
            raise Refused(400, f"Invalid request: beam is from 1 to {settings.max_beam}")
        if not 0 <= alternatives <= settings.max_alternatives:
            raise Refused(400, f"Invalid request: alternatives is from 0 to {settings.max_alternatives}")
        return Search(beam=max(beam or settings.beam, alternatives + 1), nbest=alternatives + 1)

    # --- languages

    async def detect(self, texts: Sequence[str]) -> Detected:
        """One language for all of them; in a thread, since it takes milliseconds."""
        if self.detection is None:
            raise Refused(400, "no model for text is loaded, so no language can be told")
        return await asyncio.to_thread(self.detection.detect_together, texts)

    async def choose(
        self, texts: Sequence[str], source: str, target: str
    ) -> tuple[Model | None, str, str, Detected | None]:
        """The model for two languages, the first of which may have to be told from the texts; None: nothing to do."""
        found = await self.detect(texts) if source == AUTO else None
        codes = self.shelf.language(found.language if found else source), self.shelf.language(target)
        return self.shelf.pair(*codes), *codes, found

    # --- work

    async def do(self, request: Request, work: Work, items: Sequence[str]) -> list[Any]:
        """Results, once they are there; what a client that went away waited for is not begun."""
        self.metrics.taken(items)
        return await self.results(request, work, items, [len(item) for item in items])

    async def results(self, request: Request, work: Work, items: Sequence[Any], lengths: Sequence[int]) -> list[Any]:
        """The same for anything."""
        if not items:
            return []
        promises = self.batcher.submit(work, items, lengths, self.settings.deadline)
        everything: asyncio.Future[Any] = asyncio.gather(*map(asyncio.wrap_future, promises))
        leaving: asyncio.Future[Any] = asyncio.ensure_future(gone(request))
        try:
            await asyncio.wait({everything, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if everything.done():
                return list(everything.result())
            raise Gone
        finally:
            leaving.cancel()
            everything.cancel()


async def gone(request: Request) -> None:
    """Wait until the client has closed the connection; its body was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def service_of(request: Request) -> Service:
    """The service of the application that got a request."""
    service: Service = request.app.state.service
    return service


async def serving(request: Request) -> Service:
    """The same for FastAPI, which would call a plain function in another thread."""
    return service_of(request)


Serving = Annotated[Service, Depends(serving)]

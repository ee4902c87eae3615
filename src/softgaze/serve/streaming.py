"""Translations told word by word while they are written: from the thread that writes them to the one that sends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from softgaze.search.settings import Search
from softgaze.serve.errors import log_unexpected, refusal
from softgaze.serve.looks import attentions
from softgaze.serve.service import Gone, Service
from softgaze.serve.shelf import Model
from softgaze.serve.texts import framed, joined, told

Event = tuple[str, dict[str, Any]]


@dataclass(eq=False)
class Aloud:
    """One text, told while it is written. Never part of a batch."""

    model: Model
    attention: bool
    tell: Callable[[str], None]

    def run(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """As JSON has it."""
        return [self.translate(text) for text in texts]

    def translate(self, text: str) -> dict[str, Any]:
        """Line by line, with what stands between lines told, too."""
        lines = []
        for line in text.splitlines(keepends=True):
            before, _, after = framed(line, "\0").partition("\0")
            self.say(before)
            lines.append(self.model.translator.translate_aloud(line, self.tell))
            self.say(after)
        found = joined(text, lines, Search(beam=1))
        looks = attentions(self.model, [found])[0] if self.attention else None
        return {**told(found), "attention": looks}

    def say(self, text: str) -> None:
        """If it is something."""
        if text:
            self.tell(text)


async def events(service: Service, request: Request, model: Model, text: str, attention: bool) -> AsyncIterator[Event]:
    """Words as they come, then all that is known; or what went wrong."""
    loop, heard = asyncio.get_running_loop(), asyncio.Queue[Event]()

    def tell(word: str) -> None:
        loop.call_soon_threadsafe(heard.put_nowait, ("word", {"text": word}))

    task = asyncio.ensure_future(service.do(request, Aloud(model, attention, tell), [text]))
    task.add_done_callback(lambda done: heard.put_nowait(last(done)))
    try:
        event, content = await heard.get()
        while event == "word":
            yield event, content
            event, content = await heard.get()
        yield event, content
    finally:
        task.cancel()


def last(task: "asyncio.Future[list[Any]]") -> Event:
    """How it ended."""
    if task.cancelled() or isinstance(task.exception(), Gone):
        return "error", {"error": "nobody listens any more"}
    error = task.exception()
    if error is None:
        return "done", task.result()[0]
    refused = refusal(error) if isinstance(error, Exception) else None
    if refused is None or refused.status >= 500:
        log_unexpected("a stream", error)
    return "error", {"error": refused.message if refused else "it failed"}

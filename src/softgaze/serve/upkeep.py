"""What a server does beside answering: it removes old files, leaves its counts for other workers, and ends in order."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from softgaze.serve.service import Service

EVERY = 1.0  # seconds
SWITCH = 0.0005  # seconds a thread may keep others from running Python: answers should not wait for those that compute


@asynccontextmanager
async def upkeep(service: Service) -> AsyncIterator[None]:
    """While a server runs; at its end the queue is emptied before it is left."""
    task = asyncio.ensure_future(chores(service))
    switch = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(switch)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await asyncio.to_thread(service.batcher.close)


async def chores(service: Service) -> None:
    """Again and again."""
    while True:
        await asyncio.to_thread(chore, service)
        await asyncio.sleep(EVERY)


def chore(service: Service) -> None:
    """Once."""
    service.metrics.note(len(service.batcher))
    if service.store.directory.is_dir():
        service.store.sweep()

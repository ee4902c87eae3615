"""Dynamic batching: a bounded queue of items from many requests, and threads that run them in batches.

The first item of a batch waits a few milliseconds for others. A batch consists of the oldest item and the items of the
same job nearest to it in length, so no item starves and little is padded. It is a thread's share of the queue, so no
thread idles while another runs everything. Items past their deadline and cancelled items are dropped. This module
depends neither on models nor on HTTP.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

MAX_BATCH_CHARACTERS = 1 << 15  # padded: enough to keep any engine busy, and bounded memory

OnBatch = Callable[[int, float, float], None]  # items, seconds that the oldest waited, seconds of the run


class BatchJob(Protocol):
    """A function of a batch of items. Items of equal jobs are batched together, so a job is hashable."""

    def run(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return one result per item, in order."""


class QueueFull(Exception):  # noqa: N818
    """The queue has no room for all items of a request, or is closed."""


class DeadlineExceeded(Exception):  # noqa: N818
    """The deadline of an item passed before its batch started."""


@dataclass(eq=False)
class QueueItem:
    job: BatchJob
    item: Any
    length: int
    deadline: float
    future: "Future[Any]" = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)

    def is_pending(self) -> bool:
        """Return whether the item should still run; fail it if its deadline has passed."""
        if self.future.cancelled():
            return False
        if time.monotonic() > self.deadline:
            if self.future.set_running_or_notify_cancel():
                self.future.set_exception(DeadlineExceeded())
            return False
        return True


class Batcher:
    """A bounded queue and the threads that run its items in batches."""

    def __init__(
        self, threads: int, window: float, max_batch: int, max_queue: int, on_batch: OnBatch | None = None
    ) -> None:
        self.window, self.max_batch, self.max_queue, self.on_batch = window, max_batch, max_queue, on_batch
        self.queue: list[QueueItem] = []  # oldest first
        self.changed = threading.Condition()
        self.closing = False
        self.threads = [threading.Thread(target=self.work, name=f"batch-{n}", daemon=True) for n in range(threads)]
        for thread in self.threads:
            thread.start()

    def submit(self, job: BatchJob, items: Sequence[Any], lengths: Sequence[int], timeout: float) -> list[Future[Any]]:
        """Queue all items or none, and return their futures; an item not started within `timeout` seconds fails."""
        deadline = time.monotonic() + timeout
        new = [QueueItem(job, item, length, deadline) for item, length in zip(items, lengths, strict=True)]
        with self.changed:
            if self.closing or len(self.queue) + len(new) > self.max_queue:
                raise QueueFull
            self.queue += new
            self.changed.notify_all()
        return [item.future for item in new]

    def __len__(self) -> int:
        return len(self.queue)

    def close(self) -> None:
        """Accept no more items, and wait until all queued items are done."""
        with self.changed:
            self.closing = True
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()

    # --- in the worker threads

    def work(self) -> None:
        """Run batches until the queue is closed and empty."""
        while batch := self.next_batch():
            start = time.monotonic()
            run_batch(batch)
            if self.on_batch is not None:
                oldest = min(item.arrived for item in batch)
                self.on_batch(len(batch), start - oldest, time.monotonic() - start)

    def next_batch(self) -> list[QueueItem]:
        """Wait for a batch; return an empty list once the queue is closed and empty."""
        with self.changed:
            while True:
                self.changed.wait_for(lambda: self.queue or self.closing)
                if self.queue and not self.closing:
                    remaining = self.queue[0].arrived + self.window - time.monotonic()
                    self.changed.wait_for(
                        lambda: len(self.queue) >= self.max_batch or self.closing, timeout=max(remaining, 0)
                    )
                if batch := self.take_batch():
                    return batch
                if self.closing and not self.queue:
                    return []

    def take_batch(self) -> list[QueueItem]:
        """Remove the oldest pending item and its nearest in length from the queue."""
        self.queue = [item for item in self.queue if item.is_pending()]
        if not self.queue:
            return []
        oldest = self.queue[0]
        candidates = [item for item in self.queue if item is oldest or item.job == oldest.job]
        candidates.sort(key=lambda item: abs(item.length - oldest.length))
        batch: list[QueueItem] = []
        longest = 0
        share = -(-len(candidates) // len(self.threads))
        for item in candidates[: min(share, self.max_batch)]:
            longest = max(longest, item.length)
            if batch and longest * (len(batch) + 1) > MAX_BATCH_CHARACTERS:
                break
            batch.append(item)
        taken = set(map(id, batch))
        self.queue = [item for item in self.queue if id(item) not in taken]
        return [item for item in batch if item.future.set_running_or_notify_cancel()]


def run_batch(batch: list[QueueItem]) -> None:
    """Run a batch and set its futures; if it fails, run each item alone so that one bad item fails only itself."""
    try:
        results = batch[0].job.run([item.item for item in batch])
        for item, result in zip(batch, results, strict=True):
            item.future.set_result(result)
    except Exception as error:
        if len(batch) == 1:
            batch[0].future.set_exception(error)
            return
        for item in batch:
            if not item.future.done():
                run_batch([item])

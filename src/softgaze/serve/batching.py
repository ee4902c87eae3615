"""Texts of many requests, translated together: a queue with an end, and threads that empty it.

The first text of a batch waits a few milliseconds for others. A batch is made of the oldest text and of those nearest
to it in length that ask for the same work; so nobody waits for ever, and little is padded. What is too late when its
turn comes is not begun, and nor is what nobody waits for any more. Knows nothing of models or HTTP.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

LONGEST = 1 << 15  # characters of a batch, padded: enough for any engine to be busy, and little enough to hold


class Work(Protocol):
    """What is done with a batch; what is equal is done together, so it must be hashable."""

    def run(self, items: Sequence[Any]) -> Sequence[Any]:
        """One result for each item, in order."""


class Watcher(Protocol):
    """Who is told what happens."""

    def batched(self, size: int, waited: float, took: float) -> None:
        """A batch is done: how many items, and the seconds its oldest waited and it took."""


class Full(Exception):  # noqa: N818 - what it says is no mistake of anybody
    """There is no room in the queue."""


class Late(Exception):  # noqa: N818
    """The deadline had passed when its turn came."""


@dataclass(eq=False)
class Job:
    """One item on its way."""

    work: Work
    item: Any
    length: int
    deadline: float
    result: "Future[Any]" = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)


class Batcher:
    """A bounded queue and the threads that empty it."""

    def __init__(self, threads: int, window: float, most: int, room: int, watcher: Watcher | None = None) -> None:
        self.window, self.most, self.room, self.watcher = window, most, room, watcher
        self.waiting: list[Job] = []  # oldest first
        self.changed = threading.Condition()
        self.closing = False
        self.threads = [threading.Thread(target=self.work, name=f"batch-{n}", daemon=True) for n in range(threads)]
        for thread in self.threads:
            thread.start()

    # --- from outside

    def submit(self, work: Work, items: Sequence[Any], lengths: Sequence[int], seconds: float) -> "list[Future[Any]]":
        """Promises, one for each item: all are taken, or none is."""
        deadline = time.monotonic() + seconds
        jobs = [Job(work, item, length, deadline) for item, length in zip(items, lengths, strict=True)]
        with self.changed:
            if self.closing or len(self.waiting) + len(jobs) > self.room:
                raise Full
            self.waiting += jobs
            self.changed.notify_all()
        return [job.result for job in jobs]

    def __len__(self) -> int:
        return len(self.waiting)

    def close(self) -> None:
        """Take nothing more, finish what is there, and wait until it is."""
        with self.changed:
            self.closing = True
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()

    # --- in the threads

    def work(self) -> None:
        """Batch after batch."""
        while batch := self.next_batch():
            begun = time.monotonic()
            finish(batch)
            if self.watcher is not None:
                oldest = min(job.arrived for job in batch)
                self.watcher.batched(len(batch), begun - oldest, time.monotonic() - begun)

    def next_batch(self) -> list[Job]:
        """Wait for one; none is left when the queue is closed and empty."""
        with self.changed:
            while True:
                self.changed.wait_for(lambda: self.waiting or self.closing)
                self.linger()
                if batch := self.take():
                    return batch
                if self.closing and not self.waiting:
                    return []

    def linger(self) -> None:
        """Until the oldest has waited for a window, or there are enough."""
        if self.waiting and not self.closing:
            left = self.waiting[0].arrived + self.window - time.monotonic()
            self.changed.wait_for(lambda: len(self.waiting) >= self.most or self.closing, timeout=max(left, 0))

    def take(self) -> list[Job]:
        """The oldest that is still wanted, and its nearest in length."""
        self.waiting = [job for job in self.waiting if is_wanted(job)]
        if not self.waiting:
            return []
        oldest = self.waiting[0]
        alike = [job for job in self.waiting if job is oldest or job.work == oldest.work]
        alike.sort(key=lambda job: abs(job.length - oldest.length))
        chosen = within_budget(alike[: self.most])
        gone = set(map(id, chosen))
        self.waiting = [job for job in self.waiting if id(job) not in gone]
        return [job for job in chosen if job.result.set_running_or_notify_cancel()]


def is_wanted(job: Job) -> bool:
    """Whether somebody waits for it, and in time."""
    if job.result.cancelled():
        return False
    if time.monotonic() > job.deadline:
        if job.result.set_running_or_notify_cancel():
            job.result.set_exception(Late())
        return False
    return True


def within_budget(jobs: list[Job]) -> list[Job]:
    """The first, and as many after it as fit with all as long as the longest."""
    longest = 0
    for count, job in enumerate(jobs):
        longest = max(longest, job.length)
        if count and longest * (count + 1) > LONGEST:
            return jobs[:count]
    return jobs


def finish(batch: list[Job]) -> None:
    """Do the work and keep the promises. Where a batch fails, each is tried alone: nobody pays for a neighbour."""
    try:
        results = batch[0].work.run([job.item for job in batch])
        for job, result in zip(batch, results, strict=True):
            job.result.set_result(result)
    except Exception as error:
        if len(batch) == 1:
            batch[0].result.set_exception(error)
            return
        for job in batch:
            if not job.result.done():
                finish([job])

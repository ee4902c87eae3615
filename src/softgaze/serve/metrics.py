"""What a server has done, in the text that Prometheus reads. Counts of all workers, whichever is asked."""

import json
import os
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
EVERY = 1.0  # seconds between the notes that a worker leaves for the others

HELP = {
    "softgaze_requests_total": ("counter", "Requests answered, by route and status."),
    "softgaze_request_seconds": ("histogram", "From the first byte of a request to the last of its answer."),
    "softgaze_texts_total": ("counter", "Texts taken."),
    "softgaze_characters_total": ("counter", "Characters of these texts."),
    "softgaze_batch_texts": ("histogram", "Texts that were translated together."),
    "softgaze_batch_seconds": ("histogram", "How long a batch took."),
    "softgaze_waiting_seconds": ("histogram", "How long the oldest text of a batch waited."),
    "softgaze_queue_texts": ("gauge", "Texts that wait."),
    "softgaze_memory_bytes": ("gauge", "Memory of the processes that serve."),
    "softgaze_start_seconds": ("gauge", "When the server started, in Unix time."),
}
BUCKETS: dict[str, tuple[float, ...]] = {
    "softgaze_request_seconds": SECONDS,
    "softgaze_batch_texts": SIZES,
    "softgaze_batch_seconds": SECONDS,
    "softgaze_waiting_seconds": SECONDS,
}

Values = dict[str, float]  # 'name{labels}' -> value


class Metrics:
    """Counts of one process, and how to read those of the others."""

    def __init__(self, shared: Path | None = None) -> None:
        self.values: defaultdict[str, float] = defaultdict(float)
        self.lock = Lock()  # batches are counted by the threads that run them
        self.path = shared / f"metrics-{os.getpid()}.json" if shared else None
        self.noted = 0.0
        self.started = time.time()

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """One request."""
        with self.lock:
            self.values[f'softgaze_requests_total{{route="{route}",method="{method}",status="{status}"}}'] += 1
            self.observe("softgaze_request_seconds", seconds)

    def taken(self, texts: Iterable[str]) -> None:
        """Texts of one request."""
        lengths = [len(text) for text in texts]
        with self.lock:
            self.values["softgaze_texts_total"] += len(lengths)
            self.values["softgaze_characters_total"] += sum(lengths)

    def batched(self, size: int, waited: float, took: float) -> None:
        """One batch."""
        with self.lock:
            self.observe("softgaze_batch_texts", size)
            self.observe("softgaze_waiting_seconds", waited)
            self.observe("softgaze_batch_seconds", took)

    def observe(self, name: str, value: float) -> None:
        """One more in a histogram: in the smallest bucket that holds it, summed up when it is shown."""
        limits = BUCKETS[name]
        place = bisect_left(limits, value)
        self.values[f'{name}_bucket{{le="{limits[place] if place < len(limits) else "+Inf"}"}}'] += 1
        self.values[f"{name}_sum"] += value

    # --- together with others

    def note(self, queue: int) -> None:
        """Leave the counts for the other workers, now and then."""
        if self.path is not None and time.monotonic() - self.noted > EVERY:
            self.noted = time.monotonic()
            fresh = self.path.with_suffix(".new")
            fresh.write_text(json.dumps(self.own(queue)))
            fresh.replace(self.path)

    def own(self, queue: int) -> Values:
        """Counts and gauges of this process."""
        with self.lock:
            values: Values = dict(self.values)
        return {**values, "softgaze_queue_texts": queue, "softgaze_memory_bytes": memory()}

    def total(self, queue: int) -> Values:
        """Of all processes."""
        total: defaultdict[str, float] = defaultdict(float, self.own(queue))
        for path in self.path.parent.glob("metrics-*.json") if self.path else ():
            if path != self.path:
                for name, value in json.loads(path.read_text()).items():
                    total[name] += value
        return {**total, "softgaze_start_seconds": self.started}

    def text(self, queue: int) -> str:
        """In the format of Prometheus."""
        return "\n".join(lines(self.total(queue))) + "\n"


def lines(values: Values) -> Iterator[str]:
    """Each metric with what it is."""
    for name, (kind, about) in HELP.items():
        yield f"# HELP {name} {about}"
        yield f"# TYPE {name} {kind}"
        if kind == "histogram":
            yield from histogram(name, values)
        else:
            own = {key: value for key, value in values.items() if key.split("{")[0] == name} or {name: 0}
            yield from (f"{key} {value:.0f}" for key, value in sorted(own.items()))


def histogram(name: str, values: Values) -> Iterator[str]:
    """Buckets hold all that is smaller, too."""
    total = 0.0
    for limit in (*BUCKETS[name], "+Inf"):
        total += values.get(f'{name}_bucket{{le="{limit}"}}', 0)
        yield f'{name}_bucket{{le="{limit}"}} {total:.0f}'
    yield f"{name}_sum {values.get(f'{name}_sum', 0):.6f}"
    yield f"{name}_count {total:.0f}"


def memory() -> int:
    """Bytes of this process that are in memory; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0

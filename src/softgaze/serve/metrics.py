"""Prometheus metrics, summed over all worker processes.

prometheus_client is not used: its multiprocess mode must be configured by the environment before it is imported, and
drops custom gauges.
"""

import json
import os
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
BATCH_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

METRICS = {  # name: type, help
    "softgaze_requests_total": ("counter", "Requests by route, method and status."),
    "softgaze_request_seconds": ("histogram", "Time from the start of a request to the end of its response."),
    "softgaze_texts_total": ("counter", "Texts accepted for translation."),
    "softgaze_characters_total": ("counter", "Characters of these texts."),
    "softgaze_batch_texts": ("histogram", "Texts per batch."),
    "softgaze_batch_seconds": ("histogram", "Time to run a batch."),
    "softgaze_queue_wait_seconds": ("histogram", "Time that the oldest text of a batch waited in the queue."),
    "softgaze_queue_texts": ("gauge", "Texts in the queue."),
    "softgaze_memory_bytes": ("gauge", "Resident memory of the server processes."),
    "softgaze_start_time_seconds": ("gauge", "Start of the server, Unix time."),
}
BUCKETS = {
    "softgaze_request_seconds": SECONDS,
    "softgaze_batch_texts": BATCH_SIZES,
    "softgaze_batch_seconds": SECONDS,
    "softgaze_queue_wait_seconds": SECONDS,
}


class Metrics:
    """Metrics of this process, published to the other workers as a JSON file in a shared directory."""

    def __init__(self, shared_dir: Path | None = None) -> None:
        self.values: defaultdict[str, float] = defaultdict(float)  # 'name{labels}' -> value
        self.lock = Lock()  # batches are counted by worker threads
        self.path = shared_dir / f"metrics-{os.getpid()}.json" if shared_dir else None
        self.start_time = time.time()

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        with self.lock:
            self.values[f'softgaze_requests_total{{route="{route}",method="{method}",status="{status}"}}'] += 1
            self.observe("softgaze_request_seconds", seconds)

    def count_texts(self, texts: Sequence[str]) -> None:
        with self.lock:
            self.values["softgaze_texts_total"] += len(texts)
            self.values["softgaze_characters_total"] += sum(map(len, texts))

    def count_batch(self, size: int, waited: float, seconds: float) -> None:
        with self.lock:
            self.observe("softgaze_batch_texts", size)
            self.observe("softgaze_queue_wait_seconds", waited)
            self.observe("softgaze_batch_seconds", seconds)

    def observe(self, name: str, value: float) -> None:
        """Count a value in its histogram bucket; `render` makes the buckets cumulative."""
        limits = (*BUCKETS[name], "+Inf")
        self.values[f'{name}_bucket{{le="{limits[bisect_left(BUCKETS[name], value)]}"}}'] += 1
        self.values[f"{name}_sum"] += value

    def snapshot(self, queue: int) -> dict[str, float]:
        with self.lock:
            return {**self.values, "softgaze_queue_texts": queue, "softgaze_memory_bytes": resident_memory()}

    def publish(self, queue: int) -> None:
        """Write the values of this process for the other workers, if there are any."""
        if self.path is not None:
            temporary = self.path.with_suffix(".new")
            temporary.write_text(json.dumps(self.snapshot(queue)))
            temporary.replace(self.path)

    def render(self, queue: int) -> str:
        """Return the metrics of all workers in the Prometheus text format."""
        total: defaultdict[str, float] = defaultdict(float, self.snapshot(queue))
        for path in self.path.parent.glob("metrics-*.json") if self.path else ():
            if path != self.path:
                for name, value in json.loads(path.read_text()).items():
                    total[name] += value
        total["softgaze_start_time_seconds"] = self.start_time
        return "".join(f"{line}\n" for line in prometheus_lines(total))


def prometheus_lines(values: dict[str, float]) -> Iterator[str]:
    """Yield the lines of the Prometheus text format, with cumulative histogram buckets."""
    for name, (kind, description) in METRICS.items():
        yield f"# HELP {name} {description}"
        yield f"# TYPE {name} {kind}"
        if kind != "histogram":
            series = {key: value for key, value in values.items() if key.split("{")[0] == name} or {name: 0}
            yield from (f"{key} {value:.0f}" for key, value in sorted(series.items()))
            continue
        count = 0.0
        for limit in (*BUCKETS[name], "+Inf"):
            count += values.get(f'{name}_bucket{{le="{limit}"}}', 0)
            yield f'{name}_bucket{{le="{limit}"}} {count:.0f}'
        yield f"{name}_sum {values.get(f'{name}_sum', 0):.6f}"
        yield f"{name}_count {count:.0f}"


def resident_memory() -> int:
    """Return the resident memory of this process in bytes, or 0 where the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0

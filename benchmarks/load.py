"""A server under load: 32 clients, texts of mixed lengths, one request in twenty malformed.

`python -m benchmarks.load [MODEL]` (`make load`) starts servers of the same model: one that batches the texts of
many requests, one that does not, and one on torch. They are loaded in turns, so that ratios hold for the same
conditions.
`--minutes 10` then loads the first one for that long, after a quarter of it to warm up, to see whether its memory
grows. Without MODEL, the model of `softgaze quickstart` is used, and trained if it does not exist. `/health` is polled
all the time. `--before DIR` also loads a server of an earlier checkout, whose package is in DIR/src.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from benchmarks.report import Spread, circumstances

OWN = Path("runs/quickstart")
SERVERS = {"together": (), "one at a time": ("--batch", "1", "--window", "0"), "torch": ("--engine", "torch")}
MALFORMED = 0.05
EVERY = 0.1  # seconds between two requests of /health

BAD = (
    b"{",
    b"[" * 10_000,
    b'{"source": "en", "target": "ko"}',
    b'{"q": "a", "source": "zz", "target": "ko"}',
    rb'{"q": "\ud800", "source": "en", "target": "ko"}',
    b'{"q": "' + b"a" * 20_000 + b'", "source": "en", "target": "ko"}',
)


# --- one client -------------------------------------------------------------------------------------------------


@dataclass
class LoadResult:
    """Responses and times over all clients of one run."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)  # of good requests
    health: list[float] = field(default_factory=list)
    took: float = 0.0
    worked: float = 0.0  # seconds of processor time of the server

    @property
    def rate(self) -> float:
        """Return texts per second."""
        return len(self.seconds) / self.took if self.took else 0.0

    @property
    def errors(self) -> int:
        """Count the wrong responses: all but 200 to a good request and 400 or 413 to a bad one."""
        return sum(count for kind, count in self.statuses.items() if kind not in ("good 200", "bad 400", "bad 413"))


class Client:
    """One connection that is kept alive."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = str(parts.hostname), int(parts.port or 80)
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(self, method: str, path: str, body: bytes = b"") -> int:
        """Send a request and return the status; reconnect if the server has closed the connection."""
        if self.streams is None:
            self.streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self.streams
        head = [
            f"{method} {path} HTTP/1.1",
            "Host: a",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        found = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(found.split("content-length: ")[1].split("\r\n")[0])
        await reader.readexactly(length)
        if "connection: close" in found:
            self.close()
        return int(found.split()[1])

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
        self.streams = None


async def load(url: str, texts: Sequence[str], languages: tuple[str, str], clients: int, seconds: float) -> LoadResult:
    """Load a server with some clients, each with one request at a time."""
    result = LoadResult()
    # A separate session, so that the health check does not wait for the same cores as the load.
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=os.setsid) as apart:
        apart.submit(bool).result()  # wait until the process has started
        begun = time.perf_counter()
        health = asyncio.wrap_future(apart.submit(poll_health, url, seconds))
        work = [client(url, texts, languages, number, begun + seconds, result) for number in range(clients)]
        await asyncio.gather(*work)
        result.took = time.perf_counter() - begun
        result.health = await health
    return result


async def client(
    url: str, texts: Sequence[str], languages: tuple[str, str], number: int, until: float, result: LoadResult
) -> None:
    dice, connection = random.Random(number), Client(url)
    while (begun := time.perf_counter()) < until:
        is_bad = dice.random() < MALFORMED
        good = {"q": dice.choice(texts), "source": languages[0], "target": languages[1]}
        body = dice.choice(BAD) if is_bad else json.dumps(good).encode()
        try:
            status = str(await connection.request("POST", "/translate", body))
        except (OSError, EOFError, asyncio.IncompleteReadError) as error:
            status = type(error).__name__
            connection.close()
        result.statuses[f"{'bad' if is_bad else 'good'} {status}"] += 1
        if not is_bad and status == "200":
            result.seconds.append(time.perf_counter() - begun)
    connection.close()


def poll_health(url: str, seconds: float) -> list[float]:
    """Return the seconds of each /health request; in a separate process, so that the clients do not delay it."""
    found, until = [], time.perf_counter() + seconds
    connection = HTTPConnection(urlsplit(url).netloc)
    while (begun := time.perf_counter()) < until:
        connection.request("GET", "/health")
        connection.getresponse().read()
        found.append(time.perf_counter() - begun)
        time.sleep(EVERY)
    connection.close()
    return found


# --- servers ----------------------------------------------------------------------------------------------------


@dataclass
class Server:
    url: str
    process: "subprocess.Popen[str]"

    @property
    def memory(self) -> float:
        """Return the resident memory in MB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * 4096 / 1e6

    @property
    def worked(self) -> float:
        """Return the seconds of processor time, which other processes hardly change."""
        times = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(model: Path, *flags: str, package: Path | None = None) -> Iterator[Server]:
    """Run `softgaze serve` on a free port, of this package or of another one."""
    command = [sys.executable, "-m", "softgaze", "serve", str(model), "--port", "0", *flags]
    environment = os.environ | ({"PYTHONPATH": str(package)} if package else {})
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            line = next((line for line in process.stdout or () if line.startswith("Serving on ")), None)
            if line is None:
                raise SystemExit(1)  # the server has printed the reason
            yield Server(line.split()[2], process)
        finally:
            process.terminate()


def own_model() -> Path:
    """Return the model of the quickstart; train it if it does not exist."""
    subprocess.run([sys.executable, "-m", "softgaze", "quickstart", "--out", str(OWN)], check=True)
    return OWN / "model"


def mixed() -> list[str]:
    """Return English sentences of the phrasebook, from a few words to sixty."""
    from softgaze.data.corpora.phrasebook import load

    return [pair.source for split in ("train", "test", "long") for pair in load(split, 2000)]


# --- the table --------------------------------------------------------------------------------------------------


def row(name: str, every: Sequence[LoadResult]) -> str:
    """Return the table row of one server over its rounds."""
    seconds = sorted(each for result in every for each in result.seconds)
    health = sorted(each for result in every for each in result.health)
    rates = Spread.of([result.rate for result in every])
    cells = [
        name,
        rates.text(1),
        f"{1000 * sum(result.worked for result in every) / max(len(seconds), 1):,.1f}",
        f"{1000 * median(seconds):,.0f}",
        f"{1000 * percentile(seconds, 0.99):,.0f}",
        " / ".join(f"{1000 * value:,.0f}" for value in (median(health), percentile(health, 0.99), health[-1])),
        f"{sum(sum(result.statuses.values()) for result in every):,}",
        f"{sum(result.errors for result in every)}",
    ]
    return f"| {' | '.join(cells)} |"


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


HEADINGS = (
    "texts",
    "texts/s: median (range)",
    "CPU ms a text",
    "p50 ms",
    "p99 ms",
    "/health ms: p50 / p99 / most",
    "requests",
    "errors",
)


def table(rounds: dict[str, list[LoadResult]]) -> str:
    """Return a table of the servers, and the ratio of the first to each other."""
    (first, results), *others = rounds.items()
    ratios = {
        name: Spread.of([one.rate / other.rate for one, other in zip(results, own, strict=True)])
        for name, own in others
    }
    lines = [f"| {' | '.join(HEADINGS)} |", "|---|" + "--:|" * (len(HEADINGS) - 1)]
    lines += [row(name, own) for name, own in rounds.items()]
    sentences = [f"“{first}” is {ratio.text(2)} times as fast as “{name}”." for name, ratio in ratios.items()]
    return "\n".join([*lines, "", *sentences])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "model", type=Path, nargs="?", help="a model, trained or exported; that of the quickstart if none"
    )
    parser.add_argument("--text", type=Path, help="its lines are translated; English of the phrasebook if none")
    parser.add_argument("--languages", nargs=2, default=("en", "ko"), metavar=("FROM", "TO"))
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=[*SERVERS])
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=0, help="then as long on the first server, for its memory")
    parser.add_argument("--before", type=Path, metavar="DIR", help="checkout of an earlier version to compare with")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    given = parser.parse_args()
    model = given.model or own_model()
    texts = given.text.read_text(encoding="utf-8").splitlines() if given.text else mixed()
    languages = tuple(given.languages)

    def loaded(server: Server, seconds: float) -> LoadResult:
        before = server.worked
        result = asyncio.run(load(server.url, texts, languages, given.clients, seconds))
        result.worked = server.worked - before
        return result

    with ExitStack() as stack:
        servers = {name: stack.enter_context(serving(model, *SERVERS[name])) for name in given.servers}
        if given.before:
            servers["before"] = stack.enter_context(serving(model, package=given.before / "src"))
        together = servers[given.servers[0]]
        rounds: dict[str, list[LoadResult]] = {name: [] for name in servers}
        for server in servers.values():
            loaded(server, given.seconds / 2)  # to warm up
        for _ in range(given.rounds):
            for name, server in servers.items():
                rounds[name].append(loaded(server, given.seconds))
        report = [table(rounds)]
        if given.minutes:
            loaded(together, 60 * given.minutes / 4)  # the allocator meets batches of every size
            before = together.memory
            result = loaded(together, 60 * given.minutes)
            grown = f"{before:,.0f} MB → {together.memory:,.0f} MB ({together.memory / before - 1:+.1%})"
            report += [
                f"{given.minutes:g} minutes: memory {grown}",
                row("together", [result]),
                str(dict(result.statuses)),
            ]
    report.append(circumstances("load"))
    print("\n\n".join(report))
    if given.out:
        page = [
            "# A server under load",
            f"{given.clients} clients, {given.rounds} rounds of {given.seconds:g} s.",
            *report,
        ]
        given.out.write_text("\n\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

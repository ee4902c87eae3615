"""A server under load: 32 clients, texts of mixed lengths, one request in twenty malformed.

`python -m benchmarks.load [MODEL]` (`make load`) starts two servers of the same model, one that translates texts of
many requests together and one that takes each alone, and loads them in turn, so that their ratio is of one machine and
one hour. `--minutes 10` then loads the first one for that long, after a quarter of it to warm up, to see whether its
memory grows. Without MODEL, the model of `softgaze quickstart` is used, and made if it is not there. `/health` is asked
all the time.
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
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from benchmarks.report import Spread, circumstances

OWN = Path("runs/quickstart")
SERVERS = {"together": (), "one at a time": ("--batch", "1", "--window", "0")}
MALFORMED = 0.05
EVERY = 0.1  # seconds between two questions after /health

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
class Seen:
    """What clients saw."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)  # of good requests
    health: list[float] = field(default_factory=list)
    took: float = 0.0
    worked: float = 0.0  # seconds of processor time of the server

    @property
    def rate(self) -> float:
        """Texts a second."""
        return len(self.seconds) / self.took if self.took else 0.0

    @property
    def errors(self) -> int:
        """Answers that should have been others: anything but 200 to a good request or 4xx to a bad one."""
        return sum(count for what, count in self.statuses.items() if what not in ("good 200", "bad 400", "bad 413"))


class Client:
    """One connection, kept alive, as real clients have it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = str(parts.hostname), int(parts.port or 80)
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(self, method: str, path: str, body: bytes = b"") -> int:
        """The status; connected again where the server closed."""
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
        """The next question opens it again."""
        if self.streams is not None:
            self.streams[1].close()
        self.streams = None


async def load(url: str, texts: Sequence[str], languages: tuple[str, str], clients: int, seconds: float) -> Seen:
    """So many clients, each with one request at a time, for so long."""
    seen = Seen()
    # A session of its own: what watches a server does not wait behind the load for its turn on the same cores.
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=os.setsid) as apart:
        apart.submit(bool).result()  # it has started
        begun = time.perf_counter()
        health = asyncio.wrap_future(apart.submit(poll_health, url, seconds))
        work = [client(url, texts, languages, number, begun + seconds, seen) for number in range(clients)]
        await asyncio.gather(*work)
        seen.took = time.perf_counter() - begun
        seen.health = await health
    return seen


async def client(
    url: str, texts: Sequence[str], languages: tuple[str, str], number: int, until: float, seen: Seen
) -> None:
    """Request after request."""
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
        seen.statuses[f"{'bad' if is_bad else 'good'} {status}"] += 1
        if not is_bad and status == "200":
            seen.seconds.append(time.perf_counter() - begun)
    connection.close()


def poll_health(url: str, seconds: float) -> list[float]:
    """How long /health takes. In a process of its own: clients that read thirty answers at once would be timed too."""
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
    """A process that serves."""

    url: str
    process: "subprocess.Popen[str]"

    @property
    def memory(self) -> float:
        """Megabytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * 4096 / 1e6

    @property
    def worked(self) -> float:
        """Seconds of processor time, which others on the machine hardly change."""
        times = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(model: Path, *flags: str) -> Iterator[Server]:
    """`softgaze serve` on a free port."""
    command = [sys.executable, "-m", "softgaze", "serve", str(model), "--port", "0", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = (line for line in process.stdout or () if line.startswith("Serving on "))
            line = next(said, None)
            if line is None:
                raise SystemExit(1)  # it has said why
            yield Server(line.split()[2], process)
        finally:
            process.terminate()


def own_model() -> Path:
    """The model of the quickstart, made if need be."""
    subprocess.run([sys.executable, "-m", "softgaze", "quickstart", "--out", str(OWN)], check=True)
    return OWN / "model"


def mixed() -> list[str]:
    """English of the phrasebook: from a few words to sixty."""
    from softgaze.data.corpora.phrasebook import load

    return [pair.source for split in ("train", "test", "long") for pair in load(split, 2000)]


# --- the table --------------------------------------------------------------------------------------------------


def row(name: str, every: Sequence[Seen]) -> str:
    """One server, over its rounds."""
    seconds = sorted(each for seen in every for each in seen.seconds)
    health = sorted(each for seen in every for each in seen.health)
    rates = Spread.of([seen.rate for seen in every])
    cells = [
        name,
        rates.text(1),
        f"{1000 * sum(seen.worked for seen in every) / max(len(seconds), 1):,.1f}",
        f"{1000 * median(seconds):,.0f}",
        f"{1000 * at(seconds, 0.99):,.0f}",
        " / ".join(f"{1000 * value:,.0f}" for value in (median(health), at(health, 0.99), health[-1])),
        f"{sum(sum(seen.statuses.values()) for seen in every):,}",
        f"{sum(seen.errors for seen in every)}",
    ]
    return f"| {' | '.join(cells)} |"


def at(ordered: Sequence[float], share: float) -> float:
    """The value that this share is not above."""
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


def table(rounds: dict[str, list[Seen]]) -> str:
    """Both servers, and how many times the one is the other."""
    together, alone = rounds.values()
    ratios = Spread.of([one.rate / other.rate for one, other in zip(together, alone, strict=True)])
    lines = [f"| {' | '.join(HEADINGS)} |", "|---|" + "--:|" * (len(HEADINGS) - 1)]
    lines += [row(name, own) for name, own in rounds.items()]
    return "\n".join([*lines, "", f"Together is {ratios.text(2)} times as fast as one at a time."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "model", type=Path, nargs="?", help="a model, trained or exported; that of the quickstart if none"
    )
    parser.add_argument("--text", type=Path, help="its lines are translated; English of the phrasebook if none")
    parser.add_argument("--languages", nargs=2, default=("en", "ko"), metavar=("FROM", "TO"))
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=0, help="then as long on the first server, for its memory")
    given = parser.parse_args()
    model = given.model or own_model()
    texts = given.text.read_text(encoding="utf-8").splitlines() if given.text else mixed()
    languages = tuple(given.languages)

    def loaded(server: Server, seconds: float) -> Seen:
        before = server.worked
        seen = asyncio.run(load(server.url, texts, languages, given.clients, seconds))
        seen.worked = server.worked - before
        return seen

    with serving(model, *SERVERS["together"]) as together, serving(model, *SERVERS["one at a time"]) as alone:
        servers = dict(zip(SERVERS, (together, alone), strict=True))
        rounds: dict[str, list[Seen]] = {name: [] for name in servers}
        for server in servers.values():
            loaded(server, given.seconds / 2)  # to warm up
        for _ in range(given.rounds):
            for name, server in servers.items():
                rounds[name].append(loaded(server, given.seconds))
        print(circumstances("load"), "", table(rounds), sep="\n")
        if given.minutes:
            loaded(together, 60 * given.minutes / 4)  # until the allocator has met batches of every size
            before = together.memory
            seen = loaded(together, 60 * given.minutes)
            grown = f"{before:,.0f} MB → {together.memory:,.0f} MB ({together.memory / before - 1:+.1%})"
            print(f"\n{given.minutes:g} minutes: memory {grown}", "", row("together", [seen]), sep="\n")
            print(dict(seen.statuses))


if __name__ == "__main__":
    main()

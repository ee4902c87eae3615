"""Format runs as a table and a chart, whichever benchmark made them."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.environments import PEERS
from docs.dark import with_dark_colours
from softgaze.evaluation.benchmark import LoadMeter, cpu_name

METER = LoadMeter()  # from the start of a benchmark
OWN = "softgaze"
Run = dict[str, Any]


class Spread(NamedTuple):
    """Median, minimum and maximum of some numbers."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "Spread":
        return cls(median(numbers), min(numbers), max(numbers))

    def text(self, digits: int = 0) -> str:
        """`4,020 (3,980–4,055)`."""
        return f"{self.middle:,.{digits}f} ({self.low:,.{digits}f}–{self.high:,.{digits}f})"


@dataclass(frozen=True)
class Facts:
    """The conditions of a measurement."""

    text: str
    threads: int
    batch_tokens: int
    peaks: dict[str, float]  # operations per second


@dataclass(frozen=True)
class Row:
    """One contender in one case."""

    contender: str
    rate: Spread | None = None  # target tokens per second
    ratio: Spread | None = None  # softgaze over this one, round by round
    run: Run | None = None  # one of its runs, for the facts that all share
    reason: str = ""  # why there is no number


def summarise(runs: Sequence[Run]) -> list[Row]:
    """Return a row for each contender of one case, in the order of their first turn."""
    rows = []
    for contender in dict.fromkeys(run["contender"] for run in runs):
        own = [run for run in runs if run["contender"] == contender]
        failed = next((run["error"] for run in own if "error" in run), "")
        good = [run for run in own if "error" not in run]
        if failed or not good:
            rows.append(Row(contender, reason=failed))
            continue
        rate = Spread.of([run["tokens_per_second"] for run in good])
        rows.append(Row(contender, rate, ratio_to(runs, good), good[0]))
    return rows


def ratio_to(runs: Sequence[Run], good: Sequence[Run]) -> Spread | None:
    """Return the ratio of softgaze to this contender within each round that both finished."""
    ours = {run["round"]: run["tokens_per_second"] for run in runs if run["contender"] == OWN and "error" not in run}
    ratios = [ours[run["round"]] / run["tokens_per_second"] for run in good if run["round"] in ours]
    return Spread.of(ratios) if ratios else None


def label(contender: str) -> str:
    return PEERS[contender].label if contender in PEERS else contender


# --- the table --------------------------------------------------------------------------------------------------

HEADINGS = (
    "contender",
    "version",
    "numbers",
    "target tokens/s: median (range)",
    "softgaze is … times as fast: median (range)",
    "share of the peak",
    "tokens an update",
    "parameters",
)


def table(rows: Sequence[Row], operations: float, peaks: dict[str, float]) -> str:
    lines = [f"| {' | '.join(HEADINGS)} |", "|---|---|---|" + "--:|" * 5]
    lines += [f"| {' | '.join(cells(row, operations, peaks))} |" for row in rows]
    return "\n".join(lines)


def cells(row: Row, operations: float, peaks: dict[str, float]) -> list[str]:
    """Return the cells of one row; a contender that did not run has the reason instead of its speed."""
    if row.rate is None or row.run is None:
        return [label(row.contender), "", "", f"— ({row.reason.replace('|', '/')})", "—", "—", "—", "—"]
    precision = row.run["precision"]
    share = row.rate.middle * operations / peaks[precision]
    return [
        label(row.contender),
        str(row.run["version"]),
        precision,
        row.rate.text(),
        row.ratio.text(2) if row.ratio and row.contender != OWN else "—",
        f"{share:.0%}",
        f"{row.run['tokens_per_update']:,.0f}",
        f"{row.run['parameters']:,}",
    ]


def document(runs: Sequence[Run], facts: Facts) -> str:
    parts = [
        "# Training speed, side by side",
        "Written by `python -m benchmarks.training`; how it measures is in [README.md](README.md).",
        "![Target tokens a second](results.svg)",
    ]
    for case in dict.fromkeys(run["case"] for run in runs):
        own = own_runs(runs, case)
        parts += [f"## {case}", effort(own), table(summarise(own), own[0]["operations"], facts.peaks)]
        lacking = [peer.label for name, peer in PEERS.items() if case.split()[0] not in peer.archs]
        if lacking:
            parts.append(f"Without this model: {', '.join(lacking)}.")
    parts += ["## How, where and when", "\n".join(f"- {line}" for line in surroundings(facts))]
    return "\n\n".join(parts) + "\n"


def effort(runs: Sequence[Run]) -> str:
    """Return operations per token, rounds and updates of one case as text."""
    counts = sorted(run["updates"] for run in runs if "error" not in run) or [0]
    return (
        f"{runs[0]['operations'] / 1e6:,.1f} million operations for each target token, forward and backward. "
        f"{max(run['round'] for run in runs) + 1} rounds; each run {runs[0]['warmup']} updates to warm up and "
        f"{counts[0]} to {counts[-1]} measured. {', '.join(sorted({run['made'] for run in runs}))}."
    )


def own_runs(runs: Sequence[Run], case: str) -> list[Run]:
    return [run for run in runs if run["case"] == case]


def surroundings(facts: Facts) -> list[str]:
    """Return machine, text, versions and command."""
    peaks = ", ".join(f"{kind} {rate / 1e9:,.0f}" for kind, rate in facts.peaks.items())
    return [
        f"Machine: {cpu_name()}, {os.cpu_count()} cores, {memory()}; {facts.threads} threads for every toolkit.",
        f"Fastest matrix product measured, in thousand million operations a second: {peaks}.",
        f"Text: {facts.text}; batches of {facts.batch_tokens:,} tokens.",
        f"Python {platform.python_version()}, torch {version('torch')}.",
        f"Command: `{command()}`",
    ]


def memory() -> str:
    """Return the RAM in gigabytes."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / 2**30:.0f} GB"


def commit() -> str:
    """Return the commit of the measured code, and whether the work tree has changes."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=here, capture_output=True, text=True).stdout.strip()

    written = [f":!*.{kind}" for kind in ("md", "svg", "json", "jsonl")]  # by a benchmark before this one
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../src", ".", *written)
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (" with changes" if changed else "")


def made() -> str:
    """Return date and commit."""
    return f"{datetime.now(UTC):%Y-%m-%d}, commit {commit()}"


def circumstances(module: str) -> str:
    """Return command, machine, versions, date, commit, and the load by other processes."""
    versions = f"Python {platform.python_version()}, torch {version('torch')}"
    machine = f"{cpu_name()}, {os.cpu_count()} cores, {memory()}"
    busy = f"Other processes used {METER.busy_cores():.1f} of the cores meanwhile."
    return f"`{command(module)}` on {machine}; {versions}; {made()}. {busy}"


def command(module: str = "training") -> str:
    """Return the command line; of paths only the file names, so that no private directory is published."""
    words = [Path(word).name if os.sep in word else word for word in sys.argv[1:]]
    return " ".join([f"python -m benchmarks.{module}", *(f'"{word}"' if " " in word else word for word in words)])


# --- the chart --------------------------------------------------------------------------------------------------

LINE, GAP, LEFT, WIDTH, RIGHT = 24, 44, 190, 460, 230
OURS, THEIRS, INK, PALE = "#c2410c", "#94a3b8", "#1f2937", "#6b7280"


def chart(runs: Sequence[Run]) -> str:
    """Draw bars of target tokens per second, a group for each case, each group on its own scale."""
    pieces: list[str] = []
    top = 36
    for case in dict.fromkeys(run["case"] for run in runs):
        rows = [row for row in summarise(own_runs(runs, case)) if row.rate]
        pieces.append(words(12, top, case, INK, weight="bold"))
        best = max((row.rate.high for row in rows if row.rate), default=1.0)
        for number, row in enumerate(rows):
            pieces += bar(row, top + 12 + number * LINE, WIDTH / best)
        top += 12 + len(rows) * LINE + GAP
    size = f'width="{LEFT + WIDTH + RIGHT}" height="{top}" viewBox="0 0 {LEFT + WIDTH + RIGHT} {top}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif" font-size="13">'
    background = '<rect width="100%" height="100%" fill="#ffffff"/>'
    foot = words(12, top - 14, "target tokens a second; the thin line is the range over the rounds", PALE)
    return "\n".join([head, background, *pieces, foot, "</svg>"]) + "\n"


def bar(row: Row, top: float, scale: float) -> list[str]:
    assert row.rate is not None
    colour = OURS if row.contender == OWN else THEIRS
    middle, end = top + LINE / 2, LEFT + row.rate.high * scale + 8
    ratio = f"   softgaze × {row.ratio.middle:.2f}" if row.ratio and row.contender != OWN else ""
    length = row.rate.middle * scale
    low, high = LEFT + row.rate.low * scale, LEFT + row.rate.high * scale
    return [
        words(LEFT - 8, middle + 4, label(row.contender), INK, anchor="end"),
        f'<rect x="{LEFT}" y="{top + 4}" width="{length:.1f}" height="{LINE - 8}" rx="2" fill="{colour}"/>',
        f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="{INK}" stroke-width="1.5"/>',
        words(end, middle + 4, f"{row.rate.middle:,.0f}{ratio}", PALE),
    ]


def words(x: float, y: float, text: str, colour: str, anchor: str = "start", weight: str = "normal") -> str:
    attributes = f'x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text {attributes} xml:space="preserve">{escape(text)}</text>'


def write_report(stem: Path, runs: Sequence[Run], facts: Facts) -> None:
    """Write the page, the chart, and every run as a line of JSON."""
    page = document(runs, facts).replace("results.svg", f"{stem.name}.svg")
    stem.with_suffix(".md").write_text(page, encoding="utf-8")
    stem.with_suffix(".svg").write_text(with_dark_colours(chart(runs)), encoding="utf-8")
    stem.with_suffix(".jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")

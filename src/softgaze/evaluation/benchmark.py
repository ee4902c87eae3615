"""Translation speed by engine, precision, threads, beam size, and batched or not; and the machine of a measurement.

Every setting runs in its own process, because thread counts are set once and two engines cannot share a process:
`python -m softgaze.evaluation.benchmark MODEL` reads a setting and sentences from standard input and prints the speed.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import softgaze
from softgaze.errors import ResourceError
from softgaze.training.run_directory import environment

if TYPE_CHECKING:
    from softgaze.translation import Translation

BEAM_SIZES = (1, 5)
ROUNDS = 3
MAX_SINGLE = 40  # sentences translated one at a time
PACKAGE = Path(softgaze.__file__).parent


@dataclass(frozen=True)
class BenchmarkSetting:
    engine: str
    precision: str
    threads: int
    beam_size: int
    one_at_a_time: bool


@dataclass(frozen=True)
class BenchmarkResult:
    setting: BenchmarkSetting
    sentences_per_second: float
    tokens_per_second: float

    def to_dict(self) -> dict[str, Any]:
        speeds = {name: getattr(self, name) for name in ("sentences_per_second", "tokens_per_second")}
        return {**asdict(self.setting), **speeds}


def benchmark_settings(engine: str, precision: str, threads: Sequence[int]) -> Iterator[BenchmarkSetting]:
    for setting in product(threads, BEAM_SIZES, (False, True)):
        yield BenchmarkSetting(engine, precision, *setting)


def thread_counts() -> list[int]:
    """Return 1 and the number of cores; only the latter where the CPU affinity of a process cannot be set."""
    if not hasattr(os, "sched_getaffinity"):
        return [os.cpu_count() or 1]
    return sorted({1, len(os.sched_getaffinity(0))})


def run_benchmark(
    model: Path, setting: BenchmarkSetting, texts: Sequence[str], languages: Sequence[str | None] = (None, None)
) -> BenchmarkResult:
    """Measure one setting in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "softgaze.evaluation.benchmark", str(model)],
        input=json.dumps({"setting": asdict(setting), "texts": list(texts), "languages": list(languages)}),
        env={**os.environ, "OMP_NUM_THREADS": str(setting.threads)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        error = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ResourceError(f"benchmark of {setting.engine} with {setting.threads} threads failed: {error}")
    return BenchmarkResult(setting, **json.loads(done.stdout.splitlines()[-1]))


def fastest(results: Sequence[BenchmarkResult], *, beam_size: int, one_at_a_time: bool) -> BenchmarkResult:
    """Return the result with the most tokens per second for one use."""
    wanted = (beam_size, one_at_a_time)
    matching = [result for result in results if (result.setting.beam_size, result.setting.one_at_a_time) == wanted]
    return max(matching, key=lambda result: result.tokens_per_second)


def translation_speed(translations: "Sequence[Translation]", seconds: float) -> dict[str, float]:
    """Return sentences and output tokens (EOS included) per second."""
    tokens = sum(part.length for translation in translations for part in translation.parts)
    return {
        "seconds": round(seconds, 3),
        "sentences_per_second": round(len(translations) / seconds, 2),
        "tokens_per_second": round(tokens / seconds, 2),
    }


def _measure(
    model: Path, setting: BenchmarkSetting, texts: Sequence[str], languages: Sequence[str | None]
) -> dict[str, float]:
    """Translate the texts ROUNDS times after one warm-up, in this process."""
    from softgaze.translator import load

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: setting.threads])
    source, target = languages
    translator = load(
        model, "cpu", engine=setting.engine, source_lang=source, target_lang=target, explain_with_torch=False
    )
    texts = list(texts[:MAX_SINGLE] if setting.one_at_a_time else texts)
    speeds = []
    for _ in range(ROUNDS + 1):
        start = perf_counter()
        if setting.one_at_a_time:
            translations = [translator.translate(text, beam_size=setting.beam_size) for text in texts]
        else:
            translations = translator.translate(texts, beam_size=setting.beam_size)
        speeds.append(translation_speed(translations, perf_counter() - start))
    names = ("sentences_per_second", "tokens_per_second")
    return {name: median(speed[name] for speed in speeds[1:]) for name in names}


# --- other processes ------------------------------------------------------------------------------------------

MAX_BUSY_CORES = 0.2  # that other processes may use during a measurement
BUSY_FIELDS = (0, 1, 2, 5, 6, 7)  # of a line of /proc/stat: user, nice, system, irq, softirq, steal


class LoadMeter:
    """The processor time that other processes use from now on: it makes wall times too long."""

    def __init__(self) -> None:
        self.start, self.before = perf_counter(), other_seconds()

    def busy_cores(self) -> float:
        """Return how many cores other processes used on average; 0 if the system does not report it."""
        after, elapsed = other_seconds(), perf_counter() - self.start
        return 0.0 if after is None or self.before is None or not elapsed else max(0, after - self.before) / elapsed

    def warning(self) -> str:
        """Return one sentence if the machine was busy, else nothing."""
        busy = self.busy_cores()
        if busy <= MAX_BUSY_CORES:
            return ""
        return (
            f"other processes used {busy:.1f} of {os.cpu_count()} cores meanwhile: times are too long; "
            "repeat on an idle machine"
        )


def other_seconds() -> float | None:
    """Return the processor seconds since the start of the system, without this process and its finished children."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return None
    return sum(int(fields[index]) for index in BUSY_FIELDS) / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


# --- the machine -----------------------------------------------------------------------------------------------


def describe_environment() -> dict[str, Any]:
    """Return hardware, versions, commit and date; the memory is None if the system does not report it."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        memory = None
    return {
        "processor": cpu_name(),
        "cores": os.cpu_count(),
        "memory_bytes": memory,
        **environment(),
        "commit": git_commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def git_commit() -> str | None:
    """Return the commit of a source checkout; None for an installed package, even inside another repository."""
    root = PACKAGE.parents[1]
    if root / "src" / "softgaze" != PACKAGE or not (root / ".git").exists():
        return None

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip()

    try:
        changes = git("status", "--porcelain", "--untracked-files=no", "--", "src")
        return git("rev-parse", "--short", "HEAD") + (" with changes" if changes else "")
    except OSError:  # git is not installed
        return None


if __name__ == "__main__":
    request = json.loads(sys.stdin.read())
    setting = BenchmarkSetting(**request["setting"])
    print(json.dumps(_measure(Path(sys.argv[1]), setting, request["texts"], request["languages"])))

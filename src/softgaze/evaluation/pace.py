"""How fast a model translates in each setting: engine, precision, threads, beam, one sentence at a time or many.

Every setting runs in a process of its own, since threads are set once and two engines never meet in one process:
`python -m softgaze.evaluation.pace MODEL` reads an order from standard input and prints what it measured.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from softgaze.errors import ResourceError

BEAMS = (1, 5)
ROUNDS = 3
FEW = 40  # sentences that are translated one at a time: enough to tell, and no long wait


@dataclass(frozen=True)
class Setting:
    """One way to translate."""

    engine: str
    precision: str
    threads: int
    beam: int
    alone: bool  # one sentence at a time, as when somebody waits for each


@dataclass(frozen=True)
class Pace:
    """What was measured: medians of the rounds."""

    setting: Setting
    sentences_per_second: float
    tokens_per_second: float

    def to_dict(self) -> dict[str, Any]:
        """A setting and its figures side by side."""
        return {
            **asdict(self.setting),
            "sentences_per_second": self.sentences_per_second,
            "tokens_per_second": self.tokens_per_second,
        }


def settings_of(engine: str, precision: str, threads: Sequence[int]) -> Iterator[Setting]:
    """Every setting of one model."""
    for count, beam, alone in product(threads, BEAMS, (False, True)):
        yield Setting(engine, precision, count, beam, alone)


def thread_counts() -> list[int]:
    """One, and as many as there are cores; only the latter where a process cannot be kept to some cores."""
    if not hasattr(os, "sched_getaffinity"):
        return [os.cpu_count() or 1]
    return sorted({1, len(os.sched_getaffinity(0))})


def measure(model: Path, setting: Setting, texts: Sequence[str]) -> Pace:
    """In a fresh process."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(setting.threads)}
    order = json.dumps({"setting": asdict(setting), "texts": list(texts)})
    command = [sys.executable, "-m", "softgaze.evaluation.pace", str(model)]
    done = subprocess.run(command, input=order, capture_output=True, text=True, env=environment)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ResourceError(f"{setting.engine} with {setting.threads} threads could not be measured: {last}")
    return Pace(setting, **json.loads(done.stdout.splitlines()[-1]))


def fastest(paces: Sequence[Pace], *, beam: int, alone: bool) -> Pace:
    """For one use."""
    fitting = [pace for pace in paces if (pace.setting.beam, pace.setting.alone) == (beam, alone)]
    return max(fitting, key=lambda pace: pace.tokens_per_second)


# --- in the process of its own ----------------------------------------------------------------------------------


def keep_to(threads: int) -> None:
    """So many cores, where the system can be asked."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def run(model: Path, setting: Setting, texts: Sequence[str]) -> dict[str, float]:
    """Translate all of it some times; the first, which warms up, is not counted."""
    from softgaze.evaluation.speed import speed_of
    from softgaze.translator import load

    keep_to(setting.threads)
    translator = load(model, "cpu", full=False)
    some = list(texts[:FEW] if setting.alone else texts)
    rates = []
    for _ in range(ROUNDS + 1):
        start = perf_counter()
        if setting.alone:
            found = [translator.translate(text, beam=setting.beam) for text in some]
        else:
            found = translator.translate(some, beam=setting.beam)
        rates.append(speed_of(found, perf_counter() - start))
    return {name: median(each[name] for each in rates[1:]) for name in ("sentences_per_second", "tokens_per_second")}


if __name__ == "__main__":
    order = json.loads(sys.stdin.read())
    print(json.dumps(run(Path(sys.argv[1]), Setting(**order["setting"]), order["texts"])))

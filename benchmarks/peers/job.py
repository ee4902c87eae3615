"""The job of a contender and the meter of its speed. Standard library only: it runs in every environment.

Every contender trains in its own loop and calls `Meter.batch` whenever a batch enters its training step, so the clock
includes everything between two batches: reading, padding, loss, update.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn


@dataclass(frozen=True)
class Job:
    """One run: which model, on which text, for how long."""

    corpus: str  # directory with {train,dev}.{source,target} and vocabulary.txt, all in pieces
    out: str  # directory of this run alone
    arch: str  # transformer, rnn-luong or rnn-bahdanau
    size: str
    model: dict[str, Any]  # the numbers of the size, as softgaze names them
    vocabulary: int
    dropout: float
    label_smoothing: float
    batch_tokens: int
    threads: int
    warmup: int  # updates before the clock starts
    updates: int  # updates to measure, at most
    seconds: float  # time to measure, at most, once MINIMUM updates are done
    precision: str  # float32 or bfloat16
    seed: int

    @classmethod
    def read(cls, path: str) -> "Job":
        return cls(**json.loads(Path(path).read_text(encoding="utf-8")))

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    def file(self, name: str) -> str:
        """Return the path of a file of the corpus."""
        return str(Path(self.corpus) / name)

    def scratch(self, name: str) -> str:
        """Return the path of a file of this run."""
        return str(Path(self.out) / name)


MINIMUM = 3  # measured updates at least: a single batch may be short or long
SPECIAL_TOKENS = 4  # padding, unknown, begin, end: the first lines of vocabulary.txt
RATE = 3e-4  # small enough that nothing overflows, which would change the speed


class Finished(BaseException):
    """Raised when enough was measured."""


class Meter:
    """Counts target tokens and time over whole updates."""

    def __init__(self, job: Job, clock: Callable[[], float] = time.perf_counter) -> None:
        self.job, self.clock = job, clock
        self.seen = self.tokens = self.updates = 0
        self.pending = 0  # tokens of the batch that is being trained
        self.started = self.seconds = 0.0

    def batch(self, tokens: int) -> None:
        """Count a batch before it is trained; `tokens` are real target tokens including EOS."""
        now = self.clock()
        if self.seen == self.job.warmup:
            self.started = now
        elif self.seen > self.job.warmup:
            self.tokens += self.pending
            self.updates += 1
            self.seconds = now - self.started
            if self.enough():
                raise Finished
        self.pending = tokens
        self.seen += 1

    def enough(self) -> bool:
        late = self.seconds >= self.job.seconds and self.updates >= MINIMUM
        return late or self.updates >= self.job.updates


def measure(train: Callable[[Job, Meter], Any], facts: Callable[[], dict[str, Any]]) -> NoReturn:
    """Train until the meter has enough, print one line of JSON, and exit without clean-up.

    The work of a toolkit after training (saving, validating) is not measured.
    """
    job = Job.read(sys.argv[1])
    meter = Meter(job)
    try:
        train(job, meter)
    except Finished:
        print(json.dumps(report(meter) | facts()), flush=True)
        os._exit(0)
    raise SystemExit(f"training ended by itself after {meter.seen} batches, before enough was measured")


def report(meter: Meter) -> dict[str, Any]:
    return {
        "tokens": meter.tokens,
        "seconds": round(meter.seconds, 4),
        "updates": meter.updates,
        "tokens_per_second": round(meter.tokens / meter.seconds, 2),
        "tokens_per_update": round(meter.tokens / meter.updates, 1),
    }


def parameters_of(model: Any) -> int:
    """Return the number of trained parameters of a torch module; shared ones count once."""
    return sum(value.numel() for value in model.parameters() if value.requires_grad)


def read_ids(job: Job, split: str) -> list[tuple[list[int], list[int]]]:
    """Return the corpus as ids, for contenders that read no text."""
    number = {
        piece: index for index, piece in enumerate(Path(job.file("vocabulary.txt")).read_text("utf-8").split("\n"))
    }
    sides = []
    for side in ("source", "target"):
        lines = Path(job.file(f"{split}.{side}")).read_text("utf-8").rstrip("\n").split("\n")
        sides.append([[number[piece] for piece in line.split(" ")] for line in lines])
    return list(zip(*sides, strict=True))


def write_words(job: Job) -> str:
    """Write the pieces without special tokens, for toolkits that add their own; return the path."""
    pieces = Path(job.file("vocabulary.txt")).read_text("utf-8").rstrip("\n").split("\n")[SPECIAL_TOKENS:]
    Path(job.scratch("words")).write_text("\n".join(pieces) + "\n", "utf-8")
    return job.scratch("words")

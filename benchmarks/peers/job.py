"""What every contender is told, and how what it does is counted. Only the standard library: each environment has it.

Every contender trains in its own loop. All it does for us is to call `Meter.batch` whenever a batch enters its training
step, so the clock runs from one batch to a later one and everything between counts: reading, padding, loss, update.
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
        """From the file whose name the parent process gave."""
        return cls(**json.loads(Path(path).read_text(encoding="utf-8")))

    def write(self, path: Path) -> None:
        """For a child process."""
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    def file(self, name: str) -> str:
        """A file of the corpus."""
        return str(Path(self.corpus) / name)

    def scratch(self, name: str) -> str:
        """A file of this run."""
        return str(Path(self.out) / name)


MINIMUM = 3  # measured updates, however slow: one batch alone may be short or long
SPECIAL_TOKENS = 4  # padding, unknown, begin, end: the first lines of vocabulary.txt
RATE = 3e-4  # speed does not depend on it, but numbers that overflow would


class Finished(BaseException):
    """Enough was measured."""


class Meter:
    """Counts target tokens and time over whole updates."""

    def __init__(self, job: Job, clock: Callable[[], float] = time.perf_counter) -> None:
        self.job, self.clock = job, clock
        self.seen = self.tokens = self.updates = 0
        self.pending = 0  # tokens of the batch that is being trained
        self.started = self.seconds = 0.0

    def batch(self, tokens: int) -> None:
        """A batch with so many real target tokens, the end of each sentence among them, is about to be trained."""
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
        """By updates, or by time."""
        late = self.seconds >= self.job.seconds and self.updates >= MINIMUM
        return late or self.updates >= self.job.updates


def measure(train: Callable[[Job, Meter], Any], facts: Callable[[], dict[str, Any]]) -> NoReturn:
    """Train until the meter has enough, print one line of JSON, and leave at once.

    Leaving without cleaning up is meant: what a toolkit does after training (saving, validating) is not measured.
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
    """What was counted."""
    return {
        "tokens": meter.tokens,
        "seconds": round(meter.seconds, 4),
        "updates": meter.updates,
        "tokens_per_second": round(meter.tokens / meter.seconds, 2),
        "tokens_per_update": round(meter.tokens / meter.updates, 1),
    }


def parameters_of(model: Any) -> int:
    """Learned numbers of a torch module, those that are shared counted once."""
    return sum(value.numel() for value in model.parameters() if value.requires_grad)


def read_ids(job: Job, split: str) -> list[tuple[list[int], list[int]]]:
    """The corpus as ids, for contenders that read no text."""
    number = {
        piece: index for index, piece in enumerate(Path(job.file("vocabulary.txt")).read_text("utf-8").split("\n"))
    }
    sides = []
    for side in ("source", "target"):
        lines = Path(job.file(f"{split}.{side}")).read_text("utf-8").rstrip("\n").split("\n")
        sides.append([[number[piece] for piece in line.split(" ")] for line in lines])
    return list(zip(*sides, strict=True))


def write_words(job: Job) -> str:
    """The pieces without the four special ones, for toolkits that add their own; returns the file's name."""
    pieces = Path(job.file("vocabulary.txt")).read_text("utf-8").rstrip("\n").split("\n")[SPECIAL_TOKENS:]
    Path(job.scratch("words")).write_text("\n".join(pieces) + "\n", "utf-8")
    return job.scratch("words")

"""What every contender is told to write, and how its time is taken. Only the standard library: each environment has it.

Everybody reads the same pieces and writes the same number of tokens for each sentence: minimum and maximum length are
one. So it does not matter that weights are drawn at random, nor when a toolkit thinks a sentence is done.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.job import Job

Sentences = Sequence[Sequence[str]]  # in pieces
Decode = Callable[[Sentences], Sequence[int]]  # writes them, all or one at a time: how many tokens each got


@dataclass(frozen=True)
class Orders:
    """One run."""

    job: Job  # the model: sizes, vocabulary, threads
    sentences: int
    length: int  # tokens to write for each, END not counted
    beam: int
    alone: bool  # one sentence at a time, not all at once
    batch: int  # sentences at once, for those who do not decide themselves
    model: str  # directory with the exports that ours and CTranslate2 run

    @classmethod
    def read(cls, path: str) -> "Orders":
        """From the file whose name the parent process gave."""
        told = json.loads(Path(path).read_text(encoding="utf-8"))
        return cls(**{**told, "job": Job(**told["job"])})

    def write(self, path: Path) -> None:
        """For a child process."""
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    def pieces(self) -> list[list[str]]:
        """The sentences, shortest first: so everybody pads as little."""
        lines = Path(self.job.file("dev.source")).read_text("utf-8").rstrip("\n").split("\n")
        return sorted((line.split(" ") for line in lines[: self.sentences]), key=len)

    def ids(self, sentences: Sentences) -> list[list[int]]:
        """As numbers of the vocabulary."""
        pieces = Path(self.job.file("vocabulary.txt")).read_text("utf-8").split("\n")
        number = {piece: place for place, piece in enumerate(pieces)}
        return [[number[piece] for piece in sentence] for sentence in sentences]

    def batches(self, sentences: Sequence[Any]) -> list[Sequence[Any]]:
        """Of one size."""
        return [sentences[start : start + self.batch] for start in range(0, len(sentences), self.batch)]


def measure(prepare: Callable[[Orders], Decode], version: str) -> None:
    """Warm up with a few sentences, write all, print one line of JSON."""
    orders = Orders.read(sys.argv[1])
    decode = prepare(orders)
    sentences = orders.pieces()
    decode(sentences[:: max(1, len(sentences) // 8)])
    start = time.perf_counter()
    counts = [count for each in sentences for count in decode([each])] if orders.alone else [*decode(sentences)]
    seconds = time.perf_counter() - start
    if len(counts) != len(sentences) or set(counts) != {orders.length}:
        raise SystemExit(f"wrote {min(counts)} to {max(counts)} tokens, not {orders.length}")
    found = {
        "seconds": round(seconds, 4),
        "sentences_per_second": round(len(counts) / seconds, 2),
        "tokens_per_second": round(sum(counts) / seconds, 1),
        "version": version,
    }
    print(json.dumps(found), flush=True)

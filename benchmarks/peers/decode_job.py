"""What every contender is told to write, and how its time is taken. Only the standard library: each environment has it.

Everybody reads the same pieces. With weights drawn at random, everybody writes the same number of tokens for each
sentence: minimum and maximum length are one, and it does not matter when a toolkit thinks a sentence is done. With the
weights of one trained model each sentence ends where it ends, and what was written is told, to be compared.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.peers.job import Job

Sentences = Sequence[Sequence[str]]  # in pieces
Written = Sequence[Sequence[Any]]  # what each sentence became, in pieces or in ids, without its end
Decode = Callable[[Sentences], Written]  # all, or one at a time


@dataclass(frozen=True)
class Orders:
    """One run."""

    job: Job  # the model: sizes, vocabulary, threads
    sentences: int
    length: int  # tokens to write for each, END not counted; 0: as many as the model wants
    beam: int
    alone: bool  # one sentence at a time, not all at once
    batch: int  # sentences at once, for those who do not decide themselves
    model: str  # directory with the exports that ours and CTranslate2 run
    weights: str = ""  # file of the weights that everybody loads; none: drawn at random

    @classmethod
    def read(cls, path: str) -> "Orders":
        """From the file whose name the parent process gave."""
        settings = json.loads(Path(path).read_text(encoding="utf-8"))
        return cls(**{**settings, "job": Job(**settings["job"])})

    def write(self, path: Path) -> None:
        """For a child process."""
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    def pieces(self) -> list[list[str]]:
        """The sentences, shortest first: so everybody pads as little."""
        lines = Path(self.job.file("dev.source")).read_text("utf-8").rstrip("\n").split("\n")
        return sorted((line.split(" ") for line in lines[: self.sentences]), key=len)

    @cached_property
    def vocabulary(self) -> list[str]:
        """Pieces in the order of our ids."""
        return Path(self.job.file("vocabulary.txt")).read_text("utf-8").removesuffix("\n").split("\n")

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Our id of every piece."""
        return {piece: number for number, piece in enumerate(self.vocabulary)}

    def ids(self, sentences: Sentences) -> list[list[int]]:
        """As numbers of the vocabulary."""
        return [[self.numbers[piece] for piece in sentence] for sentence in sentences]

    def spelled(self, sentences: Sentences, written: Written) -> list[str]:
        """In pieces, whatever they were written in; what never ends, only as far as everybody goes."""
        whole = [each[: 2 * len(sentence) + 5] for sentence, each in zip(sentences, written, strict=True)]
        named = ([piece if isinstance(piece, str) else self.vocabulary[piece] for piece in each] for each in whole)
        return [" ".join(each) for each in named]

    def most(self, batch: Sequence[Sequence[Any]]) -> int:
        """After how many tokens a batch is cut: ours gives each sentence twice its length and twenty more."""
        return self.length or 2 * max(map(len, batch)) + 20

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
    written = [decode([each])[0] for each in sentences] if orders.alone else decode(sentences)
    seconds = time.perf_counter() - start
    counts = [len(each) for each in written]
    if len(counts) != len(sentences) or (orders.length and set(counts) != {orders.length}):
        raise SystemExit(f"wrote {min(counts)} to {max(counts)} tokens, not {orders.length}")
    found = {
        "seconds": round(seconds, 4),
        "sentences_per_second": round(len(counts) / seconds, 2),
        "tokens_per_second": round(sum(counts) / seconds, 1),
        "version": version,
        "written": [] if orders.length else orders.spelled(sentences, written),
    }
    print(json.dumps(found), flush=True)


def until(ids: Sequence[int], end: int) -> Sequence[int]:
    """What was written before the end, where a batch went on after it."""
    return ids[: ids.index(end)] if end in ids else ids

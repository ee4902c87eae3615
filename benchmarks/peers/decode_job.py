"""The decoding job of a contender and its clock. Standard library only: it runs in every environment.

All contenders read the same pieces. With random weights they write the same number of tokens for each sentence: minimum
and maximum length are equal, so the stopping rule of a toolkit does not matter. With the weights of a trained model
each sentence ends by itself, and the output is reported for comparison.
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
Written = Sequence[Sequence[Any]]  # the output for each sentence, pieces or ids, without EOS
Decode = Callable[[Sentences], Written]  # all, or one at a time


@dataclass(frozen=True)
class Orders:
    job: Job  # the model: sizes, vocabulary, threads
    sentences: int
    length: int  # tokens to write for each, without EOS; 0: the model decides
    beam: int
    alone: bool  # one sentence at a time, not all at once
    batch: int  # sentences at once, for contenders without batching of their own
    model: str  # directory of the exports for softgaze and CTranslate2
    weights: str = ""  # file of the weights that all load; empty: random weights

    @classmethod
    def read(cls, path: str) -> "Orders":
        settings = json.loads(Path(path).read_text(encoding="utf-8"))
        return cls(**{**settings, "job": Job(**settings["job"])})

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    def pieces(self) -> list[list[str]]:
        """Return the sentences, shortest first, so that all contenders pad little."""
        lines = Path(self.job.file("dev.source")).read_text("utf-8").rstrip("\n").split("\n")
        return sorted((line.split(" ") for line in lines[: self.sentences]), key=len)

    @cached_property
    def vocabulary(self) -> list[str]:
        """Return the pieces in the order of our ids."""
        return Path(self.job.file("vocabulary.txt")).read_text("utf-8").removesuffix("\n").split("\n")

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Return our id of every piece."""
        return {piece: number for number, piece in enumerate(self.vocabulary)}

    def ids(self, sentences: Sentences) -> list[list[int]]:
        return [[self.numbers[piece] for piece in sentence] for sentence in sentences]

    def spelled(self, sentences: Sentences, written: Written) -> list[str]:
        """Return the outputs as pieces; endless ones are cut at a length that every contender reaches."""
        whole = [each[: 2 * len(sentence) + 5] for sentence, each in zip(sentences, written, strict=True)]
        named = ([piece if isinstance(piece, str) else self.vocabulary[piece] for piece in each] for each in whole)
        return [" ".join(each) for each in named]

    def most(self, batch: Sequence[Sequence[Any]]) -> int:
        """Return the maximum length of a batch: like ours, twice the source length plus twenty."""
        return self.length or 2 * max(map(len, batch)) + 20

    def batches(self, sentences: Sequence[Any]) -> list[Sequence[Any]]:
        return [sentences[start : start + self.batch] for start in range(0, len(sentences), self.batch)]


def measure(prepare: Callable[[Orders], Decode], version: str) -> None:
    """Warm up with a few sentences, decode all, print one line of JSON."""
    orders = Orders.read(sys.argv[1])
    decode = prepare(orders)
    sentences = orders.pieces()
    decode(sentences[:: max(1, len(sentences) // 8)])
    start, worked = time.perf_counter(), time.process_time()
    written = [decode([each])[0] for each in sentences] if orders.alone else decode(sentences)
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    counts = [len(each) for each in written]
    if len(counts) != len(sentences) or (orders.length and set(counts) != {orders.length}):
        raise SystemExit(f"wrote {min(counts)} to {max(counts)} tokens, not {orders.length}")
    found = {
        "seconds": round(seconds, 4),
        "cpu_seconds": round(worked, 4),
        "sentences_per_second": round(len(counts) / seconds, 2),
        "tokens_per_second": round(sum(counts) / seconds, 1),
        "version": version,
        "written": [] if orders.length else orders.spelled(sentences, written),
    }
    print(json.dumps(found), flush=True)


def until(ids: Sequence[int], end: int) -> Sequence[int]:
    """Return the ids before the first `end`."""
    return ids[: ids.index(end)] if end in ids else ids

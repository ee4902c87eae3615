"""Speed of the default engine compared with torch: a cold start, and one sentence at a time, in turns.

    python -m benchmarks.engines MODEL TEXT                  prints a table
    python -m benchmarks.engines MODEL TEXT --out FILE.md    also writes it

Each start is a process of `softgaze translate MODEL SENTENCE`. Single sentences go through `Translator.translate` in
two processes that take turns at each sentence. CPU time is reported as well as wall time, because other processes
change the latter more.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.report import circumstances

ENGINES = ("torch", "auto")
WORKER = """
import json, sys, time
import softgaze
softgaze.tune_cpu()
model = softgaze.load(sys.argv[1], "cpu", engine=sys.argv[2])
model.translate("a", beam_size=int(sys.argv[3]))
print("ready", flush=True)
for line in sys.stdin:
    wall, cpu = time.perf_counter(), time.process_time()
    text = model.translate(json.loads(line), beam_size=int(sys.argv[3])).text
    print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, text]), flush=True)
"""


class Timing(NamedTuple):
    """Median seconds of one engine."""

    wall: float
    cpu: float


def cold_start(model: Path, engine: str, sentence: str) -> Timing:
    """Run the command once."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "softgaze", "translate", str(model), sentence, "--engine", engine]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timing(time.perf_counter() - began, cpu)


def middle(timings: list[Timing]) -> Timing:
    return Timing(*(median(values) for values in zip(*timings, strict=True)))


def one_at_a_time(model: Path, sentences: list[str], beam_size: int) -> tuple[dict[str, Timing], int]:
    """Return the time of a sentence on each engine, and how many texts are equal."""
    arguments = [[sys.executable, "-c", WORKER, str(model), engine, str(beam_size)] for engine in ENGINES]
    workers = [
        subprocess.Popen(each, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)
        for each in arguments
    ]
    timings: list[list[Timing]] = [[], []]
    same = 0
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    for sentence in sentences:
        texts = set()
        for worker, own in zip(workers, timings, strict=True):
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write(json.dumps(sentence) + "\n")
            worker.stdin.flush()
            wall, cpu, text = json.loads(worker.stdout.readline())
            own.append(Timing(wall, cpu))
            texts.add(text)
        same += len(texts) == 1
    for worker in workers:
        worker.communicate()
    return {engine: middle(own) for engine, own in zip(ENGINES, timings, strict=True)}, same


def row(label: str, found: dict[str, Timing], note: str) -> str:
    """Return a line of the table."""
    one, other = (found[engine] for engine in ENGINES)
    cells = [f"{1000 * value:,.0f}" for value in (one.wall, other.wall, one.cpu, other.cpu)]
    ratios = f"{one.wall / other.wall:.1f} | {one.cpu / other.cpu:.1f}"
    return f"| {label} | {' | '.join(cells)} | {ratios} | {note} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    sentences = given.text.read_text(encoding="utf-8").splitlines()[: given.sentences]
    cold_start(given.model, "auto", sentences[0])  # converts
    starts: dict[str, list[Timing]] = {engine: [] for engine in ENGINES}
    for _ in range(given.starts):
        for engine, own in starts.items():
            own.append(cold_start(given.model, engine, sentences[0]))
    lines = [
        "| | torch, wall ms | default, wall ms | torch, CPU ms | default, CPU ms | wall ratio | CPU ratio | equal |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
        row(f"whole process, {given.starts} starts", {name: middle(own) for name, own in starts.items()}, ""),
    ]
    for beam_size in (1, 5):
        found, same = one_at_a_time(given.model, sentences, beam_size)
        lines.append(row(f"one sentence, beam {beam_size}", found, f"{same} of {len(sentences)}"))
    page = "\n".join([*lines, "", f"Medians. {circumstances('engines')}"])
    print(page)
    if given.out:
        given.out.write_text(f"# The default engine compared with torch\n\n{page}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

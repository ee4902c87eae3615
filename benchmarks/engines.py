"""Speed of the default engine compared with torch: a cold start, and one sentence at a time, in turns.

    python -m benchmarks.engines MODEL TEXT                  prints a table
    python -m benchmarks.engines MODEL TEXT --out FILE.md    also writes it
    python -m benchmarks.engines MODEL TEXT --before DIR     the torch search compared with that of an earlier checkout

Each start is a process of `softgaze translate MODEL SENTENCE`. Single sentences go through `Translator.translate` in
two processes that take turns at each sentence; `--before` gives them one thread each. CPU time is reported as well as
wall time, because other processes change the latter more.
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


def take_turns(
    model: Path, sentences: list[str], beam_size: int, sides: dict[str, tuple[str, dict[str, str]]]
) -> tuple[dict[str, list[Timing]], int]:
    """Return the times of each sentence on each side, an engine and its environment, and how many texts are equal."""
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(model), engine, str(beam_size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        for engine, environment in sides.values()
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
    return dict(zip(sides, timings, strict=True)), same


def compare_torch(model: Path, sentences: list[str], before: Path) -> str:
    """Return a table of the torch search of the checkout `before` and of this one."""
    packages = {"before": before / "src", "now": Path(__file__).parents[1] / "src"}
    sides = {
        name: ("torch", {"PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}) for name, package in packages.items()
    }
    lines = [
        "| | before, CPU ms | now, CPU ms | median ratio of CPU time | of wall time | ratio of CPU totals | equal |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for beam_size in (1, 5):
        found, same = take_turns(model, sentences, beam_size, sides)
        pairs = list(zip(found["before"], found["now"], strict=True))
        cells = [
            *(f"{1000 * middle(found[name]).cpu:.1f}" for name in sides),
            f"{median(one.cpu / other.cpu for one, other in pairs):.2f}",
            f"{median(one.wall / other.wall for one, other in pairs):.2f}",
            f"{sum(one.cpu for one, _ in pairs) / sum(other.cpu for _, other in pairs):.2f}",
            f"{same} of {len(sentences)}",
        ]
        lines.append(f"| one sentence, beam {beam_size} | {' | '.join(cells)} |")
    return "\n".join(lines)


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
    parser.add_argument("--before", type=Path, metavar="DIR", help="checkout whose torch search is compared instead")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    sentences = given.text.read_text(encoding="utf-8").splitlines()[: given.sentences]
    if given.before:
        print(compare_torch(given.model, sentences, given.before), circumstances("engines"), sep="\n\n")
        return
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
        timings, same = take_turns(given.model, sentences, beam_size, {engine: (engine, {}) for engine in ENGINES})
        found = {engine: middle(own) for engine, own in timings.items()}
        lines.append(row(f"one sentence, beam {beam_size}", found, f"{same} of {len(sentences)}"))
    page = "\n".join([*lines, "", f"Medians. {circumstances('engines')}"])
    print(page)
    if given.out:
        given.out.write_text(f"# The default engine compared with torch\n\n{page}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Updates per second on an idle and on a busy machine, by how long a waiting OpenMP thread spins before it sleeps.

`python -m benchmarks.busy` writes `busy.md`. Each figure comes from a separate process, which trains a tiny Transformer
on random sentences with one thread per core. On the busy machine, another process computes on each core all the time.
The settings take turns, and a row has the median of its rounds.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from softgaze.runtime import SPIN_COUNT, cores

SPINS = (300_000, 100_000, SPIN_COUNT, 1_000, 0)  # the first is the default of libgomp
SENTENCES, LENGTH, WORDS = 64, 24, 8000


def count_updates(seconds: float) -> float:
    """Return the updates per second of this process."""
    from softgaze.runtime import tune_cpu

    tune_cpu()
    import torch

    from softgaze.models import Source, build_model
    from softgaze.training.collate import PaddedBatch
    from softgaze.training.loss import summed_loss

    torch.manual_seed(1)
    model = build_model("transformer", "tiny", source_vocabulary=WORDS).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    words = torch.randint(4, WORDS, (SENTENCES, LENGTH))
    lengths = torch.full((SENTENCES,), LENGTH)
    batch = PaddedBatch(Source(words, lengths), words, words, SENTENCES * LENGTH)

    def update() -> None:
        summed_loss(model, batch, 0.1).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        update()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        update()
        count += 1
    return count / (time.perf_counter() - start)


@contextmanager
def other_programs(count: int) -> Iterator[None]:
    """Run `count` processes that compute all the time."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measure(spins: int, seconds: float) -> float:
    """Return the updates per second of a new process."""
    command = [sys.executable, "-m", "benchmarks.busy", "--child", "--seconds", str(seconds)]
    environment = {**os.environ, "GOMP_SPINCOUNT": str(spins)}
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def report(found: dict[int, dict[int, list[float]]]) -> str:
    """Return the page: for each spin count, the median on the idle and on the busy machine."""
    medians = {spins: {load: statistics.median(rates) for load, rates in by.items()} for spins, by in found.items()}
    first = medians[SPINS[0]]
    names = {SPINS[0]: f"{SPINS[0]:,}, libgomp's default", SPIN_COUNT: f"**{SPIN_COUNT:,}, softgaze's default**"}
    rounds = len(next(iter(found[SPINS[0]].values())))
    rows = [
        f"| {names.get(spins, f'{spins:,}')} | "
        + " | ".join(f"{rate:.2f} | {rate / first[load]:.2f}" for load, rate in own.items())
        + " |"
        for spins, own in medians.items()
    ]
    return "\n".join(
        [
            "# Training on a busy machine",
            "",
            (__doc__ or "").split("\n\n", 1)[1].strip(),
            "",
            f"{cores()} cores, {rounds} rounds, {SENTENCES * LENGTH:,} tokens an update. Ratios are to the first row.",
            "",
            "| loops before sleeping | idle, updates/s | ratio | busy, updates/s | ratio |",
            "|---|--:|--:|--:|--:|",
            *rows,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(count_updates(given.seconds))
        return
    found: dict[int, dict[int, list[float]]] = {spins: {load: [] for load in (0, cores())} for spins in SPINS}
    for number in range(given.rounds):
        for load in (0, cores()):
            for spins in SPINS if number % 2 == 0 else reversed(SPINS):
                with other_programs(load):
                    found[spins][load].append(measure(spins, given.seconds))
                print(f"{load} other processes, {spins:,} loops: {found[spins][load][-1]:.2f} updates/s", flush=True)
    Path(__file__).with_suffix(".md").write_text(report(found), encoding="utf-8")


if __name__ == "__main__":
    main()

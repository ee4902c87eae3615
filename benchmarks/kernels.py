"""Speed and memory of training by the number of oneDNN kernels that are kept.

`python -m benchmarks.kernels` writes `kernels.md`. Each figure comes from a separate process, which trains a tiny
Transformer with one thread on random sentences, at most 1,024 tokens a batch. Nearly every batch has another shape, and
every shape needs its own kernels.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import circumstances
from softgaze.runtime import BFLOAT16_KERNELS, peak_memory

VARIABLES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
DEFAULT = 1024  # of oneDNN
CAPACITIES = (16, BFLOAT16_KERNELS, 256, DEFAULT, 8192)
PRECISIONS = ("bfloat16", "float32")
TOKENS, WORDS = 1024, 8000


class Cost(NamedTuple):
    """Updates per second of the second half, and the peak of resident memory in MB."""

    rate: float
    memory: float


def train(precision: str, updates: int) -> Cost:
    """Train in this process."""
    from softgaze.runtime import tune_cpu

    tune_cpu()
    import torch

    from softgaze.models import Source, build_model
    from softgaze.training.collate import PaddedBatch
    from softgaze.training.gradients import autocast
    from softgaze.training.loss import summed_loss

    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = build_model("transformer", "tiny", source_vocabulary=WORDS).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for update in range(updates):
        if update == updates // 2:
            start = time.perf_counter()
        source, target = torch.randint(5, 40, (2,)).tolist()
        rows = TOKENS // max(source, target)
        words, labels = (torch.randint(4, WORDS, (rows, length)) for length in (source, target))
        batch = PaddedBatch(Source(words, torch.full((rows,), source)), labels, labels, labels.numel())
        with autocast(torch.device("cpu"), precision == "bfloat16"):
            loss = summed_loss(model, batch, 0.1)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
    return Cost((updates - updates // 2) / (time.perf_counter() - start), (peak_memory() or 0) / 2**20)


def measure(precision: str, capacity: int, updates: int) -> Cost:
    """Train in a new process that keeps `capacity` kernels."""
    environment = {**os.environ, **dict.fromkeys(VARIABLES, str(capacity)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.kernels", "--child", precision, "--updates", str(updates)]
    words = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()
    return Cost(*map(float, words))


def table(found: dict[int, dict[str, Cost]]) -> str:
    """Return a row per capacity."""
    names = {DEFAULT: "oneDNN's default", BFLOAT16_KERNELS: "softgaze's with bfloat16"}
    head = " | ".join(f"{name}, updates/s | {name}, peak MB" for name in PRECISIONS)
    lines = [f"| kernels | {head} |", "|---:" * (1 + 2 * len(PRECISIONS)) + "|"]
    for capacity, costs in found.items():
        title = f"{capacity:,} ({names[capacity]})" if capacity in names else f"{capacity:,}"
        cells = (f"{cost.rate:.1f} | {cost.memory:,.0f}" for cost in costs.values())
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--updates", type=int, default=400, help="per row")
    parser.add_argument("--child", choices=PRECISIONS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(*train(given.child, given.updates))
        return
    found: dict[int, dict[str, Cost]] = {capacity: {} for capacity in CAPACITIES}
    for capacity, costs in found.items():
        for precision in PRECISIONS:
            costs[precision] = measure(precision, capacity, given.updates)
            print(f"{capacity:,} kernels, {precision}: {costs[precision]}", flush=True)
    note = f"{given.updates} updates per row; the rate is that of the second half."
    about = (__doc__ or "").split("\n\n", 1)[1].strip()
    text = f"# Kernels kept\n\n{about}\n\n{circumstances('kernels')}\n\n{note}\n\n{table(found)}"
    Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

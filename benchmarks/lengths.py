"""Time and memory of one training update at source lengths from 32 to 4,096, and how fast they grow.

`python -m benchmarks.lengths` writes `lengths.md`. Every figure comes from a separate process: one pair of sentences
of the same length, random words, 2,000 of them; forward, loss and backward; the least of three times after one to warm
up. The exponent is the slope of a line through the last three points on logarithmic scales: 1 grows with the length, 2
with its square.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from softgaze.evaluation.complexity.study import FITTED, fit_exponent

LENGTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "rnn": ("rnn", {}),
    "rnn-bahdanau": ("rnn-bahdanau", {}),
    "rnn-luong": ("rnn-luong", {}),
    "conv": ("conv", {"max_length": 4096}),  # its positions are learned, so their number is set
    "transformer": ("transformer", {"positions": "rotary"}),
    "transformer, window 64": ("transformer", {"positions": "rotary", "window_size": 64}),
}
WORDS, MEMORY, SECONDS = 2000, 12 * 2**30, 120  # limits of one measurement


def measure(arch: str, options: dict[str, Any], length: int, threads: int) -> dict[str, float]:
    """Return the seconds of an update, and its bytes beyond the model and torch."""
    import torch

    from softgaze.models import Source, build_model
    from softgaze.runtime import tune_cpu
    from softgaze.training.collate import PaddedBatch
    from softgaze.training.loss import summed_loss

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    tune_cpu()
    model = build_model(arch, "tiny", source_vocabulary=WORDS, **options).train()
    words = torch.randint(4, WORDS, (1, length))
    batch = PaddedBatch(Source(words, torch.tensor([length])), words, words, length)
    before, times = peak(), []
    for _ in range(4):
        start = time.perf_counter()
        summed_loss(model, batch, 0.1).backward()  # type: ignore[no-untyped-call]
        times.append(time.perf_counter() - start)
        if times[0] > SECONDS / 4:
            break
    return {"seconds": min(times[1:] or times), "bytes": peak() - before}


def peak() -> int:
    """Return the peak memory of this process in bytes; the system reports bytes on macOS and KiB on Linux."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else held * 1024


def measure_alone(name: str, length: int, threads: int) -> dict[str, float] | str:
    """Measure in a new process with limits; return the error in a few words if it fails."""
    command = [sys.executable, "-m", "benchmarks.lengths", "--one", name, "--length", str(length)]
    try:
        done = subprocess.run(
            [*command, "--threads", str(threads)], capture_output=True, text=True, timeout=2 * SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"over {2 * SECONDS} s"
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["killed"])[-1]
        return f"over {MEMORY // 2**30} GiB" if "memory" in last.lower() else last
    found: dict[str, float] = json.loads(done.stdout)
    return found


def table(title: str, rows: dict[str, list[dict[str, float] | str]], key: str, scale: float, lengths: list[int]) -> str:
    """Return the table of one quantity: a row for each case, a column for each length, and the exponent."""
    lines = [f"### {title}", "", "| | " + " | ".join(f"{each:,}" for each in lengths) + " | exponent |"]
    lines.append("|---|" + "---:|" * (len(lengths) + 1))
    for name, found in rows.items():
        cells = [each if isinstance(each, str) else f"{each[key] * scale:,.0f}" for each in found]
        fit = [(length, each[key]) for length, each in zip(lengths, found, strict=True) if not isinstance(each, str)]
        slope = fit_exponent(*zip(*fit, strict=True)) if len(fit) >= FITTED else math.nan
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {slope:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("lengths.md"))
    parser.add_argument("--one", choices=list(CASES), help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        print(json.dumps(measure(*CASES[given.one], given.length, given.threads)))
        return
    rows: dict[str, list[dict[str, float] | str]] = {}
    for name in CASES:
        rows[name] = [measure_alone(name, length, given.threads) for length in given.lengths]
        print(name, rows[name], file=sys.stderr, flush=True)
    from benchmarks.report import circumstances

    given.out.write_text(
        f"# One update against length\n\n{circumstances('lengths')} {given.threads} threads, size `tiny`, one pair of "
        "sentences of equal length.\n\n"
        + table("Milliseconds", rows, "seconds", 1e3, given.lengths)
        + "\n\n"
        + table("MiB beyond the model", rows, "bytes", 2**-20, given.lengths)
        + "\n"
    )


if __name__ == "__main__":
    main()

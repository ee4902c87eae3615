"""Training speed by batch size: one thread, two threads, and two processes of one thread.

`python -m benchmarks.batches --source train.en --target train.de` writes `batches.md`. Each figure comes from separate
processes that take turns. Two threads compute the halves of a batch; two processes are ranks of torchrun, which sum
their gradients with gloo.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.peers.job import Job
from benchmarks.report import circumstances
from benchmarks.scaling import with_ranks
from benchmarks.training import CASES, OWN, WORK, Effort, make_job, measure, parse, prepare_corpus

WAYS = ("one thread", "two threads", "two processes")


def speed(way: str, job: Job) -> float:
    """Return target tokens per second."""
    if way == "two processes":
        path = WORK / "batches-job.json"
        job.write(path)
        return with_ranks(2, "--train", str(path))["tokens_per_second"]
    found = measure(OWN, replace(job, threads=WAYS.index(way) + 1))
    if "error" in found:
        raise SystemExit(found["error"])
    return float(found["tokens_per_second"])


def table(found: dict[int, dict[str, list[float]]]) -> str:
    """Return a row per batch size: the median speed of each way, and that of two processes over two threads."""
    lines = [f"| tokens of a batch | {' | '.join(WAYS)} | processes ÷ threads |", "|---:" * (2 + len(WAYS)) + "|"]
    for tokens, speeds in found.items():
        cells = [f"{median(speeds[way]):,.0f}" for way in WAYS]
        ratio = median(two / one for one, two in zip(speeds["two threads"], speeds["two processes"], strict=True))
        lines.append(f"| {tokens:,} | {' | '.join(cells)} | {ratio:.2f} |")
    return "\n".join(lines) + "\n"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches", description=__doc__.split("\n\n")[0])
    parser.add_argument("--source", type=Path, help="text to train on; the built-in phrasebook unless given")
    parser.add_argument("--target", type=Path, help="its translation, line by line")
    parser.add_argument("--case", choices=CASES, default="transformer tiny")
    parser.add_argument("--batches", type=int, nargs="+", default=[1024, 2048, 4096, 8192])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=60, help="per figure")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args(given)
    WORK.mkdir(exist_ok=True)
    corpus, text = prepare_corpus(arguments.source, arguments.target)
    effort = Effort(arguments.rounds, warmup=10, updates=arguments.updates, seconds=1e9)
    found: dict[int, dict[str, list[float]]] = {tokens: {way: [] for way in WAYS} for tokens in arguments.batches}
    for _ in range(arguments.rounds):
        for tokens, speeds in found.items():
            options = parse(["--batch-tokens", str(tokens), "--threads", "1"])
            job = replace(
                make_job(CASES[arguments.case], corpus, effort, options), precision="auto", out=str(WORK / "batches")
            )
            for way, values in speeds.items():
                values.append(speed(way, job))
                print(f"{tokens:,} tokens, {way}: {values[-1]:,.0f} tokens/s", flush=True)
    note = f"{arguments.case}, {text}: target tokens per second, median of {arguments.rounds} rounds of "
    note += f"{arguments.updates} updates."
    about = (__doc__ or "").split("\n\n", 1)[1].strip()
    page = f"# Batch sizes\n\n{about}\n\n{circumstances('batches')}\n\n{note}\n\n{table(found)}"
    arguments.out.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()

"""One rank compared with two, the costs of an update and a message, and the predicted speed of many workers.

    python -m benchmarks.scaling             measures; writes scaling.json and with it the tables of docs/scale.md
    python -m benchmarks.scaling --tables    only the tables, from scaling.json

One rank of one thread and two ranks of one thread each, joined by gloo on loopback, train the same batches in turns;
the report shows the ratio within each round. `base` and `big` are too large to train here: an update of each is
measured on one thread, with random words, for two numbers of tokens, which gives the fixed cost of an update and the
cost of a token.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.job import Job
from benchmarks.report import Spread, circumstances
from benchmarks.training import CASES, WORK, Effort, environment_of, make_job, parse, prepare_corpus

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGE = ROOT / "docs" / "scale.md"
RECORD = HERE / "scaling.json"
NUMBER = 4  # bytes of a gradient
BUCKET = 2**24  # numbers in a message, as in training/distributed.py
SMALL = 5  # messages of a few numbers in an update: tokens, losses, norm, clock, signals

# --- on paper -----------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """The measured cost of an update on one worker."""

    parameters: int
    fixed: float  # seconds independent of the tokens: mostly the optimizer's pass over all parameters
    token: float  # seconds per target token, forward and backward


class Network(NamedTuple):
    """The network between workers."""

    latency: float  # seconds of a message to a neighbour
    rate: float  # bytes a second from one to the next


class Scenario(NamedTuple):
    """The hardware of a prediction."""

    title: str
    speed: float  # of a worker, in cores of the machine that was measured
    network: Network


SCENARIOS = (
    Scenario("A worker is one core as measured here; gloo, 10 Gbit/s each", 1, Network(50e-6, 1.0e9)),
    Scenario("A worker is a card 500 times as fast; NCCL, 100 Gbit/s each", 500, Network(10e-6, 10e9)),
)
WORKERS = (1, 8, 64, 512)
PLANS = {"base": (100_000, 25_000), "big": (300_000, 25_000)}  # updates, target tokens each (Vaswani et al. 2017)
LARGE = 400_000  # tokens of an update that still learn as much each (Ott et al. 2018)


def all_reduce_seconds(workers: int, parameters: int, network: Network) -> float:
    """Return the seconds of a ring all-reduce of all gradients and a few more numbers.

    Each worker sends 2 (N − 1) pieces of 1/N of a message.
    """
    messages = math.ceil(parameters / BUCKET) + SMALL
    hops = 2 * (workers - 1)
    return hops * (messages * network.latency + NUMBER * parameters / workers / network.rate)


def update(workers: int, tokens: int, cost: Cost, scenario: Scenario) -> float:
    """Return the seconds of one update: the largest share, the fixed cost, and the all-reduce, one after another."""
    largest = tokens / workers * imbalance(workers, tokens)
    return (cost.fixed + cost.token * largest) / scenario.speed + all_reduce_seconds(
        workers, cost.parameters, scenario.network
    )


def efficiency(workers: int, tokens: int, cost: Cost, scenario: Scenario) -> float:
    """Return the speed-up over one worker, divided by the number of workers."""
    return update(1, tokens, cost, scenario) / update(workers, tokens, cost, scenario) / workers


@cache
def imbalance(workers: int, tokens: int) -> float:
    """Return the largest share over the mean one, as `rank_shares` splits batches of sentences of 27 ± 15 tokens."""
    from softgaze.training.gradients import rank_shares

    dice = np.random.default_rng(1)
    found = []
    for _ in range(5):
        lengths = 1 + dice.gamma(3.0, 9.0, size=(max(1, round(tokens / 28)), 2)).astype(int)
        amounts = [int(lengths[rows].sum()) for rows in rank_shares(lengths, workers)]
        found.append(max(amounts) * workers / sum(amounts))
    return median(found)


def prediction(costs: dict[str, Cost], scenario: Scenario) -> str:
    """Return a table: for each number of workers, both models with the paper's batch and with a large one."""
    heads = [f"`{name}`, {amount // 1000}k tokens" for name, (_, tokens) in PLANS.items() for amount in (tokens, LARGE)]
    lines = ["| workers | " + " | ".join(heads) + " |", "|--:|" + "--:|" * len(heads)]
    for workers in WORKERS:
        cells = [
            cell(workers, amount, updates * tokens, costs[name], scenario)
            for name, (updates, tokens) in PLANS.items()
            for amount in (tokens, LARGE)
        ]
        lines.append(f"| {workers} | " + " | ".join(cells) + " |")
    return f"**{scenario.title}**: seconds of an update · efficiency · days in all\n\n" + "\n".join(lines)


def cell(workers: int, tokens: int, total: int, cost: Cost, scenario: Scenario) -> str:
    """Return seconds, efficiency and days, such as `1.23 · 87 % · 4.5`; days for the tokens of the paper's training."""
    seconds = update(workers, tokens, cost, scenario)
    days = total / tokens * seconds / 86_400
    share = 100 * efficiency(workers, tokens, cost, scenario)
    return f"{figure(seconds)} · {figure(share) if share < 10 else round(share)} % · {figure(days)}"


def figure(number: float) -> str:
    """Format a number with two or three significant digits."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}" if number < 10 else f"{number:.3g}"


# --- measured: ranks ----------------------------------------------------------------------------------------------


def train_some(job: Job) -> dict[str, float] | None:
    """Run updates of a job on this rank; rank 0 returns their time and the share of the all-reduce."""
    from softgaze.runtime import tune_cpu

    tune_cpu()  # before torch is imported
    import torch

    from benchmarks.peers.softgaze import trainer_of
    from softgaze.training.distributed import init_distributed

    torch.set_num_threads(job.threads)
    with init_distributed(600) as distributed:
        trainer = trainer_of(job, distributed)
        all_reduce, spent = distributed.all_reduce, [0.0]

        def timed(tensors: Any) -> None:
            began = time.perf_counter()
            all_reduce(tensors)
            spent[0] += time.perf_counter() - began

        distributed.all_reduce = timed  # type: ignore[method-assign]
        updates = trainer.updates()
        for _ in range(job.warmup):
            next(updates)
        began, spent[0], tokens = time.perf_counter(), 0.0, 0
        for _ in range(job.updates):
            tokens += next(updates).tokens
        seconds = time.perf_counter() - began
        facts = {
            "tokens_per_second": tokens / seconds,
            "seconds": seconds / job.updates,
            "adding": spent[0] / job.updates,
        }
        return (
            {**facts, "parameters": sum(each.numel() for each in trainer.model.parameters())}
            if distributed.is_main
            else None
        )


def send_some(sizes: Sequence[int]) -> dict[str, float] | None:
    """Return the median seconds of an all-reduce for each message size."""
    import torch

    from softgaze.training.distributed import init_distributed

    with init_distributed(600) as distributed:
        found = {}
        for size in sizes:
            message, times = torch.ones(size), []
            for _ in range(9):
                began = time.perf_counter()
                distributed.all_reduce([message])
                times.append(time.perf_counter() - began)
            found[str(size)] = median(times[2:])
        return found if distributed.is_main else None


def with_ranks(count: int, *words: str) -> dict[str, float]:
    """Run this module in new processes: one, or two under torchrun."""
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(count), "-m"] if count > 1 else []
    command = [sys.executable, "-m", *launcher, "benchmarks.scaling", *words]
    environment = {**environment_of(ROOT, ROOT / "src", threads=1), "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1800, cwd=ROOT)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    last: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return last


def one_against_two(job: Job, rounds: int) -> dict[str, Any]:
    """Measure in turns the speed-up of two ranks, and their share of time in the all-reduce."""
    path = WORK / "scaling-job.json"
    job.write(path)
    runs = [[with_ranks(count, "--train", str(path)) for count in (1, 2)] for _ in range(rounds)]
    ratios = [two["tokens_per_second"] / one["tokens_per_second"] for one, two in runs]
    shares = [two["adding"] / two["seconds"] for _, two in runs]
    return {
        "parameters": int(runs[0][0]["parameters"]),
        "tokens_per_second": [[each["tokens_per_second"] for each in pair] for pair in runs],
        "speed_up": list(Spread.of(ratios)),
        "adding": list(Spread.of(shares)),
    }


# --- measured: an update --------------------------------------------------------------------------------------------

WORDS, LENGTH = 37_000, 27
PARTS = ("costs", "messages", "ranks")
RANKED = (("tiny", 1024), ("tiny", 4096), ("small", 4096))  # sizes and batches that ranks are compared on


def update_of(size: str, amounts: Sequence[int]) -> Cost:
    """Measure the cost of an update of a Transformer on one thread: a line through the times of some token counts."""
    import torch

    from softgaze.models import build_model
    from softgaze.runtime import tune_cpu

    torch.set_num_threads(1)
    torch.manual_seed(1)
    tune_cpu()
    model = build_model("transformer", size, source_vocabulary=WORDS, tie="all").train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    times = [best_of(lambda amount=amount: update_once(model, optimiser, amount)) for amount in amounts]  # type: ignore[misc]
    token, fixed = np.polyfit(amounts, times, 1)
    return Cost(sum(each.numel() for each in model.parameters()), max(0.0, float(fixed)), float(token))


def best_of(work: Callable[[], None], times: int = 2) -> float:
    """Return the least processor seconds after one run to warm up; on one thread they hardly depend on other load."""
    work()
    found = []
    for _ in range(times):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def update_once(model: Any, optimiser: Any, tokens: int) -> None:
    """Run forward, loss, backward, clip and step over random sentences of 27 words and EOS."""
    import torch

    from softgaze.models import Source
    from softgaze.training.collate import PaddedBatch
    from softgaze.training.loss import summed_loss

    rows = max(1, tokens // (LENGTH + 1))
    words = torch.randint(4, WORDS, (rows, LENGTH + 1))
    batch = PaddedBatch(Source(words, torch.full((rows,), LENGTH + 1)), words, words, words.numel())
    optimiser.zero_grad(set_to_none=True)
    loss = summed_loss(model, batch, 0.1) / words.numel()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()


# --- the whole ------------------------------------------------------------------------------------------------------


def measure(given: argparse.Namespace) -> None:
    """Measure one part after the other, and store each in scaling.json at once."""
    WORK.mkdir(exist_ok=True)
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    parts: dict[str, Callable[[], Any]] = {
        "costs": lambda: {size: with_ranks(1, "--update", size) for size in PLANS},
        "messages": lambda: with_ranks(2, "--messages", *map(str, (1024, 2**20, 2**24))),
        "ranks": lambda: {case_name(*case): one_against_two(job_of(*case, given), given.rounds) for case in RANKED},
    }
    for part in given.parts:
        record |= {part: parts[part](), "made": circumstances("scaling")}
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def case_name(size: str, tokens: int) -> str:
    return f"{size}, {tokens:,} tokens"


def job_of(size: str, tokens: int, given: argparse.Namespace) -> Job:
    """Return a job on the built-in phrasebook, in float32."""
    corpus, _ = prepare_corpus(None, None)
    options = parse(["--batch-tokens", str(tokens), "--threads", "1"])
    return make_job(CASES[f"transformer {size}"], corpus, Effort(given.rounds, 3, given.updates, 1e9), options)


def costs_of(record: dict[str, Any]) -> dict[str, Cost]:
    return {name: Cost(int(each["parameters"]), each["fixed"], each["token"]) for name, each in record["costs"].items()}


def measured(record: dict[str, Any]) -> str:
    """Return the tables of the measurements."""
    lines = [
        "| Transformer, batch | parameters | two ranks over one: median (range) | of it adding up |",
        "|---|--:|--:|--:|",
    ]
    for case, found in record.get("ranks", {}).items():
        ratio, share = Spread(*found["speed_up"]), Spread(*found["adding"])
        lines.append(f"| {case} | {found['parameters']:,} | {ratio.text(2)} | {share.middle:.0%} |")
    lines += ["", "| message, bytes | seconds on loopback, two ranks | GB/s |", "|--:|--:|--:|"]
    for size, seconds in record["messages"].items():
        size_in_bytes = NUMBER * int(size)
        lines.append(f"| {size_in_bytes:,} | {seconds:.2g} | {size_in_bytes / seconds / 1e9:.2g} |")
    lines += ["", "| | parameters | bytes in an update | s an update anyhow | ms a token |", "|---|--:|--:|--:|--:|"]
    for name, cost in costs_of(record).items():
        facts = f"{cost.parameters:,} | {NUMBER * cost.parameters:,} | {cost.fixed:.2f} | {1e3 * cost.token:.2f}"
        lines.append(f"| `{name}` | {facts} |")
    return "\n".join([record["made"], "", *lines])


def tables(record: dict[str, Any]) -> dict[str, str]:
    """Return the text between the markers of docs/scale.md."""
    costs = costs_of(record)
    return {
        "measured": measured(record),
        "predicted": "\n\n".join(prediction(costs, scenario) for scenario in SCENARIOS),
    }


def with_tables(page: str, record: dict[str, Any]) -> str:
    """Return the page with the tables of the record."""
    for name, table in tables(record).items():
        page = between_marks(page, name, table)
    return page


def between_marks(page: str, name: str, text: str) -> str:
    """Return the page with this text between the markers of `name`."""
    begin, end = f"<!-- scaling: {name} -->", f"<!-- end of scaling: {name} -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", page, flags=re.DOTALL)


def main() -> None:
    """Measure, or run as one of the measured processes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure again")
    parser.add_argument("--tables", action="store_true", help="only write the tables again")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--messages", type=int, nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--update", choices=list(PLANS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.train or given.messages or given.update:
        if (result := child(given)) is not None:
            print(json.dumps(result), flush=True)
        return
    if not given.tables:
        measure(given)
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")
    print("\n\n".join(tables(record).values()))


def child(given: argparse.Namespace) -> dict[str, Any] | None:
    """Return the result of a measured process; None on ranks other than 0."""
    if given.train:
        return train_some(Job.read(str(given.train)))
    if given.messages:
        return send_some(given.messages)
    return update_of(given.update, (56, 224) if given.update == "big" else (112, 448))._asdict()


if __name__ == "__main__":
    main()

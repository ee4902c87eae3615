"""Learning curves of models, instead of the speed of updates.

    python -m benchmarks.learning curves --train SRC TGT --dev SRC TGT     with the measures for a CPU, and without
    python -m benchmarks.learning minutes --train SRC TGT --dev SRC TGT    minutes to a BLEU, compared with peers
    python -m benchmarks.learning starts --train SRC TGT --dev SRC TGT     from corpus statistics, and from noise
    python -m benchmarks.learning budgets --train SRC TGT --dev SRC TGT    the default command with a budget of minutes
    python -m benchmarks.learning quickstart                               `softgaze quickstart`, from nothing
    python -m benchmarks.learning long --runs NAME=DIR …                   the courses of finished, long runs

They write `learning-curves.md`, `learning-minutes.md` and so on. The first three resume after an interruption.
`starts`, `budgets`, `quickstart` and `long` add their runs to the JSON file of the same name.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.environments import PEERS, interpreter
from benchmarks.peers.job import Job
from benchmarks.report import circumstances, made
from benchmarks.training import HERE, ROOT, WORK, Case, Effort, best_precision, environment_of, make_job, write_pieces

LEVELS = (30.0, 35.0)
SENTENCES = 500  # of the development text, translated greedily at each validation


class Validation(NamedTuple):
    """Step, time and scores of one validation."""

    step: int
    minutes: float
    loss: float | None
    bleu: float


def train(out: Path, arguments: argparse.Namespace, *options: str) -> list[Validation]:
    """Run `softgaze train`, or read the metrics of a finished run."""
    text = ["--train", *arguments.train, "--dev", *arguments.dev]
    every = ("--set", f"validation.every={arguments.every}", "--set", f"validation.sentences={SENTENCES}")
    command = [sys.executable, "-m", "softgaze", "train", *text, *every, *options, "--out", str(out)]
    subprocess.run(command, check=True, env=environment_of(ROOT, ROOT / "src", threads=arguments.threads))
    rows = map(json.loads, (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        Validation(row["step"], row["elapsed"] / 60, row["loss"], row["bleu"])
        for row in rows
        if row["kind"] == "validation"
    ]


# --- with the measures and without ------------------------------------------------------------------------------


def curves(arguments: argparse.Namespace) -> str:
    """Train both ways with several seeds: a difference should be no larger than that between seeds."""
    found = {
        (fast, seed): train(
            WORK / f"learning/{'fast' if fast else 'plain'}-{seed}",
            arguments,
            *("--steps", str(arguments.steps), "--seed", str(seed), "--set", f"training.fast={str(fast).lower()}"),
            *("--set", "training.average=0"),
        )
        for seed in arguments.seeds
        for fast in (True, False)
    }
    return curve_table(found)


def curve_table(found: dict[tuple[bool, int], list[Validation]]) -> str:
    """Return loss and BLEU at each validation, with the differences between ways and between seeds."""
    names = [f"{'fast' if fast else 'plain'}, seed {seed}" for fast, seed in found]
    head = f"| step | {' | '.join(names)} | fast − plain | between seeds |"
    lines = [head, "|---:" * (len(names) + 3) + "|"]
    for rows in zip(*found.values(), strict=True):
        by_way = {
            way: [row for (fast, _), row in zip(found, rows, strict=True) if fast == way] for way in (True, False)
        }
        cells = [f"{row.loss:.3f}, {row.bleu:.1f}" for row in rows]
        gaps = largest_gap(by_way[True], by_way[False])
        spread = [max(each) for each in zip(*(spreads(way) for way in by_way.values()), strict=True)]
        figures = (f"{gaps[0]:+.3f}, {gaps[1]:+.1f}", f"{spread[0]:.3f}, {spread[1]:.1f}")
        lines.append(f"| {rows[0].step:,} | {' | '.join((*cells, *figures))} |")
    return "\n".join(lines) + "\n\nEach cell: loss of the development text, BLEU of its first 500 sentences (greedy).\n"


def largest_gap(one: Sequence[Validation], other: Sequence[Validation]) -> tuple[float, float]:
    """Return the differences of the mean loss and the mean BLEU."""
    loss, bleu = (
        statistics.mean(figure(row) for row in one) - statistics.mean(figure(row) for row in other)
        for figure in (loss_of, attrgetter("bleu"))
    )
    return loss, bleu


def spreads(rows: Sequence[Validation]) -> tuple[float, float]:
    """Return the ranges of loss and BLEU."""
    losses, scores = [loss_of(row) for row in rows], [row.bleu for row in rows]
    return max(losses) - min(losses), max(scores) - min(scores)


def loss_of(row: Validation) -> float:
    assert row.loss is not None
    return row.loss


# --- minutes to a BLEU ------------------------------------------------------------------------------------------


LEARNING_PEERS = ("joeynmt", "eole")  # with a `*_learning` module


class Rate(NamedTuple):
    """A learning rate that was tried for a peer."""

    peer: str
    rate: float
    bleu: float


def minutes(arguments: argparse.Namespace) -> str:
    """Train our defaults with short budgets, then the peers with their best learning rate, and compare the times."""
    found = {
        f"softgaze `--minutes {budget:g}`": train(
            WORK / f"learning/softgaze-{budget:g}", arguments, "--minutes", f"{budget:g}"
        )
        for budget in arguments.budgets
    }
    rates = []
    for peer in arguments.peers:
        job = peer_job(peer, arguments)
        tried = [
            Rate(peer, rate, best_of(learn(peer, job, rate, arguments.trial, arguments))) for rate in arguments.rates
        ]
        rates += tried
        best = max(tried, key=attrgetter("bleu"))
        course = learn(peer, job, best.rate, arguments.minutes, arguments)
        found[f"{PEERS[peer].label}, {job.precision}, rate {best.rate:g}"] = course
    return "\n".join((level_table(found), course_table(found), rate_table(rates, arguments.trial)))


def peer_job(peer: str, arguments: argparse.Namespace) -> Job:
    """Return the model and the text that a peer trains on, with its fastest precision."""
    import torch

    from softgaze.config import DEFAULTS
    from softgaze.training.gradients import uses_bfloat16

    pieces, chosen = WORK / "learning/pieces", DEFAULTS["transformer"]["tiny"]
    pieces.mkdir(parents=True, exist_ok=True)
    write_pieces(pieces, own_text(arguments), dev_pairs=SENTENCES)
    options = argparse.Namespace(batch_tokens=chosen.batch_tokens, threads=arguments.threads)
    trial = Effort(rounds=1, warmup=3, updates=20, seconds=8)
    job = make_job(Case("transformer", "tiny", chosen.options["dropout"]), pieces, trial, options)
    return replace(job, precision=best_precision(peer, job, uses_bfloat16(torch.device("cpu"), "auto")))


def own_text(arguments: argparse.Namespace) -> Any:
    """Return the encoded text of our first run."""
    from softgaze.training.preprocess import PreprocessedData

    return PreprocessedData.open(WORK / f"learning/softgaze-{arguments.budgets[0]:g}/encoded")


def learn(peer: str, job: Job, rate: float, budget: float, arguments: argparse.Namespace) -> list[Validation]:
    """Train a peer in its own environment, or read a finished run; its translations are scored here like ours."""
    from softgaze.config import DEFAULTS

    job = replace(job, out=str(WORK / f"learning/{peer}-{rate:g}-{budget:g}"))
    finished = Path(job.scratch("finished"))
    if not finished.exists():
        shutil.rmtree(job.out, ignore_errors=True)
        Path(job.out).mkdir(parents=True)
        job.write(Path(job.scratch("job.json")))
        options = {"learning_rate": rate, "warmup": DEFAULTS["transformer"]["tiny"].warmup}
        options |= {"every": arguments.every, "minutes": budget}
        command = [str(interpreter(peer)), "-m", f"benchmarks.peers.{peer}_learning", job.scratch("job.json")]
        environment = environment_of(ROOT, threads=arguments.threads)
        subprocess.run([*command, json.dumps(options)], check=True, cwd=job.out, env=environment)
        finished.touch()
    written = Path(job.scratch("validations.jsonl"))
    return scored(written, own_text(arguments).tokenizers.target, Path(arguments.dev[1])) if written.exists() else []


def best_of(course: Iterable[Validation]) -> float:
    return max((validation.bleu for validation in course), default=0.0)


def rate_table(rates: Sequence[Rate], trial: float) -> str:
    """Return the learning rates that were tried for the peers."""
    lines = [f"| peer | highest learning rate | best BLEU within {trial:g} minutes |", "|---|---:|---:|"]
    lines += [f"| {PEERS[each.peer].label} | {each.rate:g} | {each.bleu:.1f} |" for each in rates]
    return "\n".join(lines) + "\n"


def scored(written: Path, tokenizer: Any, references: Path) -> list[Validation]:
    """Return the cased BLEU of each validation, after decoding the pieces."""
    from itertools import islice

    from softgaze.data.corpus import read_lines
    from softgaze.metrics import score

    number = {piece: index for index, piece in enumerate(tokenizer.pieces(range(len(tokenizer))))}
    wanted = list(islice(read_lines(references), SENTENCES))
    found = []
    for row in map(json.loads, written.read_text(encoding="utf-8").splitlines()):
        texts = [
            tokenizer.decode([number[piece] for piece in line.split() if piece in number]) for line in row["sentences"]
        ]
        found.append(Validation(row["step"], row["seconds"] / 60, None, score(texts, wanted, ter=False).bleu))
    return found


def first_at(course: Iterable[Validation], level: float) -> str:
    """Return the minutes of the first validation at or above a level."""
    return next((f"{validation.minutes:.1f}" for validation in course if validation.bleu >= level), "not reached")


def level_table(found: dict[str, list[Validation]]) -> str:
    lines = ["| minutes to BLEU | " + " | ".join(f"{level:g}" for level in LEVELS) + " | best |"]
    lines.append("|---|" + "---:|" * (len(LEVELS) + 1))
    for name, course in found.items():
        cells = [
            *(first_at(course, level) for level in LEVELS),
            f"{best_of(course):.1f}",
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def course_table(found: dict[str, list[Validation]]) -> str:
    lines = [
        f"{name}: " + ", ".join(f"{validation.minutes:.1f} min {validation.bleu:.1f}" for validation in course) + "\n"
        for name, course in found.items()
    ]
    return "\n".join(lines)


# --- from statistics and from noise -----------------------------------------------------------------------------

STARTS = HERE / "learning-starts.json"
START_KEY = ("corpus", "arch", "start", "updates", "dropout", "seed")


def starts(arguments: argparse.Namespace) -> str:
    """Train from both starts with several seeds, add the runs to the recorded ones, and return the table of all."""
    rows = json.loads(STARTS.read_text(encoding="utf-8")) if STARTS.exists() else []
    for seed in arguments.seeds:
        for start in ("statistics", "none"):
            row = {"corpus": arguments.corpus, "arch": arguments.arch, "start": start, "updates": arguments.steps}
            row |= {"dropout": arguments.dropout, "seed": seed}
            if any(all(other[key] == row[key] for key in START_KEY) for other in rows):
                continue
            rows.append(row | measure_start(row, arguments))
            STARTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return start_table(rows)


def measure_start(row: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Return precision and scores at the end of a run, and the CPU seconds of the whole command."""
    out = WORK / "learning" / "-".join(str(row[key]) for key in START_KEY)
    options = ["--arch", row["arch"], "--warm-start", row["start"], "--seed", str(row["seed"])]
    options += ["--steps", str(row["updates"]), "--set", f"model.options.dropout={row['dropout']}", "--fresh"]
    options += [word for setting in arguments.set for word in ("--set", setting)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    last = train(out, arguments, *options)[-1]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert last.loss is not None
    precision = json.loads((out / "result.json").read_text(encoding="utf-8"))["precision"]
    figures = {"loss": round(last.loss, 3), "bleu": round(last.bleu, 1), "cpu_seconds": round(seconds)}
    return {"precision": precision, **figures}


def start_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return one line per run, both starts of the same run together."""
    titles = ["corpus", "arch", "updates", "dropout", "seed", "start", "precision", "dev loss", "dev BLEU"]
    titles += ["CPU s per update"]
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    keys = ("corpus", "arch", "updates", "dropout", "seed", "start")
    for row in sorted(rows, key=lambda row: [str(row[key]).rjust(20) for key in keys]):
        cells = [*(str(row[key]) for key in keys), precision_of(row), str(row["loss"]), str(row["bleu"])]
        cells.append(f"{row['cpu_seconds'] / row['updates']:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def precision_of(row: dict[str, Any]) -> str:
    return str(row.get("precision", "not recorded"))


# --- budgets of minutes -----------------------------------------------------------------------------------------

BUDGETS = HERE / "learning-budgets.json"


def budgets(arguments: argparse.Namespace) -> str:
    """Run the default command from raw text once per budget and seed, and return the table of all recorded runs."""
    rows = json.loads(BUDGETS.read_text(encoding="utf-8")) if BUDGETS.exists() else []
    for seed in arguments.seeds:
        for budget in arguments.budgets:
            rows.append(measure_budget(budget, seed, arguments))
            BUDGETS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return budget_table(rows)


def measure_budget(budget: float, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the wall time of the whole command, and the greedy BLEU of all dev sentences after it."""
    from softgaze.config import read_config

    out = WORK / f"learning/budget-{budget:g}-{seed}"
    text = ["--train", *arguments.train, "--dev", *arguments.dev]
    command = [sys.executable, "-m", "softgaze", "train", *text, "--minutes", f"{budget:g}", "--seed", str(seed)]
    environment = environment_of(ROOT, ROOT / "src", threads=arguments.threads)
    load, start = os.getloadavg()[0], time.monotonic()
    subprocess.run([*command, "--fresh", "--out", str(out)], check=True, env=environment)
    wall = time.monotonic() - start
    facts = json.loads((out / "result.json").read_text(encoding="utf-8"))
    settings = read_config(out / "training.yaml")
    options = settings["model"]["options"]
    return {
        "corpus": arguments.corpus,
        "minutes": budget,
        "seed": seed,
        "layers": options.get("encoder_layers", 4),
        "dropout": options["dropout"],
        "guided": settings["training"]["guided"],
        "batch": settings["training"]["batch_tokens"],
        "precision": facts["precision"],
        "updates": facts["step"],
        "bleu": evaluate(out, arguments.dev, arguments.threads, "--beam-size", "1"),
        "wall_seconds": round(wall),
        "load": round(load, 1),
        "made": made(),
    }


def budget_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return one line per run; the load is that before the command, below 1 on an idle machine."""
    titles = ["corpus", "`--minutes`", "seed", "guided", "layers", "dropout", "batch", "precision", "updates"]
    titles += ["dev BLEU", "minutes in all", "load", "made"]
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    keys = ("corpus", "minutes", "seed", "guided", "layers", "dropout", "batch")
    for row in sorted(rows, key=lambda row: [row[key] for key in keys]):
        cells = [*(str(row[key]) for key in keys), precision_of(row)]
        cells += [f"{row['updates']:,}", f"{row['bleu']:.1f}", f"{row['wall_seconds'] / 60:.1f}"]
        lines.append(f"| {' | '.join(cells)} | {row['load'] or 'not recorded'} | {row['made']} |")
    return "\n".join(lines) + "\n"


# --- the quickstart ---------------------------------------------------------------------------------------------

QUICKSTARTS = HERE / "learning-quickstart.json"


def quickstart(arguments: argparse.Namespace) -> str:
    """Run `softgaze quickstart` once per seed, and return the table of all recorded runs."""
    rows = json.loads(QUICKSTARTS.read_text(encoding="utf-8")) if QUICKSTARTS.exists() else []
    for seed in arguments.seeds:
        rows.append(measure_quickstart(seed, arguments.threads))
        QUICKSTARTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return quickstart_table(rows)


def measure_quickstart(seed: int, threads: int) -> dict[str, Any]:
    """Return the seconds of training and of the whole command, and the scores of greedy test translations."""
    out = WORK / f"learning/quickstart-{seed}"
    shutil.rmtree(out, ignore_errors=True)
    environment = environment_of(ROOT, ROOT / "src", threads=threads)
    load, start = os.getloadavg()[0], time.monotonic()
    command = [sys.executable, "-m", "softgaze", "quickstart", "--out", str(out), "--seed", str(seed)]
    subprocess.run(command, check=True, env=environment)
    wall = time.monotonic() - start
    test = [str(out / "data" / f"test.{language}") for language in ("en", "ko")]
    evaluate = [sys.executable, "-m", "softgaze", "evaluate", str(out / "model"), "--test", *test]
    done = subprocess.run(
        [*evaluate, "--beam-size", "1", "--json"], check=True, env=environment, stdout=subprocess.PIPE
    )
    scores = json.loads(done.stdout)
    facts = json.loads((out / "model" / "result.json").read_text(encoding="utf-8"))
    return {
        "seed": seed,
        "updates": facts["step"],
        "training_seconds": round(60 * facts["minutes"]),
        "wall_seconds": round(wall),
        "exact": round(scores["exact"], 1),
        "bleu": round(scores["bleu"], 1),
        "load": round(load, 1),
    }


def quickstart_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return one line per run; the load is that before the command."""
    titles = ("seed", "updates", "seconds of training", "seconds in all", "exactly right", "test BLEU", "load")
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    for row in rows:
        cells = [str(row[key]) for key in ("seed", "updates", "training_seconds", "wall_seconds")]
        lines.append(f"| {' | '.join(cells)} | {row['exact']:.1f} % | {row['bleu']:.1f} | {row['load']} |")
    return "\n".join(lines) + "\n"


# --- long runs --------------------------------------------------------------------------------------------------

LONG = HERE / "learning-long.json"
SHARES = (0.125, 0.25, 0.5, 0.75, 1.0)  # of the updates


def long(arguments: argparse.Namespace) -> str:
    """Add the courses of finished runs to the recorded ones, and return the table of all.

    `--dev` and `--test` are translated with the default beam.
    """
    rows = json.loads(LONG.read_text(encoding="utf-8")) if LONG.exists() else {}
    texts = {"dev": arguments.dev, "test": arguments.test}
    for name, _, directory in (each.partition("=") for each in arguments.runs):
        scores = {part: evaluate(Path(directory), text, arguments.threads) for part, text in texts.items() if text}
        rows[name] = {"corpus": arguments.corpus, **read_course(Path(directory)), **scores}
        LONG.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return long_table(rows)


def read_course(run: Path) -> dict[str, Any]:
    """Return settings, minutes and validations of a run."""
    from softgaze.config import read_config

    settings, facts = read_config(run / "training.yaml"), json.loads((run / "result.json").read_text(encoding="utf-8"))
    lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    validations = [row for row in lines if row["kind"] == "validation"]
    training = settings["training"]
    return {
        "arch": settings["model"]["arch"],
        "start": training["warm_start"],
        "dropout": settings["model"]["options"]["dropout"],
        "batch_tokens": training["batch_tokens"],
        "segmentations": settings["data"].get("segmentations", 1),
        "r_drop": training.get("r_drop", 0.0),
        "precision": facts.get("precision", "not recorded"),
        "updates": facts["step"],
        "epochs": validations[-1]["epoch"],
        "minutes": facts["minutes"],
        "course": [[row["step"], round(row["loss"], 3), round(row["bleu"], 1)] for row in validations],
    }


def evaluate(run: Path, text: Sequence[str], threads: int, *options: str) -> float:
    """Return the BLEU of the translations of a text."""
    command = [sys.executable, "-m", "softgaze", "evaluate", str(run), "--test", *text, *options, "--json"]
    environment = environment_of(ROOT, ROOT / "src", threads=threads)
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE)
    bleu: float = json.loads(done.stdout)["bleu"]
    return round(bleu, 1)


def long_table(rows: dict[str, dict[str, Any]]) -> str:
    """Return one line per run: dev loss and BLEU at the validations that are nearest to some shares of the updates."""
    heads = (f"{share:.0%}".replace("%", " %") for share in SHARES)
    titles = ("run", "start", "dropout", "precision", "updates", "epochs", "minutes", *heads, "dev, beam", "test, beam")
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    for name, row in rows.items():
        nearest = (min(row["course"], key=lambda at: abs(at[0] - share * row["updates"])) for share in SHARES)
        cells = [name, row["start"], str(row["dropout"]), row["precision"], f"{row['updates']:,}", str(row["epochs"])]
        cells += [f"{row['minutes']:.0f}", *(f"{loss:.2f}, {bleu:.1f}" for _, loss, bleu in nearest)]
        cells += [f"{row[part]:.1f}" if part in row else "not measured" for part in ("dev", "test")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


# --- command line -----------------------------------------------------------------------------------------------

KINDS = {
    "curves": curves,
    "minutes": minutes,
    "starts": starts,
    "budgets": budgets,
    "quickstart": quickstart,
    "long": long,
}
OWN_TEXT = ("quickstart", "long")  # kinds that need no --train and --dev


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__.split("\n\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--train", nargs=2, metavar=("SRC", "TGT"))
    parser.add_argument("--dev", nargs=2, metavar=("SRC", "TGT"))
    parser.add_argument("--test", nargs=2, metavar=("SRC", "TGT"), help="long: text that nothing was chosen on")
    parser.add_argument("--steps", type=int, default=2000, help="curves, starts: updates")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2], help="curves, starts: so many runs each way")
    parser.add_argument("--corpus", default="multi30k en-de", help="starts: name of the corpus in the table")
    parser.add_argument("--arch", default="transformer", help="starts: architecture")
    parser.add_argument("--dropout", type=float, default=0.0, help="starts: dropout")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="starts: further settings")
    parser.add_argument("--runs", nargs="+", default=[], metavar="NAME=DIR", help="long: finished runs")
    parser.add_argument("--minutes", type=float, default=20, help="minutes: for each peer")
    parser.add_argument(
        "--peers", nargs="*", choices=LEARNING_PEERS, default=LEARNING_PEERS, help="minutes: to compare"
    )
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3, 2e-3, 4e-3], help="minutes: tried for peers")
    parser.add_argument("--trial", type=float, default=4, help="minutes: for each learning rate of a peer")
    parser.add_argument(
        "--budgets", type=float, nargs="+", default=[2.0, 5.0], help="budgets, minutes: of our training"
    )
    parser.add_argument("--every", type=int, default=250, help="updates between validations")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args(given)
    if arguments.kind not in OWN_TEXT and not (arguments.train and arguments.dev):
        parser.error(f"{arguments.kind} needs --train and --dev")
    return arguments


def main() -> None:
    arguments = parse()
    tables = KINDS[arguments.kind](arguments)  # first: the load of the machine is that since the start
    text = f"# Learning: {arguments.kind}\n\n{circumstances('learning')}\n\n{tables}"
    (HERE / f"learning-{arguments.kind}.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

"""Training speed of softgaze and its peers: same text, same pieces, same sizes, same token budget, taking turns.

    python -m benchmarks.training            the quick form, under ten minutes once the environments exist
    python -m benchmarks.training --full     every case, longer and more often
    python -m benchmarks.training --source train.en --target train.de
    python -m benchmarks.training --full --add --cases "transformer base"      keep the cases measured before

Every run is a separate process. Contenders take turns (A B C A B C …), so that a machine that slows down slows all of
them; the report shows the ratio within each round.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.environments import PEERS, UnavailableError, interpreter, last_line
from benchmarks.peers.job import Job
from benchmarks.report import Facts, made, write_report

HERE = Path(__file__).parent
ROOT = HERE.parent
WORK = HERE / "work"
OWN = "softgaze"
TIME_LIMIT = 600  # seconds; a longer run counts as hanging


@dataclass(frozen=True)
class Case:
    """One model that contenders are compared on."""

    arch: str
    size: str
    dropout: float
    options: dict[str, Any] = field(default_factory=dict)


CASES: dict[str, Case] = {
    "transformer tiny": Case("transformer", "tiny", 0.1),
    "transformer small": Case("transformer", "small", 0.1),
    "transformer base": Case("transformer", "base", 0.1),
    "rnn-luong": Case("rnn-luong", "tiny", 0.2, {"cell": "gru", "input_feeding": True}),
    "rnn-bahdanau": Case("rnn-bahdanau", "tiny", 0.2, {"cell": "gru"}),
}
QUICK_CASES = ("transformer tiny",)


@dataclass(frozen=True)
class Effort:
    """How long and how often."""

    rounds: int
    warmup: int
    updates: int
    seconds: float


QUICK = Effort(rounds=2, warmup=4, updates=20, seconds=8)
FULL = Effort(rounds=5, warmup=10, updates=60, seconds=60)


class Turn(NamedTuple):
    round: int
    contender: str


def turns(contenders: Sequence[str], rounds: int) -> Iterator[Turn]:
    """A B C A B C …"""
    for number, contender in product(range(rounds), contenders):
        yield Turn(number, contender)


# --- the text ---------------------------------------------------------------------------------------------------


def prepare_corpus(source: Path | None, target: Path | None) -> tuple[Path, str]:
    """Tokenise the text once for all contenders; return the directory and the names of the files."""
    from softgaze.config import DataSettings
    from softgaze.data.corpus import Corpus
    from softgaze.training.preprocess import PreprocessedData, preprocess

    if source is None or target is None:
        source, target = phrasebook()
    key = sha256(source.read_bytes() + target.read_bytes()).hexdigest()[:12]
    folder = WORK / f"corpus-{key}"
    if not (folder / "vocabulary.txt").exists():
        settings = DataSettings(source_language="source", target_language="target")
        preprocess(folder / "encoded", Corpus.of([(source, target)]), None, settings, seed=1)
        write_pieces(folder, PreprocessedData.open(folder / "encoded"))
    return folder, f"{source.name}, {target.name}"


def phrasebook() -> tuple[Path, Path]:
    from softgaze.data.corpora.phrasebook import write

    folder = WORK / "phrasebook"
    if not folder.exists():
        write(folder, pairs=20_000, seed=0)
    return folder / "train.en", folder / "train.ko"


def write_pieces(folder: Path, prepared: Any, dev_pairs: int | None = None) -> None:
    """Write the encoded pairs as lines of pieces, and the vocabulary in the order of its ids, special tokens first."""
    tokenizer = prepared.tokenizers.source
    for split, shards, most in (("train", prepared.train, None), ("dev", prepared.dev, dev_pairs)):
        with (
            open(folder / f"{split}.source", "w", encoding="utf-8") as source,
            open(folder / f"{split}.target", "w", encoding="utf-8") as target,
        ):
            for number in range(len(shards))[:most]:
                for file, ids in zip((source, target), shards[number], strict=True):
                    file.write(" ".join(tokenizer.pieces(ids.tolist())) + "\n")
    pieces = tokenizer.pieces(range(len(tokenizer)))
    # Written last: it marks the directory as complete.
    (folder / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")


# --- runs -------------------------------------------------------------------------------------------------------


def make_job(case: Case, corpus: Path, effort: Effort, arguments: argparse.Namespace) -> Job:
    """Return the job that all contenders run."""
    from softgaze.models import MODELS

    return Job(
        corpus=str(corpus),
        out=str(WORK / "run"),
        arch=case.arch,
        size=case.size,
        model={**MODELS[case.arch].sizes[case.size], **case.options},
        vocabulary=len((corpus / "vocabulary.txt").read_text("utf-8").rstrip("\n").split("\n")),
        dropout=case.dropout,
        label_smoothing=0.1,
        batch_tokens=arguments.batch_tokens,
        threads=arguments.threads,
        warmup=effort.warmup,
        updates=effort.updates,
        seconds=effort.seconds,
        precision="float32",
        seed=1,
    )


def python_of(contender: str) -> Path:
    """Return the interpreter of a contender; that of softgaze is this one."""
    return Path(sys.executable) if contender == OWN else interpreter(contender)


def environment_of(*paths: Path, threads: int) -> dict[str, str]:
    """Return the environment of this process with an import path and a number of threads."""
    path = os.pathsep.join(map(str, paths))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


def call(python: Path, module: str, arguments: Iterable[str], threads: int) -> dict[str, Any]:
    """Run a module in a new process and return the JSON of its last line."""
    environment = environment_of(
        *((ROOT, ROOT / "src") if python == Path(sys.executable) else (ROOT,)), threads=threads
    )
    command = [str(python), "-m", module, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=WORK, env=environment, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"did not end within {TIME_LIMIT} seconds") from error
    (WORK / "last.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode:
        raise UnavailableError(last_line(done.stderr or done.stdout))
    result: dict[str, Any] = json.loads(last_line(done.stdout))
    return result


def measure(contender: str, job: Job) -> dict[str, Any]:
    """Run a contender once; a failure is a result with its reason."""
    shutil.rmtree(job.out, ignore_errors=True)
    Path(job.out).mkdir(parents=True)
    job.write(Path(job.out) / "job.json")
    facts = {"contender": contender, "precision": job.precision}
    try:
        path = str(Path(job.out) / "job.json")
        return facts | call(python_of(contender), f"benchmarks.peers.{contender}", [path], job.threads)
    except UnavailableError as error:
        return facts | {"error": str(error)}
    finally:
        shutil.rmtree(job.out, ignore_errors=True)


def precisions(contender: str, hardware: bool) -> list[str]:
    """Return the precisions that a contender supports on this machine; softgaze selects its own."""
    if contender == OWN:
        return ["auto"]
    return ["float32", "bfloat16"] if hardware and PEERS[contender].bfloat16 else ["float32"]


def best_precision(contender: str, job: Job, hardware: bool) -> str:
    """Return the fastest precision of a peer, measured in a short trial if there are several."""
    choices = precisions(contender, hardware)
    if len(choices) == 1:
        return choices[0]
    trial = replace(job, updates=max(5, job.updates // 4), seconds=job.seconds / 2)
    rates = {kind: measure(contender, replace(trial, precision=kind)).get("tokens_per_second", 0) for kind in choices}
    return max(choices, key=lambda kind: rates[kind])


def run_case(name: str, job: Job, contenders: Sequence[str], effort: Effort, hardware: bool) -> list[dict[str, Any]]:
    """Run all rounds of one case; a contender that failed once is not run again."""
    job.write(WORK / "count.json")
    counted = call(Path(sys.executable), "benchmarks.operations", ["count", str(WORK / "count.json")], job.threads)
    common = {"case": name, "made": made(), "warmup": job.warmup, "operations": counted["operations_per_token"]}
    here = [each for each in contenders if each == OWN or job.arch in PEERS[each].archs]
    chosen = {each: best_precision(each, job, hardware) for each in here}
    runs: list[dict[str, Any]] = []
    broken: set[str] = set()
    for turn in turns(here, effort.rounds):
        if turn.contender in broken:
            continue
        result = measure(turn.contender, replace(job, precision=chosen[turn.contender]))
        if "error" in result:
            broken.add(turn.contender)
        runs.append({**common, "round": turn.round, **result})
        print(json.dumps(runs[-1]), flush=True)
    return runs


# --- command line -----------------------------------------------------------------------------------------------


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__.split("\n\n")[0])
    parser.add_argument("--source", type=Path, help="text to train on; the built-in phrasebook unless given")
    parser.add_argument("--target", type=Path, help="its translation, line by line")
    parser.add_argument("--full", action="store_true", help="every case, longer and more often")
    parser.add_argument("--cases", nargs="+", choices=CASES, metavar="CASE", help=f"some of: {', '.join(CASES)}")
    parser.add_argument("--peers", nargs="*", choices=PEERS, metavar="PEER", help=f"some of: {', '.join(PEERS)}")
    parser.add_argument("--rounds", type=int, help="runs of each contender")
    parser.add_argument("--warmup", type=int, help="updates before the clock starts")
    parser.add_argument("--updates", type=int, help="most updates to measure in one run")
    parser.add_argument("--seconds", type=float, help="longest time to measure in one run")
    parser.add_argument("--add", action="store_true", help="keep the other cases of an earlier run of this benchmark")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--out", type=Path, help=f"stem of the .md, .svg and .jsonl to write; {OUT_HELP}")
    chosen = parser.parse_args(arguments)
    if (chosen.source is None) != (chosen.target is None):
        parser.error("--source and --target belong together")
    return settled(chosen, quick={"out": WORK / "results"}, full={"out": HERE / "results"})


OUT_HELP = "else in benchmarks with --full, in benchmarks/work without: a quick table never replaces a full one"


def settled(given: argparse.Namespace, quick: dict[str, Any], full: dict[str, Any]) -> argparse.Namespace:
    """Fill in the options that were not given: from `full` with `--full`, else from `quick`."""
    explicit = {name: value for name, value in vars(given).items() if value is not None}
    return argparse.Namespace(**vars(given) | (full if given.full else quick) | explicit)


def effort_of(arguments: argparse.Namespace) -> Effort:
    """Return the quick or the full effort, with the numbers given on the command line."""
    effort = FULL if arguments.full else QUICK
    given = {name: getattr(arguments, name) for name in ("rounds", "warmup", "updates", "seconds")}
    return replace(effort, **{name: value for name, value in given.items() if value is not None})


def earlier(stem: Path, again: Iterable[tuple[str, ...]], named: Sequence[str] = ("case",)) -> list[dict[str, Any]]:
    """Return the stored runs without those that are measured again; `named` are the keys that identify a table."""
    path = stem.with_suffix(".jsonl")
    runs = map(json.loads, path.read_text(encoding="utf-8").splitlines() if path.exists() else [])
    return [run for run in runs if tuple(run[name] for name in named) not in set(again)]


def main() -> None:
    import torch

    from softgaze.training.gradients import uses_bfloat16

    arguments = parse()
    effort = effort_of(arguments)
    WORK.mkdir(exist_ok=True)
    corpus, text = prepare_corpus(arguments.source, arguments.target)
    contenders = [OWN, *(PEERS if arguments.peers is None else arguments.peers)]
    own = Path(sys.executable)
    peaks = call(own, "benchmarks.operations", ["peak", str(arguments.threads)], arguments.threads)
    hardware = uses_bfloat16(torch.device("cpu"), "auto")
    names = arguments.cases or (CASES if arguments.full else QUICK_CASES)
    runs = earlier(arguments.out, [(name,) for name in names]) if arguments.add else []
    for name in names:
        job = make_job(CASES[name], corpus, effort, arguments)
        runs += run_case(name, job, contenders, effort, hardware)
        write_report(arguments.out, runs, Facts(text, arguments.threads, arguments.batch_tokens, peaks))
    print(arguments.out.with_suffix(".md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()

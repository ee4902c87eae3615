"""Decoding speed of softgaze and its peers: same pieces, same sizes, as many tokens for each sentence, taking turns.

    python -m benchmarks.decoding
    python -m benchmarks.decoding --source train.en --target train.de --rounds 5 --sentences 1000

Every run is a process of its own, timed from ids (or pieces) to ids, models loaded and warm. Contenders take turns, and
what is reported is the ratio within each round.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.environments import UnavailableError
from benchmarks.peers.decode_job import Orders
from benchmarks.report import Spread, commit, memory
from benchmarks.training import CASES, HERE, QUICK, WORK, call, make_job, prepare_corpus, python_of, turns
from softgaze.evaluation.machine import processor


class Contender(NamedTuple):
    """Who decodes: a module of `peers`, and what it is told beside the orders."""

    label: str
    module: str
    environment: str  # whose interpreter
    archs: tuple[str, ...]
    told: str = ""


BOTH = ("transformer", "rnn-luong")
CONTENDERS = {
    "torch": Contender("softgaze, torch", "decode_softgaze", "softgaze", BOTH, "torch"),
    "float32": Contender("softgaze, CTranslate2 float32", "decode_softgaze", "softgaze", BOTH[:1], "float32"),
    "int8": Contender("softgaze, CTranslate2 int8", "decode_softgaze", "softgaze", BOTH[:1], "int8"),
    "onnx": Contender("softgaze, ONNX Runtime", "decode_softgaze", "softgaze", BOTH[1:], "onnx"),
    "direct-float32": Contender("CTranslate2 float32, direct", "decode_ctranslate2", "softgaze", BOTH[:1], "float32"),
    "direct-int8": Contender("CTranslate2 int8, direct", "decode_ctranslate2", "softgaze", BOTH[:1], "int8"),
    "eole": Contender("eole", "decode_eole", "eole", BOTH),
    "marian": Contender("Hugging Face generate", "decode_marian", "marian", BOTH[:1]),
    "joeynmt": Contender("JoeyNMT", "decode_joeynmt", "joeynmt", BOTH),
}
ENGINES = {"transformer": {"float32": "ctranslate2", "int8": "ctranslate2"}, "rnn-luong": {"onnx": "onnx"}}
OURS = "torch"  # what ratios are taken of
Run = dict[str, Any]


# --- the models -------------------------------------------------------------------------------------------------


def make_models(case: str, corpus: Path, place: Path) -> None:
    """A model with random weights in the corpus's vocabulary, and what it is exported to; each once, by a process."""
    arch = CASES[case].arch
    call(Path(sys.executable), "benchmarks.decoding", ["--make", case, str(corpus), str(place), "torch"], 1)
    for precision in ENGINES[arch]:
        call(Path(sys.executable), "benchmarks.decoding", ["--make", case, str(corpus), str(place), precision], 1)


def make(case: str, corpus: str, place: str, precision: str) -> None:
    """One of them; ONNX Runtime and CTranslate2 do not share a process."""
    import torch

    from softgaze.bundle import Bundle, Description, Tokenizers, save_bundle
    from softgaze.data.detector import Detector
    from softgaze.engines.exporting import export
    from softgaze.training.prepare import Prepared

    directory = Path(place) / precision
    shutil.rmtree(directory, ignore_errors=True)
    own = CASES[case]
    if precision == "torch":
        torch.manual_seed(1)
        tokenizer = Prepared.open(Path(corpus) / "encoded").tokenizers.target  # one for both sides
        description = Description(own.arch, own.size, own.options, "source", "target", 256)
        both = Tokenizers(tokenizer, tokenizer)
        detector = Detector.train({"source": ["a"], "target": ["b"]})
        save_bundle(directory, description.build(both), description, both, detector, {})
    else:
        bundle = Bundle.open(Path(place) / "torch")
        directory.mkdir()
        to = ENGINES[own.arch][precision]
        export(bundle, bundle.model(), directory, to, precision if to == "ctranslate2" else "float32", None)
    print(json.dumps({"made": str(directory)}))


# --- runs -------------------------------------------------------------------------------------------------------


def run(name: str, orders: Orders) -> Run:
    """One contender, once; what fails is a result too, with the reason."""
    contender = CONTENDERS[name]
    shutil.rmtree(orders.job.out, ignore_errors=True)
    Path(orders.job.out).mkdir(parents=True)
    path = Path(orders.job.out) / "orders.json"
    orders.write(path)
    module = f"benchmarks.peers.{contender.module}"
    try:
        return call(python_of(contender.environment), module, [str(path), contender.told], orders.job.threads)
    except UnavailableError as error:
        return {"error": str(error)}
    finally:
        shutil.rmtree(orders.job.out, ignore_errors=True)


def run_all(orders: Orders, names: Sequence[str], rounds: int, facts: Run) -> list[Run]:
    """All rounds of one table; a contender that failed once is not tried again."""
    runs: list[Run] = []
    broken: set[str] = set()
    for turn in turns(names, rounds):
        if turn.contender in broken:
            continue
        result = {**facts, "contender": turn.contender, "round": turn.round, **run(turn.contender, orders)}
        if "error" in result:
            broken.add(turn.contender)
        told = result.get("error") or f"{result['sentences_per_second']:,.1f} sentences/s"
        print(f"{facts['case']}, {facts['setting']}: {CONTENDERS[turn.contender].label}: {told}", flush=True)
        runs.append(result)
    return runs


# --- the report -------------------------------------------------------------------------------------------------


def table(runs: Sequence[Run]) -> str:
    """Markdown: a row for each contender, and how many times as fast ours is."""
    lines = [
        "| contender | version | sentences/s: median (range) | tokens/s | softgaze's torch is … times as fast |",
        "|---|---|--:|--:|--:|",
    ]
    ours = {each["round"]: each["seconds"] for each in runs if each["contender"] == OURS and "error" not in each}
    for name in dict.fromkeys(each["contender"] for each in runs):
        own = [each for each in runs if each["contender"] == name]
        failed = next((each["error"] for each in own if "error" in each), "")
        if failed:
            lines.append(f"| {CONTENDERS[name].label} | | — ({failed.replace('|', '/')}) | — | — |")
            continue
        rates = Spread.of([each["sentences_per_second"] for each in own])
        tokens = Spread.of([each["tokens_per_second"] for each in own])
        ratios = [each["seconds"] / ours[each["round"]] for each in own if each["round"] in ours]
        ratio = Spread.of(ratios).text(2) if ratios and name != OURS else "—"
        cells = [CONTENDERS[name].label, own[0]["version"], rates.text(1), f"{tokens.middle:,.0f}", ratio]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def document(runs: Sequence[Run], given: argparse.Namespace, text: str) -> str:
    """The page."""
    parts = [
        "# Decoding speed, side by side",
        "Written by `python -m benchmarks.decoding`; how it measures is in [README.md](README.md).",
    ]
    for case, setting in dict.fromkeys((each["case"], each["setting"]) for each in runs):
        own = [each for each in runs if (each["case"], each["setting"]) == (case, setting)]
        parts += [f"## {case}, {setting}", table(own)]
    surroundings = [
        f"Machine: {processor()}, {os.cpu_count()} cores, {memory()}; {given.threads} threads for everybody.",
        f"Text: {text}; {given.sentences} sentences, {given.length} tokens written for each; {given.rounds} rounds.",
        f"Peers and the direct CTranslate2 read {given.batch} sentences at once, sorted by length; ours choose.",
        f"Date: {datetime.now(UTC):%Y-%m-%d}; commit {commit()}.",
    ]
    return "\n\n".join([*parts, "## How, where and when", "\n".join(f"- {line}" for line in surroundings)]) + "\n"


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--source", type=Path)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--cases", nargs="+", choices=["transformer tiny", "rnn-luong"], default=["transformer tiny"])
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--beams", nargs="+", type=int, default=[5, 1])
    parser.add_argument("--settings", nargs="+", choices=["large", "alone"], default=["large", "alone"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--length", type=int, default=15)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "decoding")
    parser.add_argument("--make", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        make(*given.make)
        return
    given.batch_tokens = 4096
    WORK.mkdir(exist_ok=True)
    corpus, text = prepare_corpus(given.source, given.target)
    runs: list[Run] = []
    for case in given.cases:
        place = WORK / f"decoding-{case.replace(' ', '-')}"
        make_models(case, corpus, place)
        job = make_job(CASES[case], corpus, QUICK, given)
        here = [name for name in given.contenders if job.arch in CONTENDERS[name].archs]
        for beam, setting in product(given.beams, given.settings):
            alone = setting == "alone"
            count = given.sentences // 10 if alone else given.sentences
            orders = Orders(job, count, given.length, beam, alone, given.batch, str(place))
            facts = {"case": case, "setting": f"beam {beam}, {'one by one' if alone else 'all at once'}"}
            runs += run_all(orders, here, given.rounds, facts)
    given.out.with_suffix(".md").write_text(document(runs, given, text), encoding="utf-8")
    given.out.with_suffix(".jsonl").write_text("".join(json.dumps(each) + "\n" for each in runs), encoding="utf-8")
    print(f"wrote {given.out.with_suffix('.md')}")


if __name__ == "__main__":
    main()

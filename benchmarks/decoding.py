"""Decoding speed of softgaze and its peers: same pieces, same sizes and, where it can be, the same weights, in turns.

    python -m benchmarks.decoding            the quick form: random weights, a beam of 5, three minutes
    python -m benchmarks.decoding --full --trained pre post --source train.en --target train.de
    python -m benchmarks.decoding --full --models runs/pre --text test.en
    python -m benchmarks.decoding --full --models runs/pre --text test.en --add --beams 1 --settings alone    one table

With `--trained` a Transformer is trained first (`--models` takes trained ones), and every contender loads its weights
in its own format: its greedy output must equal ours before it is timed. RNNs differ too much for that: they have random
weights, and every contender writes the same number of tokens for each sentence. Every run is a separate process, timed
from ids (or pieces) to ids with the model loaded and warm. Contenders take turns; the report shows the ratio within a
round.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.environments import UnavailableError
from benchmarks.peers.decode_job import Orders
from benchmarks.report import METER, Spread, command, made, memory
from benchmarks.training import (
    CASES,
    HERE,
    OUT_HELP,
    QUICK,
    ROOT,
    WORK,
    Case,
    call,
    earlier,
    environment_of,
    make_job,
    phrasebook,
    prepare_corpus,
    python_of,
    settled,
    turns,
)
from softgaze.evaluation.benchmark import cpu_name

if TYPE_CHECKING:
    from softgaze.bundle import Bundle


class Contender(NamedTuple):
    """A module of `peers` that decodes, and its argument."""

    label: str
    module: str
    environment: str  # of the interpreter
    archs: tuple[str, ...]
    argument: str = ""
    residuals: tuple[str, ...] = ("pre", "post")  # kinds of trained weights it can load


BOTH = ("transformer", "rnn-luong")
CONTENDERS = {
    "torch": Contender("softgaze, torch", "decode_softgaze", "softgaze", BOTH, "torch"),
    "default": Contender("softgaze by default, text to text", "decode_softgaze", "softgaze", BOTH, "default"),
    "float32": Contender("softgaze, CTranslate2 float32", "decode_softgaze", "softgaze", BOTH[:1], "float32"),
    "int8": Contender("softgaze, CTranslate2 int8", "decode_softgaze", "softgaze", BOTH[:1], "int8"),
    "onnx": Contender("softgaze, ONNX Runtime", "decode_softgaze", "softgaze", BOTH[1:], "onnx"),
    "direct-float32": Contender("CTranslate2 float32, direct", "decode_ctranslate2", "softgaze", BOTH[:1], "float32"),
    "direct-int8": Contender("CTranslate2 int8, direct", "decode_ctranslate2", "softgaze", BOTH[:1], "int8"),
    "eole": Contender("eole", "decode_eole", "eole", BOTH, residuals=("pre",)),
    "marian": Contender("Hugging Face generate", "decode_marian", "marian", BOTH[:1]),
    "joeynmt": Contender("JoeyNMT", "decode_joeynmt", "joeynmt", BOTH),
}
ENGINES = {
    "transformer": {"float32": "ctranslate2", "int8": "ctranslate2"},
    "rnn-luong": {"onnx": "onnx"},
    "rnn-bahdanau": {"onnx": "onnx"},
}
OURS = "torch"  # the numerator of all ratios
ROUNDED = ("int8", "direct-int8")  # rounded weights may give other text
PROVEN = 50  # sentences whose greedy output must be equal before anything is timed
RANDOM, TRAINED = "equal lengths, random weights", "same weights"
COMPARABLE = {"positions": "sinusoidal", "norm": "layer", "feed_forward": "relu", "tie": "all"}  # what all peers have
Run = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """A model that all contenders decode with."""

    name: str
    orders: Orders  # beam, batch and whether alone are filled in for each table
    contenders: list[str]


# --- models with random weights ---------------------------------------------------------------------------------


def random_subject(case: str, given: argparse.Namespace) -> Subject:
    """Make a random model in the vocabulary of the corpus, and its exports."""
    corpus, _ = prepare_corpus(given.source, given.target)
    folder = WORK / f"decoding-{case.replace(' ', '-')}"
    make(case, str(corpus), folder, "torch")
    for precision in ENGINES[CASES[case].arch]:
        make(case, str(corpus), folder, precision)
    orders = Orders(
        make_job(CASES[case], corpus, QUICK, given), given.sentences, given.length, 1, False, 1, str(folder)
    )
    able = [name for name in given.contenders if CASES[case].arch in CONTENDERS[name].archs]
    return Subject(f"{case}, {RANDOM}", orders, able)


def make(case: str, corpus: str, folder: Path, kind: str) -> None:
    """Make one model in a separate process: ONNX Runtime and CTranslate2 cannot share one."""
    call(Path(sys.executable), "benchmarks.decoding", ["--make", case, corpus, str(folder), kind], 1)


def make_here(case: str, corpus: str, folder: str, kind: str) -> None:
    """Save the random model, or one of its exports."""
    from softgaze.bundle import Bundle
    from softgaze.engines.export import export

    directory = Path(folder) / kind
    shutil.rmtree(directory, ignore_errors=True)
    if kind == "torch":
        draw(CASES[case], Path(corpus), directory)
    else:
        bundle = Bundle.open(Path(folder) / "torch")
        directory.mkdir()
        to = ENGINES[bundle.description.arch][kind]
        export(bundle, bundle.model(), directory, to, kind if to == "ctranslate2" else "float32", None)
    print(json.dumps({"made": str(directory)}))


def draw(case: Case, corpus: Path, directory: Path) -> None:
    """Save a bundle of an untrained model."""
    import torch

    from softgaze.bundle import Description, Tokenizers, save_bundle
    from softgaze.data.language_id import LanguageDetector
    from softgaze.training.preprocess import PreprocessedData

    torch.manual_seed(1)
    tokenizer = PreprocessedData.open(corpus / "encoded").tokenizers.target  # one for both sides
    description = Description(case.arch, case.size, case.options, "source", "target", 256)
    both = Tokenizers(tokenizer, tokenizer)
    detector = LanguageDetector.train({"source": ["a"], "target": ["b"]})
    save_bundle(directory, description.build(both), description, both, detector, {})


# --- trained models ---------------------------------------------------------------------------------------------


def trained_subject(path: Path, given: argparse.Namespace) -> Subject:
    """Write the exports of a trained model, its weights in a file that every peer can read, and text in its pieces."""
    import torch

    from softgaze.bundle import Bundle

    bundle = Bundle.open(path)
    model_options = comparable(bundle)
    folder = WORK / f"decoding-{bundle.files['model.safetensors']['sha256'][:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "torch").unlink(missing_ok=True)
    (folder / "torch").symlink_to(path.resolve())
    for kind in ENGINES["transformer"]:
        make("", "", folder, kind)
    torch.save({name: each.detach() for name, each in bundle.model().named_parameters()}, folder / "weights.pt")
    count = write_text(folder / "corpus", bundle, given)
    case = Case("transformer", bundle.description.size, 0.0, {**bundle.description.options, **model_options})
    job = make_job(case, folder / "corpus", QUICK, given)
    able = [name for name in given.contenders if runs(CONTENDERS[name], model_options["residual"])]
    orders = Orders(job, count, 0, 1, False, 1, str(folder), str(folder / "weights.pt"))
    return Subject(f"transformer {case.size}, {model_options['residual']}-norm, {TRAINED}", orders, able)


def runs(contender: Contender, residual: str) -> bool:
    """Return whether a contender can load a trained Transformer of this kind."""
    return "transformer" in contender.archs and residual in contender.residuals


def comparable(bundle: "Bundle") -> dict[str, Any]:
    """Return the options of a Transformer that all peers support; exit for others."""
    from softgaze.models import MODELS, model_options

    own = {name: each.default for name, each in model_options(MODELS[bundle.description.arch]).items()}
    chosen = own | bundle.description.options
    wrong = [f"{name} {chosen.get(name)}" for name, wanted in COMPARABLE.items() if chosen.get(name) != wanted]
    if wrong or not bundle.tokenizers.joint or chosen["key_heads"] or chosen["window_size"]:
        raise SystemExit(
            f"{bundle.path}: no peer has such a model: {', '.join(wrong) or 'key_heads, window_size, vocabulary'}"
        )
    return {"residual": chosen["residual"]}


def write_text(folder: Path, bundle: "Bundle", given: argparse.Namespace) -> int:
    """Write the sentences to decode as pieces in the files of a `Job`; return their number."""
    from softgaze.data.corpus import read_lines

    lines = list(read_lines(given.text)) if given.text else [source for source, _ in bundle.held_out or ()]
    tokenizer = bundle.tokenizers.target
    encoded = [ids for ids in tokenizer.encode(lines) if 0 < len(ids) < bundle.description.max_length]
    pieces = [" ".join(tokenizer.pieces(ids)) for ids in encoded[: given.sentences]]
    if not pieces:
        raise SystemExit(f"{bundle.path}: holds no held-out text; give some with --text FILE")
    folder.mkdir(exist_ok=True)
    for name in ("train.source", "train.target", "dev.source", "dev.target"):  # eole trains a step on it
        (folder / name).write_text("\n".join(pieces) + "\n", encoding="utf-8")
    (folder / "vocabulary.txt").write_text("\n".join(tokenizer.pieces(range(len(tokenizer)))) + "\n", encoding="utf-8")
    return len(pieces)


def train(residual: str, given: argparse.Namespace) -> Path:
    """Train a model on the text with `softgaze train`, unless it exists."""
    source, target = (given.source, given.target) if given.source else phrasebook()
    key = sha256(source.read_bytes() + target.read_bytes() + str(given.minutes).encode()).hexdigest()[:12]
    folder = WORK / f"trained-{residual}-{key}"
    if not (folder / "manifest.json").exists():
        settings = [f"model.options.{name}={value}" for name, value in {**COMPARABLE, "residual": residual}.items()]
        chosen = [word for setting in settings for word in ("--set", setting)]
        languages = ["--source-lang", "source", "--target-lang", "target", "--size", "tiny"]
        words = ["--train", str(source), str(target), "--minutes", str(given.minutes), "--out", str(folder)]
        environment = environment_of(ROOT, ROOT / "src", threads=given.threads)
        print(f"training a {residual}-norm Transformer for {given.minutes} minutes", flush=True)
        subprocess.run(
            [sys.executable, "-m", "softgaze", "train", *words, *languages, *chosen], check=True, env=environment
        )
    return folder


# --- runs -------------------------------------------------------------------------------------------------------


def run(name: str, orders: Orders) -> Run:
    """Run a contender once; a failure is a result with its reason."""
    contender = CONTENDERS[name]
    shutil.rmtree(orders.job.out, ignore_errors=True)
    Path(orders.job.out).mkdir(parents=True)
    path = Path(orders.job.out) / "orders.json"
    orders.write(path)
    module = f"benchmarks.peers.{contender.module}"
    try:
        return call(python_of(contender.environment), module, [str(path), contender.argument], orders.job.threads)
    except UnavailableError as error:
        return {"error": str(error)}
    finally:
        shutil.rmtree(orders.job.out, ignore_errors=True)


def prove(subject: Subject) -> dict[str, str]:
    """Return the contenders whose greedy translations differ from ours, and why; rounded weights are exempt."""
    orders = replace(subject.orders, sentences=min(PROVEN, subject.orders.sentences), beam=1, batch=8)
    ours = run(OURS, orders)
    failed: dict[str, str] = {}
    for name in subject.contenders:
        if name == OURS or name in ROUNDED:
            continue
        found = run(name, orders)
        if "error" in found or alike(found, ours) < 1:
            share = "" if "error" in found else f"only {alike(found, ours):.0%} of its greedy translations are ours"
            failed[name] = found.get("error") or share
        print(f"{subject.name}: {CONTENDERS[name].label}: {failed.get(name, 'the same greedy text')}", flush=True)
    return failed


def alike(one: Run, other: Run) -> float:
    """Return the share of equal translations, compared piece by piece."""
    same: list[bool] = [left == right for left, right in zip(one["written"], other["written"], strict=True)]
    return sum(same) / len(same)


def best_batch(name: str, orders: Orders, sizes: Sequence[int]) -> int:
    """Return the fastest batch size of a peer, measured on a part of the text; softgaze has its own batching."""
    if len(sizes) == 1 or orders.alone or CONTENDERS[name].module == "decode_softgaze":
        return sizes[0]
    trial = replace(orders, sentences=max(max(sizes), orders.sentences // 4))
    rates = {size: run(name, replace(trial, batch=size)).get("sentences_per_second", 0) for size in sizes}
    return max(sizes, key=lambda size: rates[size])


def run_all(subject: Subject, orders: Orders, given: argparse.Namespace, broken: dict[str, str]) -> list[Run]:
    """Run all rounds of one table; a contender that failed once is not run again."""
    found: list[Run] = []
    written: dict[int, Run] = {}  # our output in each round; ours has the first turn
    names = [name for name in subject.contenders if name not in broken]
    batches = {name: best_batch(name, orders, given.batches) for name in names}
    for turn in turns(names, given.rounds):
        if turn.contender in broken:
            continue
        batch = batches[turn.contender]
        result = {"contender": turn.contender, "round": turn.round, **run(turn.contender, replace(orders, batch=batch))}
        if "error" in result:
            broken[turn.contender] = result["error"]
        elif turn.contender == OURS:
            written[turn.round] = dict(result)
        if "error" not in result and not orders.length and turn.round in written:
            result["same"] = alike(result, written[turn.round])
        result.pop("written", None)
        outcome = result.get("error") or f"{result['sentences_per_second']:,.1f} sentences/s"
        print(f"{subject.name}: {CONTENDERS[turn.contender].label}: {outcome}", flush=True)
        found.append(result | {"batch": batch})
    return [*found, *({"contender": name, "round": 0, "error": why} for name, why in broken.items())]


def measure(subject: Subject, given: argparse.Namespace) -> list[Run]:
    """Measure every beam and setting of one model."""
    broken = prove(subject) if subject.orders.weights else {}
    found: list[Run] = []
    for beam, setting in product(given.beams, given.settings):
        alone = setting == "alone"
        count = max(1, subject.orders.sentences // 10) if alone else subject.orders.sentences
        orders = replace(subject.orders, beam=beam, alone=alone, sentences=count)
        facts = {"case": subject.name, "setting": setting_name(beam, setting), "sentences": count, "made": made()}
        found += [facts | each for each in run_all(subject, orders, given, dict(broken))]
    return found


def setting_name(beam: int, setting: str) -> str:
    return f"beam {beam}, {'one by one' if setting == 'alone' else 'all at once'}"


# --- the report -------------------------------------------------------------------------------------------------

HEADINGS = (
    "contender | version | sentences/s: median (range) | tokens/s | CPU ms a sentence | softgaze's torch is … times as "
    "fast | text as ours"
)


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table with a row for each contender."""
    lines = [f"| {HEADINGS} | batch |", "|---|---|--:|--:|--:|--:|--:|--:|"]
    ours = {each["round"]: each["sentences_per_second"] for each in runs if each["contender"] == OURS}
    for name in dict.fromkeys(each["contender"] for each in runs):
        own = [each for each in runs if each["contender"] == name]
        failed = next((each["error"] for each in own if "error" in each), "")
        if failed:
            lines.append(f"| {CONTENDERS[name].label} | | — ({failed.replace('|', '/')}) | — | — | — | — | — |")
        else:
            lines.append(f"| {' | '.join(cells(name, own, ours))} |")
    return "\n".join(lines)


def cells(name: str, own: Sequence[Run], ours: dict[int, float]) -> list[str]:
    rates = Spread.of([each["sentences_per_second"] for each in own])
    tokens = Spread.of([each["tokens_per_second"] for each in own])
    ratios = [ours[each["round"]] / each["sentences_per_second"] for each in own if each["round"] in ours]
    ratio = Spread.of(ratios).text(2) if ratios and name != OURS else "—"
    same = f"{own[0]['same']:.1%}" if "same" in own[0] and name != OURS else "—"
    batch = "its own" if CONTENDERS[name].module == "decode_softgaze" else str(own[0]["batch"])
    worked = [1000 * each["cpu_seconds"] / each["sentences"] for each in own if "cpu_seconds" in each]
    cpu = f"{Spread.of(worked).middle:,.1f}" if worked else "—"
    rate = f"{tokens.middle:,.0f}"
    return [CONTENDERS[name].label, own[0]["version"], rates.text(1), rate, cpu, ratio, same, batch]


def document(runs: Sequence[Run], given: argparse.Namespace) -> str:
    text = (given.text or given.source or Path("the built-in phrasebook")).name
    parts = [
        "# Decoding speed, side by side",
        "Written by `python -m benchmarks.decoding`; how it measures is in [README.md](README.md).",
    ]
    for case, setting in dict.fromkeys((each["case"], each["setting"]) for each in runs):
        own = [each for each in runs if (each["case"], each["setting"]) == (case, setting)]
        parts += [f"## {case}: {setting}", table(own), effort(own)]
    surroundings = [
        f"Machine: {cpu_name()}, {os.cpu_count()} cores, {memory()}; {given.threads} threads for every toolkit.",
        f"Text: {text}, sorted by length. With random weights {given.length} tokens are written for each sentence.",
        f" Peers and the direct CTranslate2 read so many sentences at once as was fastest of "
        f"{', '.join(map(str, given.batches))}; ours choose.",
        f"Last command: `{command('decoding')}`; meanwhile other processes used {METER.busy_cores():.1f} of the cores.",
    ]
    return "\n\n".join([*parts, "## How, where and when", "\n".join(f"- {line}" for line in surroundings)]) + "\n"


def effort(own: Sequence[Run]) -> str:
    """Return sentences, rounds, date and commit as text."""
    rounds = max(each["round"] for each in own) + 1
    return f"{own[0]['sentences']:,} sentences; {rounds} rounds; {own[0]['made']}."


QUICK_FORM: dict[str, Any] = {
    "out": WORK / "decoding",
    "rounds": 2,
    "sentences": 100,
    "beams": [5],
    "settings": ["large"],
}
FULL_FORM: dict[str, Any] = {
    "out": HERE / "decoding",
    "rounds": 3,
    "sentences": 1000,
    "beams": [5, 1],
    "settings": ["large", "alone"],
}


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--source", type=Path, help="text to train on; the built-in phrasebook unless given")
    parser.add_argument("--target", type=Path, help="its translation, line by line")
    parser.add_argument("--models", nargs="+", type=Path, metavar="BUNDLE", help="trained models instead of quick ones")
    parser.add_argument(
        "--text", type=Path, help="sentences for trained models; those held out in training unless given"
    )
    parser.add_argument("--trained", nargs="*", choices=["pre", "post"], default=[], help="kinds to train")
    parser.add_argument("--minutes", type=float, default=5, help="how long each is trained")
    parser.add_argument(
        "--cases", nargs="*", choices=["transformer tiny", "rnn-luong"], help="models with random weights"
    )
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--full", action="store_true", help="1,000 sentences, beams 5 and 1, together and one by one")
    parser.add_argument("--add", action="store_true", help="keep the other tables of an earlier run of this benchmark")
    parser.add_argument("--beams", nargs="+", type=int)
    parser.add_argument("--settings", nargs="+", choices=["large", "alone"], help="all at once, or one by one")
    parser.add_argument("--rounds", type=int, help="runs of each contender")
    parser.add_argument("--sentences", type=int, help="to decode at most; a tenth of them one by one")
    parser.add_argument("--length", type=int, default=15, help="tokens of each sentence, with random weights")
    parser.add_argument("--batches", nargs="+", type=int, default=[32, 64, 128], help="sentences at once to try")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help=f"stem of the .md and .jsonl to write; {OUT_HELP}")
    parser.add_argument("--make", nargs=4, help=argparse.SUPPRESS)
    given = settled(parser.parse_args(words), QUICK_FORM, FULL_FORM)
    if given.cases is None:
        given.cases = [] if given.models or given.trained else ["transformer tiny"]
    given.batch_tokens = 4096
    return given


def main() -> None:
    """Measure and write the report."""
    given = arguments()
    if given.make:
        make_here(*given.make)
        return
    WORK.mkdir(exist_ok=True)
    models = given.models or [train(residual, given) for residual in given.trained]
    subjects = [trained_subject(path, given) for path in models]
    subjects += [random_subject(case, given) for case in given.cases]
    again = {
        (subject.name, setting_name(*each)) for subject in subjects for each in product(given.beams, given.settings)
    }
    runs = earlier(given.out, again, ("case", "setting")) if given.add else []
    for subject in subjects:
        runs += measure(subject, given)
        given.out.with_suffix(".md").write_text(document(runs, given), encoding="utf-8")
        given.out.with_suffix(".jsonl").write_text("".join(json.dumps(each) + "\n" for each in runs), encoding="utf-8")
    print(f"wrote {given.out.with_suffix('.md')}")


if __name__ == "__main__":
    main()

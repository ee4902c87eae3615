"""Costs of running an exported model: time from text to text, time to start, memory, size on disk.

    python -m benchmarks.shipping --transformer runs/m30k --recurrent runs/luong --text test.en          quick
    python -m benchmarks.shipping --full --transformer runs/m30k --recurrent runs/luong --text test.en --parts memory

`--parts` measures some parts again; the page keeps the others, each with its own command. Figures are of whole
processes, started by the command that a user types. Contenders take turns, and ratios are taken within a round.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, distribution, version
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.decoding import ENGINES, make
from benchmarks.environments import last_line
from benchmarks.report import Spread, circumstances
from benchmarks.training import HERE, OUT_HELP, ROOT, WORK, environment_of, settled

BEAM = 5
BATCHES = (("32", "examples"), ("64", "examples"), ("128", "examples"), ("1024", "tokens"), ("2048", "tokens"))
SHORT = "A dog runs."
Model = dict[str, Path]  # torch, float32, int8, onnx -> its directory


class Done(NamedTuple):
    """A process that ended with the expected exit code."""

    seconds: float  # wall-clock
    processor: float  # seconds of all its threads
    stderr: str
    started: float

    @property
    def clock(self) -> dict[str, Any]:
        """Return the times that the process reported."""
        result: dict[str, Any] = json.loads(last_line(self.stderr))
        return result


def run(words: Sequence[str | Path], threads: int, code: int = 0) -> Done:
    """Run this Python in a new process."""
    environment = environment_of(ROOT, ROOT / "src", threads=threads)
    before, start = os.times(), time.monotonic()
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, env=environment)
    seconds, after = time.monotonic() - start, os.times()
    if done.returncode != code:
        raise SystemExit(f"{' '.join(map(str, words))} failed: {last_line(done.stderr)}")
    spent = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    return Done(seconds, spent, done.stderr, start)


def exported(path: Path) -> Model:
    """Export a trained model to every engine that it supports."""
    from softgaze.bundle import Bundle

    bundle = Bundle.open(path)
    folder = WORK / f"shipping-{bundle.files['model.safetensors']['sha256'][:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "torch").unlink(missing_ok=True)
    (folder / "torch").symlink_to(path.resolve())
    kinds = list(ENGINES[bundle.description.arch])
    for kind in kinds:
        make("", "", folder, kind)
    return {kind: folder / kind for kind in ("torch", *kinds)}


def sentences(given: argparse.Namespace) -> list[str]:
    """Return the lines to translate that are not empty."""
    from softgaze.data.corpus import read_lines

    return [line for line in read_lines(given.text) if line.strip()][: given.sentences]


# --- text to text -----------------------------------------------------------------------------------------------


def throughput(model: Model, given: argparse.Namespace) -> list[str]:
    """Compare our command line from text to text with CTranslate2 alone on tokenised text."""
    folder = model["int8"].parent
    raw, cut = write_text(folder, model["int8"], given)
    count = len(sentences(given))
    ours = ["-m", "benchmarks.peers.clocked", "translate", model["int8"], "--input", raw, "--beam-size", BEAM]
    theirs = ["-m", "benchmarks.peers.direct", model["int8"] / "ctranslate2", cut, folder / "direct.txt", given.threads]
    batch = best_batch([*theirs, BEAM], given)

    def translate() -> Done:
        (folder / "ours.txt").unlink(missing_ok=True)
        return run([*map(str, ours), "--output", folder / "ours.txt"], given.threads)

    def call() -> Done:
        return run([*map(str, theirs), str(BEAM), *batch], given.threads)

    rounds = [(translate(), call()) for _ in range(given.rounds)]
    after_loading = [[each.clock["done"] - each.clock["loaded"] for each in pair] for pair in rounds]
    whole = [[each.seconds for each in pair] for pair in rounds]
    return [
        "## Text to text",
        f"{count:,} sentences of {given.text.name}, int8, beam {BEAM}: `softgaze translate MODEL --input FILE --output "
        f"FILE` compared with a process that only loads CTranslate2 and translates the pieces, in the fastest batches "
        f"of those tried ({' '.join(batch)}).",
        compared("the model loaded → the last line", after_loading, count),
        compared("the whole process", whole, count),
    ]


def best_batch(words: Sequence[Any], given: argparse.Namespace) -> tuple[str, str]:
    """Return the fastest batch size, by one run of each."""
    taken = {each: run([*map(str, words), *each], given.threads).clock for each in BATCHES}
    return min(taken, key=lambda each: taken[each]["done"] - taken[each]["loaded"])


def write_text(folder: Path, model: Path, given: argparse.Namespace) -> tuple[Path, Path]:
    """Write the lines as text and as pieces; return both paths."""
    from softgaze.bundle import Bundle
    from softgaze.special_tokens import EOS

    lines = sentences(given)
    tokenizer = Bundle.open(model).tokenizers.source
    pieces = [" ".join(tokenizer.pieces([*ids, EOS])) for ids in tokenizer.encode(lines)]
    for name, content in (("raw.txt", lines), ("cut.txt", pieces)):
        (folder / name).write_text("\n".join(content) + "\n", encoding="utf-8")
    return folder / "raw.txt", folder / "cut.txt"


def compared(what: str, rounds: Sequence[Sequence[float]], count: int) -> str:
    """Return seconds, sentences per second and the ratio as text."""
    ours, theirs = (Spread.of([pair[side] for pair in rounds]) for side in (0, 1))
    share = Spread.of([pair[1] / pair[0] for pair in rounds])
    return (
        f"- {what}: softgaze {ours.text(2)} s ({count / ours.middle:,.0f} sentences/s), CTranslate2 alone "
        f"{theirs.text(2)} s ({count / theirs.middle:,.0f}): **{share.text(3)}** of its throughput"
    )


# --- starting ---------------------------------------------------------------------------------------------------


def starting(model: Model, given: argparse.Namespace) -> list[str]:
    """Time new processes with files in the system's cache, and Python alone for comparison."""
    commands: dict[str, tuple[list[str | Path], int]] = {
        "Python alone": (["-c", "pass"], 0),
        "softgaze --help": (["-m", "softgaze", "--help"], 0),
        "softgaze translate --beem 5 (a wrong flag)": (["-m", "softgaze", "translate", "--beem", "5"], 2),
        'softgaze translate INT8 "A dog runs."': (["-m", "softgaze", "translate", model["int8"], SHORT], 0),
        'softgaze translate FLOAT32 "A dog runs."': (["-m", "softgaze", "translate", model["float32"], SHORT], 0),
    }
    runs = [
        {name: run(words, given.threads, code) for name, (words, code) in commands.items()} for _ in range(given.rounds)
    ]
    lines = ["| command | seconds: median (range) | processor seconds |", "|---|--:|--:|"]
    for name in commands:
        taken = Spread.of([each[name].seconds for each in runs])
        spent = Spread.of([each[name].processor for each in runs])
        lines.append(f"| `{name}` | {taken.text(2)} | {spent.text(2)} |")
    return ["## From nothing to the first answer", "\n".join(lines)]


# --- memory -----------------------------------------------------------------------------------------------------


def memory(model: Model, kind: str, counts: Sequence[int], given: argparse.Namespace) -> list[str]:
    """Measure the peak resident memory for increasing numbers of lines."""
    lines = ["| lines | most memory resident | lines/s | processor seconds |", "|--:|--:|--:|--:|"]
    texts = sentences(given)
    for number in sorted(counts):
        done = translated(model[kind], islice(beginnings(texts), number), number, given.threads)
        rate = number / (done.clock["done"] - done.clock["loaded"])
        peak = done.clock["peak"] / 2**20
        lines.append(f"| {number:,} | {peak:,.0f} MiB | {rate:,.0f} | {done.processor:,.0f} |")
    method = f"Beginnings of the sentences of {given.text.name}, two to eight words, greedy, from a file to a file."
    return [f"## Memory, {kind}", method, "\n".join(lines)]


def beginnings(texts: Sequence[str]) -> Iterator[str]:
    """Yield short lines without end: the first 2 words of each text, then the first 3, up to 8, and again."""
    for words in cycle(range(2, 9)):
        yield from (" ".join(text.split()[:words]) for text in texts)


def translated(model: Path, lines: Iterable[str], number: int, threads: int) -> Done:
    """Translate lines from a file to a file; exit if some are missing."""
    source, output = (WORK / name for name in ("many.txt", "many.out"))
    with source.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    words: list[str | Path] = ["-m", "benchmarks.peers.clocked", "translate", model, "--beam-size", "1"]
    done = run([*words, "--input", source, "--output", output], threads)
    with output.open("rb") as file:
        written = sum(1 for _ in file)
    if written != number:
        raise SystemExit(f"{number:,} lines became {written:,}")
    source.unlink()
    output.unlink()
    return done


# --- size on the disk -------------------------------------------------------------------------------------------


def sizes(models: Sequence[Model], given: argparse.Namespace) -> list[str]:
    """Measure model directories and the packages that are needed to run them."""
    lines = ["| model | MB | of it the engine's files |", "|---|--:|--:|"]
    for model in models:
        for kind, folder in model.items():
            lines.append("| {} | {:.2f} | {:.2f} |".format(title(model, kind), *bundle_size(folder)))
    needs = dict(sorted(installed("softgaze").items(), key=lambda each: -each[1]))
    largest = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in islice(needs.items(), 6))
    total = sum(needs.values()) / 1e6
    base = f"The base install, torch not in it: {total:.0f} MB in {len(needs)} packages ({largest}, …)."
    return ["## Size on disk", "\n".join(lines), base]


def title(model: Model, kind: str) -> str:
    """Return arch, size, engine and precision of a model."""
    from softgaze.bundle import Bundle

    bundle = Bundle.open(model[kind])
    precision = bundle.engine.get("precision", "float32")
    return f"{bundle.description.arch} {bundle.description.size}, {bundle.engine['name']} {precision}"


def bundle_size(folder: Path) -> tuple[float, float]:
    """Return the MB of all files of a bundle, and of its weights."""
    from softgaze.bundle import WEIGHTS, Bundle

    files = {name: entry["bytes"] for name, entry in Bundle.open(folder).files.items()}
    engine = sum(size for name, size in files.items() if "/" in name or name == WEIGHTS)
    return sum(files.values()) / 1e6, engine / 1e6


def installed(name: str) -> dict[str, int]:
    """Return the bytes of a package and of all its requirements, without extras."""
    found: dict[str, int] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found[one] = package_size(one)
            waiting += needed(one)
    return found


def package_size(name: str) -> int:
    """Return the bytes of a package; of softgaze those of the sources, to which a development install points."""
    if name == "softgaze":
        return sum(
            path.stat().st_size for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix != ".pyc"
        )
    paths = [Path(str(path.locate())) for path in distribution(name).files or []]
    return sum(path.stat().st_size for path in paths if path.is_file())


def needed(name: str, extra: str = "") -> Iterator[str]:
    """Yield the installed requirements of a package, and of one of its extras."""
    from packaging.requirements import Requirement

    for text in distribution(name).requires or []:
        wanted = Requirement(text)
        if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
            try:
                yield distribution(wanted.name).metadata["Name"].lower()
            except PackageNotFoundError:
                continue  # of another system or Python


# --- recurrent models -------------------------------------------------------------------------------------------


def recurrent(models: Sequence[Model], given: argparse.Namespace) -> list[str]:
    """Compare ONNX Runtime with our torch search, one sentence at a time."""
    from softgaze.bundle import Bundle
    from softgaze.evaluation.benchmark import BenchmarkSetting, run_benchmark

    texts = sentences(given)
    lines = ["| model | beam | torch, sentences/s | ONNX Runtime | times as fast |", "|---|--:|--:|--:|--:|"]
    for model in models:
        for beam in (1, BEAM):
            settings = {
                kind: BenchmarkSetting(kind, "float32", given.threads, beam, one_at_a_time=True)
                for kind in ("torch", "onnx")
            }
            rounds = [
                {
                    kind: run_benchmark(model[kind], setting, texts).sentences_per_second
                    for kind, setting in settings.items()
                }
                for _ in range(given.rounds)
            ]
            rates = [Spread.of([each[kind] for each in rounds]).text(1) for kind in settings]
            ratio = Spread.of([each["onnx"] / each["torch"] for each in rounds]).text(2)
            lines.append(f"| {Bundle.open(model['torch']).description.arch} | {beam} | {' | '.join(rates)} | {ratio} |")
    return ["## Recurrent models, one sentence at a time", "\n".join(lines)]


# --- command line -----------------------------------------------------------------------------------------------


QUICK_FORM = {"out": WORK / "shipping", "sentences": 100, "lines": [1_000, 10_000], "rounds": 2}
FULL_FORM = {"out": HERE / "shipping", "sentences": 1000, "lines": [10_000, 100_000, 1_000_000], "rounds": 7}


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--transformer", type=Path, required=True, metavar="MODEL", help="a trained Transformer")
    parser.add_argument("--recurrent", type=Path, nargs="*", default=[], metavar="MODEL", help="trained RNNs")
    parser.add_argument("--text", type=Path, required=True, help="raw sentences in their language")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--full", action="store_true", help="1,000 sentences, 7 rounds, memory up to a million lines")
    parser.add_argument("--sentences", type=int, help="at most")
    parser.add_argument("--lines", type=int, nargs="+", help="to measure memory; torch gets a tenth of each")
    parser.add_argument("--rounds", type=int, help="runs of each contender")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help=f"stem of the .md and .json to write; {OUT_HELP}")
    return settled(parser.parse_args(words), QUICK_FORM, FULL_FORM)


PARTS: dict[str, Callable[[Model, Sequence[Model], argparse.Namespace], list[str]]] = {
    "throughput": lambda model, others, given: throughput(model, given),
    "starting": lambda model, others, given: starting(model, given),
    "memory": lambda model, others, given: memory(model, "int8", given.lines, given),
    "torch-memory": lambda model, others, given: memory(model, "torch", [each // 10 for each in given.lines], given),
    "sizes": lambda model, others, given: sizes([model, *others], given),
    "recurrent": lambda model, others, given: recurrent(others, given),
}


def main() -> None:
    """Measure and write the page."""
    given = arguments()
    WORK.mkdir(exist_ok=True)
    model, others = exported(given.transformer), [exported(path) for path in given.recurrent]
    engines = ", ".join(f"{name} {version(name)}" for name in ("ctranslate2", "onnxruntime", "sentencepiece"))
    about = f"{circumstances('shipping')} {given.threads} threads; {engines}."
    for name in given.parts:
        found = [*PARTS[name](model, others, given), about]
        print(*found, sep="\n\n", flush=True)
        keep(given.out, name, found)


def keep(stem: Path, name: str, found: list[str]) -> None:
    """Store one part, and write the page with all stored parts in order."""
    data, page = stem.with_suffix(".json"), stem.with_suffix(".md")
    parts = (json.loads(data.read_text(encoding="utf-8")) if data.exists() else {}) | {name: found}
    data.write_text(json.dumps(parts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    paragraphs = [text for each in PARTS if each in parts for text in parts[each]]
    page.write_text("\n\n".join(["# What an exported model costs", *paragraphs]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

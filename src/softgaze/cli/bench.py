"""`softgaze bench`: measure the translation speed of a model on this machine."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import option
from softgaze.cli._output import count_of, print_json, progress, table_text, warn
from softgaze.errors import DataError, SoftgazeError, UsageError

if TYPE_CHECKING:
    from softgaze.bundle import Bundle
    from softgaze.evaluation.benchmark import BenchmarkResult

TABLE_HEADER = ("engine", "precision", "threads", "beam", "batch", "sentences/s", "tokens/s")


class Candidate(NamedTuple):
    """A model directory with its engine and precision."""

    path: Path
    engine: str
    precision: str


def bench(
    model: opt.Model,
    text: Annotated[
        Path | None, option("Sentences to translate.", metavar="FILE", default="validation data of the model")
    ] = None,
    sentences: Annotated[int, option("Number of sentences.", min=1)] = 200,
    source_lang: opt.ModelSource = None,
    target_lang: opt.ModelTarget = None,
    as_json: opt.Json = False,
) -> None:
    """Measure the translation speed of a model.

    softgaze bench runs/m30k --text test.en

    Measures greedy search and a beam of 5, one thread and all cores, batches
    and single sentences; a trained model also as exported, in every
    precision. Each setting runs in its own process; numbers are medians of
    three rounds without loading. Recommends the fastest setting.
    """
    from softgaze.evaluation.benchmark import LoadMeter, benchmark_settings, run_benchmark, thread_counts

    languages = opt.LanguagePair(source_lang, target_lang)
    bundle = opt.open_bundle(model, languages)
    texts = benchmark_sentences(bundle, text)[:sentences]
    original = Candidate(bundle.path, bundle.engine["name"], bundle.engine.get("precision", "float32"))
    with TemporaryDirectory(prefix="softgaze-bench-") as directory:
        models = [original, *(exports(bundle, Path(directory)) if original.engine == "torch" else ())]
        jobs = [
            (candidate, setting)
            for candidate in models
            for setting in benchmark_settings(candidate.engine, candidate.precision, thread_counts())
        ]
        results, meter = [], LoadMeter()
        with progress(len(jobs), "settings") as advance:
            for candidate, setting in jobs:
                results.append(run_benchmark(candidate.path, setting, texts, languages))
                advance(1)
        if busy := meter.warning():
            warn(busy)
    if as_json:
        print_json({"model": str(model), "settings": [result.to_dict() for result in results]})
        return
    typer.echo(table_text(map(table_row, results), header=TABLE_HEADER, numbers_from=5))
    typer.echo("\n" + "\n".join(recommendations(model, bundle.engine["name"], results)))


def benchmark_sentences(bundle: "Bundle", path: Path | None) -> list[str]:
    """Return the non-empty lines of the file, or the validation sentences of the model."""
    from softgaze.data.corpus import read_lines

    if path is None and bundle.held_out is None:
        raise UsageError(f"{bundle.path}: contains no validation data; give sentences with --text FILE")
    lines = read_lines(path) if path else (source for source, _ in bundle.held_out or ())
    sentences = [line for line in lines if line.strip()]
    if not sentences:
        raise DataError(f"{path or bundle.path}: contains no sentence to translate")
    return sentences


def exports(bundle: "Bundle", directory: Path) -> Iterator[Candidate]:
    """Yield an export to every installed engine that can run the model, in every precision."""
    from softgaze.engines import ENGINES
    from softgaze.engines.export import TARGETS, export

    model = bundle.model()
    for engine, target in TARGETS.items():
        if not all(map(find_spec, (target.package, *ENGINES[engine].packages))):
            continue
        for precision in target.precisions:
            path = directory / f"{engine}-{precision}"
            path.mkdir()
            try:
                export(bundle, model, path, engine, precision, None)
            except SoftgazeError as reason:  # this engine cannot run this model
                warn(f"skipped {engine}: {reason}")
                break
            yield Candidate(path, engine, precision)


def table_row(result: "BenchmarkResult") -> tuple[str, ...]:
    setting = result.setting
    batch = "single" if setting.one_at_a_time else "many"
    settings = setting.engine, setting.precision, str(setting.threads), str(setting.beam_size), batch
    return (*settings, f"{result.sentences_per_second:,.1f}", f"{result.tokens_per_second:,.0f}")


def recommendations(model: Path, engine: str, results: "Sequence[BenchmarkResult]") -> list[str]:
    """Return the fastest setting for batches and for single sentences, and the command that exports to it."""
    from softgaze.evaluation.benchmark import fastest

    lines = []
    for purpose, alone in (("batches", False), ("single sentences", True)):
        best = fastest(results, beam_size=opt.DEFAULT_BEAM_SIZE, one_at_a_time=alone)
        setting = best.setting
        lines.append(
            f"fastest for {purpose}: {setting.engine} {setting.precision}, {count_of(setting.threads, 'thread')}, "
            f"{best.tokens_per_second:,.0f} tokens/s (beam size {opt.DEFAULT_BEAM_SIZE})"
        )
        if setting.engine != engine:
            lines.append(f"  softgaze export {model} --to {setting.engine} --quantize {setting.precision} -o DIR")
    return list(dict.fromkeys(lines))

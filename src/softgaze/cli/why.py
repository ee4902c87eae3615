"""`softgaze why`: the cost of layer types, and how far apart the words are that trained models relate."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import argument, option
from softgaze.cli._output import check_output_path, json_line, progress, report_written, warn
from softgaze.errors import DataError, UsageError

if TYPE_CHECKING:
    from softgaze.data.corpus import Pair

SUFFIXES = (".svg", ".json", ".txt", ".png", ".pdf")


def why(
    models: Annotated[list[Path] | None, argument("Directories of trained models.", "MODEL")] = None,
    test: opt.TestFiles = None,
    source_lang: opt.ModelSource = None,
    target_lang: opt.ModelTarget = None,
    lengths: Annotated[str | None, option("Sequence lengths.", metavar="N,N,…", default="64,128,256,512,1024")] = None,
    widths: Annotated[str | None, option("Widths of the vectors.", metavar="D,D,…", default="64,128,256")] = None,
    as_json: opt.Json = False,
    outputs: Annotated[
        list[Path] | None,
        option(f"Also write FILE ({', '.join(SUFFIXES)}). Repeatable.", "--output", "-o", metavar="FILE"),
    ] = None,
    device: Annotated[
        str | None, option("Device of the models: auto, cpu, cuda, cuda:N, mps.", metavar="DEVICE", default="auto")
    ] = None,
) -> None:
    """Measure the cost and reach of self-attention.

    softgaze why -o layers.svg
    softgaze why runs/rnn runs/transformer --test test.en test.de -o far.svg

    Without MODEL: counts the operations, sequential steps and path lengths
    of self-attention, recurrent, convolutional and local self-attention
    layers, measures time and memory on the CPU, and compares both with
    theory. Takes about a minute.

    With MODEL: how strongly an output word depends on a source word, by
    their distance, measured by gradient and by occlusion. Uses at most 100
    pairs of evenly spread lengths, and the same words for all models.

    far_to_near is the mean effect in the farthest distance bucket
    divided by that in the nearest. to_first divides it by the first
    model's value: below 1, the effect decays faster than in the first model.
    Each has a 95 % confidence interval, or null and a reason ("lacking").
    """
    from softgaze.runtime import need_torch

    for path in outputs or []:
        check_output_path(path, SUFFIXES)
    if models and test is None:
        raise UsageError("MODEL needs test sentences: --test SRC TGT")
    if test is not None and not models:
        raise UsageError("--test needs at least one MODEL; leave it out to measure layers")
    if models and test is not None:
        opt.reject_options("with MODEL; it is for layers", {"--lengths": lengths, "--widths": widths})
        languages = opt.LanguagePair(source_lang, target_lang)
        measure_models(models, test, languages, device or "auto", outputs or [], as_json)
    else:
        given = {"--device": device, "--source-lang": source_lang, "--target-lang": target_lang}
        opt.reject_options("without MODEL; layers are measured on the CPU", given)
        need_torch()
        measure_layers(opt.parse_ints("--lengths", lengths), opt.parse_ints("--widths", widths), outputs or [], as_json)


def measure_layers(lengths: list[int] | None, widths: list[int] | None, outputs: Sequence[Path], as_json: bool) -> None:
    """Print and write the complexity study of layer types."""
    from softgaze.evaluation.benchmark import LoadMeter
    from softgaze.evaluation.complexity.report import study_chart, study_crossings, study_text
    from softgaze.evaluation.complexity.study import LENGTHS, ROUNDS, WIDTHS, check_sizes, run_study, study_steps

    sizes = lengths or LENGTHS, widths or WIDTHS
    check_sizes(*sizes)
    meter = LoadMeter()
    with progress(study_steps(*sizes, ROUNDS), "steps") as advance:
        result = run_study(*sizes, ROUNDS, lambda: advance(1))
    if busy := meter.warning():
        warn(busy)
    record = {**result.to_dict(), "crossings": study_crossings(result)}
    write_results(record, study_text(result), lambda: study_chart(result), outputs, as_json)


def measure_models(
    models: Sequence[Path],
    test: tuple[Path, Path],
    languages: opt.LanguagePair,
    device: str,
    outputs: Sequence[Path],
    as_json: bool,
) -> None:
    """Print and write how the dependence on source words falls with distance."""
    from softgaze.data.corpus import read_pairs
    from softgaze.evaluation.complexity.dependence import comparable_pairs, measure_dependence, sample_by_length
    from softgaze.evaluation.complexity.report import dependence_chart, dependence_text
    from softgaze.translator import load

    candidates: list[Pair] = sample_by_length(list(read_pairs(*test)))
    if not candidates:
        raise DataError(f"{test[0]} and {test[1]} have no line with words on both sides")
    named = zip(opt.system_names(models), models, strict=True)
    translators = {name: load(path, device, **languages._asdict()) for name, path in named}
    directions = {" → ".join(opt.direction(translator)) for translator in translators.values()}
    if len(directions) > 1:
        raise UsageError(f"the models translate {' and '.join(sorted(directions))}; give models of one direction")
    pairs = comparable_pairs(translators, candidates)
    if not pairs:
        raise UsageError(
            "the models split every pair into different words, because their subwords differ and the text has no "
            "spaces; give models with the same tokenizer, or one model at a time"
        )
    with progress(len(translators), "models") as advance:
        results = measure_dependence(translators, pairs, lambda: advance(1))
    counts = len(pairs), len(candidates) - len(pairs)
    record = {
        "test": [str(path) for path in test],
        "sentences": counts[0],
        "left_out": counts[1],
        "dependence": [result.to_dict() for result in results],
    }
    text = dependence_text(results, *counts)
    write_results(record, text, lambda: dependence_chart(results, *counts), outputs, as_json)


def write_results(
    record: dict[str, Any], text: str, chart: Callable[[], str], outputs: Sequence[Path], as_json: bool
) -> None:
    """Print the results, and write each file in the format of its suffix."""
    from softgaze.atomic_io import write_text
    from softgaze.explain.render.svg import Figure

    line = json_line(record)
    typer.echo(line if as_json else text)
    for path in outputs:
        suffix = path.suffix.lower()
        if suffix in (".json", ".txt"):
            write_text(path, (line if suffix == ".json" else text) + "\n")
        else:
            Figure(chart()).save(path)
        report_written(path)

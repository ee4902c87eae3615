"""`softgaze compare`: train several architectures on the same data and budget, and write one report."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import flag, option
from softgaze.cli._output import progress, warn
from softgaze.errors import UsageError

if TYPE_CHECKING:
    from softgaze.evaluation.compare.experiment import Experiment

COMMAND = opt.PairCommand
PHRASEBOOK = "phrasebook"  # directory of the --built-in corpus in --out


def compare(
    out: Annotated[
        Path, option("Directory of models and report; run again to resume.", "--out", "-o", metavar="DIR")
    ] = Path("runs/compare"),
    train_files: opt.TrainFiles = None,
    pairs: opt.PairFiles = None,
    dev: opt.DevFiles = None,
    test: opt.TestFiles = None,
    built_in: Annotated[
        bool, flag("Use the built-in phrasebook, with test sentences of unseen lengths.", "--built-in")
    ] = False,
    source_lang: opt.SourceLang = None,
    target_lang: opt.TargetLang = None,
    vocabulary: opt.Vocabulary = None,
    archs: Annotated[
        str | None,
        option(
            "Comma-separated models, options after colons: rnn-luong:score=dot,transformer.",
            metavar="NAMES",
            default="all but captioner",
            panel=opt.MODEL_PANEL,
        ),
    ] = None,
    size: opt.ModelSize = None,
    minutes: opt.Minutes = None,
    steps: opt.Steps = None,
    beam_size: opt.BeamSize = None,
    seed: opt.Seed = None,
    config: opt.ConfigFile = None,
    assignments: opt.Assignments = None,
    device: opt.Device = "auto",
    fresh: Annotated[bool, flag("Delete the comparison in --out and start over.", "--fresh")] = False,
    job: Annotated[tuple[str, str] | None, typer.Option(hidden=True)] = None,
) -> None:
    """Train several models and compare them.

    softgaze compare --built-in --minutes 5
    softgaze compare --train t.en t.de --test test.en test.de --minutes 20

    All models share corpus, tokenizer and budget and train one after the
    other. Writes report.html, report.md and report.json: scores with
    significance tests, quality by length, size, speed, memory, learning
    curves and sample translations with their attention maps. Ctrl-C saves;
    the same command resumes.
    """
    from softgaze.evaluation.compare.experiment import (
        ARCHS,
        BUILT_IN_ARCHS,
        Experiment,
        built_in_files,
        parse_models,
        shared_settings,
    )

    if job is not None:
        run_job(Experiment.read(out), *job)
        return
    data: dict[str, Any] = {
        "train": tuple(opt.file_pairs("--train", train_files)),
        "tables": tuple(pairs or ()),
        "dev": tuple(opt.file_pairs("--dev", dev)),
        "test": test,
    }
    corpus_options = {"--train": train_files, "--pairs": pairs, "--dev": dev, "--test": test}
    if built_in:
        opt.reject_options("with --built-in; leave out one of the two", corpus_options)
    elif not train_files and not pairs:
        raise UsageError("no training data: give --train SRC TGT and --test SRC TGT, or --built-in")
    elif not test:
        raise UsageError("no test set: give --test SRC TGT, sentences that are not in the training data")
    given = opt.read_settings(
        config,
        assignments,
        {},
        model={"size": size},
        data={"source_language": source_lang, "target_language": target_lang, "vocabulary": vocabulary},
        training={"seed": seed},
        budget={"minutes": minutes, "steps": steps},
    )
    settings = shared_settings(given, None if fresh else Experiment.stored(out))
    models = parse_models(archs if archs is not None else BUILT_IN_ARCHS if built_in else ARCHS, settings)
    if built_in:
        data = {"tables": (), **built_in_files(out / PHRASEBOOK)}
    beam_size = opt.search_options(beam_size=beam_size).beam_size
    experiment = Experiment(out.resolve(), tuple(models), settings, beam_size=beam_size, device=device, **data)
    run_comparison(experiment.with_absolute_paths(), fresh)


def run_comparison(experiment: "Experiment", fresh: bool) -> None:
    """Prepare the data, run all jobs and write the report, under a lock on the directory."""
    from softgaze.data.corpus import Corpus
    from softgaze.evaluation.compare.experiment import (
        check_built_in,
        check_directory,
        clear_directory,
        storing,
        write_built_in,
    )
    from softgaze.evaluation.compare.jobs import preprocess_shared, run_jobs
    from softgaze.evaluation.compare.report import write_report
    from softgaze.training.run_directory import RunDirectory

    if not experiment.built_in:
        for corpus in filter(None, (experiment.corpus, experiment.held_out, Corpus.of([experiment.test]))):
            corpus.count()  # missing or unequal files are found before --fresh deletes anything
    check_directory(experiment.out)
    with RunDirectory(experiment.out).locked():
        if fresh:
            clear_directory(experiment.out)
        with storing(experiment):
            experiment.check_resumable()
            if experiment.built_in:
                write_built_in(experiment.out / PHRASEBOOK)
            if not experiment.encoded.exists():
                warn("preparing the corpus, once for all models")
            preprocess_shared(experiment)
            check_built_in(experiment)
        failures = run_jobs(experiment, launch_job, warn)
        if len(failures) < len(experiment.models):
            for line in write_report(experiment):
                typer.echo(line)
    for failure in failures.values():
        raise typer.Exit(failure["exit_code"])  # of the first failure


# --- jobs: each trains one model, or translates with it, in its own process


def launch_job(experiment: "Experiment", name: str, kind: str) -> int:
    """Run a job in a subprocess and return its exit code; exit with it if the job or this process was stopped."""
    from softgaze.training.signals import STOP_SIGNALS, catch_signals

    command = [sys.executable, "-m", "softgaze", "compare", "--out", str(experiment.out), "--job", kind, name]
    # In its own session the job does not see Ctrl-C, which this process forwards once: the job saves before it exits.
    with catch_signals() as stop, subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        forwarded, code = False, None
        try:
            while code is None:
                if stop.signal is not None and not forwarded:
                    process.send_signal(stop.signal)
                    forwarded = True
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(timeout=0.1)
        except BaseException:
            process.kill()
            raise
    code = code if code >= 0 else 128 - code
    if stop or code in {128 + signal for signal in STOP_SIGNALS}:
        raise typer.Exit(stop.exit_code if stop else code)
    return code


def run_job(experiment: "Experiment", kind: str, name: str) -> None:
    """Run one job in this process, the subprocess of `launch_job`."""
    from softgaze.cli._progress import training_display
    from softgaze.evaluation.compare.jobs import ModelJob, stop_with_parent

    stop_with_parent()
    model_job = ModelJob(experiment, name)
    if kind == "translate":
        with progress(model_job.sentence_count()) as advance:
            model_job.translate(advance)
    else:
        with training_display(model_job.path) as callbacks:
            model_job.train(callbacks)

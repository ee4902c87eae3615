"""`softgaze compare`: several architectures on the same text and budget, and one report. Knows flags and processes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softgaze.cli.pairs import PairCommand, in_pairs
from softgaze.cli.train import DevFiles, Files

if TYPE_CHECKING:
    from subprocess import Popen

    from softgaze.evaluation.compare.plan import Plan
    from softgaze.evaluation.compare.variants import Variant
    from softgaze.training.signals import Stop

COMMAND = PairCommand
PHRASEBOOK = "phrasebook"  # where --built-in keeps its text, in --out


def compare(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where models and report go; the same command run again goes on.")
    ] = Path("runs/compare"),
    files: Files = None,
    pairs: Annotated[
        list[Path] | None, typer.Option("--pairs", metavar="FILE", help="One TSV or JSONL file of pairs. Repeatable.")
    ] = None,
    dev: DevFiles = None,
    test: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="SRC TGT", help="Sentences no model sees in training, to score them on."),
    ] = None,
    built_in: Annotated[
        bool, typer.Option("--built-in", help="Compare on the built-in phrasebook, also beyond the trained lengths.")
    ] = False,
    archs: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Models separated by commas, options after colons: rnn-luong:score=dot,rnn-luong:score=general. "
            "Unless given: rnn, rnn-bahdanau, rnn-luong, conv and transformer; with --built-in also a transformer with "
            "sinusoidal positions.",
        ),
    ] = None,
    size: Annotated[str | None, typer.Option(help="tiny, small, base or big; for all.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Each model trains this long, over all resumes.")] = None,
    steps: Annotated[int | None, typer.Option(help="Each model trains for this many updates.")] = None,
    source_lang: Annotated[str | None, typer.Option(help="Language code; else from the file ending.")] = None,
    target_lang: Annotated[str | None, typer.Option(help="Language code; else from the file ending.")] = None,
    vocabulary: Annotated[int | None, typer.Option(help="Number of subwords; else chosen from the text.")] = None,
    seed: Annotated[int | None, typer.Option(help="Everything random follows from this number.")] = None,
    config: Annotated[Path | None, typer.Option(help="A YAML file of settings, for all.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Any setting, for all models.")
    ] = None,
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses kept at each step when translating.")] = 5,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, deleting the comparison in --out.")] = False,
    turn: Annotated[tuple[str, str] | None, typer.Option(hidden=True)] = None,
) -> None:
    """Train several architectures on the same text, tokenizer and budget, and report how they differ.

    softgaze compare --built-in --minutes 5

    softgaze compare --train train.en train.de --dev val.en val.de --test test.en test.de --minutes 20 -o runs/versus

    Writes report.html (one file, opens offline), report.md and report.json: scores with significance, quality by
    length, size, speed, memory, learning curves, and the same sentences translated by every model with their maps of
    attention. Models train one after the other. Ctrl-C saves, and the same command goes on; models that are done stay.
    """
    from softgaze.evaluation.compare.plan import Plan, absolute, stored_plan

    if turn is not None:
        take(Plan.read(out), *turn)
        return
    flags: dict[str, dict[str, Any]] = {
        "model": {"size": size},
        "data": {"source_language": source_lang, "target_language": target_lang, "vocabulary": vocabulary},
        "training": {"seed": seed},
        "budget": {"minutes": minutes, "steps": steps},
    }
    text = {
        "train": tuple(in_pairs("--train", files)),
        "tables": tuple(pairs or ()),
        "dev": tuple(in_pairs("--dev", dev)),
        "test": test,
    }
    check_text(text, built_in)
    settings = all_settings(flags, config, set_ or [], None if fresh else stored_plan(out))
    variants = variants_of(archs, settings, built_in)
    texts = built_in_text(out) if built_in else text
    plan = Plan(out.resolve(), tuple(variants), settings, beam=beam, device=device, **texts)
    run(absolute(plan), fresh)


# --- what was asked for -----------------------------------------------------------------------------------------


def check_text(text: dict[str, Any], built_in: bool) -> None:
    """Either the built-in text or somebody's own, with something to test on."""
    from softgaze.errors import UsageError

    own = [f"--{name}" for name, given in {**text, "pairs": text["tables"]}.items() if given and name != "tables"]
    if built_in and own:
        raise UsageError(f"--built-in brings its own text; leave out {own[0]}, or --built-in")
    if not built_in and not (text["train"] or text["tables"]):
        raise UsageError("nothing to train on: give --train SRC TGT and --test SRC TGT, or --built-in")
    if not built_in and not text["test"]:
        raise UsageError("nothing to score on: give --test SRC TGT, sentences that are not in the training text")


def all_settings(
    flags: dict[str, dict[str, Any]], config: Path | None, assignments: list[str], before: "Plan | None"
) -> dict[str, Any]:
    """What all models share, in a comparison that is new or goes on from `before`."""
    from softgaze.config import merged, parse_assignments, read_config
    from softgaze.evaluation.compare.plan import shared_settings

    given = {
        section: {key: value for key, value in values.items() if value is not None} for section, values in flags.items()
    }
    return shared_settings(merged(read_config(config) if config else {}, given, parse_assignments(assignments)), before)


def variants_of(archs: str | None, settings: dict[str, Any], built_in: bool) -> "list[Variant]":
    """The models that are asked for, or the usual ones."""
    from softgaze.evaluation.compare.variants import ARCHS, BUILT_IN_ARCHS, parse_variants

    usual = BUILT_IN_ARCHS if built_in else ARCHS
    return parse_variants(usual if archs is None else archs, settings)


def built_in_text(out: Path) -> dict[str, Any]:
    """The files of the phrasebook, which need not be there yet."""
    from softgaze.evaluation.compare.built_in import built_in_files

    return {"tables": (), **built_in_files(out / PHRASEBOOK)}


# --- doing it ---------------------------------------------------------------------------------------------------


def run(plan: "Plan", fresh: bool) -> None:
    """Prepare, take all turns, report; nobody else does so in the same place meanwhile."""
    from softgaze.data.corpus import Corpus
    from softgaze.evaluation.compare.plan import check_place, clear
    from softgaze.evaluation.compare.report import write_report
    from softgaze.evaluation.compare.running import take_turns
    from softgaze.training.run import RunDirectory

    if not plan.built_in:
        for text in filter(None, (plan.corpus, plan.held_out, Corpus.of([plan.test]))):
            text.count()  # missing or unequal files are found before --fresh deletes anything
    check_place(plan.out)
    with RunDirectory(plan.out).locked():
        if fresh:
            clear(plan.out)
        set_up(plan)
        failed = take_turns(plan, launch, say)
        if len(failed) < len(plan.variants):
            for line in write_report(plan):
                typer.echo(line)
    for failure in failed.values():
        raise typer.Exit(failure["exit_code"])  # of the first


def set_up(plan: "Plan") -> None:
    """The text, prepared once for all models, and the plan for whoever takes a turn."""
    from softgaze.evaluation.compare.built_in import check_whole, write_built_in
    from softgaze.evaluation.compare.plan import planning
    from softgaze.evaluation.compare.running import prepare_shared

    with planning(plan):
        plan.check_runs()
        if plan.built_in:
            write_built_in(plan.out / PHRASEBOOK, seed=plan.seed)
        if not plan.encoded.exists():
            say("preparing the text, once for all models")
        prepare_shared(plan)
        check_whole(plan)


def say(message: str) -> None:
    """Which turn it is."""
    typer.echo(message, err=True)


def launch(plan: "Plan", name: str, kind: str) -> int:
    """Take one turn in a process of its own; returns its exit code, or leaves with it when somebody asked to stop.

    A terminal's Ctrl-C reaches this process alone, which passes it on: once, so that the other saves before it leaves.
    """
    import subprocess
    import sys

    from softgaze.training.signals import CAUGHT, stoppable

    command = [sys.executable, "-m", "softgaze", "compare", "--out", str(plan.out), "--turn", kind, name]
    with stoppable() as stop, subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        try:
            code = wait(process, stop)
        except BaseException:
            process.kill()
            raise
    code = code if code >= 0 else 128 - code
    if stop or code in {128 + number for number in CAUGHT}:
        raise typer.Exit(stop.exit_code if stop else code)
    return code


def wait(process: "Popen[bytes]", stop: "Stop") -> int:
    """Until it ends; asked to stop, ask it to."""
    from subprocess import TimeoutExpired

    told = False
    while True:
        if stop.signal is not None and not told:
            process.send_signal(stop.signal)
            told = True
        try:
            return process.wait(timeout=0.1)
        except TimeoutExpired:
            continue


def take(plan: "Plan", kind: str, name: str) -> None:
    """The other side of `launch`: one turn, in this process."""
    from softgaze.cli.progress import listener_for
    from softgaze.cli.translate import progress
    from softgaze.evaluation.compare.turns import Turn, stop_with_parent
    from softgaze.training import Interrupted

    stop_with_parent()
    turn = Turn(plan, name)
    if kind == "translate":
        with progress(turn.amount()) as advance:
            turn.translate(advance)
        return
    listener = listener_for(turn.path)
    try:
        turn.train(listener)
    except Interrupted as stopped:
        typer.echo(f"softgaze: {stopped}", err=True)
        raise typer.Exit(stopped.exit_code) from None
    finally:
        listener.close()

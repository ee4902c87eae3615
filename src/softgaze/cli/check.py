"""`softgaze check`: report the quality of a parallel corpus, and write a fixed copy."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import argument, option
from softgaze.cli._output import print_json, progress
from softgaze.errors import DataError, UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from softgaze.data.corpus import Corpus
    from softgaze.data.quality import LengthStatistics, QualityReport, SideStatistics

LEVEL_STYLES = {"fatal": "bold red", "warning": "yellow", "note": "cyan"}
BLOCKS = " ▁▂▃▄▅▆▇█"


def check(
    source: Annotated[Path | None, argument("Source sentences, one per line (.gz too).", "SRC")] = None,
    target: Annotated[Path | None, argument("Their translations: line n translates line n.", "TGT")] = None,
    pairs: opt.PairFiles = None,
    as_json: opt.Json = False,
    fix: Annotated[
        Path | None, option("Write the usable pairs to OUT.<source> and OUT.<target>.", metavar="OUT")
    ] = None,
) -> None:
    """Check a parallel corpus before training.

    softgaze check train.en train.de
    softgaze check --pairs train.tsv --fix clean

    Reports undecodable lines, empty and one-sided pairs, duplicates,
    extreme lengths, wrong scripts, leftover markup, and ranges where one
    file is shifted against the other. The corpus itself is the reference;
    no language needs to be known.

    Exit code 0, with warnings too; 3 if the corpus cannot be trained on
    (undecodable lines, files of different length). With --fix, 0 if the
    fixed files could be written. The corpus itself is never changed.
    """
    from softgaze.data.corpus import Corpus
    from softgaze.data.quality import check_corpus, fix_corpus

    if source and not target:
        raise UsageError(f"{source} needs a second file with its translations, or use --pairs")
    corpus = Corpus.of([(source, target)] if source and target else [], pairs or [])
    outputs = fixed_paths(corpus, fix) if fix else None
    with progress(None, "pairs") as advance:
        done = 0

        def report_progress(pairs_read: int, total: int) -> None:
            nonlocal done
            advance(pairs_read - done)
            done = pairs_read

        report = check_corpus(corpus, report_progress)
    if not as_json:
        show_report(report)
    fixed = fix_corpus(corpus, *outputs, report) if outputs else None
    if as_json:
        print_json({**json.loads(report.to_json()), **({"fixed": vars(fixed)} if fixed else {})})
    elif outputs and fixed:
        reasons = ", ".join(f"{count:,} {code.replace('_', '-')}" for code, count in fixed.dropped.items() if count)
        moved = f", {fixed.realigned:,} of them realigned" if fixed.realigned else ""
        typer.echo(f"wrote {fixed.kept:,} pairs{moved} to {outputs[0]} and {outputs[1]}; dropped: {reasons or 'none'}")
    if report.exit_code and not fixed:
        raise typer.Exit(report.exit_code)


def fixed_paths(corpus: "Corpus", out: Path) -> tuple[Path, Path]:
    """Return the paths of the fixed files, named by language; never those of the corpus itself."""
    try:
        source, target = corpus.languages()
    except DataError:  # the report will describe the unreadable file
        source = target = None
    if not source or not target or source == target:
        source, target = "source", "target"
    outputs = out.with_name(f"{out.name}.{source}"), out.with_name(f"{out.name}.{target}")
    inputs = {path.resolve() for path in corpus.paths}
    for path in outputs:
        if path.resolve() in inputs:
            raise UsageError(f"--fix would overwrite {path}, which is being checked; choose another name")
    return outputs


# --- output


def show_report(report: "QualityReport") -> None:
    """Print the report: plain lines, or tables and colours on a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        typer.echo("\n".join(report.lines()))
        return
    console.print(f"[bold]{report.pairs:,}[/] pairs, {report.usable:,} of them readable with text on both sides")
    if report.source and report.target:
        console.print(length_table(report.source, report.target))
    for finding in report.findings:
        console.print(Text.assemble((f"{finding.level:>7}", LEVEL_STYLES[finding.level]), " ", finding.message))
        for example in finding.examples:  # as Text: the corpus must not be parsed as markup
            console.print(Text(f"        {example.location}: {example.text}", "dim"), overflow="ellipsis", no_wrap=True)
    if not report.findings:
        console.print("no problems found", style="green")


def length_table(source: "SideStatistics", target: "SideStatistics") -> "Table":
    from rich.table import Table

    table = Table("", "min", "median", "mean", "95 %", "99 %", "max", "histogram of lengths", box=None)
    for column in table.columns[1:7]:
        column.justify = "right"
    for name, side in (("source", source), ("target", target)):
        script = max(side.scripts, key=lambda script: side.scripts[script], default="no letters")
        table.add_row(f"[bold]{name}[/] {side.language or ''} ({script})")
        for unit, lengths in (("words", side.words), ("characters", side.characters)):
            middle = (lengths.median, round(lengths.mean, 1), lengths.p95, lengths.p99)
            numbers = (f"{number:,}" for number in (lengths.minimum, *middle, lengths.maximum))
            table.add_row(f"  {unit}", *numbers, sparkline(lengths))
    return table


def sparkline(lengths: "LengthStatistics") -> str:
    """Draw a histogram in one line of text; every non-zero count is visible."""
    highest = max((count for _, _, count in lengths.histogram), default=0)
    levels = (-(-count * (len(BLOCKS) - 1) // max(1, highest)) for _, _, count in lengths.histogram)
    first, last = lengths.histogram[0][0], lengths.histogram[-1][0]
    return f"{first}│{''.join(BLOCKS[level] for level in levels)}│{last}+"

"""`softgaze check`: show what the data doctor finds, and write what can be kept. Knows printing, not data."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from softgaze.data.corpus import Corpus
    from softgaze.data.doctor import Finding, Fixed, Lengths, Report, Side

_COLOURS = {"fatal": "bold red", "warning": "yellow", "note": "cyan"}
_BLOCKS = " ▁▂▃▄▅▆▇█"


def check(
    source: Annotated[
        Path | None, typer.Argument(metavar="SRC", help="Source sentences, one on each line (.gz too).")
    ] = None,
    target: Annotated[
        Path | None, typer.Argument(metavar="TGT", help="Their translations: line n translates line n.")
    ] = None,
    pairs: Annotated[
        list[Path] | None, typer.Option("--pairs", metavar="FILE", help="A .tsv or .jsonl of pairs; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
    fix: Annotated[
        Path | None, typer.Option("--fix", metavar="OUT", help="Write what can be kept to OUT.<language>, two files.")
    ] = None,
) -> None:
    """Examine parallel text before training on it: what is broken, odd or out of step, and on which lines.

    Looks for lines that cannot be read, empty or one-sided lines, repeats, extreme lengths, the wrong script, leftover
    markup, and ranges where one file slipped against the other ("pairs 10,400–10,471 look shifted by 1"). Everything is
    judged against the corpus itself; no language needs to be known.

    softgaze check train.en train.de

    softgaze check --pairs train.tsv --fix clean

    Exit code 0, even with warnings; 3 for what would stop training: lines that cannot be read, files of different
    length. With --fix, 0 if the fixed files could be written; the corpus itself is never changed.
    """
    from softgaze.data.doctor import examine

    corpus = _corpus(source, target, pairs or [])
    outputs = _outputs(corpus, fix) if fix else None
    with _progress() as progress:
        report = examine(corpus, progress)
    if not as_json:
        _show(report)
    fixed = _fix(corpus, outputs, report) if outputs else None
    if as_json:
        typer.echo(_as_json(report, fixed))
    elif outputs and fixed:
        _show_fixed(fixed, outputs)
    if report.exit_code and not fixed:
        raise typer.Exit(report.exit_code)


def _corpus(source: Path | None, target: Path | None, tables: list[Path]) -> "Corpus":
    from softgaze.data.corpus import Corpus
    from softgaze.errors import UsageError

    if source and not target:
        raise UsageError(f"{source} alone is half a corpus; name the file of its translations too, or use --pairs")
    return Corpus.of([(source, target)] if source and target else [], tables)


def _outputs(corpus: "Corpus", out: Path) -> tuple[Path, Path]:
    """Name the fixed files after their languages; refuse to write over what is being checked."""
    from softgaze.errors import DataError, UsageError

    try:
        source, target = corpus.languages()
    except DataError:  # the report will say what is wrong with the file
        source = target = None
    if not source or not target or source == target:
        source, target = "source", "target"
    outputs = out.with_name(f"{out.name}.{source}"), out.with_name(f"{out.name}.{target}")
    own = {path.resolve() for path in corpus.paths}
    for path in outputs:
        if path.resolve() in own:
            raise UsageError(f"--fix would write over {path}, which is being checked; choose another name")
    return outputs


def _fix(corpus: "Corpus", outputs: tuple[Path, Path], report: "Report") -> "Fixed":
    from softgaze.data.doctor import fix

    return fix(corpus, *outputs, report)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar on stderr while the corpus is read, if someone is there to see it."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bars:
        task = bars.add_task("reading")
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _as_json(report: "Report", fixed: "Fixed | None") -> str:
    import json

    record = json.loads(report.to_json())
    if fixed:
        record["fixed"] = vars(fixed)
    return json.dumps(record, ensure_ascii=False, indent=2)


def _show(report: "Report") -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        for line in report.lines():
            typer.echo(line)
        return
    console.print(f"[bold]{report.pairs:,}[/] pairs, {report.usable:,} of them readable with text on both sides")
    if report.source and report.target:
        console.print(_lengths_table(report.source, report.target))
    for finding in report.findings:
        _show_finding(console, finding)
    if not report.findings:
        console.print("nothing to complain about", style="green")


def _lengths_table(source: "Side", target: "Side") -> "Table":
    from rich.table import Table

    table = Table("", "least", "median", "mean", "95 %", "99 %", "most", "how many of each length", box=None)
    for column in table.columns[1:7]:
        column.justify = "right"
    for name, side in (("source", source), ("target", target)):
        main = max(side.scripts, key=lambda script: side.scripts[script], default="no letters")
        table.add_row(f"[bold]{name}[/] {side.language or ''} ({main})")
        for unit, lengths in (("words", side.words), ("characters", side.characters)):
            middle = (lengths.median, round(lengths.mean, 1), lengths.p95, lengths.p99)
            numbers = (f"{number:,}" for number in (lengths.minimum, *middle, lengths.maximum))
            table.add_row(f"  {unit}", *numbers, sparkline(lengths))
    return table


def sparkline(lengths: "Lengths") -> str:
    """Draw a histogram in one line of text, from the shortest to the longest; any count at all is visible."""
    most = max((count for _, _, count in lengths.histogram), default=0)
    levels = (-(-count * (len(_BLOCKS) - 1) // max(1, most)) for _, _, count in lengths.histogram)
    first, last = lengths.histogram[0][0], lengths.histogram[-1][0]
    return f"{first}│{''.join(_BLOCKS[level] for level in levels)}│{last}+"


def _show_finding(console: "Console", finding: "Finding") -> None:
    from rich.text import Text

    console.print(Text.assemble((f"{finding.level:>7}", _COLOURS[finding.level]), " ", finding.message))
    for example in finding.examples:  # as Text: what a corpus holds must not be read as markup
        console.print(Text(f"        {example.place}: {example.text}", "dim"), overflow="ellipsis", no_wrap=True)


def _show_fixed(fixed: "Fixed", outputs: tuple[Path, Path]) -> None:
    reasons = ", ".join(f"{count:,} {code.replace('_', '-')}" for code, count in fixed.dropped.items() if count)
    moved = f", {fixed.realigned:,} of them moved to the line they fit" if fixed.realigned else ""
    typer.echo(f"kept {fixed.kept:,} pairs{moved}, in {outputs[0]} and {outputs[1]}; left out: {reasons or 'none'}")

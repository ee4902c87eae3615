"""Output of commands: JSON, tables, progress, and files that appear complete or not at all."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import BinaryIO

import typer

from softgaze.errors import ResourceError, UsageError

# Legal in JSON, but some readers of JSON lines end a line here, and a terminal reverses the text that follows.
UNSAFE_IN_LINES = re.compile("[\x7f-\x9f\u2028-\u202e\ud800-\udfff]")

FIGURE_SUFFIXES = (".html", ".svg", ".png", ".pdf", ".json")


def warn(message: str) -> None:
    """Print one line to stderr."""
    typer.echo(message, err=True)


@contextmanager
def interruption(consequence: str) -> Iterator[None]:
    """Report the consequence of Ctrl-C on one line."""
    try:
        yield
    except KeyboardInterrupt:
        warn(f"softgaze: stopped; {consequence}")
        raise


# --- JSON and tables


def json_line(record: object) -> str:
    """Return JSON on one line, without characters that end a line or act on a terminal."""
    text = json.dumps(record, ensure_ascii=False)
    return UNSAFE_IN_LINES.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def print_json(record: object) -> None:
    typer.echo(json.dumps(record, ensure_ascii=False, indent=2))


def table_text(rows: Iterable[Sequence[str]], *, header: Sequence[str] = (), numbers_from: int = 99) -> str:
    """Return a table as text; columns from index `numbers_from` on are right-aligned.

    Long cells wrap to the width of a terminal, and never elsewhere.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [list(map(Text, row)) for row in rows]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(header))
    for index in range(max(map(len, [header, *cells]), default=0)):
        name = Text(header[index]) if header else ""
        table.add_column(name, justify="right" if index >= numbers_from else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else 10_000
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def count_of(count: int, noun: str) -> str:
    """Return `1 word` or `2 words`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# --- files


def check_output_path(path: Path | None, suffixes: Sequence[str] = FIGURE_SUFFIXES) -> None:
    """Reject a path that cannot be written, before a model is loaded; without `suffixes` any name is right."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file, such as {path / ('out' + ''.join(suffixes[:1]))}")
    if suffixes and path.suffix.lower() not in suffixes:
        raise UsageError(f"{path}: unknown file type; the name must end in {', '.join(suffixes)}")
    directory = path.resolve().parent
    if not directory.is_dir():
        raise ResourceError(f"{path}: cannot be written: there is no directory {path.parent}")
    if not os.access(directory, os.W_OK):
        raise ResourceError(f"{path}: cannot be written: no permission to write to the directory {path.parent}")


@contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
    """Open stdout, or a file that is renamed to `path` when complete."""
    if path is None:
        yield sys.stdout.buffer
    elif path.exists() and not path.is_file() and not path.is_dir():  # a pipe or device must not be replaced
        with path.open("wb") as file:
            yield file
    else:
        from softgaze.atomic_io import replace_file

        with replace_file(path.resolve()) as file:
            yield file


def report_written(path: Path) -> None:
    warn(f"wrote {path} ({path.stat().st_size / 1000:,.0f} kB)")


# --- progress

LOG_SECONDS = 15.0  # between two lines of a step, if stderr is not a terminal


@contextmanager
def progress(
    total: int | None, unit: str = "lines", *, enabled: object = True, transient: bool = True
) -> Iterator[Callable[[int], None]]:
    """Show speed and remaining time on stderr: a progress bar on a terminal, lines elsewhere if it takes long.

    Yields the function that advances it. The remaining time follows from the mean speed so far: work arrives in
    batches, and rich's own estimate, over the last few seconds, jumps with each of them.
    """
    started = monotonic()

    def status(done: float) -> tuple[str, str]:
        """Return the speed, and the remaining time if it is known, else the elapsed time."""
        elapsed = max(monotonic() - started, 1e-9)
        speed = f"{done / elapsed:,.1f} {unit}/s"
        if total is not None and 0 < done < total:
            return speed, f"{timedelta(seconds=round(elapsed / done * (total - done)))} left"
        return speed, f"{timedelta(seconds=round(elapsed))}"

    if not enabled:
        yield lambda amount: None
        return
    if not sys.stderr.isatty():
        done, shown = 0, started

        def log(amount: int) -> None:
            nonlocal done, shown
            done += amount
            if monotonic() - shown >= LOG_SECONDS:
                shown = monotonic()
                of_total = "" if total is None else f" of {total:,}"
                warn(f"{done:,}{of_total} {unit}, {', '.join(status(done))}")

        yield log
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[time]}"))
    with Progress(*columns, console=Console(stderr=True), transient=transient) as bars:
        task = bars.add_task(f"0 {unit}", total=total, time="")

        def advance(amount: int) -> None:
            done = bars.tasks[0].completed + amount
            speed, clock = status(done)
            bars.update(task, advance=amount, description=f"{done:,.0f} {unit}, {speed}", time=clock)

        yield advance
        bars.update(task, total=bars.tasks[0].completed)  # an unknown total is known now

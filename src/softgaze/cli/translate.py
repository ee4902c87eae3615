"""`softgaze translate`: lines in, lines out. Knows streams and printing; the translating is `softgaze.translator`'s."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

if TYPE_CHECKING:
    from softgaze.search.settings import Sampling
    from softgaze.translator import Options, Translation, Translator
    from softgaze.unfinished import Unfinished

# Line ends to some readers of JSON lines, though not to JSON: written as escapes they are safe everywhere.
ESCAPES = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}


def translate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The directory of a trained model.")],
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What to translate; else --input, else stdin.")
    ] = None,
    sources: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="FILE", help="Translate each line of FILE (.gz too).")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to FILE (.gz too) when all is done.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(metavar="ray", help="Translate over Ray: many machines, files, directories, Parquet, s3://… too."),
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Of a running Ray.  [one is started for this]")
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Hypotheses kept at each step; 1 is fastest.  [5]")] = None,
    nbest: Annotated[int, typer.Option(min=1, help="Translations of each line, tab-separated.")] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object for each line, with score and tokens.")
    ] = False,
    length_penalty: Annotated[float, typer.Option(help="Above 1 prefers longer text, below 1 shorter.")] = 1.0,
    no_repeat: Annotated[int, typer.Option(min=0, help="Never write N subwords in a row twice; 0: no such rule.")] = 0,
    prefix: Annotated[str, typer.Option(help="Words that every translation begins with.")] = "",
    batch_tokens: Annotated[
        int | None, typer.Option(min=1, help="Padded tokens × beam at once: memory against speed.  [by engine]")
    ] = None,
    window: Annotated[int | None, typer.Option(min=1, help="Lines read ahead; 1 answers each at once.  [2048]")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
    temperature: Annotated[float | None, typer.Option(help="Sample: below 1 bolder, above 1 wilder.  [1]")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample from the K likeliest subwords.  [all]")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample from the likeliest with this probability.  [1]")] = None,
    seed: Annotated[int | None, typer.Option(help="Sample: the same seed draws the same text.  [0]")] = None,
) -> None:
    """Translate text: an argument, a file, or a pipe. N lines in are N lines out, in order; an empty line stays empty.

    softgaze translate runs/m30k "A dog runs."

    softgaze translate runs/m30k --input news.en --output news.de

    cat news.en | softgaze translate runs/m30k --json > news.jsonl

    A line longer than the model can take is split at its sentences and joined again, never cut. With --nbest N a line
    holds N translations with tabs between them, best first (or, with --json, "alternatives"). Lines end at a newline
    and nowhere else. Any size of input runs in bounded memory; from --input to --output, what was interrupted goes on
    when the same command is run again. Giving --temperature, --top-k, --top-p or --seed draws
    words by their probability instead of searching for the likeliest.

    With --on ray, --input may be given several times and name directories, tables (.parquet) and URLs (s3://…), and
    --output a file, a table or, with / at its end, a directory that keeps its shards. Needs softgaze[scale].
    """
    from softgaze.search.settings import Search
    from softgaze.translator import WINDOW, load

    drawn = sampling_of(temperature, top_k, top_p, seed)
    options: Options = {
        "beam": beam_for(beam, nbest, drawn),
        "nbest": nbest,
        "length_penalty": length_penalty,
        "sampling": drawn,
        "no_repeat": no_repeat,
        "prefix": prefix,
        "batch_tokens": batch_tokens,
    }
    Search(**options)  # what cannot work is said before the model is loaded
    show = json_line if as_json else text_line
    if check_on(on, address):
        translate_on_ray(model, text, sources, target, options, window or WINDOW, show, address, device)
        return
    source, output = only(sources), Path(target) if target else None
    lines, total = input_of(text, source)
    translator = load(model, device)
    typed = text is None and source is None and sys.stdin.isatty()
    if typed:
        typer.echo("Type text and press Enter; Ctrl-D ends. (A file: --input FILE, or < FILE.)", err=True)
    size = window or (1 if typed else WINDOW)
    if source is not None and output is not None and can_go_on(source, output):
        with unfinished(source, output, translator, {**options, "window": size, "json": as_json}) as begun:
            rest = islice(lines, begun.lines, None)
            with progress(total and total - begun.lines, stays=True) as advance:
                found = translator.translate_lines(rest, window=size, progress=advance, ahead=True, **options)
                write_all(found, show, begun.file, size, begun.keep)
        return
    shown = not typed and (output or not sys.stdout.isatty())
    with writer(output) as file, progress(total, shown=shown, stays=True) as advance:
        found = translator.translate_lines(lines, window=size, progress=advance, ahead=total is not None, **options)
        write_all(found, show, file, size)


def sampling_of(
    temperature: float | None, top_k: int | None, top_p: float | None, seed: int | None
) -> "Sampling | None":
    """What the four flags ask for; None when none of them was given."""
    from softgaze.search.settings import Sampling

    flags = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    given = {name: value for name, value in flags.items() if value is not None}
    return Sampling(**given) if given else None  # type: ignore[arg-type]


def beam_for(beam: int | None, nbest: int, drawn: "Sampling | None") -> int:
    """The beam asked for, else five or as many as are to be shown."""
    from softgaze.errors import UsageError

    if beam is not None and drawn is not None:
        raise UsageError("--beam searches and --temperature, --top-k, --top-p, --seed draw; use one or the other")
    return beam if beam is not None else max(5, nbest)


# --- elsewhere --------------------------------------------------------------------------------------------------


def check_on(on: str | None, address: str | None) -> bool:
    """Whether another engine than this process translates."""
    from softgaze.errors import UsageError, pick

    if on is None and address is not None:
        raise UsageError(f"--address {address} is where a Ray is; say --on ray too")
    return on is not None and pick("engine to translate on", on, {"ray": True})


def translate_on_ray(
    model: Path,
    text: str | None,
    sources: list[str] | None,
    output: str | None,
    options: "Options",
    window: int,
    show: Callable[["Translation"], str],
    address: str | None,
    device: str,
) -> None:
    """Files to a file or a directory, by whoever is in the cluster."""
    from softgaze.errors import UsageError
    from softgaze.scale.on_ray import translate

    if text is not None or not sources or not output:
        raise UsageError("--on ray translates files: name them with --input, and where to write with --output")
    if show is json_line and output.endswith(".parquet"):
        raise UsageError(f"--json is for text; {output} is a table, which has columns for everything")
    with hushed(), progress(None) as advance:
        translate(
            model,
            sources,
            output,
            options,
            window=window,
            show=show,
            address=address,
            device=device,
            progress=advance,
        )


@contextmanager
def hushed() -> Iterator[None]:
    """What Ray has to say, in C++ to stderr and in Python to stdout, goes nowhere; we are heard on stderr as ever."""
    before = sys.stderr
    with open(os.dup(2), "w") as shown, open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        os.dup2(nowhere.fileno(), 2)
        sys.stderr = shown if before is sys.__stderr__ else before
        try:
            yield
        finally:
            sys.stderr = before
            os.dup2(shown.fileno(), 2)


# --- in ---------------------------------------------------------------------------------------------------------


def only(sources: list[str] | None) -> Path | None:
    """The one input of a process by itself."""
    from softgaze.errors import UsageError

    if sources and len(sources) > 1:
        raise UsageError(f"one --input at a time, not {len(sources)}; --on ray takes several")
    return Path(sources[0]) if sources else None


def input_of(text: str | None, source: Path | None) -> tuple[Iterable[str], int | None]:
    """The lines to translate, and how many there are if that is known."""
    from softgaze.data.corpus import count_lines, read_lines, stream_lines
    from softgaze.errors import UsageError

    if text is not None and source is not None:
        raise UsageError(f"translate the text or --input {source}? give one of them")
    if text is not None:
        lines = typed_text(text).split("\n")
        return lines, len(lines)
    if source is None or str(source) == "-":
        return stream_lines(sys.stdin.buffer, Path("stdin")), None
    if source.exists() and not source.is_file() and not source.is_dir():  # a pipe can be read only once
        return stream_lines(source.open("rb"), source), None
    if source.is_file() and not source.stat().st_size:
        return (), 0
    return read_lines(source), count_lines(source)


def typed_text(text: str) -> str:
    """An argument, unless it holds bytes that are no text."""
    from softgaze.errors import DataError

    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"TEXT is not UTF-8 at character {error.start + 1}; check the terminal's encoding") from error
    return text


# --- out --------------------------------------------------------------------------------------------------------


def text_line(found: "Translation") -> str:
    """The translation, or several with tabs between them; no translation holds a tab."""
    return "\t".join(each.text for each in (found, *found.alternatives))


def json_line(found: "Translation") -> str:
    """Everything about a translation, in one line."""
    import json

    return json.dumps(found.to_dict(), ensure_ascii=False).translate(ESCAPES)


def write_all(
    translations: Iterable["Translation"],
    show: Callable[["Translation"], str],
    file: BinaryIO,
    window: int,
    keep: Callable[[int], None] | None = None,
) -> None:
    """Write a line for each translation, and pass on, or keep, what there is whenever a window is done."""
    for number, found in enumerate(translations, 1):
        file.write(f"{show(found)}\n".encode())
        if number % window == 0:
            keep(number) if keep else file.flush()
    file.flush()


def can_go_on(source: Path, output: Path) -> bool:
    """Whether what is interrupted can be gone on with: both are plain files, and neither is the other."""
    plain = source.is_file() and output.suffix != ".gz" and (output.is_file() or not output.exists())
    return plain and source.resolve() != output.resolve()


@contextmanager
def unfinished(source: Path, output: Path, translator: "Translator", options: dict[str, Any]) -> Iterator["Unfinished"]:
    """The output as an earlier run of the same command left it, or empty."""
    from softgaze.files import sha256_of
    from softgaze.unfinished import going_on

    drawn = options["sampling"]
    asked = {**options, "sampling": drawn and vars(drawn)}
    made_from = {"input": sha256_of(source), "model": translator.bundle.files, "options": asked}
    with going_on(output.resolve(), made_from) as begun:
        if begun.lines:
            typer.echo(f"going on after {begun.lines:,} lines of {output}.part", err=True)
        yield begun


@contextmanager
def writer(path: Path | None) -> Iterator[BinaryIO]:
    """Where to write bytes: stdout, or a file that takes its name only when all of it is there."""
    if path is None:
        yield sys.stdout.buffer
    elif path.exists() and not path.is_file() and not path.is_dir():  # a pipe or device must not be replaced
        with path.open("wb") as file:
            yield file
    else:
        from softgaze.files import replacing

        with replacing(path.resolve()) as file:
            yield file


# --- progress ---------------------------------------------------------------------------------------------------


@contextmanager
def progress(
    total: int | None, *, shown: object = True, noun: str = "lines", stays: bool = False
) -> Iterator[Callable[[int], None] | None]:
    """How much is done, how fast, and the time left, on stderr, if it is a terminal and nothing else goes there.

    The time left follows from all that was done so far: lines come by the batch, and many at once look fast to a clock
    that sees little more than them. What was shown last goes when all is done, unless it `stays`.
    """
    if not shown or not sys.stderr.isatty():
        yield None
        return
    from time import monotonic

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[time]}"))
    with Progress(*columns, console=Console(stderr=True), transient=not stays) as bars:
        task, began = bars.add_task(f"0 {noun}", total=total, time=""), monotonic()

        def advance(lines: int) -> None:
            done, taken = bars.tasks[0].completed + lines, max(monotonic() - began, 1e-9)
            description = f"{done:,.0f} {noun}, {done / taken:,.1f} {noun}/s"
            bars.update(task, advance=lines, description=description, time=time_of(done, total, taken))

        yield advance
        bars.update(task, total=bars.tasks[0].completed)  # where it was not known


def time_of(done: float, total: int | None, taken: float) -> str:
    """The time left if that can be told, else the time it took, in hours, minutes and seconds."""
    from datetime import timedelta

    if total is not None and 0 < done < total:
        return f"{timedelta(seconds=round(taken / done * (total - done)))} left"
    return f"{timedelta(seconds=round(taken))}"

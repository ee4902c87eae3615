"""`softgaze why`: what makes self-attention worth having, in numbers. Knows files and printing, not how to measure."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from softgaze.data.corpus import Pair
    from softgaze.translator import Translator

ENDINGS = (".svg", ".json", ".txt", ".png", ".pdf")


def why(
    models: Annotated[
        list[Path] | None,
        typer.Argument(metavar="MODEL", help="Directories of trained models.", show_default=False),
    ] = None,
    test: Annotated[
        tuple[Path, Path] | None, typer.Option(metavar="SRC TGT", help="With MODELs: sentences and their translations.")
    ] = None,
    lengths: Annotated[
        str | None, typer.Option(metavar="N,N,…", help="Positions of a layer.  [64,128,256,512,1024]")
    ] = None,
    widths: Annotated[str | None, typer.Option(metavar="D,D,…", help="Widths of its vectors.  [64,128,256]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", metavar="FILE", help=f"Write FILE too ({', '.join(ENDINGS)}); may be repeated."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Of the MODELs: auto, cpu, cuda, cuda:N or mps.  [auto]", show_default=False)
    ] = None,
) -> None:
    """Show why self-attention: what each kind of layer costs, or what the words of trained models depend on.

    softgaze why -o layers.svg

    softgaze why runs/rnn runs/transformer --test test.en test.de -o distance.svg

    Without a MODEL: self-attention, recurrence, convolution and windowed self-attention, each the layer our models are
    made of. Operations are counted, sequential operations and longest paths are found in the layers, time and memory
    are measured on the CPU, and each is held against the theory. Takes about a minute.

    With MODELs: how strongly an output word depends on a source word, by how many words lie between them: by the
    gradient, and by what is lost when the word is left out. At most 100 of the pairs are asked about, as many long ones
    as short ones. All models are asked about the same words: source and output words that are linked by the other
    measure, for all models together.

    far ÷ near is the farthest stretch of words as a share of the nearest. Words that matter much are not spread evenly,
    so 1 is not expected even where distance does not matter. Each further model is held against the first: at 1,
    distance matters no more to it than to that one; below 1 it does. In JSON: far_to_near and to_first, each with its
    95 % band, or null and under "lacking" why.
    """
    from softgaze.cli.explain import check_output
    from softgaze.devices import need_torch

    for path in output or []:
        check_output(path, 1, ENDINGS)
    check_together(models or [], test, {"--lengths": lengths, "--widths": widths}, device)
    if test is not None:
        about_models(models or [], test, device or "auto", output or [], as_json)
        return
    need_torch()
    about_layers(numbers("--lengths", lengths), numbers("--widths", widths), output or [], as_json)


def check_together(models: Sequence[Path], test: object, of_layers: dict[str, str | None], device: str | None) -> None:
    """Some options are for layers, some for models."""
    from softgaze.errors import UsageError

    if models and test is None:
        raise UsageError("a MODEL is asked about sentences; give them with --test SRC TGT")
    if test is not None and not models:
        raise UsageError("--test is for trained models; name at least one MODEL, or leave --test out to see the layers")
    if device is not None and not models:
        raise UsageError("--device is for trained models; the layers are measured on the CPU, so leave it out")
    given = [name for name, value in of_layers.items() if value is not None]
    if models and given:
        raise UsageError(f"{given[0]} is for the layers, which are measured without a MODEL")


def numbers(option: str, text: str | None) -> list[int] | None:
    """`64,128` -> [64, 128]."""
    from softgaze.errors import UsageError

    if text is None:
        return None
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise UsageError(
            f"{option} takes whole numbers with commas between them, such as 64,128,256; not {text!r}"
        ) from None


# --- layers -----------------------------------------------------------------------------------------------------


def about_layers(lengths: list[int] | None, widths: list[int] | None, output: Sequence[Path], as_json: bool) -> None:
    """The table of layers."""
    from softgaze.evaluation.why.chart import study_chart
    from softgaze.evaluation.why.findings import crossings, differences
    from softgaze.evaluation.why.study import LENGTHS, ROUNDS, WIDTHS, check_sizes, steps, study
    from softgaze.evaluation.why.text import study_text

    sizes = lengths or LENGTHS, widths or WIDTHS
    check_sizes(*sizes)
    with advancing(steps(*sizes, ROUNDS), "steps") as advance:
        found = study(*sizes, ROUNDS, advance)
    record = {**found.to_dict(), "differences": differences(found), "crossings": crossings(found)}
    show(record, study_text(found), lambda: study_chart(found), output, as_json)


@contextmanager
def advancing(total: int, noun: str) -> Iterator[Callable[[], None]]:
    """What to call after each step."""
    from softgaze.cli.translate import progress

    with progress(total, noun=noun) as advance:
        yield lambda: advance(1) if advance else None


# --- models -----------------------------------------------------------------------------------------------------


def about_models(
    models: Sequence[Path], test: tuple[Path, Path], device: str, output: Sequence[Path], as_json: bool
) -> None:
    """What the words of each model depend on."""
    from softgaze.evaluation.why.chart import dependence_chart
    from softgaze.evaluation.why.dependence import dependences
    from softgaze.evaluation.why.text import dependence_text

    asked = read(test)
    translators = load_all(models, device)
    pairs = in_the_same_words(translators, asked)
    with advancing(len(translators), "models") as advance:
        found = dependences(translators, pairs, advance)
    counts = len(pairs), len(asked) - len(pairs)
    record = {
        "test": [str(path) for path in test],
        "sentences": counts[0],
        "left_out": counts[1],
        "dependence": [each.to_dict() for each in found],
    }
    show(record, dependence_text(found, *counts), lambda: dependence_chart(found, *counts), output, as_json)


def in_the_same_words(translators: "dict[str, Translator]", pairs: "Sequence[Pair]") -> "list[Pair]":
    """Those that compare; some must be left."""
    from softgaze.errors import UsageError
    from softgaze.evaluation.why.dependence import shared

    kept = shared(translators, pairs)
    if not kept:
        raise UsageError(
            "the models have every pair in different words: their pieces differ, and there are no spaces to go by; "
            "give models that share their pieces, or one at a time"
        )
    return kept


def read(test: tuple[Path, Path]) -> "list[Pair]":
    """The pairs that are asked about, long and short alike."""
    from softgaze.data.corpus import read_pairs
    from softgaze.errors import DataError
    from softgaze.evaluation.why.dependence import spread

    pairs = spread(list(read_pairs(*test)))
    if not pairs:
        raise DataError(f"{test[0]} and {test[1]} have no line with words on both sides")
    return pairs


def load_all(models: Sequence[Path], device: str) -> "dict[str, Translator]":
    """Each by the name of its directory, or by its path where that tells no two apart."""
    from softgaze.errors import UsageError
    from softgaze.translator import load

    short = [path.name or path.resolve().name for path in models]
    names = short if len(set(short)) == len(short) else [str(path) for path in models]
    translators = {name: load(path, device) for name, path in zip(names, models, strict=True)}
    about = [each.bundle.description for each in translators.values()]
    directions = {f"{each.source_language} → {each.target_language}" for each in about}
    if len(directions) > 1:
        raise UsageError(
            f"the models translate {' and '.join(sorted(directions))}; only models of one direction compare"
        )
    return translators


# --- out --------------------------------------------------------------------------------------------------------


def show(record: dict[str, Any], text: str, draw: Callable[[], str], output: Sequence[Path], as_json: bool) -> None:
    """On the screen, and in each file the form its ending asks for."""
    import json

    from softgaze.gaze.lettering import escaped

    line = escaped(json.dumps(record, ensure_ascii=False))
    typer.echo(line if as_json else text)
    for path in output:
        write(path, line, text, draw)
        typer.echo(f"wrote {path} ({path.stat().st_size / 1000:,.0f} kB)", err=True)


def write(path: Path, line: str, text: str, draw: Callable[[], str]) -> None:
    """One file; nothing half-written is left."""
    from softgaze.files import write_text
    from softgaze.gaze.figure import Figure

    ending = path.suffix.lower()
    if ending in (".json", ".txt"):
        write_text(path, (line if ending == ".json" else text) + "\n")
    else:
        Figure(draw()).save(path)

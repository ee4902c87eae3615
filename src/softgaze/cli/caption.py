"""`softgaze caption`: what a model writes of pictures, or of sounds and arrays, and where it looked for each word."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from softgaze.errors import DataError
    from softgaze.translator import Translation, Translator

ENDINGS = (".html", ".svg", ".png", ".pdf", ".json")


def caption(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The directory of a captioner, trained or exported.")],
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Pictures; for a model of features, .npy, .npz or .wav files."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write where it looked: page (.html), .svg, .png, .pdf or .json."
        ),
    ] = None,
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses kept at each step; 1 is fastest.")] = 5,
    raw: Annotated[
        bool, typer.Option("--raw", help="In .svg, .png, .pdf: cells and their numbers, not smoothed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object for each file, with where it looked.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
) -> None:
    """Write captions of pictures, and show where the model looked for each word.

    softgaze caption runs/photos beach.jpg

    softgaze caption runs/photos *.jpg -o look.html

    One file gets its caption; several get a line each, with the name before a tab. A page shows any number of pictures:
    click a word to see where it looked, or a region to see which words looked there. A file that cannot be read is
    named and left out, and the exit code is then 3.
    """
    from softgaze.errors import DataError

    check_output(output, len(files), raw=raw)
    translator = captioner(model, device)
    names = readable(translator, [str(path) for path in files])
    found = captioned(translator, names, beam)
    for each in found:
        typer.echo(json_line(each) if as_json else text_line(each, alone=len(files) == 1))
    if output is not None and found:
        write(output, found, raw)
        typer.echo(f"wrote {output} ({output.stat().st_size / 1000:,.0f} kB)", err=True)
    if len(names) < len(files):
        raise typer.Exit(DataError.exit_code)


# --- in ---------------------------------------------------------------------------------------------------------


def check_output(path: Path | None, files: int, *, raw: bool) -> None:
    """What cannot be written is said before a model is loaded."""
    from softgaze.cli.explain import check_output as check_path
    from softgaze.errors import UsageError

    check_path(path, 1, ENDINGS)
    ending = path.suffix.lower() if path else ""
    if files > 1 and ending not in ("", ".html"):
        raise UsageError(f"{path} can hold one picture, and {files} were given; a page (-o look.html) holds them all")
    if raw and ending not in (".svg", ".png", ".pdf"):
        raise UsageError("--raw is for a drawing (-o look.png); a page has a button for it")


def captioner(model: Path, device: str) -> "Translator":
    """A model that reads files."""
    from softgaze.errors import UsageError
    from softgaze.translator import load

    translator = load(model, device)
    if translator.bundle.tokenizers.source.kind == "text":
        raise UsageError(f"{model} translates text, it captions no files; use softgaze translate {model}")
    return translator


def readable(translator: "Translator", names: Sequence[str]) -> list[str]:
    """The files that can be read; of every other a line says why not."""
    read = translator.bundle.tokenizers.source.survey(names, leave_out)
    return [name for name, items in zip(names, read, strict=True) if items is not None]


def leave_out(error: "DataError") -> None:
    """Say so."""
    typer.echo(f"left out: {error}", err=True)


def captioned(translator: "Translator", names: list[str], beam: int) -> "list[Translation]":
    """What is written of each."""
    from softgaze.cli.translate import progress

    with progress(len(names), shown=len(names) > 1, noun="files") as advance:
        return list(translator.translate_lines(names, progress=advance, beam=beam))


# --- out --------------------------------------------------------------------------------------------------------


def text_line(found: "Translation", *, alone: bool) -> str:
    """The caption; of several files with the name of each."""
    from softgaze.gaze.lettering import clean

    return found.text if alone else f"{clean(found.source)}\t{found.text}"


def json_line(found: "Translation") -> str:
    """Everything about a caption, in one line."""
    import json

    from softgaze.gaze.lettering import escaped

    return escaped(json.dumps({**found.to_dict(), "attention": look_of(found)}, ensure_ascii=False))


def look_of(found: "Translation") -> dict[str, Any] | None:
    """Where each word looked; on a grid row by row, and which part of the photo it lies on."""
    attention = found.attention
    if attention is None:
        return None
    weights = attention.weights if attention.grid is None else attention.tiles
    photo = attention.recording.photo
    return {
        "shows": attention.shows,
        "grid": attention.grid,
        "crop": photo and list(photo.crop),
        "words": attention.target,
        "probabilities": [round(each, 6) for each in attention.probabilities] or None,
        "weights": weights.round(4).tolist(),
    }


def write(path: Path, found: "list[Translation]", raw: bool) -> None:
    """In the form its ending asks for; nothing half-written is left."""
    from softgaze.errors import UsageError
    from softgaze.files import write_text

    looks = [(Path(each.source).name, each.attention) for each in found if each.text and each.attention is not None]
    if not looks:
        raise UsageError(f"nothing was written of {found[0].source}, so nothing was looked at")
    _, first = looks[0]
    if path.suffix.lower() == ".html":
        write_text(path, page_of(looks))
    elif path.suffix.lower() == ".json":
        write_text(path, first.to_json() + "\n")
    else:
        first.plot(raw=raw).save(path)


def page_of(looks: Sequence[tuple[str, Any]]) -> str:
    """A page of photos; of anything else, that of one text."""
    from softgaze.errors import UsageError
    from softgaze.gaze.photo_page import photo_page

    names, attentions = zip(*looks, strict=True)
    if attentions[0].grid is not None:
        return photo_page(attentions, names)
    if len(looks) > 1:
        raise UsageError(f"a page shows many pictures, but one sound or array, and {len(looks)} were given")
    page: str = attentions[0].to_html(title=names[0])
    return page

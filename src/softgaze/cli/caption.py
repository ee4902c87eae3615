"""`softgaze caption`: captions of images, audio or feature arrays, with the attention of each word."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import argument, flag, option
from softgaze.cli._output import check_output_path, json_line, progress, report_written
from softgaze.errors import DataError, UsageError

if TYPE_CHECKING:
    from softgaze.translation import Translation


def caption(
    model: opt.Model,
    files: Annotated[list[Path], argument("Images; for a model of features .npy, .npz or audio files.", "FILE")],
    output: opt.Figure = None,
    raw: Annotated[bool, flag("In .svg, .png, .pdf: grid cells with numbers, not smoothed.", "--raw")] = False,
    mask: Annotated[
        list[str] | None,
        option(
            "What if a region got no attention: row,column from 1, or a range 1,1-3,2. Repeatable.", metavar="REGION"
        ),
    ] = None,
    as_json: opt.JsonLines = False,
    device: opt.Device = "auto",
    beam_size: opt.BeamSize = None,
) -> None:
    """Caption images, audio or feature files.

    softgaze caption runs/photos beach.jpg
    softgaze caption runs/photos *.jpg -o attention.html
    softgaze caption runs/photos beach.jpg --mask 1,1-3,7

    Prints the caption; with several files, a line per file: name, tab,
    caption. The page shows the attention of every word on any number of
    images. An unreadable file is skipped with a message and exit code 3.
    --mask prints the caption that a model without attention to some regions
    generates; a figure then shows its attention.
    """
    from softgaze.explain.render.text_layout import clean

    check_output_path(output)
    suffix = output.suffix.lower() if output else ""
    if len(files) > 1 and suffix not in ("", ".html"):
        raise UsageError(f"{output} shows one image, got {len(files)}; a page (-o attention.html) shows several")
    if raw and suffix not in (".svg", ".png", ".pdf"):
        raise UsageError("--raw needs a figure (-o attention.png); a page has a button for it")
    search = opt.search_options(beam_size=beam_size)
    translator = opt.load_captioner(model, device)
    readable = opt.readable(translator.bundle.tokenizers.source, [*map(str, files)], opt.SkipReporter())
    with progress(len(readable), "files", enabled=len(readable) > 1) as advance:
        captions = list(translator.translate_lines(readable, search, progress=advance))
    if mask:
        captions = [without_regions(caption, mask) for caption in captions]
    for translation in captions:
        name = f"{clean(translation.source)}\t" if len(files) > 1 else ""
        typer.echo(caption_json(translation) if as_json else name + translation.text)
    if output is not None and captions:
        write_attention(output, captions, raw)
        report_written(output)
    if len(readable) < len(files):
        raise typer.Exit(DataError.exit_code)


def without_regions(caption: "Translation", masks: Sequence[str]) -> "Translation":
    """Caption the image again without attention to the regions of `masks`."""
    attention = caption.attention
    if attention is None or attention.grid is None:
        raise UsageError("--mask needs a model with attention over images")
    rows, columns = attention.grid
    masked: set[int] = set()
    for text in masks:
        match = re.fullmatch(r"(\d+),(\d+)(?:-(\d+),(\d+))?", text)
        numbers = [int(number) for number in match.groups() if number is not None] if match else [0, 0]
        top, left, bottom, right = numbers if len(numbers) == 4 else numbers * 2
        if not (1 <= top <= bottom <= rows and 1 <= left <= right <= columns):
            raise UsageError(f"--mask {text}: expected row,column or a range such as 1,1-{rows},{columns}")
        masked |= {row * columns + column for row in range(top - 1, bottom) for column in range(left - 1, right)}
    if len(masked) == rows * columns:
        raise UsageError("--mask covers the whole image; leave at least one region")
    changed: Translation = caption.explanation.what_if(mask=sorted(masked))
    return changed


def caption_json(translation: "Translation") -> str:
    """Return the caption with the attention of each word; on a grid by row, with the crop the model sees."""
    attention = translation.attention
    record: dict[str, Any] | None = None
    if attention is not None:
        weights = attention.weights if attention.grid is None else attention.tiles
        photo = attention.recording.photo
        record = {
            "shows": attention.description,
            "grid": attention.grid,
            "crop": photo and list(photo.crop),
            "words": attention.target,
            "probabilities": [round(probability, 6) for probability in attention.word_probs] or None,
            "weights": weights.round(4).tolist(),
        }
    return json_line({**translation.to_dict(), "attention": record})


def write_attention(path: Path, captions: "Sequence[Translation]", raw: bool) -> None:
    """Write the attention of the captions in the format of the file's suffix."""
    from softgaze.atomic_io import write_text
    from softgaze.explain.render.pages import image_page

    maps = [
        (Path(translation.source).name, translation.attention)
        for translation in captions
        if translation.text and translation.attention is not None
    ]
    if not maps:
        raise UsageError(f"the caption of {captions[0].source} is empty, so there is no attention to show")
    name, first = maps[0]
    if path.suffix.lower() == ".json":
        write_text(path, first.to_json() + "\n")
    elif path.suffix.lower() != ".html":
        first.plot(raw=raw).save(path)
    elif first.grid is not None:
        write_text(path, image_page([attention for _, attention in maps], [name for name, _ in maps]))
    elif len(maps) == 1:
        write_text(path, first.to_html(title=name))
    else:
        raise UsageError(f"a page shows one sound or feature array, got {len(maps)}")

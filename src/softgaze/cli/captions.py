"""`softgaze evaluate --images … --captions …`: caption a test set and score it. Knows files and printing, not scores."""

from collections.abc import Sequence
from itertools import batched
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from softgaze.cli.folders import Complaints, Folders

if TYPE_CHECKING:
    from softgaze.data.captions import Captioned
    from softgaze.data.coco import Labelled
    from softgaze.evaluation.pointing import Pointed
    from softgaze.translator import Translation, Translator


class Test(NamedTuple):
    """Files that could be read and what was written of them."""

    entries: "list[Captioned]"
    found: "list[Translation]"
    seconds: float


def evaluate_captions(
    model: Path,
    folders: Folders,
    boxes: Path | None,
    beam: int,
    as_json: bool,
    output: Path | None,
    batch_tokens: int | None,
    device: str,
) -> None:
    """Caption every file of a folder, and compare with what people wrote."""
    from softgaze.cli.caption import captioner
    from softgaze.data.captions import survey

    folder, captions = given(folders)
    complaints = Complaints()
    labelled = read_labels(boxes, captions)
    entries = survey(folder, captions, complaints)
    translator = captioner(model, device)
    check_kind(translator, model, folders)
    test = captioned(translator, entries, complaints, beam=beam, batch_tokens=batch_tokens)
    complaints.conclude()
    look = None if labelled is None else pointing(translator, test, folder, labelled)
    told = {"model": str(model), "folder": str(folder), "captions": str(captions), "beam": beam}
    show({**told, "device": str(translator.device)}, scored(translator, test), look, boxes, as_json)
    write(output, folder, test)


# --- in ---------------------------------------------------------------------------------------------------------


def given(folders: Folders) -> tuple[Path, Path]:
    """The folder and its captions."""
    folders.check(())
    folder = folders.images or folders.features
    assert folder is not None
    assert folders.captions is not None
    return folder, folders.captions


def check_kind(translator: "Translator", model: Path, folders: Folders) -> None:
    """A model of pictures reads no sounds."""
    from softgaze.errors import UsageError

    kind, named = translator.bundle.tokenizers.source.kind, "image" if folders.images else "features"
    if kind != named:
        option = "--images" if kind == "image" else "--features"
        raise UsageError(f"{model} was trained on {option} DIR, and its test is of the same kind")


def read_labels(boxes: Path | None, captions: Path) -> "dict[str, tuple[Labelled, ...]] | None":
    """Where things are in each picture; if the file does not list the pictures, that of the captions must."""
    from softgaze.data.coco import read_boxes, read_record

    if boxes is None:
        return None
    return read_boxes(boxes, None if "images" in read_record(boxes) else captions)


def captioned(translator: "Translator", entries: "Sequence[Captioned]", complaints: Complaints, **options: Any) -> Test:
    """What is written of every file that can be read, some at a time."""
    from softgaze.cli.translate import progress
    from softgaze.errors import DataError

    reader, kept, found, began = translator.bundle.tokenizers.source, [], [], perf_counter()
    with progress(len(entries), noun="files") as advance:
        for some in batched(entries, reader.together):
            read = reader.survey([str(entry.image) for entry in some], complaints)
            readable = [entry for entry, items in zip(some, read, strict=True) if items is not None]
            names = [str(entry.image) for entry in readable]
            found += translator.translate_lines(names, progress=advance, **options)
            kept += readable
    if not kept:
        raise DataError(f"none of the {len(entries):,} files with captions could be read")
    return Test(kept, found, perf_counter() - began)


# --- scores -----------------------------------------------------------------------------------------------------


def scored(translator: "Translator", test: Test) -> dict[str, Any]:
    """Against all references, and how fast."""
    from softgaze.evaluation.captioning import score_captions
    from softgaze.evaluation.speed import speed_of

    language = translator.bundle.description.target_language
    references = [entry.captions for entry in test.entries]
    scores = score_captions([each.text for each in test.found], references, language=language)
    return {"scores": scores, "speed": speed_of(test.found, test.seconds)}


def pointing(
    translator: "Translator", test: Test, folder: Path, labelled: "dict[str, tuple[Labelled, ...]]"
) -> "Pointed | None":
    """Over all nouns that name what is in the picture, and in what the model saw of it."""
    from softgaze.errors import UsageError
    from softgaze.evaluation.pointing import average, label_mentions, seen_mentions

    places, pairs = [], list(zip(test.entries, test.found, strict=True))
    for some in batched(pairs, translator.bundle.tokenizers.source.together):
        looks = translator.attentions([found for _, found in some])
        for (entry, found), attention in zip(some, looks, strict=True):
            own = labelled.get(entry.image.relative_to(folder).as_posix(), ())
            mentions = label_mentions(found.text, own)
            photo = translator.bundle.tokenizers.source.photo(str(entry.image)) if mentions else None
            if attention is not None and photo is not None:
                places += seen_mentions(attention, photo, mentions)
    if not labelled:
        raise UsageError("--boxes holds no box")
    return average(places)


# --- out --------------------------------------------------------------------------------------------------------


def show(
    told: dict[str, Any], found: dict[str, Any], look: "Pointed | None", boxes: Path | None, as_json: bool
) -> None:
    """Print the result."""
    import json

    scores, speed = found["scores"], found["speed"]
    if as_json:
        record = {**told, **scores.to_dict(), "speed": speed, "pointing": look and look._asdict()}
        typer.echo(json.dumps(record, ensure_ascii=False, indent=2))
        return
    for line in scores.lines():
        typer.echo(line)
    if boxes is not None:
        typer.echo(f"{'pointing':<8} {look or 'no noun of a caption names what has a box'}")
    rate = f"{speed['sentences_per_second']:,.1f} files/s ({told['device']}, beam {told['beam']})"
    typer.echo(f"{'speed':<8} {rate}")


def write(path: Path | None, folder: Path, test: Test) -> None:
    """The captions, each after the name of its file and a tab."""
    from softgaze.files import write_text

    if path is not None:
        lines = [
            f"{entry.image.relative_to(folder).as_posix()}\t{found.text}\n"
            for entry, found in zip(test.entries, test.found, strict=True)
        ]
        write_text(path, "".join(lines))

"""`softgaze evaluate --images … --captions …`: caption a test set and score it. Knows files, not scores."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from softgaze.cli.folders import Complaints, Folders

if TYPE_CHECKING:
    from softgaze.data.captions import Captioned
    from softgaze.data.coco import Labelled
    from softgaze.evaluation.captioning import CaptionScores
    from softgaze.evaluation.pointing import Pointed
    from softgaze.translator import Translation, Translator

    Labels = dict[str, tuple[Labelled, ...]]


class Test(NamedTuple):
    """Files that could be read and what was written of them."""

    entries: "list[Captioned]"
    found: "list[Translation]"
    seconds: float = 0.0

    def part(self, start: int, end: int) -> "Test":
        """Some of them."""
        return Test(self.entries[start:end], self.found[start:end])


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
    from softgaze.evaluation.speed import speed_of

    folder, captions = folders.one()
    complaints = Complaints()
    labelled = read_labels(boxes, captions)
    entries = survey(folder, captions, complaints)
    translator = captioner(model, device)
    check_kind(translator, model, folders)
    test = captioned(translator, entries, complaints, beam=beam, batch_tokens=batch_tokens)
    complaints.conclude()
    told = {"model": str(model), "folder": str(folder), "captions": str(captions), "beam": beam}
    result = Result(
        {**told, "device": str(translator.device)},
        score(translator, test),
        speed_of(test.found, test.seconds),
        pointing(translator, test, folder, labelled) if labelled is not None else None,
    )
    write(output, folder, test)
    typer.echo(result.as_json() if as_json else "\n".join(result.lines(is_pointing=boxes is not None)))


# --- in ---------------------------------------------------------------------------------------------------------


def check_kind(translator: "Translator", model: Path, folders: Folders) -> None:
    """A model of pictures reads no sounds."""
    from softgaze.errors import UsageError

    kind, named = translator.bundle.tokenizers.source.kind, "image" if folders.images else "features"
    if kind != named:
        option = "--images" if kind == "image" else "--features"
        raise UsageError(f"{model} was trained on {option} DIR, and its test is of the same kind")


def read_labels(boxes: Path | None, captions: Path) -> "Labels | None":
    """Where things are in each picture; if the file does not list the pictures, that of the captions must."""
    from softgaze.data.coco import read_boxes, read_record

    if boxes is None:
        return None
    return read_boxes(boxes, None if "images" in read_record(boxes) else captions)


def captioned(translator: "Translator", entries: "Sequence[Captioned]", complaints: Complaints, **options: Any) -> Test:
    """What is written of every file that can be read, some at a time."""
    from softgaze.cli.translate import progress
    from softgaze.errors import DataError

    reader = translator.bundle.tokenizers.source
    test, began = Test([], []), perf_counter()
    with progress(len(entries), noun="files") as advance:
        for start in range(0, len(entries), reader.together):
            some = entries[start : start + reader.together]
            read = reader.survey([str(entry.image) for entry in some], complaints)
            readable = [entry for entry, items in zip(some, read, strict=True) if items is not None]
            names = [str(entry.image) for entry in readable]
            test.entries.extend(readable)
            test.found.extend(translator.translate_lines(names, progress=advance, **options))
    if not test.found:
        raise DataError(f"none of the {len(entries):,} files with captions could be read")
    return test._replace(seconds=perf_counter() - began)


# --- scores -----------------------------------------------------------------------------------------------------


def score(translator: "Translator", test: Test) -> "CaptionScores":
    """Against all references."""
    from softgaze.evaluation.captioning import score_captions

    language = translator.bundle.description.target_language
    references = [entry.captions for entry in test.entries]
    return score_captions([each.text for each in test.found], references, language=language)


def pointing(translator: "Translator", test: Test, folder: Path, labelled: "Labels") -> "Pointed | None":
    """Over all nouns that name what is in the picture, and in what the model saw of it."""
    from softgaze.evaluation.pointing import average

    together = translator.bundle.tokenizers.source.together
    found: list[Pointed] = []
    for start in range(0, len(test.found), together):
        found += points(translator, test.part(start, start + together), folder, labelled)
    return average(found)


def points(translator: "Translator", test: Test, folder: Path, labelled: "Labels") -> "Iterator[Pointed]":
    """Of each noun of a few captions."""
    from softgaze.evaluation.pointing import label_mentions, seen_mentions

    looks = translator.attentions(test.found)
    for entry, found, attention in zip(test.entries, test.found, looks, strict=True):
        mentions = label_mentions(found.text, labelled.get(entry.image.relative_to(folder).as_posix(), ()))
        photo = translator.bundle.tokenizers.source.photo(str(entry.image)) if mentions else None
        if attention is not None and photo is not None:
            yield from seen_mentions(attention, photo, mentions)


# --- out --------------------------------------------------------------------------------------------------------


class Result(NamedTuple):
    """What was found out."""

    told: dict[str, Any]  # of what, and how
    scores: "CaptionScores"
    speed: dict[str, float]
    pointing: "Pointed | None"

    def as_json(self) -> str:
        """One object."""
        import json

        look = self.pointing and self.pointing._asdict()
        record = {**self.told, **self.scores.to_dict(), "speed": self.speed, "pointing": look}
        return json.dumps(record, ensure_ascii=False, indent=2)

    def lines(self, *, is_pointing: bool) -> list[str]:
        """For a terminal."""
        pointing = f"{'pointing':<8} {self.pointing or 'no noun of a caption names what has a box'}"
        rate = f"{self.speed['sentences_per_second']:,.1f} files/s ({self.told['device']}, beam {self.told['beam']})"
        return [*self.scores.lines(), *([pointing] if is_pointing else []), f"{'speed':<8} {rate}"]


def write(path: Path | None, folder: Path, test: Test) -> None:
    """The captions, each after the name of its file and a tab."""
    from softgaze.files import write_text

    if path is not None:
        lines = [
            f"{entry.image.relative_to(folder).as_posix()}\t{found.text}\n"
            for entry, found in zip(test.entries, test.found, strict=True)
        ]
        write_text(path, "".join(lines))

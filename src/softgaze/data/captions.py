r"""Captioned files: a folder of images, audio or arrays, and one file of captions, several per image. And COCO boxes.

The format of the caption file is detected from its beginning:

* ``{``: COCO JSON, "images" with "id" and "file_name", "annotations" with "image_id" and "caption".
* A tab in the first line: ``image#k<TAB>caption`` on every line; ``#k`` is optional.
* A comma in the first line: CSV. A header ``image,caption`` may order its columns freely and have others; without a
  header there are two columns. Captions with commas are quoted; a row ends at the end of its line.

Text is read as in `corpus`, also with `.gz`. White space in captions becomes single spaces. A row that cannot be used
is a `CaptionError` with its line or annotation, from 1: a path that leaves the folder, a missing image, an empty
caption. `read_captions` raises the first; `scan_captions` passes each to `on_error` and skips the row. Captions of one
image may be equal: all are references, but a corpus to train on has each once.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from softgaze.data.corpus import (
    CorpusPart,
    Languages,
    Pair,
    RowError,
    first_chunk,
    is_language,
    read_text,
    scan_lines,
    sha256_of,
)
from softgaze.data.features import SUFFIXES
from softgaze.data.images import Box
from softgaze.data.processors import FeatureProcessor, FileProcessor
from softgaze.errors import DataError, OnError, raise_error

_TAB_ROW = re.compile(r"(?P<image>.+?)(#\d+)?\t(?P<caption>.*)", re.DOTALL)
_COLUMNS = ("image", "caption")
_OUTSIDE = re.compile(r"^[/\\]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)")  # on any operating system
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")  # can be written in JSON, but not in a text file


class CaptionError(DataError):
    """A caption that cannot be used; `location` is "line 7" or "annotation 7", `kind` a category for statistics."""

    def __init__(self, path: Path, location: str, kind: str, why: str, remedy: str) -> None:
        super().__init__(f"{path}, {location}: {why}; {remedy}")
        self.path, self.location, self.kind, self.why, self.remedy = path, location, kind, why, remedy


class CaptionRow(NamedTuple):
    """One caption of the file, unchecked."""

    location: str
    image: str
    caption: str


@dataclass(frozen=True)
class CaptionedFile:
    """An image or other file and its captions, in file order."""

    path: Path
    captions: tuple[str, ...]


def read_captions(folder: Path, captions: Path) -> tuple[CaptionedFile, ...]:
    """Return every file with its captions; raise an error for the first row that cannot be used."""
    return scan_captions(folder, captions, raise_error)


def scan_captions(folder: Path, captions: Path, on_error: OnError) -> tuple[CaptionedFile, ...]:
    """Return every existing file with its usable captions, in the order of first mention."""
    if not folder.is_dir():
        raise DataError(f"{folder} {'is not a folder' if folder.exists() else 'does not exist'}; give the image folder")
    texts: dict[Path, list[str]] = {}
    exists: dict[str, bool] = {}
    for row in _rows(captions, on_error):
        try:
            path, text = _check_row(row, folder, captions, exists)
        except CaptionError as error:
            on_error(error)
        else:
            texts.setdefault(path, []).append(text)
    if not texts:
        raise DataError(f"{captions}: no caption of an image in {folder}; check the folder and the names")
    return tuple(CaptionedFile(path, tuple(captions)) for path, captions in texts.items())


def count_errors(errors: Iterable[DataError]) -> dict[str, int]:
    """Return the number of errors of each kind, most frequent first."""
    kinds = Counter(error.kind if isinstance(error, CaptionError) else "unreadable" for error in errors)
    return dict(kinds.most_common())


def _check_row(row: CaptionRow, folder: Path, captions: Path, exists: dict[str, bool]) -> tuple[Path, str]:
    """Return path and caption of a row; `exists` caches which files there are."""
    name, path = _shorten(row.image), folder / row.image
    if _OUTSIDE.search(row.image):
        remedy = "give paths relative to the folder, without .."
        raise CaptionError(captions, row.location, "outside the folder", f"{name} is outside of the folder", remedy)
    if row.image not in exists:
        try:
            exists[row.image] = path.is_file()
        except (OSError, ValueError):  # not even a possible name
            exists[row.image] = False
    if not exists[row.image]:
        remedy = "add the image or remove its captions"
        raise CaptionError(captions, row.location, "missing image", f"{name} is not in {folder}", remedy)
    text = " ".join(row.caption.split())
    if not text:
        remedy = "write a caption or remove the row"
        raise CaptionError(captions, row.location, "empty caption", f"{name} has an empty caption", remedy)
    if _NOT_TEXT.search(text):
        why = "contains NUL or half a surrogate pair"
        raise CaptionError(captions, row.location, "unreadable", why, "write the whole character")
    return path, text


def _shorten(name: str) -> str:
    return repr(name if len(name) <= 80 else f"{name[:79]}…")


# --- the three formats ------------------------------------------------------------------------------------------


def _rows(path: Path, on_error: OnError) -> Iterator[CaptionRow]:
    start = first_chunk(path).lstrip()
    if start[:1] in (b"{", b"["):
        return _coco_rows(path, on_error)
    first_line = start.partition(b"\n")[0]
    if b"\t" in first_line:
        return _line_rows(path, _TabParser(), on_error)
    if b"," in first_line:
        return _line_rows(path, _CsvParser(), on_error)
    raise DataError(f"{path}: expected captions as image,caption or image#k<TAB>caption or COCO JSON")


class _TabParser:
    def parse(self, line: str) -> tuple[str, str] | None:
        match = _TAB_ROW.fullmatch(line)
        if match is None:
            raise RowError("no tab", "write image#k<TAB>caption on each line")
        return match["image"], match["caption"]


class _CsvParser:
    """Stores the columns of the header."""

    columns: list[str] | None = None

    def parse(self, line: str) -> tuple[str, str] | None:
        """Return image and caption, None for the header."""
        try:
            cells = next(csv.reader([line], strict=True), [])
        except csv.Error as error:
            raise RowError(f"not CSV ({error})", "close the quotes, double quotes inside them") from error
        if self.columns is None:
            names = [cell.strip().lower() for cell in cells]
            has_header = set(_COLUMNS) <= set(names)
            self.columns = names if has_header else list(_COLUMNS)
            if has_header:
                return None
        if len(cells) != len(self.columns):
            why = f"expected {len(self.columns)} columns, got {len(cells)}"
            raise RowError(why, "put captions with commas in quotes")
        image, caption = (cells[self.columns.index(name)] for name in _COLUMNS)
        return image.strip(), caption


def _line_rows(path: Path, parser: _TabParser | _CsvParser, on_error: OnError) -> Iterator[CaptionRow]:
    for number, line in enumerate(scan_lines(path, on_error), 1):
        if line is None:
            continue
        location = f"line {number:,}"
        try:
            parsed = parser.parse(line)
        except RowError as error:
            on_error(CaptionError(path, location, "unreadable", error.why, error.remedy))
            continue
        if parsed is not None:
            yield CaptionRow(location, *parsed)


def _coco_rows(path: Path, on_error: OnError) -> Iterator[CaptionRow]:
    record = read_coco(path)
    images, annotations = record.get("images"), record.get("annotations")
    if not isinstance(images, list) or not isinstance(annotations, list):
        raise DataError(f'{path}: not COCO captions; expected lists "images" and "annotations"')
    names = {str(image.get("id")): image.get("file_name") for image in images if isinstance(image, dict)}
    for number, annotation in enumerate(annotations, 1):
        location = f"annotation {number:,}"
        if not isinstance(annotation, dict) or not isinstance(annotation.get("caption"), str):
            why, remedy = 'no "caption"', "give the file of captions, not of boxes"
        elif isinstance(name := names.get(image_id := str(annotation.get("image_id"))), str):
            yield CaptionRow(location, name, annotation["caption"])
            continue
        else:
            why, remedy = f'no image of "images" has the id {_shorten(image_id)}', "add it or remove the annotation"
        on_error(CaptionError(path, location, "unreadable", why, remedy))


# --- COCO boxes -------------------------------------------------------------------------------------------------


class LabelledBox(NamedTuple):
    """A box and the category of the object in it."""

    box: Box
    name: str


def read_coco(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        where = f"{path}, line {error.lineno:,}, column {error.colno:,}"
        raise DataError(f"{where}: not JSON ({error.msg}); copy or download it again") from error
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number of thousands of digits
        raise DataError(f"{path}: not readable JSON ({error}); copy or download it again") from error
    if not isinstance(record, dict):
        raise DataError(f'{path}: expected a JSON object {{"images": […], "annotations": […]}}')
    return record


def read_boxes(path: Path, images: Path | None = None) -> dict[str, tuple[LabelledBox, ...]]:
    """Return the boxes of every image by its file name, in shares of the width and height that COCO records.

    `images` is the file that lists the images, if `path` does not; boxes of images that it does not list are ignored.
    """
    record = read_coco(path)
    image_record = record if images is None else read_coco(images)
    boxes: dict[str, list[LabelledBox]] = {}
    try:
        known = {image["id"]: image for image in image_record["images"]}
        names = {category["id"]: str(category["name"]) for category in record["categories"]}
        for annotation in record["annotations"]:
            if images is not None and annotation["image_id"] not in known:
                continue
            image = known[annotation["image_id"]]
            left, top, width, height = map(float, annotation["bbox"])
            size = float(image["width"]), float(image["height"])
            if not (width >= 0 and height >= 0 and min(size) > 0):
                raise ValueError(f"a box of {width:g}×{height:g} in an image of {size[0]:g}×{size[1]:g} pixels")
            labelled = LabelledBox(Box.of_pixels(left, top, width, height, size), names[annotation["category_id"]])
            boxes.setdefault(str(image["file_name"]), []).append(labelled)
    except (KeyError, TypeError, ValueError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        expected = '"images", "categories" and "annotations" with "image_id", "category_id" and "bbox"'
        raise DataError(f"{path}: not COCO boxes ({why}); expected {expected}") from error
    return {name: tuple(labelled) for name, labelled in boxes.items()}


# --- the corpus -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CaptionCorpus:
    """Captioned files as pairs to train on, like `Corpus` for text; the source of a pair is the path of a file."""

    folder: Path
    captions: Path
    entries: tuple[CaptionedFile, ...]
    processor: FileProcessor
    repeated: int = 0  # captions left out because the same file has them already
    parts: ClassVar[tuple[CorpusPart, ...]] = ()  # of text

    @classmethod
    def of(cls, folder: Path, captions: Path, processor: FileProcessor, on_error: OnError) -> "CaptionCorpus":
        """Read the captions of a folder; errors of unusable rows go to `on_error`."""
        entries = scan_captions(folder, captions, on_error)
        unique = tuple(CaptionedFile(entry.path, tuple(dict.fromkeys(entry.captions))) for entry in entries)
        repeated = sum(len(entry.captions) for entry in entries) - sum(len(entry.captions) for entry in unique)
        return cls(folder, captions, unique, processor, repeated)

    @classmethod
    def of_features(cls, folder: Path, captions: Path, on_error: OnError) -> "CaptionCorpus":
        """Read the captions of arrays or sounds; the first readable file determines the width of the frames."""
        entries = scan_captions(folder, captions, on_error)
        for entry in entries:
            try:
                processor = FeatureProcessor.from_file(entry.path)
            except DataError as error:
                on_error(error)
            else:  # the errors of rows are reported already
                return cls.of(folder, captions, processor, lambda error: None)
        raise DataError(f"none of the {len(entries):,} files can be read as features ({', '.join(SUFFIXES)})")

    def __iter__(self) -> Iterator[Pair]:
        return (Pair(str(entry.path), text) for entry in self.entries for text in entry.captions)

    def count(self) -> int:
        return len(self._file_of_pair)

    @cached_property
    def _file_of_pair(self) -> Sequence[int]:
        return [index for index, entry in enumerate(self.entries) for _ in entry.captions]

    def num_sources(self) -> int:
        return len(self.entries)

    def pairs_with_sources(self, sources: frozenset[int]) -> frozenset[int]:
        """Return the indices of all pairs of some files."""
        return frozenset(pair for pair, file in enumerate(self._file_of_pair) if file in sources)

    def sha256(self) -> dict[Path, str]:
        """Return hashes of the captions, and of names and sizes of the files: hashing images would take minutes."""
        names = [(str(entry.path.relative_to(self.folder)), entry.path.stat().st_size) for entry in self.entries]
        return {self.captions: sha256_of(self.captions), self.folder: sha256(repr(sorted(names)).encode()).hexdigest()}

    def languages(self) -> Languages:
        """Return the kind of the sources, and the language of the captions if the file name has it: `train.en.csv`."""
        codes = [suffix[1:] for suffix in self.captions.suffixes[:-1] if is_language(suffix[1:])]
        return self.processor.kind, codes[-1] if codes else None

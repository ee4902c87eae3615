r"""Captions of images on disk: a folder of images and one file of captions, several an image. Decodes no image.

The form of the file is found by looking at its beginning:

* ``{`` begins COCO's JSON: "images" with "id" and "file_name", "annotations" with "image_id" and "caption".
* A first line with a tab: ``image#k<TAB>caption`` on every line; the number of the caption may be missing.
* A first line with a comma: CSV. The header ``image,caption`` may have its columns in any order, and others between;
  without it there are two. A caption that holds commas stands in quotes; a row ends at the end of its line.

Text is read by the rules of `corpus`, also with `.gz`. White space within a caption is made single spaces, for a
caption is a line. A row that cannot be used is a `CaptionError` that names its line (or annotation), counted from 1: a
name that leads out of the folder, an image that is not there, a caption without a word, a row that stands there twice.
`read` stops at the first; `survey` tells `complain` and goes on without the row.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from softgaze.data.coco import read_record
from softgaze.data.corpus import first_chunk, survey_lines
from softgaze.errors import DataError

_NUMBERED = re.compile(r"(?P<image>.+?)(#\d+)?\t(?P<caption>.*)", re.DOTALL)
_COLUMNS = ("image", "caption")
_OUTSIDE = re.compile(r"^[/\\]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)")  # by the rules of any system
_NOT_A_LINE = re.compile("[\0\ud800-\udfff]")  # JSON can spell what no text file can hold


class CaptionError(DataError):
    """One row that cannot be used: `path`, `place` ("line 7", "annotation 7"), of which `kind`, why, what helps."""

    def __init__(self, path: Path, place: str, kind: str, why: str, remedy: str) -> None:
        super().__init__(f"{path}, {place}: {why}; {remedy}")
        self.path, self.place, self.kind, self.why, self.remedy = path, place, kind, why, remedy


Complain = Callable[[DataError], None]


class Row(NamedTuple):
    """A caption as it stands in the file: where, of which image, what."""

    place: str
    image: str
    caption: str


@dataclass(frozen=True)
class Captioned:
    """An image and its captions, in the order of the file."""

    image: Path
    captions: tuple[str, ...]


def _refuse(error: DataError) -> NoReturn:
    raise error


def read(images: Path, captions: Path) -> tuple[Captioned, ...]:
    """Every image with its captions; the first row that cannot be used is an error."""
    return survey(images, captions, _refuse)


def survey(images: Path, captions: Path, complain: Complain) -> tuple[Captioned, ...]:
    """Every image that is there with every caption that can be used; `complain` is told of all others.

    Images come in the order of their first caption. If nothing at all can be used, that is a `DataError`.
    """
    if not images.is_dir():
        raise DataError(f"{images} is {'no folder' if images.exists() else 'not there'}; name the folder of the images")
    album = _Album(images, captions)
    for row in rows(captions, complain):
        try:
            album.add(row)
        except CaptionError as error:
            complain(error)
    if not album.texts:
        raise DataError(f"{captions}: no caption of an image in {images}; check the folder and the names")
    return tuple(Captioned(image, tuple(texts)) for image, texts in album.texts.items())


def tally(errors: Iterable[DataError]) -> dict[str, int]:
    """How many complaints there were of each kind, most first: for a line to the user."""
    kinds = Counter(error.kind if isinstance(error, CaptionError) else "unreadable" for error in errors)
    return dict(kinds.most_common())


class _Album:
    """Images and captions gathered row by row."""

    def __init__(self, images: Path, captions: Path) -> None:
        self.images, self.captions = images, captions
        self.texts: dict[Path, dict[str, None]] = {}  # a set that keeps its order
        self.there: dict[str, bool] = {}  # the disk is asked once for each name

    def add(self, row: Row) -> None:
        """Take a row in, or a `CaptionError` says why not."""
        image, text = self._image(row), self._text(row)
        if text in self.texts.get(image, ()):
            raise self._unfit(row, "repeated", f"{_short(row.image)} has this caption already", "remove one of them")
        self.texts.setdefault(image, {})[text] = None

    def _image(self, row: Row) -> Path:
        if _OUTSIDE.search(row.image):
            why = f"{_short(row.image)} leads out of the folder"
            raise self._unfit(row, "outside the folder", why, "name images from the folder on, without ..")
        path = self.images / row.image
        if row.image not in self.there:
            self.there[row.image] = _is_file(path)
        if not self.there[row.image]:
            why = f"{_short(row.image)} is not in {self.images}"
            raise self._unfit(row, "missing image", why, "add the image or remove its captions")
        return path

    def _text(self, row: Row) -> str:
        text = " ".join(row.caption.split())
        if not text:
            raise self._unfit(
                row, "empty caption", f"{_short(row.image)} has no words", "write a caption or remove the row"
            )
        if _NOT_A_LINE.search(text):
            raise self._unfit(row, "unreadable", "holds NUL or half a surrogate pair", "write the whole character")
        return text

    def _unfit(self, row: Row, kind: str, why: str, remedy: str) -> CaptionError:
        return CaptionError(self.captions, row.place, kind, why, remedy)


def _is_file(path: Path) -> bool:
    """Whether it is there; a name that the system cannot even ask for is not."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _short(name: str) -> str:
    """A name for an error of one line."""
    return repr(name if len(name) <= 80 else f"{name[:79]}…")


# --------------------------------------------------------------------------------------------------------------- forms


def rows(path: Path, complain: Complain) -> Iterator[Row]:
    """Every row of a file of captions in any of the three forms; `complain` is told of those that are none."""
    start = first_chunk(path).lstrip()
    line = start.partition(b"\n")[0]
    if start[:1] in (b"{", b"["):
        return _from_record(path, complain)
    if b"\t" in line:
        return _from_lines(path, _numbered, complain)
    if b"," in line:
        return _from_lines(path, _Columns(), complain)
    raise DataError(f"{path}: no captions (image,caption or image#k<TAB>caption or COCO's JSON); is it the right file?")


class _UnfitError(ValueError):
    """A line or annotation that is no row: why, and what helps."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


Parse = Callable[[str], tuple[str, str] | None]  # None for a header


def _from_lines(path: Path, parse: Parse, complain: Complain) -> Iterator[Row]:
    for number, line in enumerate(survey_lines(path, complain), 1):
        if line is None:
            continue
        place = f"line {number:,}"
        try:
            parsed = parse(line)
        except _UnfitError as error:
            complain(CaptionError(path, place, "unreadable", error.why, error.remedy))
            continue
        if parsed is not None:
            yield Row(place, *parsed)


def _numbered(line: str) -> tuple[str, str]:
    match = _NUMBERED.fullmatch(line)
    if match is None:
        raise _UnfitError("has no tab", "write image#k<TAB>caption on each line")
    return match["image"], match["caption"]


class _Columns:
    """Rows of CSV; remembers which columns the header named."""

    def __init__(self) -> None:
        self.columns: list[str] | None = None

    def __call__(self, line: str) -> tuple[str, str] | None:
        cells = self._cells(line)
        if self.columns is None:
            names = [cell.strip().lower() for cell in cells]
            headed = set(_COLUMNS) <= set(names)
            self.columns = names if headed else list(_COLUMNS)
            if headed:
                return None
        if len(cells) != len(self.columns):
            why = f"has {len(cells)} columns, not {len(self.columns)}"
            raise _UnfitError(why, "put a caption that holds commas in quotes")
        image, caption = (cells[self.columns.index(name)] for name in _COLUMNS)
        return image.strip(), caption

    @staticmethod
    def _cells(line: str) -> list[str]:
        try:
            return next(csv.reader([line], strict=True), [])
        except csv.Error as error:
            raise _UnfitError(f"not CSV ({error})", "close the quotes, write a quote within them twice") from error


def _from_record(path: Path, complain: Complain) -> Iterator[Row]:
    record = read_record(path)
    images, annotations = record.get("images"), record.get("annotations")
    if not isinstance(images, list) or not isinstance(annotations, list):
        raise DataError(f'{path}: not captions as COCO writes them; there are no lists "images" and "annotations"')
    names = {str(each.get("id")): each.get("file_name") for each in images if isinstance(each, dict)}
    for number, annotation in enumerate(annotations, 1):
        place = f"annotation {number:,}"
        try:
            yield Row(place, *_annotated(annotation, names))
        except _UnfitError as error:
            complain(CaptionError(path, place, "unreadable", error.why, error.remedy))


def _annotated(annotation: Any, names: dict[str, Any]) -> tuple[str, str]:
    """Image and caption of one annotation."""
    if not isinstance(annotation, dict) or not isinstance(annotation.get("caption"), str):
        raise _UnfitError('has no "caption"', "is it the file of captions, not of boxes?")
    number = str(annotation.get("image_id"))
    if not isinstance(names.get(number), str):
        raise _UnfitError(f'no image of "images" has the id {_short(number)}', "add it or remove the annotation")
    return names[number], annotation["caption"]

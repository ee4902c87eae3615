"""The JSON of COCO: images, captions and boxes in lists that refer to each other by number.

Pixels of a box are those of the width and height given for its image, whatever the size of the photo at hand.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from softgaze.data.boxes import Box
from softgaze.data.corpus import read_text
from softgaze.errors import DataError


class Labelled(NamedTuple):
    """A box and what is in it."""

    box: Box
    name: str


def read_record(path: Path) -> dict[str, Any]:
    """The object in a JSON file; where it is none, one line says which character is wrong."""
    text = read_text(path)
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{path}, line {error.lineno:,}, column {error.colno:,}"
        raise DataError(f"{where}: not JSON ({error.msg}); copy or download it again") from error
    except (RecursionError, ValueError) as error:  # too deep, or a number of thousands of digits
        raise DataError(f"{path}: not JSON we can read ({error}); copy or download it again") from error
    if not isinstance(record, dict):
        raise DataError(f'{path}: not a JSON object; COCO writes {{"images": […], "annotations": […]}}')
    return record


def read_boxes(path: Path, images: Path | None = None) -> dict[str, tuple[Labelled, ...]]:
    """The boxes of every image by its file name; `images` is the file that lists the images, if this one does not.

    COCO lists them with the boxes and again with the captions; some copies keep only one list. Boxes of images that
    another file does not list, since it is of fewer, are left out.
    """
    record = read_record(path)
    listed = record if images is None else read_record(images)
    found: dict[str, list[Labelled]] = {}
    with _understood(path):
        known = {each["id"]: each for each in listed["images"]}
        names = {each["id"]: str(each["name"]) for each in record["categories"]}
        for each in record["annotations"]:
            if images is not None and each["image_id"] not in known:
                continue
            image = known[each["image_id"]]
            labelled = Labelled(_box(each["bbox"], image), names[each["category_id"]])
            found.setdefault(str(image["file_name"]), []).append(labelled)
    return {name: tuple(boxes) for name, boxes in found.items()}


def _box(pixels: Any, image: Mapping[str, Any]) -> Box:
    """Shares of the image from its pixels."""
    left, top, width, height = map(float, pixels)
    size = float(image["width"]), float(image["height"])
    if not (width >= 0 and height >= 0 and min(size) > 0):
        raise ValueError(f"a box of {width:g}×{height:g} in an image of {size[0]:g}×{size[1]:g} pixels")
    return Box.of_pixels(left, top, width, height, size)


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    """What is missing or of the wrong kind becomes one line."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        why = f"{error} is not there" if isinstance(error, KeyError) else str(error)
        form = 'COCO writes "images", "categories" and "annotations" with "image_id", "category_id" and "bbox"'
        raise DataError(f"{path}: not boxes as COCO writes them ({why}); {form}") from error

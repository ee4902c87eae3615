"""The scene corpus: images of coloured shapes with English and Korean captions and exact boxes.

Dev and test show shapes in colours that train never combines with them. The settings of all scenes are shipped; the
images are drawn from them. A corpus of fewer scenes is a prefix of the full one. Only `write` needs Pillow.
"""

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softgaze.data.corpus import write_lines
from softgaze.data.images import Box, share, write_image
from softgaze.errors import DataError

SPLITS = {"train": 10_000, "dev": 500, "test": 500}
SIDE = 64  # pixels
LANGUAGES = ("en", "ko")
SHAPES = {
    "circle": "동그라미",
    "square": "네모",
    "triangle": "세모",
    "star": "별",
    "heart": "하트",
    "cross": "십자가",
    "ring": "고리",
    "moon": "초승달",
}

_SAMPLES = 4  # sampling points per pixel in each direction

Array = npt.NDArray[Any]


class SceneObject(NamedTuple):
    """A shape; lengths are shares of the image side, (x, y) is the centre, `angle` is in radians, clockwise."""

    shape: str
    rgb: tuple[int, int, int]
    x: float
    y: float
    radius: float
    angle: float


@dataclass(frozen=True, slots=True)
class Scene:
    """Objects in reading order on a coloured background, and one caption per language."""

    objects: tuple[SceneObject, ...]
    background: tuple[int, int, int]
    captions: dict[str, str]

    def nouns(self, language: str = "en") -> tuple[int, ...]:
        """Return, for each object, the 0-based index of the caption word that names it."""
        names = set(SHAPES if language == "en" else SHAPES.values())
        words = self.captions[language].split()
        return tuple(index for index, word in enumerate(words) if word.strip(",") in names)


class Drawing(NamedTuple):
    """An image (side, side, 3) of bytes, and the box of each object."""

    pixels: Array
    boxes: tuple[Box, ...]


def load(split: str, scenes: int = SPLITS["train"]) -> tuple[Scene, ...]:
    """Return one split of the corpus with `scenes` training images; dev and test have `scenes // 20`."""
    if not 1 <= scenes <= SPLITS["train"]:
        raise DataError(f"scenes: expected 1 to {SPLITS['train']:,} images, got {scenes:,}")
    return _read()[split][: scenes if split == "train" else scenes // 20]


@cache
def _read() -> dict[str, tuple[Scene, ...]]:
    with (files("softgaze.data.corpora") / "scenes.npz").open("rb") as file, np.load(file) as arrays:
        backgrounds, counts = arrays["backgrounds"].tolist(), arrays["counts"].tolist()
        kinds, geometry = arrays["kinds"].tolist(), unpack_geometry(arrays["geometry"]).tolist()
        palette = [tuple(rgb) for rgb in arrays["palette"].tolist()]
        captions = {language: arrays[language].tobytes().decode().split("\n") for language in LANGUAGES}
    names = list(SHAPES)
    objects = iter(
        [SceneObject(names[shape], palette[colour], *row) for (shape, colour), row in zip(kinds, geometry, strict=True)]
    )
    scenes = [
        Scene(tuple(next(objects) for _ in range(count)), tuple(rgb), {"en": english, "ko": korean})
        for count, rgb, english, korean in zip(counts, backgrounds, captions["en"], captions["ko"], strict=True)
    ]
    dev, test = SPLITS["train"], SPLITS["train"] + SPLITS["dev"]
    return {"train": tuple(scenes[:dev]), "dev": tuple(scenes[dev:test]), "test": tuple(scenes[test:])}


# Range of x, y, radius and angle. 32 bits each are enough to draw the same pixels as float64.
_GEOMETRY_SPAN, _GEOMETRY_START = np.array([1, 1, 0.25, 0.5]), np.array([0, 0, 0, -0.25])


def pack_geometry(geometry: Array) -> Array:
    """Store (objects, 4) floats as fixed-point numbers of 32 bits."""
    packed: Array = np.rint((geometry - _GEOMETRY_START) * (2**32 / _GEOMETRY_SPAN)).astype(np.uint32)
    return packed


def unpack_geometry(packed: Array) -> Array:
    """Invert `pack_geometry` up to rounding."""
    geometry: Array = packed / (2**32 / _GEOMETRY_SPAN) + _GEOMETRY_START
    return geometry


# --- drawing ----------------------------------------------------------------------------------------------------


def draw(scene: Scene, side: int = SIDE) -> Drawing:
    """Draw a scene with antialiased edges."""
    pixels = np.empty((side, side, 3))
    pixels[:] = scene.background
    boxes = tuple(_draw_object(pixels, item) for item in scene.objects)
    return Drawing(np.rint(pixels).astype(np.uint8), boxes)


def _draw_object(pixels: Array, item: SceneObject) -> Box:
    """Blend an object into the image and return the smallest box around its pixels."""
    side = len(pixels)
    left, top = math.floor((item.x - item.radius) * side), math.floor((item.y - item.radius) * side)
    right, bottom = math.ceil((item.x + item.radius) * side), math.ceil((item.y + item.radius) * side)
    x = (_sampling_points(left, right) / side - item.x) / item.radius
    y = (_sampling_points(top, bottom)[:, None] / side - item.y) / item.radius
    cosine, sine = math.cos(item.angle), math.sin(item.angle)
    inside = contains(item.shape, cosine * x + sine * y, cosine * y - sine * x)
    coverage = inside.reshape(bottom - top, _SAMPLES, right - left, _SAMPLES).mean(axis=(1, 3))
    region = pixels[top:bottom, left:right]
    region += coverage[:, :, None] * (np.array(item.rgb) - region)
    columns, rows = (np.flatnonzero(coverage.max(axis=axis)).tolist() for axis in (0, 1))
    width, height = columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1
    return Box.of_pixels(left + columns[0], top + rows[0], width, height, (side, side))


def _sampling_points(start: int, stop: int) -> Array:
    return start + (np.arange((stop - start) * _SAMPLES) + 0.5) / _SAMPLES


def contains(shape: str, x: Array, y: Array) -> Any:
    """Return which points lie inside a shape of radius 1 around the origin; y points down."""
    match shape:
        case "circle":
            return x**2 + y**2 <= 0.92**2
        case "square":
            return np.maximum(abs(x), abs(y)) <= 0.70
        case "triangle":
            return (y <= 0.5) & (math.sqrt(3) * abs(x) <= 1 + y)
        case "star":  # folded into half of one of five points, the edge is a line from the tip to the inner corner
            fifth = 2 * math.pi / 5
            angle = abs((np.arctan2(x, -y) + fifth / 2) % fifth - fifth / 2)
            inner_x, inner_y = 0.45 * math.cos(fifth / 2), 0.45 * math.sin(fifth / 2)
            reach = inner_y / (np.sin(angle) * (1 - inner_x) + np.cos(angle) * inner_y)
            return x**2 + y**2 <= reach**2
        case "heart":
            x, y = 1.25 * x, 0.25 - 1.25 * y
            outside = x**2 + y**2 - 1
            return outside**2 * outside <= x**2 * y**2 * y
        case "cross":
            return (np.minimum(abs(x), abs(y)) <= 0.27) & (np.maximum(abs(x), abs(y)) <= 0.92)
        case "ring":
            return abs(np.hypot(x, y) - 0.73) <= 0.22
        case "moon":
            return (x**2 + y**2 <= 0.96**2) & ((x - 0.46) ** 2 + (y + 0.12) ** 2 > 0.76**2)
    raise ValueError(f"unknown shape {shape!r}; expected one of {', '.join(SHAPES)}")


def chance(scenes: Sequence[Scene], side: int = SIDE) -> float:
    """Return the share of a uniform attention map that lies in the right box, averaged over all objects."""
    shares = [share([box]) for scene in scenes for box in draw(scene, side).boxes]
    return sum(shares) / len(shares)


# --- files ------------------------------------------------------------------------------------------------------


def write(directory: Path, scenes: int = SPLITS["train"], side: int = SIDE) -> None:
    """Write images/, SPLIT.LANGUAGE.csv (Flickr8k captions), SPLIT.boxes.json (COCO boxes) and a README.txt."""
    (directory / "images").mkdir(parents=True, exist_ok=True)
    corpus = {split: load(split, scenes) for split in SPLITS}
    for split, members in corpus.items():
        names = [f"{split}-{index:06d}.png" for index in range(len(members))]
        for language in LANGUAGES:
            with (directory / f"{split}.{language}.csv").open("w", encoding="utf-8", newline="") as file:
                table = csv.writer(file, lineterminator="\n")
                table.writerow(("image", "caption"))
                table.writerows((name, scene.captions[language]) for name, scene in zip(names, members, strict=True))
        record = _write_images(directory / "images", dict(zip(names, members, strict=True)), side)
        write_lines(directory / f"{split}.boxes.json", [json.dumps(record)])
    readme = _README.format(
        scenes=scenes,
        side=side,
        counts="\n".join(f"  {split:<6}{len(members):>8,} images" for split, members in corpus.items()),
        chance=chance(corpus["test"] or corpus["train"], side),
    )
    write_lines(directory / "README.txt", readme.splitlines())


def _write_images(directory: Path, scenes: dict[str, Scene], side: int) -> dict[str, Any]:
    """Write the images and return their COCO annotations; `word` is the index of the noun in each caption."""
    images: list[dict[str, Any]] = []
    boxes: list[dict[str, Any]] = []
    for image_id, (name, scene) in enumerate(scenes.items()):
        drawing = draw(scene, side)
        write_image(directory / name, drawing.pixels)
        images.append({"id": image_id, "file_name": name, "width": side, "height": side})
        nouns = {language: scene.nouns(language) for language in LANGUAGES}
        for index, (item, box) in enumerate(zip(scene.objects, drawing.boxes, strict=True)):
            boxes.append(
                {
                    "id": len(boxes),
                    "image_id": image_id,
                    "category_id": list(SHAPES).index(item.shape),
                    "bbox": [round(length) for length in box.pixels((side, side))],
                    "word": {language: words[index] for language, words in nouns.items()},
                }
            )
    categories = [{"id": index, "name": name} for index, name in enumerate(SHAPES)]
    return {"images": images, "categories": categories, "annotations": boxes}


_README = """\
Images of coloured shapes with captions and boxes, drawn by softgaze.

images: {scenes}   side: {side}   (the same numbers give the same files)
{counts}

SPLIT.en.csv and SPLIT.ko.csv hold one caption per file of images/, in English and in Korean.
A caption mentions the shapes in reading order: each row from left to right, the rows from top to bottom. A shape
without a size word is of medium size. SPLIT.boxes.json holds the box of each shape in COCO format (left, top,
width, height in pixels), in the order of mention; "word" is the 0-based index of the caption word that names it.
A uniform attention map has {chance:.1%} of its weight in the right box.

dev and test show shapes in colours that train never combines with them; every shape and every colour is in train.
"""

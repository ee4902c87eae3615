"""The pictures as plain files: images, captions in the form of Flickr8k, boxes in the form of COCO, and a README."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softgaze.data.images import write_image
from softgaze.data.scenes.drawing import SIDE, draw
from softgaze.data.scenes.lexicon import SHAPES
from softgaze.data.scenes.splits import SPLITS, Scenes, chance, generate
from softgaze.data.scenes.things import Scene
from softgaze.data.scenes.wording import LANGUAGES, caption


def write(directory: Path, pictures: int = 10_000, seed: int = 0, side: int = SIDE) -> Scenes:
    """Write `images/`, `train.en.csv`, `train.ko.csv` and `train.boxes.json`, the same for dev and test, a README."""
    scenes = generate(pictures, seed)
    (directory / "images").mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        shown: tuple[Scene, ...] = getattr(scenes, split)
        names = [f"{split}-{number:06d}.png" for number in range(len(shown))]
        for language in LANGUAGES:
            texts = [caption(scene, language).text for scene in shown]
            _write_table(directory / f"{split}.{language}.csv", names, texts)
        record = _pictures(directory / "images", names, shown, side)
        _write_text(directory / f"{split}.boxes.json", [json.dumps(record)])
    _write_text(directory / "README.txt", _readme(scenes, pictures, seed, side))
    return scenes


def _write_text(path: Path, lines: Sequence[str]) -> None:
    """UTF-8 with a newline after every line, on every system."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _write_table(path: Path, names: Sequence[str], texts: Sequence[str]) -> None:
    """CSV with a header; a caption with a comma in quotes."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("image", "caption"))
        table.writerows(zip(names, texts, strict=True))


def _pictures(directory: Path, names: Sequence[str], scenes: Sequence[Scene], side: int) -> dict[str, Any]:
    """Write the images; what COCO would write about their boxes, and which word names what is in each."""
    images: list[dict[str, Any]] = []
    boxes: list[dict[str, Any]] = []
    for number, (name, scene) in enumerate(zip(names, scenes, strict=True)):
        drawing = draw(scene, side)
        write_image(directory / name, drawing.pixels)
        images.append({"id": number, "file_name": name, "width": side, "height": side})
        nouns = {language: caption(scene, language).nouns for language in LANGUAGES}
        for place, (thing, box) in enumerate(zip(scene.things, drawing.boxes, strict=True)):
            words = {language: words[place] for language, words in nouns.items()}
            kind, pixels = SHAPES.index(thing.shape), [round(length) for length in box.pixels((side, side))]
            boxes.append({"id": len(boxes), "image_id": number, "category_id": kind, "bbox": pixels, "word": words})
    categories = [{"id": number, "name": shape.english} for number, shape in enumerate(SHAPES)]
    return {"images": images, "categories": categories, "annotations": boxes}


def _readme(scenes: Scenes, pictures: int, seed: int, side: int) -> list[str]:
    """What the files are, for whoever finds them."""
    counts = [f"  {split:<6}{len(getattr(scenes, split)):>8,} pictures" for split in SPLITS]
    expected = chance(scenes.test or scenes.train, side)
    return [
        "Pictures of coloured shapes with captions and boxes, drawn by softgaze.",
        "",
        f"pictures asked for: {pictures}   seed: {seed}   side: {side}   (the same numbers give the same files)",
        *counts,
        "",
        "SPLIT.en.csv and SPLIT.ko.csv hold a caption for each file of images/, in English and in Korean.",
        "Captions are read like a page: along a row from left to right, then the next row. No size means a middling",
        "one. SPLIT.boxes.json holds the box of each shape as COCO writes it (left, top, width, height in pixels), in",
        'the order of mention; "word" says which word of the caption names it. Words stand between spaces, from 0.',
        f"A gaze that is the same everywhere has {expected:.1%} of itself in the right box.",
        "",
        "dev and test show shapes in colours that train never has them in, of shapes and colours it has.",
    ]

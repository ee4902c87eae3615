"""The files: which there are, and that they are read again as what was drawn."""

import json
from pathlib import Path

import numpy
import pytest

from softgaze.data import captions
from softgaze.data.coco import read_boxes
from softgaze.data.scenes import SPLITS, caption, draw, write

pytest.importorskip("PIL", reason="pictures need softgaze[vision]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written") / "scenes"


def test_what_is_written_is_read_again(folder: Path):
    from softgaze.data.images import read_image

    scenes = write(folder, pictures=40, seed=5)
    for split in SPLITS:
        shown = getattr(scenes, split)
        for language in ("en", "ko"):
            album = captions.read(folder / "images", folder / f"{split}.{language}.csv")
            assert [one.captions for one in album] == [(caption(scene, language).text,) for scene in shown]
        boxes = read_boxes(folder / f"{split}.boxes.json")
        for one, scene in zip(album, shown, strict=True):
            drawing = draw(scene)
            assert numpy.array_equal(read_image(one.image).pixels, drawing.pixels)
            assert [each.box for each in boxes[one.image.name]] == [pytest.approx(box) for box in drawing.boxes]
            assert [each.name for each in boxes[one.image.name]] == [thing.shape.english for thing in scene.things]
    assert len(list((folder / "images").iterdir())) == 44


def test_the_words_of_boxes_are_their_shapes(folder: Path):
    write(folder, pictures=20, seed=5)
    record = json.loads((folder / "train.boxes.json").read_text())
    texts = [line.split(",")[1] for line in (folder / "train.en.csv").read_text().splitlines()[1:]]
    names = {each["id"]: each["name"] for each in record["categories"]}
    for each in record["annotations"]:
        assert texts[each["image_id"]].split()[each["word"]["en"]] == names[each["category_id"]]


def test_the_same_numbers_give_the_same_files(tmp_path: Path):
    for name in ("one", "other"):
        write(tmp_path / name, pictures=20, seed=3, side=48)
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "other" / path.relative_to(tmp_path / "one")).read_bytes()
    readme = (tmp_path / "one" / "README.txt").read_text(encoding="utf-8")
    assert "seed: 3" in readme
    assert "% of itself in the right box" in readme

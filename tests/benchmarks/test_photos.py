"""The pictures that the photo benchmark writes, and the arithmetic of its measures."""

import json

import numpy as np
import pytest
from PIL import Image

from benchmarks import photos
from benchmarks.photos import probe, read_stamps, retrieval, write_album, write_coco, write_split
from recipes.captions import read_lists
from softgaze.data.captions import read_boxes

PARTS = {"train", "dev", "test"}


@pytest.fixture(scope="module")
def stamps(tmp_path_factory):
    """Thirty stamps of two categories, one of letters, one without a Korean name and one without a picture."""
    place = tmp_path_factory.mktemp("stamps")
    for index in range(33):
        folder = place / ("symbols" if index == 30 else "animals" if index % 2 else "food") / "more"
        folder.mkdir(parents=True, exist_ok=True)
        korean = "" if index == 31 else f"ko.utf8=그림 {index}\n"
        (folder / f"{index}.txt").write_text(f"A thing {index}.\nde.utf8=Ding\n{korean}", encoding="utf-8")
        if index != 32:
            Image.new("RGBA", (40, 20 + index), (index * 7, 90, 200, 255)).save(folder / f"{index}.png")
    return read_stamps(place)


def test_stamps_have_a_picture_and_both_names(stamps):
    assert len(stamps) == 30
    assert {stamp["category"] for stamp in stamps} == {"animals", "food"}
    assert all(stamp["en"].startswith("A thing") and stamp["ko"].startswith("그림") for stamp in stamps)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_split_has_every_stamp_in_one_part(stamps, tmp_path, language):
    write_split(stamps, language, tmp_path)
    parts = read_lists(tmp_path / "images", tmp_path / "Flickr8k.token.txt", tmp_path)
    names = [name for captions in parts.values() for name in captions]
    assert len(names) == len(set(names)) == len(stamps)
    assert {part: len(captions) for part, captions in parts.items()} == {"train": 24, "dev": 3, "test": 3}
    captions = [text for part in parts.values() for texts in part.values() for text in texts]
    assert sorted(captions) == sorted(stamp[language] for stamp in stamps)


def test_both_languages_have_the_same_pictures_in_each_part(stamps, tmp_path):
    for language in ("en", "ko"):
        write_split(stamps, language, tmp_path / language)
    for part in PARTS:
        english, korean = ((tmp_path / each / f"Flickr_8k.{part}Images.txt").read_text() for each in ("en", "ko"))
        assert english == korean
    for picture in (tmp_path / "en/images").iterdir():
        assert picture.read_bytes() == (tmp_path / "ko/images" / picture.name).read_bytes()


def test_composed_pictures_have_five_captions_and_boxes_inside(stamps, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.photos.SPLITS", {"train": 6, "val": 2, "test": 2})
    write_album(stamps, tmp_path)
    parts = read_lists(tmp_path / "images", tmp_path / "Flickr8k.token.txt", tmp_path)
    assert [len(texts) for part in parts.values() for texts in part.values()] == [5] * 10
    boxes = json.loads((tmp_path / "boxes.json").read_text())
    sizes = {image["id"]: (image["width"], image["height"]) for image in boxes["images"]}
    assert {each["image_id"] for each in boxes["annotations"]} == set(sizes)
    for each in boxes["annotations"]:
        left, top, width, height = each["bbox"]
        assert 0 <= left <= left + width <= sizes[each["image_id"]][0]
        assert 0 <= top <= top + height <= sizes[each["image_id"]][1]


@pytest.fixture
def coco(tmp_path):
    """Three training photos and four others, with captions and boxes in COCO's files."""
    place = tmp_path / "coco"
    for part, numbers in (("train2017", range(3)), ("val2017", range(3, 7))):
        (place / part).mkdir(parents=True)
        images, captions, boxes = [], [], []
        for number in numbers:
            name = f"{number:012d}.jpg"
            Image.new("RGB", (32, 24), (number * 30, 0, 0)).save(place / part / name)
            images.append({"id": number, "file_name": name, "width": 64, "height": 48})
            captions += [{"image_id": number, "caption": f"photo {number} said {again}"} for again in range(5)]
            boxes.append({"image_id": number, "category_id": 1, "bbox": [0, 0, 32, 48]})
        (place / f"captions_{part}.json").write_text(json.dumps({"images": images, "annotations": captions}))
        categories = [{"id": 1, "name": "dog"}]
        (place / f"boxes_{part}.json").write_text(json.dumps({"annotations": boxes, "categories": categories}))
    return place


def test_photos_of_coco_train_on_one_part_and_share_the_other(coco, tmp_path):
    write_coco(coco, tmp_path / "out")
    parts = read_lists(tmp_path / "out/images", tmp_path / "out/Flickr8k.token.txt", tmp_path / "out")
    assert {part: len(captions) for part, captions in parts.items()} == {"train": 3, "dev": 2, "test": 2}
    assert all(len(texts) == 5 for part in parts.values() for texts in part.values())
    boxes = read_boxes(tmp_path / "out/boxes.json")
    held_out = {*parts["dev"], *parts["test"]}
    assert {name.rpartition("/")[2] for name in boxes} == held_out


def test_photos_of_a_test_set_are_split_without_overlap(tmp_path, monkeypatch):
    monkeypatch.setattr(photos, "KARPATHY_HELD_OUT", (2, 5))
    images = []
    for number in range(12):
        sentences = [{"raw": f"photo {number}\n said {again}"} for again in range(5)]
        split = "test" if number else "train"
        images.append({"filename": f"COCO_val2014_{number:012d}.jpg", "split": split, "sentences": sentences})
    (tmp_path / "dataset_coco.json").write_text(json.dumps({"images": images}))
    (tmp_path / "train2017").mkdir()
    for number in range(11):  # one photo is missing
        Image.new("RGB", (32, 24), (number * 20, 0, 0)).save(tmp_path / f"train2017/{number:012d}.jpg")
    out = tmp_path / "out"
    photos.write_karpathy(tmp_path / "train2017", tmp_path / "dataset_coco.json", out, count=4)
    parts = read_lists(out / "images", out / "Flickr8k.token.txt", out)
    assert {part: len(captions) for part, captions in parts.items()} == {"train": 4, "dev": 2, "test": 3}
    assert len({name for part in parts.values() for name in part}) == 9
    assert all(len(texts) == 5 for part in parts.values() for texts in part.values())


def test_a_probe_finds_what_is_in_the_features_and_nothing_else():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    telling = np.eye(3)[labels] + rng.normal(0, 0.1, (60, 3))
    assert probe(telling, labels) == 1
    assert probe(rng.normal(size=(60, 3)), labels) < 0.7


def test_retrieval_is_the_overlap_with_the_nearest_other_photo():
    features = np.array([[1.0, 0], [1, 0.1], [0, 1], [0.1, 1]])
    assert retrieval(features, [{"a"}, {"a"}, {"b"}, {"b"}]) == 1
    assert retrieval(features, [{"a"}, {"b"}, {"a"}, {"b"}]) == 0
    assert retrieval(features, [{"a"}, {"a", "b"}, {"c"}, {"c", "d"}]) == 0.5

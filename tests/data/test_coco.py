"""COCO's JSON: boxes in shares of their image, and one line for what is wrong."""

import json
from pathlib import Path

import pytest

from softgaze.data import corpus
from softgaze.data.boxes import Box
from softgaze.data.coco import Labelled, read_boxes, read_record
from softgaze.errors import DataError

IMAGES = [{"id": 7, "file_name": "a.jpg", "width": 200, "height": 100}]
BOXES = {
    "categories": [{"id": 1, "name": "dog"}],
    "annotations": [{"image_id": 7, "category_id": 1, "bbox": [50, 25, 100, 50]}],
}
EXPECTED = {"a.jpg": (Labelled(Box(0.25, 0.25, 0.75, 0.75), "dog"),)}


def put(path: Path, record: object) -> Path:
    path.write_text(json.dumps(record))
    return path


def test_images_are_listed_with_the_boxes_or_elsewhere(tmp_path: Path) -> None:
    assert read_boxes(put(tmp_path / "one.json", {"images": IMAGES, **BOXES})) == EXPECTED
    assert (
        read_boxes(put(tmp_path / "boxes.json", BOXES), put(tmp_path / "images.json", {"images": IMAGES})) == EXPECTED
    )


def test_boxes_of_images_that_another_file_does_not_list_are_left_out(tmp_path: Path) -> None:
    boxes = put(tmp_path / "boxes.json", BOXES)
    assert read_boxes(boxes, put(tmp_path / "images.json", {"images": []})) == {}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "'images' is not there"),
        ({"images": 3}, "not iterable"),
        ({"images": [{**IMAGES[0], "id": 8}]}, "7 is not there"),
        ({"images": [{**IMAGES[0], "width": 0}]}, "in an image of 0×100"),
        ({"images": [{**IMAGES[0], "height": "tall"}]}, "could not convert"),
        ({"images": IMAGES, "categories": []}, "1 is not there"),
        (
            {"images": IMAGES, "annotations": [{"image_id": 7, "category_id": 1, "bbox": [1, 2, 3]}]},
            "not enough values",
        ),
        (
            {"images": IMAGES, "annotations": [{"image_id": 7, "category_id": 1, "bbox": [1, 2, -3, 4]}]},
            "a box of -3×4",
        ),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, change: dict[str, object], why: str) -> None:
    with pytest.raises(DataError) as caught:
        read_boxes(put(tmp_path / "boxes.json", {**BOXES, **change}))
    assert why in str(caught.value)
    assert "boxes.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b'{"a":\n 1,}', "line 2, column 4: not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b"[" * 100_000, "not JSON we can read"),
        (b'{"a": ' + b"1" * 5000 + b"}", "not JSON we can read"),
        (b'{"a":\n "\xff"}', "line 2, byte 8: not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte-order mark"),
        (b"", "is empty"),
    ],
)
def test_what_is_no_record_is_one_line(tmp_path: Path, raw: bytes, why: str) -> None:
    (tmp_path / "a.json").write_bytes(raw)
    with pytest.raises(DataError) as caught:
        read_record(tmp_path / "a.json")
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_record_may_be_one_line_longer_than_lines_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "LONGEST_LINE", 100)
    monkeypatch.setattr(corpus, "CHUNK", 10)
    record = {"images": ["x" * 500]}
    assert read_record(put(tmp_path / "a.json", record)) == record

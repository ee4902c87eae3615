"""Captions in three formats, COCO boxes, and captioned files as a corpus; every bad row is reported."""

import csv
import gzip
import io
import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import one_line_error
from softgaze.data import corpus
from softgaze.data.captions import (
    CaptionCorpus,
    CaptionedFile,
    CaptionError,
    LabelledBox,
    count_errors,
    read_boxes,
    read_captions,
    read_coco,
    scan_captions,
)
from softgaze.data.corpus import Pair
from softgaze.data.images import Box
from softgaze.errors import DataError

Table = list[tuple[str, str]]
word = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=6)
caption_text = st.lists(word, min_size=1, max_size=5).map(lambda words: " ".join(" ".join(words).split())).filter(bool)
NAMES = ("a.jpg", "b c.png", "under/d,e.jpg", 'f"g.jpg', "사진.jpg")
tables = st.lists(st.tuples(st.sampled_from(NAMES), caption_text), min_size=1, max_size=20)


def as_csv(rows: Table) -> str:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("image", "caption"), *rows])
    return file.getvalue()


def as_csv_with_other_columns(rows: Table) -> str:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("Caption", "split", " Image"), *((text, "train", name) for name, text in rows)])
    return file.getvalue()


def as_numbered(rows: Table) -> str:
    return "".join(f"{name}#{number}\t{text}\n" for number, (name, text) in enumerate(rows))


def as_coco(rows: Table) -> str:
    images = [{"id": number, "file_name": name} for number, name in enumerate(NAMES)]
    annotations = [{"image_id": NAMES.index(name), "caption": text} for name, text in rows]
    return json.dumps({"info": {}, "images": images, "annotations": annotations})


FORMS = {
    "captions.txt": as_csv,
    "columns.csv": as_csv_with_other_columns,
    "Flickr8k.token.txt": as_numbered,
    "captions.json": as_coco,
    "captions.txt.gz": as_csv,
    "captions.json.gz": as_coco,
}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    (folder / "under").mkdir()
    for name in NAMES:
        (folder / name).touch()
    return folder


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25)
@given(rows=tables)
def test_all_formats_give_the_same_captions(tmp_path_factory, images, form, rows):
    path = tmp_path_factory.mktemp("captions") / form
    raw = FORMS[form](rows).encode()
    path.write_bytes(gzip.compress(raw) if form.endswith(".gz") else raw)
    expected: dict[str, list[str]] = {}
    for name, text in rows:
        expected.setdefault(name, []).append(text)
    assert read_captions(images, path) == tuple(
        CaptionedFile(images / name, tuple(texts)) for name, texts in expected.items()
    )


def scan(images: Path, path: Path) -> tuple[int, list[DataError]]:
    errors: list[DataError] = []
    captioned = scan_captions(images, path, errors.append)
    assert all("\n" not in str(error) for error in errors)
    return sum(len(one.captions) for one in captioned), errors


BAD: Table = [
    ("a.jpg", "a good caption"),
    ("gone.jpg", "of nothing"),
    ("../secret.jpg", "outside"),
    ("/etc/passwd", "outside"),
    ("C:\\x.jpg", "outside"),
    ("under/../../x.jpg", "outside"),
    ("..\\x.jpg", "outside"),
    ("a.jpg", "  "),
    ("a.jpg", "a good  caption "),
    ("under", "a folder"),
    ("x" * 5000, "too long a name"),
    ("사진.jpg", "another one"),
]
KINDS = dict.fromkeys((2, 10, 11), "missing image") | dict.fromkeys(range(3, 8), "outside the folder")
KINDS |= {8: "empty caption"}


@pytest.mark.parametrize(("form", "shift"), [(as_csv, 1), (as_numbered, 0)])
def test_unusable_rows_are_reported_and_counted(tmp_path, images, form, shift):
    (tmp_path / "c.txt").write_bytes(form(BAD).encode())
    kept, errors = scan(images, tmp_path / "c.txt")
    found = {error.location: error.kind for error in errors if isinstance(error, CaptionError)}
    assert found == {f"line {number + shift}": kind for number, kind in KINDS.items()}
    assert kept + len(errors) == len(BAD)
    assert count_errors(errors) == {"outside the folder": 5, "missing image": 3, "empty caption": 1}
    with pytest.raises(CaptionError, match=rf"c\.txt, line {2 + shift}: 'gone.jpg' is not in"):
        read_captions(images, tmp_path / "c.txt")


def test_unusable_annotations_are_reported_and_counted(tmp_path, images):
    names = [*dict.fromkeys(name for name, _ in BAD)]
    record = {
        "images": [{"id": number, "file_name": name} for number, name in enumerate(names)] + [{"id": 99}, 5],
        "annotations": [{"image_id": names.index(name), "caption": text} for name, text in BAD]
        + [{"image_id": 99, "caption": "no name"}, {"image_id": 0}, 7, {"caption": "of none"}]
        + [{"image_id": 0, "caption": "nul \0"}, {"image_id": 0, "caption": "half \ud800"}],
    }
    (tmp_path / "c.json").write_text(json.dumps(record))
    kept, errors = scan(images, tmp_path / "c.json")
    found = {error.location: error.kind for error in errors if isinstance(error, CaptionError)}
    expected = {**KINDS, **dict.fromkeys(range(13, 19), "unreadable")}
    assert found == {f"annotation {number}": kind for number, kind in expected.items()}
    assert kept + len(errors) == len(record["annotations"])


def test_malformed_lines_are_reported(tmp_path, images):
    raw = b'image,caption\na.jpg,one, two\na.jpg\na.jpg,"open\n\na.jpg,caf\xe9\na.jpg,"good, yes"\n'
    (tmp_path / "c.csv").write_bytes(raw)
    kept, errors = scan(images, tmp_path / "c.csv")
    assert kept == 1
    assert count_errors(errors) == {"unreadable": 5}
    for number, error in zip((2, 3, 4, 5, 6), sorted(errors, key=str), strict=True):
        assert f"c.csv, line {number}" in str(error)
    (tmp_path / "c.tsv").write_bytes(b"a.jpg#0\tfine\na.jpg no tab\n\n\tno name\na.jpg\twithout a number\n")
    kept, errors = scan(images, tmp_path / "c.tsv")
    assert kept == 2
    assert [error.location for error in errors if isinstance(error, CaptionError)] == ["line 2", "line 3", "line 4"]


def test_a_table_without_header(tmp_path, images):
    (tmp_path / "c.csv").write_text('a.jpg,"one, two"\r\nb c.png,three\r\n', newline="")
    assert [one.captions for one in read_captions(images, tmp_path / "c.csv")] == [("one, two",), ("three",)]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "is empty"),
        (b"just words\nand more\n", "expected captions"),
        (b"gone.jpg,a\nlost.jpg,b\n", "no caption of an image in"),
        (b'{"annotations": []}', 'lists "images" and "annotations"'),
        (b'{"images": [], "annotations": []}', "no caption of an image"),
        (b"[1]", "expected a JSON object"),
        (b"{", "not JSON"),
        (b"\xff\xfea\0", "UTF-16"),
    ],
)
def test_a_file_without_captions_is_one_line(tmp_path, images, raw, why):
    (tmp_path / "c.txt").write_bytes(raw)
    with one_line_error(DataError, why, "c.txt"):
        scan_captions(images, tmp_path / "c.txt", lambda error: None)


def test_a_missing_folder_is_an_error(tmp_path):
    (tmp_path / "c.txt").write_text("a.jpg,b\n")
    with pytest.raises(DataError, match="nowhere does not exist"):
        read_captions(tmp_path / "nowhere", tmp_path / "c.txt")
    with pytest.raises(DataError, match=r"c.txt is not a folder"):
        read_captions(tmp_path / "c.txt", tmp_path / "c.txt")


@given(raw=st.binary(max_size=200))
def test_no_bytes_are_a_crash(tmp_path_factory, images, raw):
    path = tmp_path_factory.mktemp("captions") / "c.txt"
    path.write_bytes(raw)
    with suppress(DataError):
        scan_captions(images, path, lambda error: None)


IMAGES = [{"id": 7, "file_name": "a.jpg", "width": 200, "height": 100}]
BOX = {"image_id": 7, "category_id": 1, "bbox": [50, 25, 100, 50]}
BOXES = {"categories": [{"id": 1, "name": "dog"}], "annotations": [BOX]}
EXPECTED = {"a.jpg": (LabelledBox(Box(0.25, 0.25, 0.75, 0.75), "dog"),)}


def put(path: Path, record: object) -> Path:
    path.write_text(json.dumps(record))
    return path


def test_images_are_listed_with_the_boxes_or_elsewhere(tmp_path):
    assert read_boxes(put(tmp_path / "one.json", {"images": IMAGES, **BOXES})) == EXPECTED
    boxes = put(tmp_path / "boxes.json", BOXES)
    assert read_boxes(boxes, put(tmp_path / "images.json", {"images": IMAGES})) == EXPECTED
    assert read_boxes(boxes, put(tmp_path / "images.json", {"images": []})) == {}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "'images' is missing"),
        ({"images": 3}, "not iterable"),
        ({"images": [{**IMAGES[0], "id": 8}]}, "7 is missing"),
        ({"images": [{**IMAGES[0], "width": 0}]}, "in an image of 0×100"),
        ({"images": [{**IMAGES[0], "height": "tall"}]}, "could not convert"),
        ({"images": IMAGES, "categories": []}, "1 is missing"),
        ({"images": IMAGES, "annotations": [{**BOX, "bbox": [1, 2, 3]}]}, "not enough values"),
        ({"images": IMAGES, "annotations": [{**BOX, "bbox": [1, 2, -3, 4]}]}, "a box of -3×4"),
    ],
)
def test_missing_keys_are_reported(tmp_path, change, why):
    with one_line_error(DataError, why, "boxes.json"):
        read_boxes(put(tmp_path / "boxes.json", {**BOXES, **change}))


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b'{"a":\n 1,}', "line 2, column 4: not JSON"),
        (b"[1, 2]", "expected a JSON object"),
        (b"[" * 100_000, "not readable JSON"),
        (b'{"a": ' + b"1" * 5000 + b"}", "not readable JSON"),
        (b'{"a":\n "\xff"}', "line 2, byte 8: not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte-order mark"),
        (b"", "is empty"),
    ],
)
def test_malformed_coco_files_are_reported(tmp_path, raw, why):
    (tmp_path / "a.json").write_bytes(raw)
    with one_line_error(DataError, why):
        read_coco(tmp_path / "a.json")


def test_a_record_may_be_one_line_longer_than_lines_may_be(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "MAX_LINE", 100)
    monkeypatch.setattr(corpus, "CHUNK", 10)
    record = {"images": ["x" * 500]}
    assert read_coco(put(tmp_path / "a.json", record)) == record


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b", "c"):
        np.save(tmp_path / f"{name}.npy", np.ones((3, 4)))
    (tmp_path / "train.ko.csv").write_text("image,caption\na.npy,하나\na.npy,둘\nc.npy,셋\nx.npy,넷\nb.npy,다섯\n")
    return tmp_path


def test_pairs_are_paths_and_captions_in_the_order_of_the_file(folder):
    errors = []
    captioned = CaptionCorpus.of_features(folder, folder / "train.ko.csv", errors.append)
    names = [str(folder / f"{name}.npy") for name in "aacb"]
    assert [*captioned] == [Pair(*pair) for pair in zip(names, ["하나", "둘", "셋", "다섯"], strict=True)]
    assert (captioned.count(), captioned.num_sources(), len(captioned.processor)) == (4, 3, 4)
    assert captioned.pairs_with_sources(frozenset({0, 2})) == {0, 1, 3}
    assert captioned.languages() == ("features", "ko")
    assert ["x.npy" in str(error) for error in errors] == [True]
    again = CaptionCorpus.of(folder, folder / "train.ko.csv", captioned.processor, errors.append)
    assert again.processor is captioned.processor


def test_equal_captions_of_a_file_are_all_references_but_one_training_pair(folder):
    with (folder / "train.ko.csv").open("a") as file:
        file.write("a.npy,하나\na.npy, 하나 \nb.npy,하나\n")
    assert len(scan_captions(folder, folder / "train.ko.csv", lambda error: None)[0].captions) == 4
    captioned = CaptionCorpus.of_features(folder, folder / "train.ko.csv", lambda error: None)
    assert (captioned.repeated, captioned.count(), len({*captioned})) == (2, 5, 5)


def test_the_hash_changes_with_captions_and_files(folder):
    def hashes():
        return list(CaptionCorpus.of_features(folder, folder / "train.ko.csv", lambda error: None).sha256().values())

    first = hashes()
    assert hashes() == first
    np.save(folder / "b.npy", np.ones((5, 4)))
    assert hashes()[0] == first[0]
    assert hashes()[1] != first[1]


def test_features_that_cannot_be_read_are_passed_over_to_find_the_first(folder):
    (folder / "a.npy").write_bytes(b"nothing")
    errors = []
    assert len(CaptionCorpus.of_features(folder, folder / "train.ko.csv", errors.append).processor) == 4
    assert any("a.npy" in str(error) for error in errors)
    for name in ("b", "c"):
        (folder / f"{name}.npy").write_bytes(b"nothing")
    with pytest.raises(DataError, match="none of the 3 files"):
        CaptionCorpus.of_features(folder, folder / "train.ko.csv", errors.append)

"""Captions in three forms: the same album from each, and every row that cannot be used named and counted."""

import csv
import gzip
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgaze.data.captions import Captioned, CaptionError, read, survey, tally
from softgaze.errors import DataError

Table = list[tuple[str, str]]
word = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=6)
caption_text = st.lists(word, min_size=1, max_size=5).map(lambda words: " ".join(" ".join(words).split())).filter(bool)
NAMES = ("a.jpg", "b c.png", "under/d,e.jpg", 'f"g.jpg', "사진.jpg")
tables = st.lists(st.tuples(st.sampled_from(NAMES), caption_text), min_size=1, max_size=20, unique=True)


def as_csv(path: Path, rows: Table) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("image", "caption"), *rows])


def as_csv_turned(path: Path, rows: Table) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("Caption", "split", " Image"), *((text, "train", name) for name, text in rows)])


def as_numbered(path: Path, rows: Table) -> None:
    text = "".join(f"{name}#{number}\t{text}\n" for number, (name, text) in enumerate(rows))
    path.write_text(text, encoding="utf-8", newline="\n")


def as_coco(path: Path, rows: Table) -> None:
    images = [{"id": number, "file_name": name} for number, name in enumerate(NAMES)]
    annotations = [{"image_id": NAMES.index(name), "caption": text} for name, text in rows]
    path.write_text(json.dumps({"info": {}, "images": images, "annotations": annotations}))


def zipped(write: Callable[[Path, Table], None]) -> Callable[[Path, Table], None]:
    def both(path: Path, rows: Table) -> None:
        write(path, rows)
        path.write_bytes(gzip.compress(path.read_bytes()))

    return both


FORMS = {
    "captions.txt": as_csv,
    "turned.csv": as_csv_turned,
    "Flickr8k.token.txt": as_numbered,
    "captions.json": as_coco,
    "captions.txt.gz": zipped(as_csv),
    "captions.json.gz": zipped(as_coco),
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
def test_every_form_gives_the_same_album(
    tmp_path_factory: pytest.TempPathFactory, images: Path, form: str, rows: Table
) -> None:
    path = tmp_path_factory.mktemp("captions") / form
    FORMS[form](path, rows)
    expected: dict[str, list[str]] = {}
    for name, text in rows:
        expected.setdefault(name, []).append(text)
    assert read(images, path) == tuple(Captioned(images / name, tuple(texts)) for name, texts in expected.items())


def surveyed(images: Path, path: Path) -> tuple[int, list[DataError]]:
    told: list[DataError] = []
    album = survey(images, path, told.append)
    assert all("\n" not in str(error) for error in told)
    return sum(len(one.captions) for one in album), told


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
KINDS = {2: "missing image", 3: "outside the folder", 4: "outside the folder", 5: "outside the folder"}
KINDS |= {6: "outside the folder", 7: "outside the folder", 8: "empty caption", 9: "repeated"}
KINDS |= {10: "missing image", 11: "missing image"}


@pytest.mark.parametrize(("write", "place", "shift"), [(as_csv, "line", 1), (as_numbered, "line", 0)])
def test_rows_that_cannot_be_used_are_named_and_counted(
    tmp_path: Path, images: Path, write: Callable[[Path, Table], None], place: str, shift: int
) -> None:
    write(tmp_path / "c.txt", BAD)
    kept, told = surveyed(images, tmp_path / "c.txt")
    found = {error.place: error.kind for error in told if isinstance(error, CaptionError)}
    assert found == {f"{place} {number + shift}": kind for number, kind in KINDS.items()}
    assert kept + len(told) == len(BAD)
    assert tally(told) == {"outside the folder": 5, "missing image": 3, "empty caption": 1, "repeated": 1}
    with pytest.raises(CaptionError, match=rf"c\.txt, line {2 + shift}: 'gone.jpg' is not in"):
        read(images, tmp_path / "c.txt")


def test_annotations_that_cannot_be_used_are_named_and_counted(tmp_path: Path, images: Path) -> None:
    names = [*dict.fromkeys(name for name, _ in BAD)]
    record = {
        "images": [{"id": number, "file_name": name} for number, name in enumerate(names)] + [{"id": 99}, 5],
        "annotations": [{"image_id": names.index(name), "caption": text} for name, text in BAD]
        + [{"image_id": 99, "caption": "no name"}, {"image_id": 0}, 7, {"caption": "of none"}]
        + [{"image_id": 0, "caption": "nul \0"}, {"image_id": 0, "caption": "half \ud800"}],
    }
    (tmp_path / "c.json").write_text(json.dumps(record))
    kept, told = surveyed(images, tmp_path / "c.json")
    found = {error.place: error.kind for error in told if isinstance(error, CaptionError)}
    expected = {**KINDS, **dict.fromkeys(range(13, 19), "unreadable")}
    assert found == {f"annotation {number}": kind for number, kind in expected.items()}
    assert kept + len(told) == len(record["annotations"])


def test_lines_that_are_no_rows_are_named(tmp_path: Path, images: Path) -> None:
    raw = b'image,caption\na.jpg,one, two\na.jpg\na.jpg,"open\n\na.jpg,caf\xe9\na.jpg,"good, yes"\n'
    (tmp_path / "c.csv").write_bytes(raw)
    kept, told = surveyed(images, tmp_path / "c.csv")
    assert kept == 1
    assert tally(told) == {"unreadable": 5}
    for number, error in zip((2, 3, 4, 5, 6), sorted(told, key=str), strict=True):
        assert f"c.csv, line {number}" in str(error)
    (tmp_path / "c.tsv").write_bytes(b"a.jpg#0\tfine\na.jpg no tab\n\n\tno name\na.jpg\twithout a number\n")
    kept, told = surveyed(images, tmp_path / "c.tsv")
    assert kept == 2
    assert [error.place for error in told if isinstance(error, CaptionError)] == ["line 2", "line 3", "line 4"]


def test_a_table_without_header(tmp_path: Path, images: Path) -> None:
    (tmp_path / "c.csv").write_text('a.jpg,"one, two"\r\nb c.png,three\r\n', newline="")
    assert [one.captions for one in read(images, tmp_path / "c.csv")] == [("one, two",), ("three",)]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "is empty"),
        (b"just words\nand more\n", "no captions"),
        (b"gone.jpg,a\nlost.jpg,b\n", "no caption of an image in"),
        (b'{"annotations": []}', 'no lists "images" and "annotations"'),
        (b'{"images": [], "annotations": []}', "no caption of an image"),
        (b"[1]", "not a JSON object"),
        (b"{", "not JSON"),
        (b"\xff\xfea\0", "UTF-16"),
    ],
)
def test_a_file_without_captions_is_one_line(tmp_path: Path, images: Path, raw: bytes, why: str) -> None:
    (tmp_path / "c.txt").write_bytes(raw)
    with pytest.raises(DataError) as caught:
        survey(images, tmp_path / "c.txt", lambda error: None)
    assert why in str(caught.value)
    assert "c.txt" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("a.jpg,b\n")
    with pytest.raises(DataError, match="nowhere is not there; name the folder of the images"):
        read(tmp_path / "nowhere", tmp_path / "c.txt")
    with pytest.raises(DataError, match=r"c.txt is no folder"):
        read(tmp_path / "c.txt", tmp_path / "c.txt")


@given(raw=st.binary(max_size=200))
def test_no_bytes_are_a_crash(tmp_path_factory: pytest.TempPathFactory, images: Path, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("captions") / "c.txt"
    path.write_bytes(raw)
    with suppress(DataError):
        survey(images, path, lambda error: None)

"""`softgaze evaluate` of a captioner: all references, boxes, files that cannot be read, and options that do not fit."""

import json

import numpy
import pytest

from bundles import tiny_bundle
from commands import run
from pictures import HEARD, feature_bundle, picture_bundle, write_scenes
from softgaze.data.scenes import caption, draw, scene
from softgaze.evaluation.captioning import score_captions
from softgaze.evaluation.pointing import spoken
from softgaze.translator import load

REFERENCES = {f"{number}.png": [caption(scene("test", number)).text, "a red circle"] for number in range(3)}

FOLDERS = ("--images", "scenes", "--captions", "captions.csv")


@pytest.fixture
def test_set(tmp_path):
    """Three scenes with two captions each, as Flickr8k has them."""
    write_scenes(tmp_path / "scenes")
    rows = [f'{name},"{text}"' for name, texts in REFERENCES.items() for text in texts]
    (tmp_path / "captions.csv").write_text("\n".join(["image,caption", *rows]) + "\n", encoding="utf-8")
    return tmp_path


def evaluated(place, *arguments):
    return run(place, "evaluate", picture_bundle(), *FOLDERS, *arguments)


def write_boxes(place, names):
    """COCO's boxes of the scenes; every thing has one of these names."""
    images, boxes = [], []
    for number in range(3):
        images.append({"id": number, "file_name": f"{number}.png", "width": 48, "height": 48})
        for box in draw(scene("test", number), 48).boxes:
            boxes.append({"image_id": number, "category_id": len(boxes) % len(names), "bbox": box.pixels((48, 48))})
    categories = [{"id": number, "name": name} for number, name in enumerate(names)]
    record = {"images": images, "categories": categories, "annotations": boxes}
    (place / "boxes.json").write_text(json.dumps(record), encoding="utf-8")


def test_the_scores_are_those_of_the_captions(test_set):
    done = evaluated(test_set, "--json", "-o", "out.tsv", "--beam", 2)
    record = json.loads(done.stdout)
    names = [str(test_set / "scenes" / name) for name in REFERENCES]
    found = [each.text for each in load(picture_bundle()).translate(names, beam=2)]
    wanted = score_captions(found, list(REFERENCES.values()), language="en").to_dict()
    assert {name: record[name] for name in wanted} == wanted
    assert (record["images"], record["references"], record["pointing"]) == (3, 6, None)
    written = (test_set / "out.tsv").read_text(encoding="utf-8").splitlines()
    assert written == [f"{name}\t{text}" for name, text in zip(REFERENCES, found, strict=True)]


def test_for_people_every_score_has_a_line(test_set):
    lines = evaluated(test_set).stdout.splitlines()
    names = ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "CIDEr-D", "ROUGE-L", "exact", "speed"]
    assert [line.split()[0] for line in lines] == names
    assert "nrefs:2|case:lc" in lines[0]


def test_boxes_tell_how_nouns_point(test_set):
    said = load(picture_bundle()).translate(str(test_set / "scenes/0.png"), beam=5).text
    write_boxes(test_set, [spoken(said)[-1]])
    done = evaluated(test_set, "--boxes", "boxes.json", "--json")
    pointing = json.loads(done.stdout)["pointing"]
    assert pointing["nouns"] >= 1
    assert 0 < pointing["mass"] < 1
    assert 0 < pointing["chance"] < 0.5
    line = next(line for line in evaluated(test_set, "--boxes", "boxes.json").stdout.splitlines() if "pointing" in line)
    assert f"(chance {pointing['chance']:.1%})" in line


def test_boxes_of_what_nobody_names_tell_nothing(test_set):
    write_boxes(test_set, ["zebra crossing"])
    assert "no noun of a caption names" in evaluated(test_set, "--boxes", "boxes.json").stdout
    assert json.loads(evaluated(test_set, "--boxes", "boxes.json", "--json").stdout)["pointing"] is None


def test_what_cannot_be_read_is_left_out_by_name(test_set):
    (test_set / "scenes" / "1.png").write_bytes(b"no picture")
    with (test_set / "captions.csv").open("a", encoding="utf-8") as file:
        file.write("gone.png,a dog\n")
    done = evaluated(test_set, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["images"] == 2
    assert [line.split(":")[1].split("/")[-1] for line in done.stderr.splitlines()] == [
        "captions.csv, line 8",
        "1.png",
    ] or ("gone.png" in done.stderr and "1.png" in done.stderr)


def test_nothing_that_can_be_read_is_an_error(test_set):
    for name in REFERENCES:
        (test_set / "scenes" / name).write_bytes(b"no picture")
    done = evaluated(test_set)
    assert (done.returncode, "none of the 3 files" in done.stderr) == (3, True)


def test_arrays_are_scored_alike(tmp_path):
    (tmp_path / "arrays").mkdir()
    for name in ("a", "b"):
        numpy.save(tmp_path / "arrays" / f"{name}.npy", numpy.ones((4, len(HEARD)), dtype="f4"))
    (tmp_path / "captions.csv").write_text("image,caption\na.npy,a dog\nb.npy,a cat\n", encoding="utf-8")
    folders = ("--captions", "captions.csv", "--json")
    done = run(tmp_path, "evaluate", feature_bundle(), "--features", "arrays", *folders)
    assert json.loads(done.stdout)["images"] == 2
    done = run(tmp_path, "evaluate", feature_bundle(), "--images", "arrays", *folders)
    assert (done.returncode, "was trained on --features DIR" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "what shall it be tested on"),
        (("--images", "scenes"), "--captions FILE"),
        (("--captions", "captions.csv"), "--images DIR"),
        (("--boxes", "boxes.json"), "--images DIR"),
        (
            ("--images", "scenes", "--captions", "captions.csv", "--by-length"),
            "--by-length has no meaning with captions",
        ),
        (("--images", "scenes", "--captions", "captions.csv", "--test", "a", "b"), "--test has no meaning"),
        (("--images", "scenes", "--captions", "captions.csv", "--report", "a.html"), "--report has no meaning"),
    ],
)
def test_options_that_do_not_fit_are_refused(test_set, arguments, said):
    done = run(test_set, "evaluate", picture_bundle(), *arguments)
    assert (done.returncode, said in done.stderr) == (2, True)


def test_a_model_of_text_captions_nothing(test_set):
    done = run(test_set, "evaluate", tiny_bundle(), *FOLDERS)
    assert (done.returncode, "translates text" in done.stderr) == (2, True)

"""`softgaze caption` as a stranger uses it: one picture, many, a sound, a typo, a file that is no picture."""

import json

import numpy
import pytest

from bundles import tiny_bundle
from commands import run
from pictures import HEARD, feature_bundle, picture_bundle, write_scenes
from softgaze.data.photo import photo_of
from softgaze.gaze import Attention
from softgaze.translator import load


def test_one_picture_gets_its_caption_and_several_a_line_each(tmp_path):
    one, two, three = write_scenes(tmp_path / "scenes")
    found = load(picture_bundle()).translate([str(one), str(two), str(three)])
    alone = run(tmp_path, "caption", picture_bundle(), one)
    assert (alone.returncode, alone.stdout) == (0, f"{found[0].text}\n")
    many = run(tmp_path, "caption", picture_bundle(), one, two, three)
    assert many.stdout == "".join(f"{each.source}\t{each.text}\n" for each in found)


def test_json_says_where_each_word_looked(tmp_path):
    paths = write_scenes(tmp_path / "scenes", 2)
    done = run(tmp_path, "caption", picture_bundle(), *paths, "--json", "--beam", 1)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["source"] for record in records] == [str(path) for path in paths]
    for record in records:
        look = record["attention"]
        assert look["grid"] == [4, 4]
        assert look["crop"] == [0, 0, 1, 1]
        weights = numpy.array(look["weights"])
        assert weights.shape == (len(look["words"]), 4, 4)
        assert numpy.allclose(weights.sum(axis=(1, 2)), 1, atol=2e-3)
        assert len(look["probabilities"]) == len(look["words"])
        assert all(0 <= each <= 1 for each in look["probabilities"])


def test_probabilities_make_the_score(tmp_path):
    [path] = write_scenes(tmp_path / "scenes", 1)
    found = load(picture_bundle()).translate(str(path), beam=2)
    chances = found.attention.recording.chances
    written = chances[: len(found.parts[0].target_ids) + found.finished]
    assert numpy.log(written).sum() == pytest.approx(found.log_probability, abs=1e-3)


@pytest.mark.parametrize("name", ["look.html", "look.svg", "look.png", "look.pdf", "look.json"])
def test_where_it_looked_is_written_in_every_form(tmp_path, name):
    [path] = write_scenes(tmp_path / "scenes", 1)
    done = run(tmp_path, "caption", picture_bundle(), path, "-o", name)
    assert (done.returncode, (tmp_path / name).stat().st_size > 1000) == (0, True)
    if name.endswith(("html", "svg", "json")):
        again = Attention.load(tmp_path / name)
        assert again.grid == (4, 4)
        assert again.recording.photo == photo_of(path)


def test_a_page_holds_many_pictures_and_a_drawing_one(tmp_path):
    paths = write_scenes(tmp_path / "scenes")
    run(tmp_path, "caption", picture_bundle(), *paths, "-o", "look.html")
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert page.count('id="softgaze-attention') == 3
    assert '"names": ["0.png", "1.png", "2.png"]' in page
    done = run(tmp_path, "caption", picture_bundle(), *paths, "-o", "look.png")
    assert (done.returncode, "a page (-o look.html) holds them all" in done.stderr) == (2, True)


def test_raw_is_for_drawings(tmp_path):
    [path] = write_scenes(tmp_path / "scenes", 1)
    for name in ("smooth.svg", "raw.svg"):
        run(tmp_path, "caption", picture_bundle(), path, "-o", name, *(["--raw"] if "raw" in name else []))
    assert (tmp_path / "raw.svg").read_text().count("<rect") > (tmp_path / "smooth.svg").read_text().count("<rect")
    for arguments in (["--raw"], ["--raw", "-o", "look.html"]):
        done = run(tmp_path, "caption", picture_bundle(), path, *arguments)
        assert (done.returncode, "--raw is for a drawing" in done.stderr) == (2, True)


def test_what_cannot_be_read_is_named_and_the_others_go_on(tmp_path):
    good, other = write_scenes(tmp_path / "scenes", 2)
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.png").write_text("no picture")
    done = run(tmp_path, "caption", picture_bundle(), good, "empty.jpg", "missing.jpg", tmp_path, "text.png", other)
    assert done.returncode == 3
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [str(good), str(other)]
    lines = done.stderr.splitlines()
    assert [line.split(":")[1].strip() for line in lines] == ["empty.jpg", "missing.jpg", str(tmp_path), "text.png"]
    assert all(line.startswith("left out: ") for line in lines)


def test_nothing_that_can_be_read_writes_nothing(tmp_path):
    done = run(tmp_path, "caption", picture_bundle(), "missing.jpg", "-o", "look.html")
    assert (done.returncode, done.stdout, (tmp_path / "look.html").exists()) == (3, "", False)
    assert "missing.jpg: does not exist" in done.stderr


def test_sounds_and_arrays_are_shown_as_text_is(tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.random.default_rng(0).normal(size=(9, len(HEARD))).astype("f4"))
    numpy.save(tmp_path / "b.npy", numpy.ones((3, len(HEARD)), dtype="f4"))
    done = run(tmp_path, "caption", feature_bundle(), "a.npy", "-o", "look.html", "--json")
    look = json.loads(done.stdout)["attention"]
    assert (look["grid"], look["crop"], numpy.array(look["weights"]).shape[1]) == (None, None, 9)
    assert "softgaze-page" in (tmp_path / "look.html").read_text(encoding="utf-8")
    assert len(Attention.load(tmp_path / "look.html").source) == 9
    both = run(tmp_path, "caption", feature_bundle(), "a.npy", "b.npy")
    assert len(both.stdout.splitlines()) == 2
    done = run(tmp_path, "caption", feature_bundle(), "a.npy", "b.npy", "-o", "look.html")
    assert (done.returncode, "one sound or array" in done.stderr) == (2, True)


def test_frames_of_another_width_are_named(tmp_path):
    numpy.save(tmp_path / "wide.npy", numpy.ones((3, 7), dtype="f4"))
    done = run(tmp_path, "caption", feature_bundle(), "wide.npy")
    assert (done.returncode, "7 numbers a frame" in done.stderr) == (3, True)


def test_a_model_of_text_captions_nothing(tmp_path):
    done = run(tmp_path, "caption", tiny_bundle(), "a.jpg")
    assert (done.returncode, "translates text" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "look.gif"], "must end in .html"),
        (["-o", "no/such/look.html"], "there is no directory no/such"),
        (["--beem", "3"], "--beam"),
    ],
)
def test_mistakes_are_found_before_a_model_is_loaded(tmp_path, arguments, said):
    done = run(tmp_path, "caption", tmp_path / "nothing", "a.jpg", *arguments)
    assert (done.returncode in (2, 4), said in done.stderr) == (True, True)


def test_what_is_not_there_is_said(tmp_path):
    done = run(tmp_path, "caption", "runs/none", "a.jpg")
    assert (done.returncode, "runs/none" in done.stderr) == (3, True)
    assert run(tmp_path, "caption", picture_bundle()).returncode == 2


def test_explain_shows_the_same_page_and_small_pictures(tmp_path):
    [path] = write_scenes(tmp_path / "scenes", 1)
    assert run(tmp_path, "explain", picture_bundle(), path, "-o", "look.html").returncode == 0
    assert "softgaze-photos" in (tmp_path / "look.html").read_text(encoding="utf-8")
    done = run(tmp_path, "explain", picture_bundle(), path)
    assert (done.returncode, "of the most looked-at cell of each word" in " ".join(done.stdout.split())) == (0, True)

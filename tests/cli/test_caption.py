"""`softgaze caption` as a stranger uses it: one picture, many, a sound, a typo, a file that is no picture."""

import json

import numpy as np
import pytest

from bundles import tiny_bundle
from commands import check_error, run
from pictures import FEATURES, feature_bundle, image_bundle, write_scenes
from softgaze.data.images import load_photo
from softgaze.explain import Attention
from softgaze.translator import load


def test_one_picture_gets_its_caption_and_several_a_line_each(tmp_path):
    one, two, three = write_scenes(tmp_path / "scenes")
    captions = load(image_bundle()).translate([str(one), str(two), str(three)])
    alone = run(tmp_path, "caption", image_bundle(), one)
    assert (alone.returncode, alone.stdout) == (0, f"{captions[0].text}\n")
    many = run(tmp_path, "caption", image_bundle(), one, two, three)
    assert many.stdout == "".join(f"{each.source}\t{each.text}\n" for each in captions)


def test_json_has_the_attention_of_each_word(tmp_path):
    paths = write_scenes(tmp_path / "scenes", 2)
    result = run(tmp_path, "caption", image_bundle(), *paths, "--json", "--beam-size", 1)
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [record["source"] for record in records] == [str(path) for path in paths]
    for record in records:
        look = record["attention"]
        assert look["grid"] == [4, 4]
        assert look["crop"] == [0, 0, 1, 1]
        weights = np.array(look["weights"])
        assert weights.shape == (len(look["words"]), 4, 4)
        assert np.allclose(weights.sum(axis=(1, 2)), 1, atol=2e-3)
        assert len(look["probabilities"]) == len(look["words"])
        assert all(0 <= each <= 1 for each in look["probabilities"])


def test_probabilities_make_the_score(tmp_path):
    [path] = write_scenes(tmp_path / "scenes", 1)
    captions = load(image_bundle()).translate(str(path), beam_size=2)
    chances = captions.attention.recording.token_probs
    written = chances[: len(captions.parts[0].target_ids) + captions.finished]
    assert np.log(written).sum() == pytest.approx(captions.log_prob, abs=1e-3)


def test_a_masked_region_gets_no_attention(tmp_path):
    [path] = write_scenes(tmp_path / "scenes", 1)
    result = run(tmp_path, "caption", image_bundle(), path, "--mask", "1,1-2,3", "--mask", "4,4", "--json")
    weights = np.array(json.loads(result.stdout)["attention"]["weights"])
    assert weights[:, :2, :3].max() == weights[:, 3, 3].max() == 0
    assert np.allclose(weights.sum(axis=(1, 2)), 1, atol=2e-3)
    expected = load(image_bundle()).translate(str(path)).explanation.what_if(mask=[0, 1, 2, 4, 5, 6, 15])
    assert json.loads(result.stdout)["text"] == expected.text


@pytest.mark.parametrize(
    ("mask", "expected"), [("0,1", "1,1-4,4"), ("5,1", "1,1-4,4"), ("1,1-4,4", "leave"), ("x", "row")]
)
def test_a_mask_outside_the_image_is_one_clear_line(tmp_path, mask, expected):
    [path] = write_scenes(tmp_path / "scenes", 1)
    check_error(run(tmp_path, "caption", image_bundle(), path, "--mask", mask), 2, expected)


@pytest.mark.parametrize("name", ["look.html", "look.svg", "look.png", "look.pdf", "look.json"])
def test_attention_is_written_in_every_format(tmp_path, name):
    [path] = write_scenes(tmp_path / "scenes", 1)
    result = run(tmp_path, "caption", image_bundle(), path, "-o", name)
    assert (result.returncode, (tmp_path / name).stat().st_size > 1000) == (0, True)
    if name.endswith(("html", "svg", "json")):
        again = Attention.load(tmp_path / name)
        assert again.grid == (4, 4)
        assert again.recording.photo == load_photo(path)


def test_a_page_holds_many_pictures_and_a_drawing_one(tmp_path):
    paths = write_scenes(tmp_path / "scenes")
    run(tmp_path, "caption", image_bundle(), *paths, "-o", "look.html")
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert page.count('id="softgaze-attention') == 3
    assert all(f'"{name}.png"' in page for name in range(3))
    check_error(run(tmp_path, "caption", image_bundle(), *paths, "-o", "look.png"), 2, "attention.html")


def test_raw_is_for_drawings(tmp_path):
    [path] = write_scenes(tmp_path / "scenes", 1)
    for name in ("smooth.svg", "raw.svg"):
        run(tmp_path, "caption", image_bundle(), path, "-o", name, *(["--raw"] if "raw" in name else []))
    assert (tmp_path / "raw.svg").read_text().count("<rect") > (tmp_path / "smooth.svg").read_text().count("<rect")
    for arguments in (["--raw"], ["--raw", "-o", "look.html"]):
        result = run(tmp_path, "caption", image_bundle(), path, *arguments)
        assert (result.returncode, "--raw needs a figure" in result.stderr) == (2, True)


def test_unreadable_files_are_skipped_and_reported(tmp_path):
    good, other = write_scenes(tmp_path / "scenes", 2)
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.png").write_text("no picture")
    result = run(tmp_path, "caption", image_bundle(), good, "empty.jpg", "missing.jpg", tmp_path, "text.png", other)
    assert result.returncode == 3
    assert [line.split("\t")[0] for line in result.stdout.splitlines()] == [str(good), str(other)]
    lines = result.stderr.splitlines()
    assert [line.split(":")[1].strip() for line in lines] == ["empty.jpg", "missing.jpg", str(tmp_path), "text.png"]
    assert all(line.startswith("skipped: ") for line in lines)


def test_nothing_that_can_be_read_writes_nothing(tmp_path):
    result = run(tmp_path, "caption", image_bundle(), "missing.jpg", "-o", "look.html")
    assert (result.returncode, result.stdout, (tmp_path / "look.html").exists()) == (3, "", False)
    assert "missing.jpg: does not exist" in result.stderr


def test_sounds_and_arrays_are_shown_as_text_is(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(9, len(FEATURES))).astype("f4"))
    np.save(tmp_path / "b.npy", np.ones((3, len(FEATURES)), dtype="f4"))
    result = run(tmp_path, "caption", feature_bundle(), "a.npy", "-o", "look.html", "--json")
    look = json.loads(result.stdout)["attention"]
    assert (look["grid"], look["crop"], np.array(look["weights"]).shape[1]) == (None, None, 9)
    assert "imageNames" not in (tmp_path / "look.html").read_text(encoding="utf-8")
    assert len(Attention.load(tmp_path / "look.html").source) == 9
    both = run(tmp_path, "caption", feature_bundle(), "a.npy", "b.npy")
    assert len(both.stdout.splitlines()) == 2
    result = run(tmp_path, "caption", feature_bundle(), "a.npy", "b.npy", "-o", "look.html")
    assert (result.returncode, "one sound" in result.stderr) == (2, True)


def test_frames_of_another_width_are_rejected(tmp_path):
    np.save(tmp_path / "wide.npy", np.ones((3, 7), dtype="f4"))
    check_error(run(tmp_path, "caption", feature_bundle(), "wide.npy"), 3, "7")


def test_a_model_of_text_captions_nothing(tmp_path):
    check_error(run(tmp_path, "caption", tiny_bundle(), "a.jpg"), 2, "translates text")


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["-o", "look.gif"], "must end in .html"),
        (["-o", "no/such/look.html"], "there is no directory no/such"),
        (["--beem", "3"], "--beam-size"),
    ],
)
def test_mistakes_are_found_before_a_model_is_loaded(tmp_path, arguments, fact):
    result = run(tmp_path, "caption", tmp_path / "nothing", "a.jpg", *arguments)
    assert (result.returncode in (2, 4), fact in result.stderr) == (True, True)


def test_a_missing_model_is_reported(tmp_path):
    check_error(run(tmp_path, "caption", "runs/none", "a.jpg"), 3, "runs/none")
    assert run(tmp_path, "caption", image_bundle()).returncode == 2


def test_explain_shows_the_same_page_and_small_pictures(tmp_path):
    [path] = write_scenes(tmp_path / "scenes", 1)
    assert run(tmp_path, "explain", image_bundle(), path, "-o", "look.html").returncode == 0
    assert Attention.load(tmp_path / "look.html").grid == (4, 4)
    result = run(tmp_path, "explain", image_bundle(), path)
    assert result.returncode == 0
    assert "cross-attention" in result.stdout

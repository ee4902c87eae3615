"""`train --images` and `--features`, and the quickstart on pictures, as a stranger would use them."""

import numpy
import pytest

import softgaze
from albums import SMALL, write_melodies, write_pictures
from commands import run
from softgaze.bundle import Bundle

QUICK = ["--steps", "2", "--set", "validation.every=2", "--set", "validation.sentences=2"]
OPTIONS = [f"model.options.{name}={value}" for name, value in SMALL.items()]
LITTLE = [word for option in [*OPTIONS, "data.side=32"] for word in ("--set", option)]


@pytest.fixture
def place(tmp_path):
    write_pictures(tmp_path, count=8)
    return tmp_path


@pytest.mark.parametrize("decoder", ["rnn", "transformer"])
def test_a_folder_and_captions_make_a_captioner(place, decoder):
    chosen = ["--set", f"model.options.decoder={decoder}", "-o", "run"]
    ran = run(place, "train", "--images", "images", "--captions", "train.en.csv", *QUICK, *LITTLE, *chosen)
    assert ran.returncode == 0, ran.stderr
    assert "image → en" in ran.stderr
    description = Bundle.open(place / "run").description
    assert (description.arch, description.options["decoder"]) == ("captioner", decoder)
    told = run(place, "info", "run")
    assert "pictures of 32 × 32 pixels in 16 × 16 patches" in told.stdout
    assert softgaze.load(place / "run").translate(str(place / "images/000.png"), max_length=5).parts


def test_the_other_forms_of_captions_and_held_out_files(place):
    lines = (place / "train.en.csv").read_text().splitlines()[1:]
    rows = [line.split(",", 1) for line in lines]
    (place / "a.token").write_text("".join(f"{name}#{number}\t{text}\n" for number, (name, text) in enumerate(rows)))
    write_pictures(place / "held", count=3)
    ran = run(
        place, "train", "--images", "images", "--captions", "a.token", "--dev", "held/images", "held/train.en.csv",
        *QUICK, *LITTLE, "-o", "run",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    facts = Bundle.open(place / "run").facts
    assert (facts["pairs"], facts["dev_pairs"]) == (16, 6)


def test_features_need_nothing_but_their_folder(tmp_path):
    write_melodies(tmp_path / "sounds", 30)
    options = [word for option in OPTIONS for word in ("--set", option)]
    ran = run(
        tmp_path, "train", "--features", "sounds", "--captions", "sounds/train.tsv", *QUICK, *options, "-o", "run"
    )
    assert ran.returncode == 0, ran.stderr
    assert "frames of 40 numbers" in run(tmp_path, "info", "run").stdout
    assert softgaze.load(tmp_path / "run").translate(str(tmp_path / "sounds/train-0.npy"), max_length=5).parts


def test_rows_and_pictures_that_cannot_be_used_are_named(place):
    (place / "images" / "001.png").write_bytes(b"nothing")
    with (place / "train.en.csv").open("a") as file:
        file.write("gone.png,a red circle\n../out.png,a red circle\n")
    ran = run(place, "train", "--images", "images", "--captions", "train.en.csv", *QUICK, *LITTLE, "-o", "run")
    assert ran.returncode == 0, ran.stderr
    named = [line for line in ran.stderr.splitlines() if line.startswith("left out: ")]
    for line, words in zip(named, ("gone.png", "out.png", "images/001.png"), strict=True):
        assert words in line


WRONG = {
    "no-captions": (["--images", "images"], 2, "--captions FILE"),
    "no-folder": (["--captions", "train.en.csv"], 2, "--images DIR or --features DIR"),
    "both": (["--images", "images", "--features", "images", "--captions", "train.en.csv"], 2, "one folder"),
    "text-too": (["--images", "images", "--captions", "train.en.csv", "--train", "a", "b"], 2, "different things"),
    "no-such-folder": (["--images", "imags", "--captions", "train.en.csv"], 3, "imags is not there"),
    "no-such-file": (["--images", "images", "--captions", "captions.csv"], 3, "captions.csv"),
    "arch": (["--images", "images", "--captions", "train.en.csv", "--arch", "rnn"], 2, "--arch captioner"),
    "encoder": (
        ["--images", "images", "--captions", "train.en.csv", "--set", "model.options.encoder=resnet"],
        3,
        "neither an encoder we know",
    ),
    "side": (["--images", "images", "--captions", "train.en.csv", "--set", "data.side=100"], 2, "not 100"),
    "guided": (["--images", "images", "--captions", "train.en.csv", "--guided", "a.links"], 2, "no words"),
    "pictures-as-features": (["--features", "images", "--captions", "train.en.csv"], 3, "none of the 8 files"),
}


@pytest.mark.parametrize(("arguments", "code", "words"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_meant_is_one_line_and_leaves_nothing(place, arguments, code, words):
    ran = run(place, "train", *arguments, *QUICK, "-o", "run")
    assert ran.returncode == code, ran.stderr
    assert words in ran.stderr
    assert not (place / "run").exists()


def test_a_dry_run_tells_what_pictures_would_take(place):
    ran = run(
        place, "train", "--images", "images", "--captions", "train.en.csv", *QUICK, *LITTLE, "-o", "run", "--dry-run"
    )
    assert ran.returncode == 0, ran.stderr
    assert "captioner tiny" in ran.stdout
    assert not (place / "run").exists()


def test_the_quickstart_on_pictures_runs_from_drawing_to_pointing(tmp_path, monkeypatch):
    from softgaze.cli import scenes

    monkeypatch.setattr(scenes, "MODEL", {**scenes.MODEL, **SMALL})
    ran = run(tmp_path, "quickstart", "--images", "--pairs", "40", "--steps", "3", "-o", "quick")
    assert ran.returncode == 0, ran.stderr
    assert "40 pictures of coloured shapes" in ran.stdout
    assert "held-out pictures" in ran.stdout
    assert "softgaze caption quick/model" in ran.stdout
    assert numpy.isfinite(Bundle.open(tmp_path / "quick" / "model").facts["dev"]["loss"])
    again = run(tmp_path, "quickstart", "--images", "--pairs", "40", "--steps", "3", "-o", "quick")
    assert "ended at step 3" in again.stderr

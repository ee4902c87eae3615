"""`softgaze train`: real processes, real signals, one-line errors; text, images and features."""

import json
import os
import signal
import subprocess
import sys

import pytest

from albums import SMALL as SMALL_CAPTIONER
from albums import write_melodies, write_pictures
from commands import check_error, run
from corpora import SMALL, write_corpus, write_links
from softgaze.bundle import Bundle
from softgaze.translator import load

QUICK = [f"--set=model.options.{name}={value}" for name, value in SMALL["transformer"].items()]
QUICK += ["--set=training.batch_tokens=64", "--set=validation.sentences=4"]
TEXT = ["--train", "train.en", "train.de"]


def run_process(directory, *arguments):
    command = [sys.executable, "-m", "softgaze", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, cwd=directory)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("train")
    write_links(write_corpus(path)[0])
    (path / "short.de").write_text("ein hund.\n")
    return path


def test_two_files_make_a_translator_and_the_same_command_resumes(directory):
    command = ["train", *TEXT, "--out", "run", "--steps", "5", *QUICK]
    first = run_process(directory, *command)
    assert first.returncode == 0, first.stderr
    assert "en → de" in first.stderr
    assert "5 updates" in first.stderr
    again = run_process(directory, *command)
    assert again.returncode == 0
    assert "step 5" in again.stderr
    assert "updates" not in again.stderr
    translated = run_process(directory, "translate", "run", "dog sees cat.")
    assert translated.returncode == 0, translated.stderr
    assert translated.stdout.count("\n") == 1


def test_guided_alignment_and_attention_history(directory):
    command = ["train", *TEXT, "--out", "seen", "--steps", "5", *QUICK]
    command += ["--guided", "train.links", "--attention-history", "--set=training.guided_weight=0.5"]
    first = run_process(directory, *command)
    assert first.returncode == 0, first.stderr
    assert "weight 0.5" in first.stderr
    assert "guided " in first.stderr
    assert (directory / "seen" / "film.jsonl").read_bytes().count(b"\n") == 2
    assert "guided" in Bundle.open(directory / "seen").facts
    assert "guided" in run_process(directory, *command, "--dry-run").stdout
    other = run_process(directory, *command[:-1])
    assert other.returncode == 2
    assert "training.guided_weight" in other.stderr


def test_a_dry_run_reports_estimates_and_leaves_nothing(directory):
    result = run_process(directory, "train", *TEXT, "--out", "never", "--steps", 9, "--dry-run", *QUICK)
    assert result.returncode == 0, result.stderr
    for word in ("parameters", "padding", "tokens/s", "peak memory", "disk", "9 updates"):
        assert word in result.stdout
    assert not (directory / "never").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_save_and_exit(directory, number, code):
    out = f"run-{number}"
    command = [sys.executable, "-m", "softgaze", "train", *TEXT, "--out", out, "--minutes", "5", *QUICK]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True, env=environment)
    for line in process.stderr:
        if line.startswith("step"):
            break
    process.send_signal(number)
    rest = process.communicate(timeout=60)[1]
    assert process.returncode == code, rest
    assert "saved at step" in rest
    assert list((directory / out / "checkpoints").glob("step-*"))


def test_fine_tuning_reports_before_and_after(directory):
    assert run(directory, "train", *TEXT, "--out", "base", "--steps", 5, *QUICK).returncode == 0
    mixed = ["--init", "base", "--mix", "train.en", "train.de", "--mix-ratio", 0.5, "--test", "train.en", "train.de"]
    command = ["train", *TEXT, *mixed, "--out", "tuned", "--steps", 6, "--set=validation.sentences=4"]
    first = run(directory, *command)
    assert first.returncode == 0, first.stderr
    assert "Test set of 60 sentences" in first.stdout
    reports = [directory / "tuned" / name for name in ("before-after.json", "before-after.html")]
    contents = [path.read_bytes() for path in reports]
    assert json.loads(contents[0])["against"][0]["difference"]["chrf"]["bootstrap_p"] > 0
    again = run(directory, *command)
    assert again.stdout == first.stdout
    assert [path.read_bytes() for path in reports] == contents
    assert "parameters" in run(directory, *command, "--dry-run").stdout


MISTAKES = {
    "no output": (TEXT, 2, "--out"),
    "no corpus": (["--out", "x"], 2, ""),
    "one file": (["--out", "x", "--train", "train.en"], 2, "two files"),
    "missing file": (["--out", "x", "--train", "train.en", "missing.de"], 3, "missing.de"),
    "unequal files": (["--out", "x", "--train", "train.en", "short.de"], 3, "lines"),
    "arch": (["--out", "x", *TEXT, "--arch", "transfomer"], 2, "'transformer'"),
    "setting": (["--out", "x", *TEXT, "--set", "training.sed=1"], 2, "training.seed"),
    "model option": (["--out", "x", *TEXT, "--set", "model.options.haeds=4"], 2, "heads"),
    "option": (["--out", "x", *TEXT, "--minuets", "3"], 2, "--minutes"),
    "missing links": (["--out", "x", *TEXT, "--guided", "missing.links"], 3, "missing.links"),
    "too few links": (["--out", "x", *TEXT, "--guided", "short.de"], 3, "short.de"),
    "no links": (["--out", "x", *TEXT, "--guided", "train.en"], 3, "train.en, line 1"),
    "no attention": (["--out", "x", *TEXT, "--attention-history", "--arch", "rnn"], 2, "--attention-history"),
    "mix without a model": (["--out", "x", *TEXT, "--mix", "train.en", "train.de"], 2, "--init"),
    "ratio without mix": (["--out", "x", *TEXT, "--mix-ratio", "2"], 2, "--mix SRC TGT"),
    "test without a model": (["--out", "x", *TEXT, "--test", "train.en", "train.de"], 2, "--init"),
}


@pytest.mark.parametrize(("arguments", "code", "fact"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_one_line_and_leave_nothing(directory, arguments, code, fact):
    check_error(run(directory, "train", *arguments), code, fact)
    assert not (directory / "x").exists()


# --- images and features

OPTIONS = [f"--set=model.options.{name}={value}" for name, value in SMALL_CAPTIONER.items()]
FEW_STEPS = ["--steps", "2", "--set=validation.every=2", "--set=validation.sentences=2", *OPTIONS, "-o", "run"]
IMAGES = ["--images", "images", "--captions", "train.en.csv"]
SIDE = "--set=data.image_size=32"


@pytest.fixture
def images(tmp_path):
    write_pictures(tmp_path, count=8)
    return tmp_path


@pytest.mark.parametrize("decoder", ["rnn", "transformer"])
def test_images_and_captions_make_a_captioner(images, decoder):
    result = run(images, "train", *IMAGES, *FEW_STEPS, SIDE, f"--set=model.options.decoder={decoder}")
    assert result.returncode == 0, result.stderr
    description = Bundle.open(images / "run").description
    assert (description.arch, description.options["decoder"]) == ("captioner", decoder)
    assert "32 × 32" in run(images, "info", "run").stdout
    assert load(images / "run").translate(str(images / "images/000.png"), max_length=5).parts


def test_another_caption_format_and_validation_files(images):
    rows = [line.split(",", 1) for line in (images / "train.en.csv").read_text().splitlines()[1:]]
    lines = [f"{name}#{index}\t{text}\n" for index, (name, text) in enumerate(rows)]
    (images / "a.token").write_text("".join(lines))
    write_pictures(images / "held", count=3)
    dev = ["--dev", "held/images", "held/train.en.csv"]
    result = run(images, "train", "--images", "images", "--captions", "a.token", *dev, *FEW_STEPS, SIDE)
    assert result.returncode == 0, result.stderr
    facts = Bundle.open(images / "run").facts
    assert (facts["pairs"], facts["dev_pairs"]) == (16, 6)


def test_features_make_a_captioner(tmp_path):
    write_melodies(tmp_path / "sounds", 30)
    result = run(tmp_path, "train", "--features", "sounds", "--captions", "sounds/train.tsv", *FEW_STEPS)
    assert result.returncode == 0, result.stderr
    assert "40" in run(tmp_path, "info", "run").stdout
    assert load(tmp_path / "run").translate(str(tmp_path / "sounds/train-0.npy"), max_length=5).parts


def test_skipped_rows_and_images_are_reported(images):
    (images / "images" / "001.png").write_bytes(b"nothing")
    with (images / "train.en.csv").open("a") as file:
        file.write("gone.png,a red circle\n../out.png,a red circle\n" + "000.png,twice\n" * 3)
    result = run(images, "train", *IMAGES, *FEW_STEPS, SIDE)
    assert result.returncode == 0, result.stderr
    for name in ("gone.png", "out.png", "images/001.png"):
        assert sum(name in line for line in result.stderr.splitlines()) == 1
    assert sum("repeated captions left out: 2" in line for line in result.stderr.splitlines()) == 1


def test_a_dry_run_on_images_leaves_nothing(images):
    result = run(images, "train", *IMAGES, *FEW_STEPS, SIDE, "--dry-run")
    assert result.returncode == 0, result.stderr
    assert "captioner" in result.stdout
    assert not (images / "run").exists()


IMAGE_MISTAKES = {
    "no captions": (["--images", "images"], 2, "--captions FILE"),
    "no directory": (["--captions", "train.en.csv"], 2, "--images DIR or --features DIR"),
    "both": ([*IMAGES, "--features", "images"], 2, "exactly one directory"),
    "text too": ([*IMAGES, "--train", "a", "b"], 2, "either text"),
    "missing directory": (["--images", "imags", "--captions", "train.en.csv"], 3, "imags"),
    "missing captions": (["--images", "images", "--captions", "captions.csv"], 3, "captions.csv"),
    "arch": ([*IMAGES, "--arch", "rnn"], 2, "--arch captioner"),
    "encoder": ([*IMAGES, "--set", "model.options.encoder=resnet"], 3, "resnet"),
    "side": ([*IMAGES, "--set", "data.image_size=100"], 2, "100"),
    "guided": ([*IMAGES, "--guided", "a.links"], 2, "--guided"),
    "images as features": (["--features", "images", "--captions", "train.en.csv"], 3, "none of the 8 files"),
}


@pytest.mark.parametrize(("arguments", "code", "fact"), IMAGE_MISTAKES.values(), ids=IMAGE_MISTAKES)
def test_mistakes_with_images_leave_nothing(images, arguments, code, fact):
    result = run(images, "train", *arguments, "--steps", "2", "-o", "run")
    assert (result.returncode, fact in result.stderr) == (code, True), result.stderr
    assert not (images / "run").exists()

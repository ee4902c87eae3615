"""`softgaze train` as a person runs it: real processes, real signals, one-line errors."""

import os
import signal
import subprocess
import sys

import pytest

from corpora import SMALL, write_corpus, write_links

QUICK = [f"--set=model.options.{name}={value}" for name, value in SMALL["transformer"].items()]
QUICK += ["--set=training.batch_tokens=64", "--set=validation.sentences=4"]


def softgaze(*arguments, **options):
    command = [sys.executable, "-m", "softgaze", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, **options)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("train")
    write_links(write_corpus(directory)[0])
    return directory


def test_two_files_make_a_translator_and_the_same_command_resumes(place):
    command = ["train", "--train", "train.en", "train.de", "--out", "run", "--steps", "5", *QUICK]
    first = softgaze(*command, cwd=place)
    assert first.returncode == 0, first.stderr
    assert "en → de" in first.stderr
    assert "done: 5 updates" in first.stderr
    again = softgaze(*command, cwd=place)
    assert again.returncode == 0
    assert "ended at step 5" in again.stderr
    translated = softgaze("translate", "run", "dog sees cat.", cwd=place)
    assert translated.returncode == 0, translated.stderr
    assert translated.stdout.count("\n") == 1


def test_a_head_learns_from_links_and_a_film_is_made(place):
    command = ["train", "--train", "train.en", "train.de", "--out", "seen", "--steps", "5", *QUICK]
    command += ["--guided", "train.links", "--film", "--set=training.guided_weight=0.5"]
    first = softgaze(*command, cwd=place)
    assert first.returncode == 0, first.stderr
    assert "layer 0, head 0, weight 0.5, from the links of 54 pairs" in first.stderr
    assert "  guided " in first.stderr
    assert (place / "seen" / "film.jsonl").read_bytes().count(b"\n") == 2
    told = softgaze("info", "seen", cwd=place)
    assert "guided\n" in told.stdout
    rehearsed = softgaze(*command, "--dry-run", cwd=place)
    assert "guided       layer 0, head 0" in rehearsed.stdout
    other = softgaze(*command[:-1], cwd=place)
    assert other.returncode == 2
    assert "training.guided_weight: 0.5 → None" in other.stderr


def test_a_dry_run_tells_and_leaves_nothing(place):
    told = softgaze(
        "train", "--train", "train.en", "train.de", "--out", "never", "--steps", 9, "--dry-run", *QUICK, cwd=place
    )
    assert told.returncode == 0, told.stderr
    for word in ("parameters", "padding", "tokens/s", "peak memory", "disk", "9 updates"):
        assert word in told.stdout
    assert not (place / "never").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_save_and_leave(place, number, code):
    command = ["train", "--train", "train.en", "train.de", "--out", f"run-{number}", "--minutes", "5", *QUICK]
    process = subprocess.Popen(
        [sys.executable, "-m", "softgaze", *command],
        cwd=place,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    for line in process.stderr:
        if line.startswith("step"):
            break
    process.send_signal(number)
    rest = process.communicate(timeout=60)[1]
    assert process.returncode == code, rest
    assert "saved at step" in rest
    assert list((place / f"run-{number}" / "checkpoints").glob("step-*"))


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--train", "train.en", "train.de"], 2, "--out"),
        (["--out", "x"], 2, "no files"),
        (["--out", "x", "--train", "train.en"], 2, "two files"),
        (["--out", "x", "--train", "train.en", "missing.de"], 3, "missing.de"),
        (["--out", "x", "--train", "train.en", "short.de"], 3, "lines"),
        (["--out", "x", "--train", "train.en", "train.de", "--arch", "transfomer"], 2, "did you mean transformer"),
        (["--out", "x", "--train", "train.en", "train.de", "--set", "training.sed=1"], 2, "did you mean training.seed"),
        (["--out", "x", "--train", "train.en", "train.de", "--set", "model.options.haeds=4"], 2, "did you mean heads"),
        (["--out", "x", "--train", "train.en", "train.de", "--minuets", "3"], 2, "--minutes"),
        (["--out", "x", "--train", "train.en", "train.de", "--guided", "missing.links"], 3, "missing.links"),
        (["--out", "x", "--train", "train.en", "train.de", "--guided", "short.de"], 3, "short.de has 1 lines of links"),
        (["--out", "x", "--train", "train.en", "train.de", "--guided", "train.en"], 3, "train.en, line 1: "),
        (["--out", "x", "--train", "train.en", "train.de", "--film", "--arch", "rnn", "--size", "tiny"], 2, "--film"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(place, arguments, code, words):
    (place / "short.de").write_text("ein hund.\n")
    result = softgaze("train", *arguments, cwd=place)
    assert result.returncode == code, result.stderr
    assert words in result.stderr
    assert len(result.stderr.strip().split("\n")) == 1
    assert not (place / "x").exists()

"""Every command works on a model of every family, with its languages."""

import subprocess
import sys

import pytest

from commands import run
from importers import foreign, test_ctranslate2, test_marian
from importers.marian_reference import SSRU
from softgaze.importers import import_model

FAMILIES = {  # how to write a model, the options of its languages, the engine it exports to
    "marian": (lambda path: foreign.marian(path, encoder_layers=3, decoder_layers=1), (), "ctranslate2"),
    "multi-target": (
        lambda path: foreign.marian(path, languages=("deu", "fra")),
        ("--target-lang", "fra"),
        "ctranslate2",
    ),
    "m2m": (foreign.m2m, ("--source-lang", "en", "--target-lang", "fr"), "ctranslate2"),
    "nllb": (foreign.nllb, ("--source-lang", "eng", "--target-lang", "fra"), "ctranslate2"),
    "mbart50": (foreign.mbart, ("--source-lang", "en", "--target-lang", "ko"), "ctranslate2"),
    "mbart25": (
        lambda path: foreign.mbart(path, tokenizer="MBartTokenizer"),
        ("--source-lang", "en", "--target-lang", "ko"),
        "ctranslate2",
    ),
    "npz": (lambda path: test_marian.save(path, kind="npz"), (), "ctranslate2"),
    "firefox": (lambda path: test_marian.save(path, SSRU), (), "onnx"),
    "ctranslate2": (test_ctranslate2.write_marian_directory, (), "ctranslate2"),
}


@pytest.mark.parametrize(("make", "languages", "engine"), FAMILIES.values(), ids=FAMILIES)
def test_every_command_works_on_an_import(tmp_path, make, languages, engine):
    make(tmp_path / "original")
    import_model(tmp_path / "original", tmp_path / "model", verify=False)
    for name, lines in (("s", foreign.SENTENCES), ("t", reversed(foreign.SENTENCES))):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    commands = {
        "translate": ("model", "bad cafe"),
        "explain": ("model", "bad cafe", "-o", "map.html"),  # with what-if results
        "align": ("model", "s", "t"),
        "evaluate": ("model", "--test", "s", "t", "--attention"),
        "why": ("model", "--test", "s", "t"),
    }
    for command, arguments in commands.items():
        result = run(tmp_path, command, *arguments, *languages)
        assert result.returncode == 0, (command, result.stderr)
        assert result.stdout.strip() or (tmp_path / "map.html").is_file()
    for precision in ("float32", "int8")[: 2 if engine == "ctranslate2" else 1]:
        export = ("export", "model", "--to", engine, "--quantize", precision, "-o", precision, "--dev", "s", "t")
        drift = ("--allow-drift",) if precision == "int8" else ()  # random weights leave no margin
        # In a process of its own: the libraries of the two engines cannot share one.
        done = subprocess.run(
            [sys.executable, "-m", "softgaze", *export, *languages, *drift],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "verified" in done.stdout

"""The commands and the Python of the README run, and its links exist.

The Korean README has the same code (tests/docs/test_korean.py), so it is not run again.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from corpora import SMALL, write_corpus
from softgaze.models import MODELS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
both = pytest.mark.parametrize("text", [README, (ROOT / "README.ko.md").read_text(encoding="utf-8")], ids=["en", "ko"])
QUICK = " ".join(f"--set=model.options.{name}={value}" for name, value in SMALL["transformer"].items())


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Run the commands of the README in a directory with a small corpus."""
    path = tmp_path_factory.mktemp("readme")
    write_corpus(path)
    write_corpus(path, pairs=4, name="test")
    for line in blocks("bash")[0].strip().split("\n"):
        run_line(line.split("#")[0].strip(), path)
    return path


def run_line(line, directory):
    """Run a command; training is shortened."""
    if line.startswith("softgaze train"):
        line += f" --steps 3 {QUICK}"
    command = line.replace("softgaze", f"{sys.executable} -m softgaze", 1)
    result = subprocess.run(command, shell=True, cwd=directory, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, f"{line}\n{result.stderr}"


def test_the_commands_write_a_model_and_a_translation(directory):
    assert (directory / "runs/mine/model.safetensors").exists()
    assert len((directory / "test.out").read_text().split("\n")) == len((directory / "test.en").read_text().split("\n"))


@pytest.mark.parametrize("index", range(len(blocks("python"))))
def test_the_python_runs(directory, index):
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", blocks("python")[index]]
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, env=environment)
    assert result.returncode == 0, result.stderr
    assert "2.8235" not in blocks("python")[index] or "2.8235" in result.stdout


@both
def test_linked_files_exist(text):
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), target


@both
def test_every_architecture_is_in_the_table(text):
    for arch in MODELS:
        assert f"| `{arch}` |" in text


@both
def test_the_make_targets_exist(text):
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z]+)", text):
        assert f"\n{target}:" in makefile, target


@both
def test_numbers_of_the_comparison_are_recorded(text):
    """Each figure of the comparison is in a page that a benchmark or a recipe wrote."""
    pages = {
        "tokens": "benchmarks/results.md",
        "sentences": "benchmarks/decoding.md",
        "토큰": "benchmarks/results.md",
        "문장": "benchmarks/decoding.md",
    }
    rows = [row for row in re.findall(r"^\|.*\|$", text, re.MULTILINE) if re.search(r"\| [\d,.]+ \|", row)]
    assert len(rows) == 2
    for row in rows:
        recorded = (ROOT / next(page for word, page in pages.items() if word in row)).read_text(encoding="utf-8")
        for figure in re.findall(r"\| ([\d,.]+) (?=\|)", row):
            assert f"| {figure} (" in recorded, figure
    assert "| 40.47 |" in (ROOT / "recipes/multi30k-en-de/README.md").read_text(encoding="utf-8")
    assert "| 8.2 |" in (ROOT / "benchmarks/aligners.md").read_text(encoding="utf-8")

"""The README is short, lists every architecture, and takes its figures from result files.

tests/docs runs its commands and checks its links; the Korean README has the same code (tests/docs/test_korean.py).
"""

import re
from pathlib import Path

import pytest

from docs.numbers import MARK
from softgaze.models import MODELS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
both = pytest.mark.parametrize("text", [README, (ROOT / "README.ko.md").read_text(encoding="utf-8")], ids=["en", "ko"])


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
def test_figures_of_tables_are_filled_from_result_files(text):
    """`python -m docs.numbers` writes them; tests/docs/test_explanation.py compares them."""
    cells = [cell.strip() for row in re.findall(r"^\|.*\|$", text, re.MULTILINE) for cell in row.split("|")]
    assert len([cell for cell in cells if MARK.fullmatch(cell)]) >= 17
    assert not [cell for cell in cells if re.fullmatch(r"[\d.,]+( MB)?", cell)]


@both
def test_it_is_short(text):
    assert text.count("\n") <= 150
    assert (ROOT / "docs/pictures/page.webp").stat().st_size <= 2_000_000

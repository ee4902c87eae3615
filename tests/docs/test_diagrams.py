"""The diagrams of the guide are those that docs/diagrams.py draws, and they can be read on light and dark pages."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from contrast import contrast
from docs import diagrams
from docs.chapters import GUIDE, chapters
from docs.dark import CARD, COLOURS, dark_colour, with_dark_colours
from softgaze.explain.render.svg import FAINT, INK, SERIES, ink_on, shade
from softgaze.positions import sinusoidal

ROOT = GUIDE.parents[1]
SHOWN = sorted([*(ROOT / "docs").rglob("*.svg"), *(ROOT / "benchmarks").glob("*.svg")])
every_shown = pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.stem)
every_drawing = pytest.mark.parametrize("name", diagrams.DRAWINGS)


@every_drawing
def test_a_diagram_is_redrawn_byte_by_byte(name):
    assert (diagrams.DIAGRAMS / f"{name}.svg").read_text(encoding="utf-8") == diagrams.DRAWINGS[name]()


@every_shown
def test_hangul_does_not_depend_on_fonts(path):
    texts = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    assert not [text.text for text in texts if diagrams.HANGUL.search(text.text or "")]


@every_drawing
def test_every_diagram_is_in_both_languages(name):
    for directory in (GUIDE, GUIDE / "ko"):
        assert any(f"diagrams/{name}.svg" in page.read_text(encoding="utf-8") for page in chapters(directory))


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_text_has_contrast(mode):
    colours = {name: re.findall("#[0-9a-f]{6}", value[mode]) for name, value in diagrams.COLOURS.items()}
    backgrounds = [colours[name][0] for name in ("card", "box", "look", "no")]
    assert all(contrast(colours["ink"][0], background) >= 4.5 for background in backgrounds)
    assert contrast(colours["faint"][0], colours["card"][0]) >= 4.5


@every_shown
def test_every_drawing_of_a_page_has_dark_colours(path):
    svg = path.read_text(encoding="utf-8")
    assert with_dark_colours(svg) == svg
    assert "prefers-color-scheme:dark" in svg


def test_dark_charts_and_maps_have_contrast():
    assert all(contrast(COLOURS[light], CARD) >= 4.5 for light in (INK, FAINT))
    assert all(contrast(COLOURS[light], CARD) >= 3 for light in SERIES)
    weights = [percent / 100 for percent in range(101)]
    assert all(contrast(dark_colour(ink_on(w)), dark_colour(shade(round(w, 2)))) >= 3.9 for w in weights)


def test_the_drawn_positions_are_those_of_the_package():
    drawn = torch.tensor([[diagrams.encoding(position, column, 32) for column in range(32)] for position in range(40)])
    assert torch.allclose(drawn, sinusoidal(torch.arange(40.0), 32), atol=1e-5)


def test_no_other_drawing_is_stored():
    assert {path.stem for path in Path(diagrams.DIAGRAMS).glob("*.svg")} == {*diagrams.DRAWINGS}


def test_every_picture_is_small_and_used():
    root = GUIDE.parents[1]
    pages = [root / "README.md", *root.glob("docs/**/*.md"), *root.glob("recipes/*/README.md")]
    texts = "".join(page.read_text(encoding="utf-8") for page in pages)
    for picture in (root / "docs/pictures").iterdir():
        assert picture.stat().st_size < 2_000_000
        assert f"pictures/{picture.name}" in texts

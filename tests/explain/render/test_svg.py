"""Any text makes valid SVG and survives; colours have contrast and can be distinguished."""

import math
import re
import struct
import sys
from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrast import contrast, luminance
from maps import random_attention
from softgaze.errors import ResourceError, UsageError
from softgaze.explain import Attention
from softgaze.explain.render import svg as figures
from softgaze.explain.render.pages import asset
from softgaze.explain.render.svg import (
    BLACK,
    FAINT,
    GOLD,
    HUE,
    INK,
    LINE,
    SERIES,
    WHITE,
    Figure,
    element,
    format_number,
    ink_on,
    shade,
    svg_document,
    text,
    ticks,
)
from softgaze.explain.render.text_layout import clean, isolate
from softgaze.explain.word_spans import EOS_MARK

SVG = "{http://www.w3.org/2000/svg}"
any_text = st.text(st.characters(exclude_categories=()))


@given(words=any_text)
def test_any_text_survives(words):
    assert (ElementTree.fromstring(text(1, 2, words)).text or "") == clean(isolate(words))


@given(words=any_text)
def test_any_title_survives(words):
    drawing = ElementTree.fromstring(svg_document(10, 20, "", title=words, description=words))
    assert drawing.findtext(f"{SVG}title") == clean(words)
    assert drawing.findtext(f"{SVG}desc", "") == clean(words)
    assert drawing.get("viewBox") == "0 0 10 20"


@given(value=st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_attributes_are_quoted(value):
    assert ElementTree.fromstring(element("a", stroke_width=value)).get("stroke-width") == value


def test_numbers_are_short():
    assert [format_number(number) for number in (1, 1.0, 1.25, 0.333, 12.96)] == ["1", "1", "1.2", "0.3", "13"]


@given(end=st.floats(1e-3, 1e6))
def test_ticks_are_few_even_and_reach_the_end(end):
    values = ticks(end)
    assert values[0] == 0
    assert values[-1] >= end * (1 - 1e-6)
    assert values[-2] < end
    assert 2 <= len(values) <= 7


# --- colours

STEPS = [step / 100 for step in range(101)]


def test_luminance_falls_with_weight():
    assert all(luminance(shade(one)) > luminance(shade(other)) for one, other in pairwise(STEPS))
    assert shade(0) == WHITE


def test_numbers_have_contrast_on_every_shade():
    for step in STEPS:
        contrasts = {ink: contrast(ink, shade(step)) for ink in (BLACK, WHITE)}
        assert contrasts[ink_on(step)] == max(contrasts.values()) >= 4.5


def test_figures_have_the_colours_of_the_pages():
    light = asset("style.css").split("@media")[0]
    assert f"--hue: {' '.join(map(str, HUE))};" in light
    for name, colour in (("ink", INK), ("faint", FAINT), ("line", LINE), ("gold", GOLD)):
        assert f"--{name}: {colour};" in light


# Linear RGB of colour-blind vision (Machado, Oliveira & Fernandes 2009).
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
TO_XYZ = [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8728]]  # white is (1, 1, 1)


def to_cielab(colour, vision):
    """CIELAB, where a distance of 1 is about the smallest visible difference."""
    channels = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(TO_XYZ @ (VISION[vision] @ linear).clip(0, 1))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def dark_series():
    return re.findall(r"--series: (#\w+);", asset("evaluation.css"))


@pytest.mark.parametrize("vision", VISION)
def test_series_colours_can_be_distinguished(vision):
    for colours in (SERIES, dark_series()):
        distances = [math.dist(to_cielab(a, vision), to_cielab(b, vision)) for a, b in combinations(colours, 2)]
        assert min(distances) > 20


def test_series_names_have_contrast_on_light_and_dark():
    dark = re.search(r"--paper: (#\w+);", asset("style.css").split("@media")[1])[1]
    assert min(contrast(colour, WHITE) for colour in SERIES) >= 4.5
    assert min(contrast(colour, dark) for colour in dark_series()) >= 4.5
    assert len(dark_series()) == len(SERIES)


SCRIPTS = ["school", "학교에", "日本", "مدرسة.", "e\u0301", "<b>&amp;", "\x00", EOS_MARK]


def figure():
    return Attention.of(SCRIPTS, ["x"], [[1 / len(SCRIPTS)] * len(SCRIPTS)]).plot()


def size_of_png(content):
    return struct.unpack(">II", content[16:24])


def test_svg_is_saved_unchanged(tmp_path):
    assert figure().save(str(tmp_path / "a.svg")).read_text(encoding="utf-8") == figure().svg == figure()._repr_svg_()


@pytest.mark.parametrize("name", ["a.png", "a.PNG"])
def test_png_has_three_times_the_resolution(tmp_path, name):
    content = figure().save(tmp_path / name).read_bytes()
    assert content.startswith(b"\x89PNG")
    assert size_of_png(content) == tuple(round(3 * side) for side in figure().size)


def test_large_png_is_limited(monkeypatch, tmp_path):
    monkeypatch.setattr(figures, "MAX_PIXELS", 1e5)
    width, height = size_of_png(figure().save(tmp_path / "a.png").read_bytes())
    assert 0.9e5 < width * height < 1.1e5


def test_pdf_has_text_and_is_reproducible(tmp_path):
    content = figure().save(tmp_path / "a.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert b"/ToUnicode" in content  # text that can be copied
    assert content == figure().save(tmp_path / "b.pdf").read_bytes()


@pytest.mark.parametrize("name", ["a.gif", "a", "a.svg.gz"])
def test_unknown_suffix_is_rejected(tmp_path, name):
    with pytest.raises(UsageError, match=r"\.svg, \.png, \.pdf") as error:
        figure().save(tmp_path / name)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.png", "a.pdf"])
def test_missing_extra_is_named_and_the_old_file_stays(tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "typst", None)
    (tmp_path / name).write_text("old")
    with pytest.raises(ResourceError, match=re.escape("pip install 'softgaze[plots]'")):
        figure().save(tmp_path / name)
    assert (tmp_path / name).read_text() == "old"
    assert figure().save(tmp_path / "a.svg").exists()


def test_every_view_becomes_a_figure():
    for attention in (random_attention(), random_attention().subwords(), random_attention().encoder()):
        assert repr(attention.plot()).startswith("<Figure ")


def test_svg_without_size_is_rejected():
    with pytest.raises(ValueError, match="width and height"):
        repr(Figure("<p>"))

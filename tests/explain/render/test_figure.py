"""A figure is saved in the format of its suffix, completely or not at all."""

import re
import struct
import sys

import pytest

from maps import random_attention
from softgaze.errors import ResourceError, UsageError
from softgaze.explain import Attention
from softgaze.explain.render import figure as figures
from softgaze.explain.render.figure import Figure
from softgaze.explain.word_spans import EOS_MARK

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

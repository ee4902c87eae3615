"""What all pages share: one file that loads nothing; and the display in a notebook."""

import base64
import hashlib
import html
import re
from xml.etree import ElementTree

import pytest

from maps import random_attention
from softgaze.explain import Attention
from softgaze.explain.render.heatmap_svg import draw_heatmap
from softgaze.explain.render.pages import asset, attention_page, document, notebook_mimebundle


def test_policy_allows_only_the_style_of_the_page():
    page = document("a", "<p>b</p>")
    [css] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    assert f"style-src 'sha256-{allowed}'" in page
    assert "default-src 'none'" in page
    assert "unsafe" not in page


def test_title_is_escaped():
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in document("</title><script>", "")


def test_style_loads_nothing():
    assert not re.search(r"https?://|url\(|@import", asset("style.css"))


# --- notebooks

HOSTILE = ['"><script>alert(1)</script>', "</iframe>", "&quot;"]


def hostile():
    return Attention.of(HOSTILE, HOSTILE, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])


def test_notebook_gets_text_svg_and_page():
    shown = notebook_mimebundle(random_attention())
    assert shown["text/plain"] == str(random_attention())
    assert shown["image/svg+xml"] == draw_heatmap(random_attention())
    [page] = re.findall(r'srcdoc="([^"]*)"', shown["text/html"])
    assert html.unescape(page) == attention_page(random_attention())


@pytest.mark.parametrize("make", [random_attention, hostile])
def test_notebook_page_is_sandboxed(make):
    shown = notebook_mimebundle(make(), *HOSTILE)["text/html"]
    assert re.findall(r"<(\w+)", shown) == ["p", "p", "p", "style", "iframe", "img"]
    assert re.findall(r'sandbox="([^"]*)"', shown) == ["allow-scripts allow-downloads"]


def test_untrusted_notebook_shows_the_image():
    shown = notebook_mimebundle(random_attention())["text/html"]
    sanitized = re.sub(r"<style>.*?</style>|<iframe.*?</iframe>", "", shown, flags=re.DOTALL)
    [picture] = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', sanitized)
    drawing = ElementTree.fromstring(base64.b64decode(picture))
    assert drawing.find("{*}metadata") is None  # the page already has the numbers
    assert "softgaze-still" in sanitized
    assert "display: none" not in sanitized


def test_lines_are_above_the_map():
    shown = notebook_mimebundle(random_attention(), "a <b>", "c")
    assert shown["text/plain"] == f"a <b>\nc\n\n{random_attention()}"
    assert shown["text/html"].startswith('<p dir="auto">a &lt;b&gt;</p>\n<p dir="auto">c</p>\n')

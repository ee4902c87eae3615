"""A notebook gets every form of a map, and none of them can reach the notebook."""

import base64
import html
import re
from xml.etree import ElementTree

import pytest

from maps import random_attention
from softgaze.gaze import Attention
from softgaze.gaze.notebook import bundle
from softgaze.gaze.page import page
from softgaze.gaze.svg import svg

HOSTILE = ['"><script>alert(1)</script>', "</iframe>", "&quot;"]


def hostile():
    return Attention.of(HOSTILE, HOSTILE, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])


def test_text_picture_and_page():
    shown = bundle(random_attention())
    assert shown["text/plain"] == str(random_attention())
    assert shown["image/svg+xml"] == svg(random_attention())
    [inside] = re.findall(r'srcdoc="([^"]*)"', shown["text/html"])
    assert html.unescape(inside) == page(random_attention())


def test_attention_shows_itself():
    assert random_attention()._repr_mimebundle_(include=None, exclude=None) == bundle(random_attention())


@pytest.mark.parametrize("make", [random_attention, hostile])
def test_the_page_is_shut_in(make):
    shown = bundle(make(), *HOSTILE)["text/html"]
    assert re.findall(r"<(\w+)", shown) == ["p", "p", "p", "style", "iframe", "img"]
    assert re.findall(r'sandbox="([^"]*)"', shown) == ["allow-scripts allow-downloads"]


def test_where_frames_and_styles_are_taken_out_a_picture_is_left():
    """What GitHub and notebooks that are not trusted do."""
    shown = bundle(random_attention())["text/html"]
    left = re.sub(r"<style>.*?</style>|<iframe.*?</iframe>", "", shown, flags=re.DOTALL)
    [picture] = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', left)
    drawing = ElementTree.fromstring(base64.b64decode(picture))
    assert drawing.find("{*}metadata") is None  # the numbers are in the page already
    assert "softgaze-still" in left
    assert "display: none" not in left


def test_lines_stand_above_the_map():
    shown = bundle(random_attention(), "a <b>", "c")
    assert shown["text/plain"] == f"a <b>\nc\n\n{random_attention()}"
    assert shown["text/html"].startswith('<p dir="auto">a &lt;b&gt;</p>\n<p dir="auto">c</p>\n')

"""What all pages share: one file that loads nothing; and the display in a notebook."""

import base64
import hashlib
import html
import re
from xml.etree import ElementTree

import pytest

from maps import random_attention
from pictures import random_image_attention
from softgaze.explain import Attention
from softgaze.explain.corpus_report import report_corpus
from softgaze.explain.render.heatmap_svg import draw_heatmap
from softgaze.explain.render.pages import (
    asset,
    attention_page,
    corpus_page,
    document,
    history_page,
    image_page,
    notebook_mimebundle,
)
from softgaze.explain.serialization import Snapshot


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


# --- languages


def pages():
    reports = report_corpus([None])
    facts = {"model": "m", "corpus": "c", "beam_size": 1, "shows": "all"}
    history = [Snapshot(0, 0.0, {}, "a", random_attention())]
    return {
        "attention": attention_page(random_attention()),
        "image": image_page([random_image_attention()]),
        "corpus": corpus_page(reports, facts),
        "history": history_page(history),
    }


@pytest.mark.parametrize("name", pages())
def test_both_languages_have_all_strings(open_page, name):
    page = open_page(pages()[name])
    both = page.evaluate("STRINGS")
    placeholders = {
        language: {key: sorted(re.findall(r"\{\w+\}", text)) for key, text in texts.items()}
        for language, texts in both.items()
    }
    assert placeholders["en"] == placeholders["ko"]
    text = asset(f"{name}.html") + asset(f"{name}.js")
    used = {key for pair in re.findall(r'data-i18n(?:-\w+)?="([^"]+)"|\bt\("([^"]+)"', text) for key in pair if key}
    assert used <= {*both["en"]}


@pytest.mark.parametrize("name", pages())
def test_a_page_opens_in_the_language_of_the_browser_and_can_be_switched(open_page, name):
    page = open_page(pages()[name], locale="ko-KR")
    assert page.locator("html").get_attribute("lang") == "ko"
    korean = page.inner_text("h1")
    assert re.search("[가-힣]", korean)
    page.get_by_role("button", name="Show in English").click()
    assert page.locator("html").get_attribute("lang") == "en"
    assert not re.search("[가-힣]", page.inner_text("h1"))
    page.reload()
    assert page.locator("html").get_attribute("lang") == "en"
    page.get_by_role("button", name="한국어로 보기").click()
    assert page.inner_text("h1") == korean


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

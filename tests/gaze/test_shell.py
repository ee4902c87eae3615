"""A page is one file, and lets nothing in."""

import base64
import hashlib
import re

from softgaze.gaze.shell import asset, document


def test_only_the_page_s_own_style_may_run():
    page = document("a", "<p>b</p>")
    [css] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    assert f"style-src 'sha256-{allowed}'" in page
    assert "default-src 'none'" in page
    assert "unsafe" not in page


def test_a_title_is_text():
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in document("</title><script>", "")


def test_nothing_is_fetched():
    assert not re.search(r"https?://|url\(|@import", asset("style.css"))

"""The site builds without a warning, and is read and searched as files, without a network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from browser import watch
from docs.chapters import GUIDE, chapters

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """As `make docs` builds it, the reference too. A broken link is a warning, and a warning an error."""
    place = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-d", place / "doctrees", "-c", "docs"]
    command = [sys.executable, "-m", "sphinx", *options, ".", place / "site"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr
    return place / "site"


@pytest.fixture
def open_file(chromium):
    """Opens a page of the site, offline; what it complains of or asks the network for fails the test."""
    complaints, context = [], chromium.new_context(offline=True)

    def opened(path, query=""):
        page = context.new_page()
        page.set_default_timeout(60_000)
        watch(page, complaints)
        page.goto(path.as_uri() + query)
        return page

    yield opened
    context.close()
    assert complaints == []


def test_every_chapter_is_a_page_that_the_navigation_names(site):
    start = (site / "README.html").read_text(encoding="utf-8")
    for chapter in [*chapters(), *chapters(GUIDE / "ko")]:
        page = chapter.relative_to(ROOT).with_suffix(".html")
        assert (site / page).exists()
        assert f'href="{page.as_posix()}"' in start


@pytest.mark.parametrize(("page", "name"), [("attention", "attend"), ("serve", "make_app"), ("cli", "caption")])
def test_the_reference_has_what_the_package_has(site, page, name):
    text = (site / f"docs/api/{page}.html").read_text(encoding="utf-8")
    assert re.search(rf'id="softgaze\.{page}\.(?:\w+\.)?{name}"', text)


def test_it_opens_at_the_start_page(site, open_file):
    page = open_file(site / "index.html")
    page.wait_for_url("**/README.html")
    assert page.locator("h1").first.inner_text().startswith("softgaze")


def test_a_solution_is_folded_until_it_is_asked_for(site, open_file):
    page = open_file(site / "docs/guide/01-dictionary.html")
    inside = page.locator("details pre").first
    assert not inside.is_visible()
    page.locator("summary").first.click()
    assert inside.is_visible()
    shown = page.evaluate("[...document.images].every(each => each.complete && each.naturalWidth > 0)")
    assert shown


@pytest.mark.parametrize(
    ("words", "found"),
    [("causal mask", "07-self-attention"), ("puppy", "01-dictionary"), ("마스크", "ko/07-self-attention")],
)
def test_it_is_searched_offline(site, open_file, words, found):
    page = open_file(site / "search.html", f"?q={words}")
    page.locator("ul.search li a").first.wait_for()
    links = page.locator("ul.search li a").evaluate_all("links => links.map(each => each.href)")
    assert any(found in link for link in links)

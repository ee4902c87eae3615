"""The site builds without warnings, and its files can be read and searched offline."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from browser import watch
from docs import reference
from docs.chapters import GUIDE, chapters

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site with its reference, as `make docs` does. Warnings, such as broken links, are errors."""
    directory = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-d", directory / "doctrees", "-c", "docs"]
    command = [sys.executable, "-m", "sphinx", *options, ".", directory / "site"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr
    return directory / "site"


@pytest.fixture
def open_file(chromium):
    """Open pages of the site offline; a console error or network request fails the test."""
    errors, context = [], chromium.new_context(offline=True)

    def open_page(path, query=""):
        page = context.new_page()
        page.set_default_timeout(60_000)
        watch(page, errors)
        page.goto(path.as_uri() + query)
        return page

    yield open_page
    context.close()
    assert errors == []


def test_every_chapter_is_a_page_in_the_navigation(site):
    start = (site / "README.html").read_text(encoding="utf-8")
    for chapter in [*chapters(), *chapters(GUIDE / "ko")]:
        page = chapter.relative_to(ROOT).with_suffix(".html")
        assert (site / page).exists()
        assert f'href="{page.as_posix()}"' in start


def test_every_howto_and_reference_page_is_in_the_navigation(site):
    start = (site / "README.html").read_text(encoding="utf-8")
    howto = [
        f"{path.parent.name}/{path.stem}"
        for kind in ("howto", "tutorials")
        for path in (ROOT / "docs" / kind).glob("*.md")
    ]
    for page in [
        *howto,
        *(f"reference/{name[:-3]}" for name in [*reference.pages(), "formats.md", "glossary.md", "python-api.md"]),
    ]:
        assert f'href="docs/{page}.html"' in start
    captions = re.findall(r'class="caption-text">([^<]+)<', start)
    assert {"Tutorials", "How-to", "Reference", "Explanation"} <= {*captions}


def test_the_log_is_not_in_the_site(site):
    assert not (site / "docs/log.html").exists()


def test_the_reference_has_the_public_names_alone(site):
    assert not (site / "docs/api").exists()
    assert "MultiHeadAttention" in (site / "docs/reference/python-api.html").read_text(encoding="utf-8")


def test_the_index_opens_the_start_page(site, open_file):
    page = open_file(site / "index.html")
    page.wait_for_url("**/docs/index.html")
    doors = page.locator("h2").all_inner_texts()
    assert [door.rstrip("#") for door in doors] == ["Learn", "Do", "Look up", "Understand"]


def test_a_solution_is_folded_until_it_is_clicked(site, open_file):
    page = open_file(site / "docs/guide/01-dictionary.html")
    solution = page.locator("details pre").first
    assert not solution.is_visible()
    page.locator("summary").first.click()
    assert solution.is_visible()
    shown = page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert shown


@pytest.mark.parametrize(
    ("query", "result"),
    [("causal mask", "07-self-attention"), ("puppy", "01-dictionary"), ("마스크", "ko/07-self-attention")],
)
def test_the_site_is_searched_offline(site, open_file, query, result):
    page = open_file(site / "search.html", f"?q={query}")
    page.locator("ul.search li a").first.wait_for()
    links = page.locator("ul.search li a").evaluate_all("links => links.map(link => link.href)")
    assert any(result in link for link in links)

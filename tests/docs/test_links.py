"""Every link of every document leads to a file and a heading that exist."""

import re
from pathlib import Path

import pytest

from docs import reference

ROOT = Path(__file__).parents[2]
GENERATED = {ROOT / "docs/reference" / name: text for name, text in reference.pages().items()}
FOUND = [
    path
    for pattern in ("*.md", "docs/**/*.md", "recipes/*/README.md", "benchmarks/*.md")
    for path in ROOT.glob(pattern)
]
DOCUMENTS = sorted({*FOUND} - GENERATED.keys())
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)|src=\"(?!https?:)([^\"]+)\"")


def read(page):
    return GENERATED.get(page) or page.read_text(encoding="utf-8")


def anchors(page):
    """Return the anchors of the headings, as code hosts and the site make them."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", read(page), flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for path, anchor, image in LINK.findall(CODE.sub("", read(page))):
        target = (page.parent / (path or image)).resolve() if path or image else page
        assert target.exists() or target in GENERATED, path or image
        assert not anchor or target.suffix != ".md" or anchor in anchors(target), f"{path}#{anchor}"


def test_a_dead_link_is_found(tmp_path):
    assert LINK.findall("[a](b.md#c) [d](https://e.org/f#g)") == [("b.md", "c", "")]

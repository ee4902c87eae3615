"""The site: README, guide, design and reference as pages that open offline. `make docs` builds it from the repository.

The source directory is the repository itself, so that links work as on a code host. Navigation, language
links and the reference are added while pages are read.
"""

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

import softgaze

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from docs import reference  # noqa: E402

KOREAN = "docs/guide/ko"

project, author, copyright = "softgaze", "The softgaze developers", "The softgaze developers"
version = release = softgaze.__version__
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "recipes/*/README.md", "benchmarks/*.md"]
exclude_patterns = ["docs/pictures", "docs/log.md"]  # the log is a laboratory notebook, kept in the repository

html_theme = "furo"
html_title = "softgaze"
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
html_additional_pages = {"index": "index.html"}
html_show_sourcelink = html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which a browser forbids to a page that is a file
html_permalinks_icon = "#"
smartquotes = False  # -- begins an option
pygments_dark_style = "github-dark"

myst_heading_anchors = 3
suppress_warnings = [
    "myst.header",  # results begin with small headings
]

# --- navigation -------------------------------------------------------------------------------------------------

# The four kinds of documentation of https://diataxis.fr, and what belongs to the project. Patterns never repeat a page.
PARTS = {
    "Tutorials": [
        "docs/tutorials/first*",
        "docs/howto/use-a-model-you-already-have",
        "docs/tutorials/train*",
        "docs/guide/index",
        "docs/guide/[0-9]*",
    ],
    "안내서": ["README.ko", f"{KOREAN}/index", f"{KOREAN}/[0-9]*"],
    "How-to": [
        "docs/howto/install",
        "docs/howto/prepare-data",
        "docs/howto/[!iptu]*",
        "docs/howto/translate*",
        "docs/howto/troubleshooting",
        "recipes/*/README",
    ],
    "Reference": ["docs/reference/cli", "docs/reference/settings", "docs/reference/*"],
    "Explanation": ["docs/design", "docs/[!i]*", "docs/decisions/*", "benchmarks/*"],
    "Project": ["README", "CHANGELOG", "CONTRIBUTING", "SECURITY"],
}


def navigation(app: Sphinx) -> str:
    """Return hidden tables of contents for the side bar, without missing pages."""
    tables = []
    for caption, pages in PARTS.items():
        found = [page for page in pages if any(page_of(app, path) for path in ROOT.glob(f"{page}.md"))]
        if found:
            tables.append(table(found, caption))
    return "\n".join(tables)


def page_of(app: Sphinx, path: Path) -> bool:
    """Whether a file is a page of this site."""
    return app.project.path2doc(path.as_posix()) in app.env.found_docs


def table(pages: list[str], caption: str = "") -> str:
    """One table of contents; pages are named from the top of the repository, a README by its file."""
    options = [":hidden:", ":glob:", *([f":caption: {caption}"] if caption else [])]
    entries = [f"README </{page}>" if page.startswith("README") else f"/{page}" for page in pages]
    return "\n".join(["```{toctree}", *options, "", *entries, "```", ""])


TO_LOG = re.compile(r"\[([^]]+)\]\([^)]*docs/log\.md\)")  # links that work in the repository only


def add_to_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the navigation to the start page, and a link to the other language where there is one."""
    path = Path(page)
    source[0] = TO_LOG.sub(r"\1", source[0])
    is_korean = path.parent.as_posix() == KOREAN
    other = path.parents[1] / path.name if is_korean else path.parent / "ko" / path.name
    if page == root_doc:
        source[0] += "\n" + navigation(app)
    elif path.parent.name in ("guide", "ko") and (ROOT / f"{other}.md").exists():
        link = f"[English](../{path.name}.md)" if is_korean else f"[한국어](ko/{path.name}.md)"
        if path.name != "index":
            link += f" · [{'노트북' if is_korean else 'notebook'}](notebooks/{path.name}.ipynb)"
        heading, _, rest = source[0].partition("\n")
        source[0] = f"{heading}\n\n{link}\n{rest}"


def name_language(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Set the language of Korean pages, for browsers and screen readers."""
    if page.startswith(KOREAN) or page.endswith(".ko"):
        context["language"] = "ko"


# --- reference --------------------------------------------------------------------------------------------------


def write_reference(app: Sphinx) -> None:
    """Write the generated reference pages; unchanged pages are not rewritten, so that Sphinx skips them."""
    for name, text in reference.pages().items():
        path = ROOT / "docs/reference" / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


# --- search -----------------------------------------------------------------------------------------------------

HANGUL = re.compile(r"[가-힣]{3,}")


class BothLanguages(SearchEnglish):
    """Finds Korean words whatever is attached to them: 쿼리는 is found as 쿼리, too."""

    def split(self, text: str) -> list[str]:
        """Words, and of Korean ones every beginning of at least two syllables."""
        words = super().split(text)
        return words + [each[:end] for word in words for each in HANGUL.findall(word) for end in range(2, len(each))]


def setup(app: Sphinx) -> None:
    """What is done when."""
    app.add_search_language(BothLanguages)
    app.connect("builder-inited", write_reference)
    app.connect("source-read", add_to_page)
    app.connect("html-page-context", name_language)

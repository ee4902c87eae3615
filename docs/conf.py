"""The site: README, guide, design and reference as pages that open offline. `make docs` builds it from the repository.

The source directory is the repository itself, so that links work as on a code host. Navigation, language
links and the reference are added while pages are read.
"""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

import softgaze

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from docs import reference  # noqa: E402

PACKAGE, REFERENCE, KOREAN = ROOT / "src/softgaze", "docs/api", "docs/guide/ko"

project, author, copyright = "softgaze", "The softgaze developers", "The softgaze developers"
version = release = softgaze.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "README"
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
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # as in the source: `scaled_dot`, not its address
# A package shows its own definitions, not its re-exports: otherwise every name would appear twice.
autodoc_default_options = {"members": True, "show-inheritance": True, "ignore-module-all": True}
suppress_warnings = [
    "ref.python",  # a type by a name that two modules use
    "myst.header",  # results begin with small headings
]
maximum_signature_line_length = 100

# --- navigation -------------------------------------------------------------------------------------------------

# The four kinds of documentation of https://diataxis.fr, and what belongs to the project. Patterns never repeat a page.
PARTS = {
    "Tutorials": ["docs/tutorials/*", "docs/guide/index", "docs/guide/[0-9]*"],
    "안내서": ["README.ko", f"{KOREAN}/index", f"{KOREAN}/[0-9]*"],
    "How-to": ["docs/howto/install", "docs/howto/prepare-data", "docs/howto/*", "recipes/*/README"],
    "Reference": ["docs/reference/cli", "docs/reference/settings", "docs/reference/*", f"{REFERENCE}/index"],
    "Explanation": ["docs/design", "docs/*", "docs/decisions/*", "benchmarks/*"],
    "Project": ["CHANGELOG", "CONTRIBUTING", "SECURITY"],
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
    """One table of contents; pages are named from the top of the repository."""
    options = [":hidden:", ":glob:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["```{toctree}", *options, "", *(f"/{page}" for page in pages), "```", ""])


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
        heading, _, rest = source[0].partition("\n")
        source[0] = f"{heading}\n\n{link}\n{rest}"


def name_language(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Set the language of Korean pages, for browsers and screen readers."""
    if page.startswith(KOREAN) or page.endswith(".ko"):
        context["language"] = "ko"


# --- reference --------------------------------------------------------------------------------------------------


def write_reference(app: Sphinx) -> None:
    """Write a page for each part of the package; unchanged pages are not rewritten, so that Sphinx skips them."""
    # Import all modules before autodoc reads any: it changes annotations of pydantic's class.
    for part in parts():
        for name in modules(part):
            import_module(name)
    directory = ROOT / REFERENCE
    directory.mkdir(exist_ok=True)
    modules_pages = {f"{part}.md": part_page(part) for part in parts()} | {"index.md": reference_index()}
    for path in directory.glob("*.md"):
        if path.name not in modules_pages:
            path.unlink()
    write_changed(directory, modules_pages)
    write_changed(ROOT / "docs/reference", reference.pages())


def write_changed(directory: Path, pages: dict[str, str]) -> None:
    """Write the pages whose text differs from the file."""
    for name, text in pages.items():
        path = directory / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def parts() -> list[str]:
    """Return the modules and packages at the top of src/softgaze."""
    found = [path for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    return sorted(path.stem for path in found if not path.name.startswith("__"))


def modules(part: str) -> list[str]:
    """The names of all modules of a part."""
    files = [PACKAGE / f"{part}.py"] if (PACKAGE / f"{part}.py").exists() else sorted((PACKAGE / part).rglob("*.py"))
    names = [".".join(("softgaze", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in files]
    return [name.removesuffix(".__init__") for name in names]


def part_page(part: str) -> str:
    """All modules of a part: what has a docstring, in the order of the source."""
    names = modules(part)
    sections = [f"## {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n```\n" for name in names]
    return "\n".join([f"# {part}\n", *(sections if len(sections) > 1 else [sections[0].partition("\n\n")[2]])])


def reference_index() -> str:
    """What `import softgaze` gives, and where everything else is."""
    names = [public_name(name, module) for name, module in sorted(softgaze.PUBLIC.items())]
    listed = [f"- [softgaze.{part}]({part}.md)" for part in parts()]
    texts = ["# Python API", "From the docstrings. `import softgaze` gives these:", "\n".join(names)]
    texts += ["## All of it", "\n".join(listed), table([f"{REFERENCE}/{part}" for part in parts()])]
    return "\n\n".join(texts)


def public_name(name: str, module: str) -> str:
    """One of them, where it is at home, and the first line that is said of it there."""
    thing = getattr(softgaze, name)
    home = getattr(thing, "__module__", module)  # a dictionary has none
    about = f": {thing.__doc__.partition(chr(10))[0]}" if hasattr(thing, "__module__") else ""
    return f"- {{py:obj}}`softgaze.{name} <{home}.{name}>`{about}"


CODE, ODD = re.compile(r"(?<!`)`([^`]+)`(?!`)"), re.compile(r"([|_]|\*(?=\.))")


def as_rest(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text with `code` between backticks; reST wants two, and has uses for |, _ and *.jpg."""
    if lines[:1] and lines[0].startswith("Alias for field number"):
        lines.clear()  # of a named tuple: Python's own words, which say nothing
    for number, line in enumerate(lines):
        if line.lstrip().startswith(">>>"):
            continue
        pieces = CODE.split(line)  # text and code in turn
        pieces[::2] = [ODD.sub(r"\\\1", piece) for piece in pieces[::2]]
        pieces[1::2] = [rf"\ ``{piece}``\ " for piece in pieces[1::2]]  # also where a letter follows, as in `State`s
        lines[number] = "".join(pieces)


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
    app.connect("autodoc-process-docstring", as_rest)
    app.connect("html-page-context", name_language)

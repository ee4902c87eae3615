"""The code and its documents use the field's vocabulary and plain technical English (CONTRIBUTING.md)."""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import softgaze

ROOT = Path(__file__).parents[1]
PACKAGE = Path(softgaze.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
# Not tools/: the lexicon of the phrasebook consists of ordinary words, and "place" is one of its categories.
SCRIPT_FOLDERS = ("benchmarks", "benchmarks/peers", "recipes")
CHECKED = [*MODULES, *sorted(path for folder in SCRIPT_FOLDERS for path in (ROOT / folder).glob("*.py"))]
SCRIPTS = sorted({*PACKAGE.rglob("*.js"), *PACKAGE.rglob("*.html")})
MARKDOWN = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(part.startswith(".") or part == "build" for part in path.parts[len(ROOT.parts) :])
)

# A name, or a part of a snake_case or CamelCase name, that has a standard term. The term is in CONTRIBUTING.md.
# fmt: off
NAMES = {
    "aloud", "anew", "ask", "asked", "asking", "beside", "chances", "doctor", "eyes", "harvest", "hear",
    "honest", "honesty", "influence", "influences", "judge", "listener", "listeners", "look", "looked", "looker",
    "looking", "looks", "mend", "mended", "nearby", "nobody", "place", "places", "rehearsal", "rehearse", "remember",
    "remembered", "shelf", "somebody", "speaker", "spoken", "tell", "tells", "testify", "told", "watch", "watched",
    "watching", "watches", "whoever", "witness", "witnessed",
}
# fmt: on
# Phrases of text: docstrings, comments, messages, help, pages, documents.
PHRASES = [
    r"whoever|whatever|somebody|nobody|everybody|anew",
    r"mend(s|ed|ing)?",
    r"go(es)? on|going on|gone on|went on",
    r"(is|are|was|were|be) (told|said)",
    r"by name",
    r"beside",
    r"honest(y|ly)?|rehears\w+|aloud|harvest\w*|testif\w+|witness\w*",
    r"a look|looks?|looked|looking|eyes?|nearby",
    r"influences?|places?|listeners?|shelf|doctor",
    r"remember(s|ed)?",
]
# Standard English or fixed terms that contain one of the words above.
ALLOWED = re.compile(
    r"""look(ed|ing|s)?[ -]?(up|ups|ahead)\b | in[- ]place\b | takes?\ place\b | placeholders? | replac\w+
    | decimal\ places? | event\ listeners? | addEventListener\S* | watch(dog|ing\ files)""",
    re.VERBOSE | re.IGNORECASE,
)
PHRASE = re.compile(rf"\b({'|'.join(PHRASES)})\b", re.IGNORECASE)


def words_of(name: str) -> list[str]:
    """ask_and_remember -> ask, and, remember; BeamState -> beam, state."""
    name = re.sub(r"look_?up|in_place", "", name)
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


STORED = {"eyes", "places"}  # names in files of bundle format 1, which the loader maps to today's


def identifiers(path: Path) -> Iterator[tuple[int, str]]:
    """Every name a module defines: modules, classes, functions, arguments, variables, attributes."""
    yield 1, path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and strings of a module."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING) and token.string.strip('"') not in STORED:
                yield token.start[0], token.string


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a document without quotations: block quotes, and words in quotation marks."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.lstrip().startswith(">"):
            yield number, re.sub(r"“[^”]*”|\"[^\"]*\"", " ", line)


def hits(path: Path, lines: Iterator[tuple[int, str]]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {match.group()}"
        for number, line in lines
        for match in PHRASE.finditer(ALLOWED.sub(" ", line))
    ]


@pytest.mark.parametrize("path", CHECKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_are_the_fields(path):
    assert [f"{path.name}:{line}: {name}" for line, name in identifiers(path) if NAMES & {*words_of(name)}] == []


@pytest.mark.parametrize("path", CHECKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_comments_and_messages_are_plain(path):
    assert hits(path, texts(path)) == []


@pytest.mark.parametrize("path", [*MARKDOWN, *SCRIPTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_and_pages_are_plain(path):
    assert hits(path, prose(path)) == []


def test_no_class_name_is_defined_twice():
    defined: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                defined.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}


@pytest.mark.parametrize(
    "text", ["what nobody reads", "the run goes on", "refused by name", "a look at it", "It is told."]
)
def test_the_phrases_are_found(text):
    assert PHRASE.search(text)


@pytest.mark.parametrize("text", ["a look-up table", "written in place", "a placeholder", "two decimal places"])
def test_standard_terms_are_allowed(text):
    assert not PHRASE.search(ALLOWED.sub(" ", text))


def test_a_name_is_split_into_words():
    assert words_of("ask_and_remember") == ["ask", "and", "remember"]
    assert words_of("KVCache") == ["kv", "cache"]
    assert words_of("BeamState2") == ["beam", "state", "2"]

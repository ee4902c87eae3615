"""Korean and English stay in step: the same code, formulas, shapes, figures, links, names and numbers, other words."""

import ast
import os
import re
import shlex
from itertools import accumulate
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from docs.chapters import GUIDE, blocks, commands

ROOT = GUIDE.parents[1]
KOREAN = {GUIDE / "ko" / page.name: page for page in sorted(GUIDE.glob("*.md"))}
KOREAN[ROOT / "README.ko.md"] = ROOT / "README.md"

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`]+)`")
IMAGE = re.compile(r"!\[[^]]*\]\([^)]*\)")
LINK = re.compile(r"\]\(([^)#:]+)[^)]*\)")
REFERENCES = re.compile(r"^## 참고 문헌\n.*", re.MULTILINE | re.DOTALL)
RESULTS = re.compile(r"<!-- (\w+): ([\w-]+) -->.*?<!-- end of \1 -->", re.DOTALL)
TABLE_ROW = re.compile(r"^\|.*\|$", re.MULTILINE)

pages = pytest.mark.parametrize(("korean", "english"), KOREAN.items(), ids=[page.name for page in KOREAN])


def read(page):
    return page.read_text(encoding="utf-8")


def prose(text):
    """All but what stands in blocks of code."""
    return FENCED.sub("", text)


def words(text):
    """What is read as sentences: no code, tables, results, titles of papers, or pictures with their descriptions."""
    text = prose(text)
    for other in (RESULTS, TABLE_ROW, IMAGE, CODE, REFERENCES):
        text = other.sub("", text)
    return text


# --- the same -----------------------------------------------------------------------------------------------------


def test_every_page_is_there_in_both():
    assert {*GUIDE.glob("ko/*.md"), ROOT / "README.ko.md"} == KOREAN.keys()


@pages
def test_code_and_what_it_prints(korean, english):
    """Comments may be in either language; what is the same need not be run again."""
    assert code(read(korean)) == code(read(english))


def code(text):
    """What each block does, what it prints, and in which part of the page it stands."""
    plain = {"python": lambda text: ast.dump(ast.parse(text)), "bash": lambda text: [*commands(text)]}
    plain["console"] = lambda text: [shlex.split(line, comments=True) for line in text.splitlines()]
    parts = [*accumulate(line.startswith("## ") for line in text.splitlines())]
    return [
        (parts[block.line], block.kind, plain.get(block.kind, str)(block.text), block.output) for block in blocks(text)
    ]


@pages
def test_what_a_terminal_shows(korean, english):
    assert shown(korean) == shown(english)


def shown(page):
    """Blocks of no language, comments aside."""
    texts = [text for kind, text in FENCED.findall(read(page)) if not kind]
    return [[line.partition("#")[0].rstrip() for line in text.splitlines()] for text in texts]


@pages
def test_formulas(korean, english):
    assert formulas(korean) == formulas(english)


def formulas(page):
    """The signs and digits of each line; words between them are of one language."""
    texts = [text for kind, text in FENCED.findall(read(page)) if kind == "text"]
    return [[sorted(re.findall(r"[^\w\s,.:;()-]|\d", line)) for line in text.splitlines()] for text in texts]


@pages
def test_tables(korean, english):
    assert shapes(korean) == shapes(english)


def shapes(page):
    """The shapes of each row, or the names and years in brackets."""
    return [re.findall(r"\((?=[A-Z\d])[^)]*\)", row) for row in TABLE_ROW.findall(prose(read(page)))]


@pages
def test_pictures_and_links(korean, english):
    assert targets(korean) == targets(english)


def targets(page):
    """Where a page leads, whatever the language; its own other half aside."""
    found = [Path(os.path.normpath(page.parent / target)) for target in LINK.findall(prose(read(page)))]
    return sorted({KOREAN.get(path, path) for path in found} - {KOREAN.get(page, page)})


@pages
def test_results(korean, english):
    assert RESULTS.findall(read(korean)) == RESULTS.findall(read(english))


@pages
def test_names_in_the_text(korean, english):
    assert set(CODE.findall(prose(read(korean)))) == set(CODE.findall(prose(read(english))))


@pages
def test_numbers_in_the_text(korean, english):
    assert numbers(english) <= numbers(korean)


def numbers(page):
    return set(re.findall(r"\d+(?:\.\d+)?", prose(read(page))))


# --- and Korean ---------------------------------------------------------------------------------------------------


@pages
def test_nothing_is_left_in_english(korean, english):
    paragraphs = words(read(korean)).split("\n\n")
    assert not {each for each in paragraphs if len(each) > 40 and not re.search("[가-힣]", each)}


@pages
def test_it_speaks_in_one_voice(korean, english):
    assert not re.findall(r".*[가-힣](?:다|니까)[.!?](?:\s|$)", words(read(korean)))


@pages
def test_descriptions_of_pictures_have_the_same_voice(korean, english):
    descriptions = re.findall(r"!\[([^]]*)\]", prose(read(korean)))
    assert not [each for each in descriptions if re.search("[가-힣]다$", each)]


@pages
def test_terms_are_those_of_the_field(korean, english):
    """어텐션, 정렬, 서브워드, 차원, 비교, 이유, 신뢰구간; not words that only this project would use."""
    assert not re.findall(
        "시선|되먹임|입력 피딩|견주|까닭|곱씹|정직도|(?<![가-힣])폭(?:은|이|을|도|의|과)? ", prose(read(korean))
    )


@pages
def test_emphasis_is_shown_as_such(korean, english):
    """CommonMark does not close `**` between a bracket and a letter, as in `**키(key)**는`."""
    lines = [each for block in MarkdownIt().parse(read(korean)) for each in block.children or []]
    assert not [each.content for each in lines if each.type == "text" and "*" in each.content]


# --- the glossary -------------------------------------------------------------------------------------------------

GLOSSARY = ROOT / "docs/reference/glossary.md"
TERM = re.compile(r"^\| (?P<english>.+?) \| (?P<korean>.+?) \| .*\(\.\./guide/(?P<chapter>.+)\) \|$", re.MULTILINE)
TERMS = [*TERM.finditer(read(GLOSSARY))]
BRACKETS = re.compile(r"\s*\([^)]*\)")


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term["english"])
def test_a_term_is_in_the_text_of_its_chapter(term):
    for directory, name in ((GUIDE, term["english"]), (GUIDE / "ko", term["korean"])):
        text = plain(prose(read(directory / term["chapter"])))
        for word in BRACKETS.sub("", plain(name)).split(", "):
            assert word in text or word in BRACKETS.sub("", text), f"{word} is not in {directory / term['chapter']}"


def plain(text):
    """On one line, in lower case and without emphasis."""
    return " ".join(text.replace("*", "").lower().split())


def test_the_glossary_is_in_order():
    names = [BRACKETS.sub("", term["english"]).lower() for term in TERMS]
    assert len(names) > 40
    assert names == sorted(names)

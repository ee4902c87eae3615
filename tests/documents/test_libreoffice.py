"""Files of LibreOffice: tests/fixtures/office has them, made from its .fodt and .fodp by `soffice --convert-to`."""

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from softgaze.documents.base import DocumentOptions
from softgaze.documents.formats import open_document
from softgaze.documents.inline import AlignedSegment, find_words, render_segment

FILES = sorted(path for path in (Path(__file__).parents[1] / "fixtures/office").iterdir() if "fod" not in path.suffix)
SOFFICE = shutil.which("soffice")
OPTIONS = DocumentOptions("en", "ko")
PARAGRAPHS = ("p", "h")


def rewritten(path, change=str):
    """Return a document with every segment changed and rendered, each word aligned with itself."""
    document = open_document(path.read_bytes(), path.name, OPTIONS)
    markups = []
    for segment in document.segments:
        spans = find_words(segment.text, segment.text.split())
        links = frozenset((word, word) for word in range(len(spans)))
        pair = AlignedSegment(segment.text, change(segment.text), spans, spans, links)
        markups.append(segment.finish(render_segment(segment, pair)))
    return document.write(markups)


def texts(content, path):
    document = open_document(content, path.name, OPTIONS)
    return [" ".join(segment.text.split()) for segment in document.segments if segment.text.split()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_rewritten_texts_are_read_again(path):
    before = texts(path.read_bytes(), path)
    assert len(before) > 8
    assert texts(rewritten(path), path) == before
    assert texts(rewritten(path, str.upper), path) == [text.upper() for text in before]


def converted(directory, files, suffix):
    """Let LibreOffice open files and save them again in a format of one XML file; return their bodies."""
    command = [SOFFICE, f"-env:UserInstallation=file://{directory}/profile", "--headless", "--convert-to", suffix]
    subprocess.run([*command, "--outdir", directory / "out", *files], check=True, capture_output=True, timeout=300)
    return [ElementTree.parse(directory / "out" / f"{file.stem}.{suffix}").getroot() for file in files]


def local(name):
    return name.rpartition("}")[2]


def paragraphs(root):
    """Return the characters of each paragraph but spaces, with the formats of the spans around it."""
    styles = {}
    for node in root.iter():
        if local(node.tag) == "style":
            name = next(value for key, value in node.attrib.items() if local(key) == "name")
            formats = (child.attrib.items() for child in node if local(child.tag) == "text-properties")
            styles[name] = {(key, value.rstrip("12")) for items in formats for key, value in items}
    return [[*characters(node, styles, ())] for node in root.iter() if local(node.tag) in PARAGRAPHS]


def characters(node, styles, around):
    own = {local(key): value for key, value in node.attrib.items()}
    if local(node.tag) in ("span", "a"):
        around = (*around, *styles.get(own.get("style-name"), ()), own.get("href", ""))
    elif local(node.tag) not in (*PARAGRAPHS, "s"):
        yield local(node.tag), frozenset(around)
    yield from ((character, frozenset(around)) for character in "".join((node.text or "").split()))
    for child in node:
        yield from characters(child, styles, around)
        yield from ((character, frozenset(around)) for character in "".join((child.tail or "").split()))


@pytest.mark.skipif(SOFFICE is None, reason="needs LibreOffice: apt install libreoffice-writer libreoffice-impress")
@pytest.mark.parametrize("kind", ["report", "slides"])
def test_libreoffice_opens_rewritten_files_with_the_same_content(tmp_path, kind):
    files = [path for path in FILES if path.stem == kind and path.suffix not in (".epub", ".html")]
    copies = []
    for path in files:
        for name, content in {
            "before": path.read_bytes(),
            "same": rewritten(path),
            "upper": rewritten(path, str.upper),
        }.items():
            copies.append(tmp_path / f"{path.suffix[1:]}-{name}{path.suffix}")
            copies[-1].write_bytes(content)
    roots = converted(tmp_path, copies, "fodt" if kind == "report" else "fodp")
    for path, before, same, upper in zip(files, roots[::3], roots[1::3], roots[2::3], strict=True):
        assert paragraphs(same) == paragraphs(before), path.name
        shown = ["".join(node.itertext()) for node in before.iter() if local(node.tag) in PARAGRAPHS]
        changed = ["".join(node.itertext()) for node in upper.iter() if local(node.tag) in PARAGRAPHS]
        assert [text.upper() for text in changed] == [text.upper() for text in shown], path.name
        assert sum(map(str.isupper, changed)) > 5

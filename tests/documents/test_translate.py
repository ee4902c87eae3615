import io
import zipfile
from xml.etree import ElementTree

import pytest

from bundles import copier, tiny_bundle
from documents.samples import FILLED, SAMPLES
from softgaze.documents import DocumentOptions, open_document
from softgaze.documents.translate import SegmentTranslator
from softgaze.search.options import SearchOptions
from softgaze.translator import load

GREEDY = SearchOptions(beam_size=1)
OPTIONS = DocumentOptions("en", "ko")
KNOWN_CHARACTERS = [name for name in SAMPLES if name not in FILLED]


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


@pytest.mark.parametrize("name", SAMPLES)
def test_untrained_model_leaves_a_document_that_opens(name):
    content = SAMPLES[name][0]
    document = open_document(content, name, OPTIONS)
    written = SegmentTranslator(load(tiny_bundle()), GREEDY).write(document)
    again = open_document(written, name, DocumentOptions("en", "ko", overwrite=True))
    assert len(again.segments) >= len(document.segments) > 0
    if content.startswith(b"PK"):
        before, after = members(content), members(written)
        assert before.keys() == after.keys()
        for member in after:
            if member.endswith((".xml", ".xhtml", ".ncx")):
                assert count_tags(after[member]) == count_tags(before[member])


def count_tags(xml):
    """Return the elements that must not get lost; runs may be split and joined."""
    counts = {}
    for node in ElementTree.fromstring(xml).iter():
        local = node.tag.rpartition("}")[2]
        if local not in ("r", "t", "rPr", "b", "u", "proofErr", "rStyle"):
            counts[local] = counts.get(local, 0) + 1
    return counts


@pytest.mark.parametrize("arch", ["transformer", "rnn"])
def test_copying_model_returns_the_document(tmp_path, arch):
    """The RNN has no attention: its text is translated between any two elements."""
    translator = copier(tmp_path, arch=arch)
    for name in ("a.txt", "a.html", "a.docx", "a.odt"):
        content = SAMPLES[name][0]
        written = SegmentTranslator(translator, GREEDY).write(open_document(content, name, OPTIONS))
        if content.startswith(b"PK"):
            assert ElementTree.tostring(ElementTree.fromstring([*members(written).values()][1])) != b""
        else:
            assert written == content

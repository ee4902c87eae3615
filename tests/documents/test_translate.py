import io
import zipfile
from xml.etree import ElementTree

import pytest

from bundles import copier, tiny_bundle
from documents.samples import FILLED, SAMPLES
from softgaze.documents.base import DocumentOptions
from softgaze.documents.formats import open_document
from softgaze.documents.inline import Segment
from softgaze.documents.translate import SegmentTranslator
from softgaze.search.options import SearchOptions
from softgaze.translator import load

GREEDY = SearchOptions(beam_size=1)
OPTIONS = DocumentOptions("en", "ko")


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


def test_each_sentence_of_a_paragraph_is_translated_alone():
    translator = load(tiny_bundle())
    sentences = ["The red dog runs.", "A cat sleeps!"]
    [[best]] = SegmentTranslator(translator, GREEDY).translate([Segment(" ".join(sentences), " ".join(sentences))])
    assert best == " ".join(translator.translate(each, GREEDY).text for each in sentences)


def test_progress_counts_every_segment_once():
    """Segments without words are done at once."""
    done = []
    segments = [Segment(text, text) for text in ("a dog", "12", "%s", "the <b>red</b> %s cat")]
    SegmentTranslator(load(tiny_bundle()), GREEDY, progress=done.append).translate(segments)
    assert sum(done) == len(segments)


def count_tags(xml):
    """Return the elements that must not get lost; runs may be split and joined, and <s> is a space."""
    counts = {}
    for node in ElementTree.fromstring(xml).iter():
        local = node.tag.rpartition("}")[2]
        if local not in ("r", "t", "rPr", "b", "u", "proofErr", "rStyle", "s"):
            counts[local] = counts.get(local, 0) + 1
    return counts


@pytest.mark.parametrize("arch", ["transformer", "rnn"])
@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in FILLED])
def test_copying_model_returns_the_document(tmp_path, arch, name):
    """The RNN has no attention: its text is translated between any two elements."""
    content = SAMPLES[name][0]
    document = open_document(content, name, OPTIONS)
    written = SegmentTranslator(copier(tmp_path, arch=arch), GREEDY).write(document)
    before = [segment.text.split() for segment in document.segments]
    assert [segment.text.split() for segment in open_document(written, name, OPTIONS).segments] == before
    if not content.startswith(b"PK"):
        assert written == content
        return
    for member, xml in members(written).items():
        if member.endswith((".xml", ".xhtml", ".ncx")):
            texts = [[*ElementTree.fromstring(each).itertext()] for each in (xml, members(content)[member])]
            assert "".join("".join(texts[0]).split()) == "".join("".join(texts[1]).split())
            assert count_tags(xml) == count_tags(members(content)[member])

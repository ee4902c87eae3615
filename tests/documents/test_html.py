import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.html_checks import TAG, check_same_tags
from softgaze.documents.html import HtmlTokenizer, split_html
from softgaze.documents.inline import AlignedSegment, Segment, find_words, render_segment


def aligned_pair(source, target, links):
    return AlignedSegment(
        source, target, find_words(source, source.split()), find_words(target, target.split()), frozenset(links)
    )


def render(document, target, links):
    """Render the only segment of a document with this translation and alignment."""
    [segment] = split_html(document)
    return render_segment(segment, aligned_pair(segment.text, target, links))


CASES = {
    "element moves with its word": ("the <b>dog</b> runs", "runs dog", [(1, 1), (2, 0)], "runs <b>dog</b>"),
    "around everything": ("<i>the dog</i>", "개", [(1, 0)], "<i>개</i>"),
    "nested": (
        "<a href='x'>the <b>dog</b></a> runs",
        "runs the dog",
        [(0, 1), (1, 2), (2, 0)],
        "runs <a href='x'>the <b>dog</b></a>",
    ),
    "full stop stays outside": ("see <b>dogs</b>.", "dogs. see.", [(1, 0), (0, 1)], "<b>dogs</b>. see."),
    "separated words: longest run": ("<b>a c e</b> x", "a x c e", [(0, 0), (1, 2), (2, 3), (3, 1)], "a x <b>c e</b>"),
    "unaligned words between": ("<b>a c</b> x", "a of c x", [(0, 0), (1, 2), (2, 3)], "<b>a of c</b> x"),
    "unaligned element": ("x <b>a</b> y", "p q r", [(0, 0), (2, 2)], "p q <b></b>r"),
    "empty element before its word": ('a <x id="7"></x> b', "b a", [(0, 1), (1, 0)], '<x id="7"></x> b a'),
    "empty element attached to the word before": ("a<x/> b", "b a", [(0, 1), (1, 0)], "b a<x/>"),
    "empty element at the end": ("a b <img src=q>", "b a", [(0, 1), (1, 0)], "b a <img src=q>"),
    "two elements swap": ("<b>a</b> <i>b</i>", "b a", [(0, 1), (1, 0)], "<i>b</i> <b>a</b>"),
    "code is opaque": ("run <code>a &lt; b</code> now", "now run", [(0, 1), (1, 0)], "<code>a &lt; b</code> now run"),
    "escaped": ("<b>a</b> b", "b&c a<", [(0, 1), (1, 0)], "b&amp;c <b>a&lt;</b>"),
}


@pytest.mark.parametrize(("document", "target", "links", "expected"), CASES.values(), ids=CASES)
def test_placement_of_tags(document, target, links, expected):
    assert render(document, target, links) == expected


# --- any HTML ---------------------------------------------------------------------------------------------------

WORDS = st.lists(
    st.sampled_from(["dog", "a", "R&D", "x<y", '"no"', "개", "한국어", "end."]), min_size=1, max_size=4
).map(lambda words: html.escape(" ".join(words)))
INLINE = st.sampled_from(["b", "i", "a", "span"])
EMPTY = st.sampled_from(['<x id="1"></x>', "<img src='b'>", "<!-- no <b> -->", "<code>f(x) &lt; 1</code>", "<wbr>"])
INSIDE = st.recursive(
    WORDS | EMPTY,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(" ".join)
        | st.tuples(INLINE, inner).map(lambda both: f'<{both[0]} title="t">{both[1]}</{both[0]}>')
    ),
    max_leaves=8,
)
BLOCKS = st.lists(
    st.tuples(st.sampled_from(["p", "li", "div"]), INSIDE).map(lambda both: f"<{both[0]}>{both[1]}</{both[0]}>")
    | st.sampled_from(["<br>", "<hr/>", "<script>if (a < b) { '<p>' }</script>", "<!doctype html>", "\n"]),
    max_size=4,
).map("".join)


def identical(document):
    """Translate every segment into itself."""
    parts = split_html(document)
    return "".join(
        part if isinstance(part, str) else render_segment(part, aligned_pair(part.text, part.text, identity(part.text)))
        for part in parts
    )


def identity(text):
    return [(number, number) for number in range(len(text.split()))]


@given(BLOCKS)
def test_identity_translation_returns_the_document(document):
    quotes = document.replace("&quot;", '"').replace("&#x27;", "'")  # outside of attributes, quotes need no escape
    result = identical(document)
    assert "".join(result.split()) == "".join(quotes.split())
    assert html.unescape(TAG.sub(" ", result)).split() == html.unescape(TAG.sub(" ", quotes)).split()


@given(INSIDE, st.lists(st.sampled_from(["mot", "le", "fin.", "와"]), max_size=6).map(" ".join), st.data())
def test_any_alignment_keeps_every_tag_once_and_balanced(document, target, data):
    [segment] = split_html(document) or [Segment()]
    pairs = st.tuples(
        st.integers(0, max(len(segment.text.split()) - 1, 0)), st.integers(0, max(len(target.split()) - 1, 0))
    )
    links = data.draw(st.lists(pairs, max_size=8)) if segment.text.split() and target else []
    result = render_segment(segment, aligned_pair(segment.text, target, links))
    check_same_tags(document, result)
    plain = re.sub(r"<!--.*?-->|<code>.*?</code>|<[^>]*>", "", result)
    assert html.unescape(plain).split() == target.split()


@given(st.text(alphabet="<>/!-abp &;\"'=", max_size=60))
def test_broken_html_is_accepted(text):
    assert "".join(item.raw for item in HtmlTokenizer(text).items) == text
    assert HtmlTokenizer(identical(text)).items == HtmlTokenizer(identical(identical(text))).items

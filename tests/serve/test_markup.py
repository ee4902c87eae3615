import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundles import copier, tiny_bundle
from serve.tags import TAG, check_tags
from softgaze.search.settings import Search
from softgaze.serve.markup import Segment, Sides, TranslateMarkup, read, segments, spans_of, written
from softgaze.serve.shelf import Model
from softgaze.translator import load


def sides_of(source, target, links):
    return Sides(source, target, spans_of(source, source.split()), spans_of(target, target.split()), frozenset(links))


def moved(document, target, links):
    """One segment, written as `target` by these links."""
    [segment] = segments(read(document), inline=True)
    return written(segment, sides_of(segment.text, target, links))


CASES = {
    "an element goes with its word": ("the <b>dog</b> runs", "runs dog", [(1, 1), (2, 0)], "runs <b>dog</b>"),
    "around all": ("<i>the dog</i>", "개", [(1, 0)], "<i>개</i>"),
    "nested": (
        "<a href='x'>the <b>dog</b></a> runs",
        "runs the dog",
        [(0, 1), (1, 2), (2, 0)],
        "runs <a href='x'>the <b>dog</b></a>",
    ),
    "a full stop stays outside": ("see <b>dogs</b>.", "dogs. see.", [(1, 0), (0, 1)], "<b>dogs</b>. see."),
    "words apart: the larger part": ("<b>a c e</b> x", "a x c e", [(0, 0), (1, 2), (2, 3), (3, 1)], "a x <b>c e</b>"),
    "words between that mean nothing": ("<b>a c</b> x", "a of c x", [(0, 0), (1, 2), (2, 3)], "<b>a of c</b> x"),
    "without links": ("x <b>a</b> y", "p q r", [(0, 0), (2, 2)], "p q <b></b>r"),
    "something without words before its word": ('a <x id="7"></x> b', "b a", [(0, 1), (1, 0)], '<x id="7"></x> b a'),
    "attached to the word before": ("a<x/> b", "b a", [(0, 1), (1, 0)], "b a<x/>"),
    "at the end": ("a b <img src=q>", "b a", [(0, 1), (1, 0)], "b a <img src=q>"),
    "two change places": ("<b>a</b> <i>b</i>", "b a", [(0, 1), (1, 0)], "<i>b</i> <b>a</b>"),
    "code is a word": ("run <code>a &lt; b</code> now", "now run", [(0, 1), (1, 0)], "<code>a &lt; b</code> now run"),
    "escaped": ("<b>a</b> b", "b&c a<", [(0, 1), (1, 0)], "b&amp;c <b>a&lt;</b>"),
}


@pytest.mark.parametrize(("document", "target", "links", "wanted"), CASES.values(), ids=CASES)
def test_where_tags_go(document, target, links, wanted):
    assert moved(document, target, links) == wanted


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


def untouched(document):
    """Every segment translated into itself."""
    parts = segments(read(document), inline=True)
    return "".join(
        part if isinstance(part, str) else written(part, sides_of(part.text, part.text, identity(part.text)))
        for part in parts
    )


def identity(text):
    return [(number, number) for number in range(len(text.split()))]


@given(BLOCKS)
def test_what_is_translated_into_itself_comes_back(document):
    quotes = document.replace("&quot;", '"').replace("&#x27;", "'")  # need no escape where they stand
    found = untouched(document)
    assert "".join(found.split()) == "".join(quotes.split())
    assert html.unescape(TAG.sub(" ", found)).split() == html.unescape(TAG.sub(" ", quotes)).split()


@given(INSIDE, st.lists(st.sampled_from(["mot", "le", "fin.", "와"]), max_size=6).map(" ".join), st.data())
def test_whatever_the_links_every_tag_is_there_once_and_closed_in_order(document, target, data):
    [segment] = segments(read(document), inline=True) or [Segment()]
    pairs = st.tuples(
        st.integers(0, max(len(segment.text.split()) - 1, 0)), st.integers(0, max(len(target.split()) - 1, 0))
    )
    links = data.draw(st.lists(pairs, max_size=8)) if segment.text.split() and target else []
    found = written(segment, sides_of(segment.text, target, links))
    check_tags(document, found)
    plain = re.sub(r"<!--.*?-->|<code>.*?</code>|<[^>]*>", "", found)
    assert html.unescape(plain).split() == target.split()


@given(st.text(alphabet="<>/!-abp &;\"'=", max_size=60))
def test_no_text_however_broken_is_refused(text):
    assert read(untouched(text)) == read(untouched(untouched(text)))


# --- with a model -----------------------------------------------------------------------------------------------

PAGE = (
    "<p>The <b>dog</b> &amp; a <a href='/x?a=1&amp;b=2'>cat</a>.</p><ul><li>run<br>old</li></ul><style>p > b {}</style>"
)


def test_a_model_that_copies_gives_back_the_page(tmp_path):
    model = Model("copy", copier(tmp_path, arch="rnn"))  # no attention: what stands between two tags
    [(found, others)] = TranslateMarkup(model, Search(beam=1)).run([PAGE])
    assert found == PAGE
    assert others == []


def test_a_model_with_attention_keeps_every_tag_and_all_alternatives_do():
    model = Model("tiny", load(tiny_bundle()))
    [(found, others), (second, _)] = TranslateMarkup(model, Search(beam=3, nbest=3)).run([PAGE, "a &lt; b"])
    for each in (found, *others):
        check_tags(PAGE, each)
    assert "<" not in second


def test_every_segment_is_translated_as_it_would_be_alone():
    translator = load(tiny_bundle())
    [(found, _)] = TranslateMarkup(Model("tiny", translator), Search()).run(["<p>The dog runs.</p><p>a cat</p>"])
    alone = [html.escape(translator.translate(text).text, quote=False) for text in ("The dog runs.", "a cat")]
    assert found == f"<p>{alone[0]}</p><p>{alone[1]}</p>"

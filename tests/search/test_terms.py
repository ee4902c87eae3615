"""Terms in beam search: each is generated, and where the model attends to it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundles import SMALL, WORDS, make_bundle
from engines.exported import exported, trained_bundle
from softgaze.documents.inline import AlignedSegment, InlineElement, Segment, render_segment
from softgaze.glossary import Glossary, Term, find_forms
from softgaze.search.beam import beam_search
from softgaze.search.decoder import ArrayLogProbs
from softgaze.search.options import SearchOptions
from softgaze.search.terms import SourceTerm, TermConstraint
from softgaze.special_tokens import EOS
from softgaze.term_placement import PlacedTerm
from softgaze.translator import load

VOCABULARY, FIRST = 40, 10


class Follower:
    """Writes token FIRST + t at step t, attending to source position t, then ends; other tokens are improbable."""

    start, forced, attention = 1, 0, None

    def __init__(self, lengths, terms, likely=()):
        self.lengths, self.terms, self.likely, self.steps = np.array(lengths), terms, likely, 0
        self.sources = np.zeros((len(lengths), max(lengths)), int)
        self.owner = np.arange(len(lengths))

    def step(self, rows, tokens):
        self.owner = self.owner[rows.ravel()]
        values = np.full((rows.size, VOCABULARY), -30.0)
        self.attention = np.zeros((rows.size, self.sources.shape[1]))
        for row, sentence in enumerate(self.owner):
            at_end = self.steps >= self.lengths[sentence]
            values[row, EOS if at_end else FIRST + self.steps] = -0.1
            is_attended = any(self.steps in term.positions for term in self.terms[sentence])
            values[row, 30:] = -9.0 if is_attended else -20.0
            values[row, list(self.likely)] = -5.0
            self.attention[row, min(self.steps, self.lengths[sentence] - 1)] = 1.0
        self.steps += 1
        return ArrayLogProbs(values)


def follow(lengths, terms, likely=(), beam_size=5):
    constraint = TermConstraint(terms, np.zeros(VOCABULARY, bool))
    found = beam_search(Follower(lengths, terms, likely), SearchOptions(beam_size=beam_size), terms=constraint)
    return [best.tokens for best, *_ in found]


@pytest.mark.parametrize("beam_size", [1, 2, 5])
@pytest.mark.parametrize("position", range(5))
def test_a_term_replaces_the_token_that_attends_to_it(beam_size, position):
    [tokens] = follow([6], [[SourceTerm((position,), ((30,),))]], beam_size=beam_size)
    assert tokens.index(30) == position
    assert [*tokens[:position], *tokens[position + 1 :]] == [FIRST + step for step in range(6) if step != position]


def test_the_most_probable_form_is_chosen():
    terms = [[SourceTerm((2,), ((30, 31), (32, 33), (32, 34)))]]
    assert follow([6], terms, likely=(30, 31))[0][2:4] == (30, 31)
    assert follow([6], terms, likely=(32, 34))[0][2:4] == (32, 34)


def test_several_terms_and_sentences_are_independent():
    terms = [
        [SourceTerm((1,), ((30, 31),)), SourceTerm((4,), ((32,),))],
        [],
        [SourceTerm((0,), ((33,),)), SourceTerm((1,), ((33,),))],
    ]
    together = follow([7, 5, 4], terms)
    assert together == [follow([length], [own])[0] for length, own in zip([7, 5, 4], terms, strict=True)]
    assert together[0][1:3] == (30, 31)
    assert 32 in together[0]
    assert together[1] == tuple(FIRST + step for step in range(5))
    assert together[2][:2] == (33, 33)


ARCHS = ("transformer", "rnn-luong", "conv", "rnn")


@pytest.fixture(scope="module", params=ARCHS)
def untrained(request, tmp_path_factory):
    """A translator with random weights."""
    options = SMALL if request.param == "transformer" else {"width": 16}
    changes = {"arch": request.param, "options": options, "target_language": "en"}
    return load(make_bundle(tmp_path_factory.mktemp("model") / "model", **changes), engine="torch")


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_every_term_is_in_the_translation(untrained, data):
    """Random models and terms: the worst case, in which nothing is attended to on purpose."""
    sources = data.draw(st.lists(st.sampled_from(WORDS["en"]), min_size=1, max_size=4, unique=True))
    forms = data.draw(
        st.lists(
            st.lists(st.sampled_from(["Zug", "ein Ö", "x-y", "dog"]), min_size=1, max_size=2), min_size=4, max_size=4
        )
    )
    glossary = Glossary([Term(word, tuple(own)) for word, own in zip(sources, forms, strict=False)])
    texts = [" ".join(data.draw(st.lists(st.sampled_from(WORDS["en"]), max_size=6))) for _ in range(3)]
    options = {"beam_size": data.draw(st.integers(1, 4)), "max_length": 12}
    together = untrained.translate(texts, glossary=glossary, **options)
    for text, found in zip(texts, together, strict=True):
        assert None not in find_forms(found.text, glossary.find(text)), (text, found.text)
        assert len(found.terms) == len(glossary.find(text))
    plain = untrained.translate(texts, **options)
    assert [found.text for found in together if not found.terms] == [
        other.text for other, found in zip(plain, together, strict=True) if not found.terms
    ]


def test_only_texts_with_terms_leave_the_fast_engine(tmp_path):
    glossary = Glossary.parse("dog\t강아지")
    texts = ["The small dog sees a tree.", "red cat"]
    model = load(trained_bundle())
    found = model.translate(texts, glossary=glossary)
    assert [each.engine for each in found] == ["torch", "ctranslate2"]
    assert found[1].text == model.translate(texts[1]).text
    exported(trained_bundle(), tmp_path / "quick", "ctranslate2")  # without torch weights
    quick = load(tmp_path / "quick").translate(texts, glossary=glossary)
    assert [each.engine for each in quick] == ["ctranslate2"] * 2
    assert [term.by for term in quick[0].terms] == ["alignment"]
    assert "강아지" in quick[0].text


def test_tags_stay_around_a_term():
    pair = AlignedSegment(
        "a dog sees", "ein Vierbeiner sieht", [(0, 1), (2, 5), (6, 10)], [(0, 3), (4, 14), (15, 20)], frozenset()
    )
    segment = Segment("a dog sees", "", [InlineElement("<b>", 2, "</b>", 5)])
    assert render_segment(segment, pair) != "ein <b>Vierbeiner</b> sieht"
    linked = pair.with_terms([PlacedTerm("dog", "Vierbeiner", "search")])
    assert render_segment(segment, linked) == "ein <b>Vierbeiner</b> sieht"

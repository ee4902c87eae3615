"""Numbers of attention: those of a surveyed corpus, added up; the error rate is that of `align`."""

import numpy
import pytest

from bundles import copier, lines, tiny_bundle
from maps import random_attention
from softgaze.evaluation import looks
from softgaze.evaluation.looks import Glance, Looks, glance, look_at
from softgaze.gaze import Alignment, aer
from softgaze.gaze.alignment import Counts
from softgaze.gaze.corpus import look
from softgaze.translator import load

SOURCES, REFERENCES = lines("en", 9), lines("ko", 9)
GOLD = [Alignment(frozenset({(0, 0), (1, 1)})) for _ in SOURCES]


@pytest.fixture(scope="module")
def model():
    return load(tiny_bundle())


@pytest.fixture(scope="module")
def found(model):
    return model.translate(SOURCES, beam=1)


def test_a_glance_has_the_numbers_of_a_look():
    attention = random_attention(seed=3)
    influence = numpy.ones((attention.word_weights().shape[0] + 1, attention.word_weights().shape[1]))
    mine, theirs = glance(attention), look(1, attention, influence)
    assert (mine.entropy, mine.coverage) == (theirs.entropy, theirs.coverage)


def test_the_whole_is_the_sum_of_its_parts():
    glances = [Glance(1.0, 0.5, Counts(2, 2, 1, 1)), Glance(None, None, Counts(0, 2, 0, 0)), Glance(3.0, 0.0, None)]
    seen = Looks("", tuple(glances))
    whole = seen.quality()
    assert (whole.sentences, whole.entropy, whole.coverage, whole.links) == (2, 2.0, 0.25, Counts(2, 4, 1, 1))
    assert whole.aer == pytest.approx(1 - 2 / 6)
    nothing = seen.quality([])
    assert (nothing.sentences, nothing.entropy, nothing.coverage, nothing.aer) == (0, None, None, None)


def test_a_model_is_looked_at_sentence_by_sentence(model, found, monkeypatch):
    monkeypatch.setattr(looks, "BLOCK", 4)
    seen = look_at(model, found, REFERENCES, GOLD)
    assert len(seen.glances) == len(SOURCES)
    assert "cross-attention" in seen.shows
    chosen = model.measured(list(zip(SOURCES, REFERENCES, strict=True)))
    mine = chosen.aligner().align(list(zip(SOURCES, REFERENCES, strict=True)))
    assert seen.quality().aer == pytest.approx(aer(mine, GOLD, gold_base=0))
    entropies = [each.words().entropy().mean() for each in chosen.attentions(found)]
    assert [each.entropy for each in seen.glances] == pytest.approx(entropies, abs=1e-4)


def test_progress_adds_up_and_without_gold_there_is_no_error_rate(model, found, monkeypatch):
    monkeypatch.setattr(looks, "BLOCK", 4)
    done = []
    seen = look_at(model, found, REFERENCES, progress=done.append)
    assert done == [4, 4, 1]
    assert seen.quality().aer is None


def test_a_model_without_attention_has_nothing_to_tell(tmp_path):
    blind = copier(tmp_path)
    assert look_at(blind, blind.translate(["the dog."]), ["the dog."]) is None

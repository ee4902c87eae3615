"""Attention metrics: summaries add up, and the alignment error rate is that of `align`."""

import pytest

from bundles import copier, lines, tiny_bundle
from softgaze.evaluation import attention_metrics
from softgaze.evaluation.attention_metrics import AttentionMetrics, SentenceAttention, measure_attention
from softgaze.explain import Alignment, aer
from softgaze.explain.alignment import AlignmentCounts
from softgaze.explain.corpus_report import share_covered
from softgaze.translator import load

SOURCES, REFERENCES = lines("en", 9), lines("ko", 9)
PAIRS = list(zip(SOURCES, REFERENCES, strict=True))
GOLD = [Alignment(frozenset({(0, 0), (1, 1)})) for _ in SOURCES]


@pytest.fixture(scope="module")
def model():
    return load(tiny_bundle())


@pytest.fixture(scope="module")
def translations(model):
    return model.translate(SOURCES, beam_size=1)


def test_a_summary_averages_sentences_and_sums_links():
    sentences = (
        SentenceAttention(1.0, 0.5, AlignmentCounts(2, 2, 1, 1)),
        SentenceAttention(None, None, AlignmentCounts(0, 2, 0, 0)),
        SentenceAttention(3.0, 0.0, None),
    )
    metrics = AttentionMetrics("", sentences)
    whole = metrics.summary()
    assert (whole.sentences, whole.entropy, whole.coverage, whole.links) == (2, 2.0, 0.25, AlignmentCounts(2, 4, 1, 1))
    assert whole.aer == pytest.approx(1 - 2 / 6)
    empty = metrics.summary([])
    assert (empty.sentences, empty.entropy, empty.coverage, empty.aer) == (0, None, None, None)


def test_every_sentence_is_measured_on_the_selected_map(model, translations, monkeypatch):
    monkeypatch.setattr(attention_metrics, "BLOCK", 4)
    metrics = measure_attention(model, translations, REFERENCES, GOLD)
    assert "cross-attention" in metrics.attention_map
    selected = model.with_selected_map(PAIRS)
    assert metrics.summary().aer == pytest.approx(aer(selected.aligner().align(PAIRS), GOLD, gold_base=0))
    maps = [attention.words() for attention in selected.attentions(translations)]
    entropies = [words.entropy().mean() for words in maps]
    assert [sentence.entropy for sentence in metrics.sentences] == pytest.approx(entropies, abs=1e-4)
    coverages = [share_covered(words.word_weights().sum(axis=0)) for words in maps]
    assert [sentence.coverage for sentence in metrics.sentences] == pytest.approx(coverages)


def test_progress_adds_up_and_without_gold_there_is_no_error_rate(model, translations, monkeypatch):
    monkeypatch.setattr(attention_metrics, "BLOCK", 4)
    done = []
    metrics = measure_attention(model, translations, REFERENCES, progress=done.append)
    assert done == [4, 4, 1]
    assert metrics.summary().aer is None


def test_a_model_without_attention_has_no_metrics(tmp_path):
    translator = copier(tmp_path)
    assert measure_attention(translator, translator.translate(["the dog."]), ["the dog."]) is None

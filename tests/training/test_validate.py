"""Validation: the plain mean over tokens, translations in order, and which scores are better."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from bundles import Copier, lines, tokenizer
from corpora import small
from runs import prepared, trainer
from softgaze.bundle import Tokenizers
from softgaze.data.shards import Shards, write_shards
from softgaze.models import Source, build
from softgaze.symbols import BEGIN, END
from softgaze.training import validate
from softgaze.training.validate import better_when_higher, dev_loss, quality, translations

CPU = torch.device("cpu")
PAIRS = [([5, 6, 7], [8, 9]), ([5], [9, 8, 7, 6]), ([4, 4], [5]), ([7, 8, 9, 10, 11], [12])]


@pytest.mark.parametrize("tokens", [1, 8, 4096])  # a pair at a time, some, all at once
def test_the_dev_loss_is_the_mean_over_tokens(tmp_path, monkeypatch, tokens):
    monkeypatch.setattr(validate, "TOKENS", tokens)
    write_shards(tmp_path / "dev", PAIRS, 20)
    torch.manual_seed(0)
    model = build("rnn-luong", source_vocabulary=20, width=8).double().eval()
    losses = []
    for source, target in PAIRS:
        logits = model(Source.of([[*source, END]]), torch.tensor([[BEGIN, *target]]))
        losses += F.cross_entropy(logits[0], torch.tensor([*target, END]), reduction="none").tolist()
    assert dev_loss(model, Shards(tmp_path / "dev"), CPU) == pytest.approx(sum(losses) / len(losses), abs=1e-10)


@pytest.mark.parametrize(("tokens", "batches"), [(1, 12), (40, None), (4096, 1)])
def test_translations_keep_the_order_whatever_the_batches(monkeypatch, tokens, batches):
    monkeypatch.setattr(validate, "TOKENS", tokens)
    texts, model = lines("en", 12), Copier(len(tokenizer()))
    assert translations(model, Tokenizers(tokenizer(), tokenizer()), texts, CPU) == texts
    assert sum(rows for rows, _ in model.batches) == 12
    assert batches in (None, len(model.batches))
    assert all(rows == 1 or rows * longest <= tokens for rows, longest in model.batches)


@pytest.mark.parametrize("training", [True, False])
def test_looking_changes_neither_the_mode_nor_the_answer(tmp_path, training):
    model = trainer(tmp_path / "run").model.train(training)
    settings = small(validation={"sentences": 3, "samples": 2}).validation
    first, second = (quality(model, prepared(), settings, CPU) for _ in range(2))
    assert first == second  # no dropout
    assert model.training is training
    scores, samples = first
    assert {*scores} == {"loss", "bleu", "chrf"}
    assert [sample[:2] for sample in samples] == [tuple(pair) for pair in prepared().dev_text[:2]]


finite = st.floats(0, 100)


@given(finite, finite, finite)
def test_a_tie_is_broken_by_the_loss(bleu, one, other):
    values = [better_when_higher({"loss": loss, "bleu": bleu, "chrf": 0.0}, "bleu") for loss in (one, other)]
    if one + 1e-6 < other:
        assert values[0] > values[1]


@given(st.sampled_from(["bleu", "chrf"]), finite, finite, st.floats(0, 50), st.floats(0, 50))
def test_a_score_that_shows_outweighs_any_loss(metric, one, other, loss, more):
    values = [better_when_higher({"loss": each, metric: score}, metric) for score, each in ((one, loss), (other, more))]
    if one > other + 0.1:
        assert values[0] > values[1]


@given(finite, finite)
def test_less_loss_is_better(one, other):
    values = [better_when_higher({"loss": loss, "bleu": 0.0}, "loss") for loss in (one, other)]
    assert (values[0] > values[1]) == (one < other)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "loss"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nothing_is_worse_than_a_number_that_is_none(metric, bad):
    scores = {"loss": 1.0, "bleu": 0.0, "chrf": 0.0}
    for name in {"loss", metric}:
        assert better_when_higher(scores | {name: bad}, metric) == -math.inf < better_when_higher(scores, metric)

"""Recording is one more look at the same model: real weights, every row a distribution, nothing changed."""

import numpy
import pytest
import torch

from bundles import tokenizer
from softgaze.bundle import Tokenizers
from softgaze.gaze import record
from softgaze.gaze.attention import END_MARK
from softgaze.models import MODELS, Source, build, options
from softgaze.symbols import BEGIN, END

TOKENIZERS = Tokenizers(tokenizer(), tokenizer())


@pytest.fixture(params=[arch for arch in MODELS if arch != "rnn"])
def model(request):
    """With a single cross-attention, so that the sharpest is the one that `step` shows."""
    torch.manual_seed(0)
    one = {"decoder_layers": 1} if "decoder_layers" in options(MODELS[request.param]) else {}
    return build(request.param, source_vocabulary=len(TOKENIZERS.source), width=16, **one).eval()


def ids(text):
    return TOKENIZERS.source.encode([text])[0]


def test_rows_are_distributions_over_the_source_and_its_end(model):
    source, target = ids("the dog runs."), ids("개 달려요.")
    found = record(model, TOKENIZERS, source, target)
    assert found.source == (*TOKENIZERS.source.pieces(source), END_MARK)
    assert found.weights.shape == (len(target) + 1, len(source) + 1)
    assert numpy.allclose(found.weights.sum(axis=1), 1, atol=1e-5)
    assert "layer" in found.shows


def test_the_row_of_a_word_is_the_look_that_predicted_it(model):
    source, target = ids("the dog runs."), ids("개 달려요.")
    found = record(model, TOKENIZERS, source, target)
    state = model.start(model.encode(Source.of([[*source, END]])))
    rows = []
    for token in [BEGIN, *target]:
        step = model.step(torch.tensor([token]), state)
        state = step.state
        rows.append(step.weights[0].mean(0).detach().numpy())
    assert numpy.allclose(found.weights, numpy.stack(rows), atol=1e-5)


def test_a_model_that_never_looks_has_no_map():
    model = build("rnn", source_vocabulary=len(TOKENIZERS.source), width=16).eval()
    assert record(model, TOKENIZERS, ids("the dog"), ids("개")) is None

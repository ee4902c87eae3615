"""Gradients in a batch are those of each pair alone, and those of small steps."""

import numpy
import pytest
import torch

from bundles import tokenizer
from checks import TEXT
from softgaze.bundle import Tokenizers
from softgaze.evaluation.why.gradients import gradients, log_odds
from softgaze.gaze.passages import Passage
from softgaze.gaze.watching import as_tensors
from softgaze.models import build

TOKENIZERS = Tokenizers(tokenizer(), tokenizer())
PAIRS = [("the dog runs.", "개 달려요."), ("a small red cat sees the old tree", "작은 고양이 나무 봐요"), ("man", "개")]


def passages():
    return [Passage.of(*pair, TOKENIZERS) for pair in PAIRS]


def make(arch, **options):
    torch.manual_seed(0)
    return build(arch, source_vocabulary=len(TOKENIZERS.source), width=16, **options).eval()


def test_log_odds_are_those_of_the_probability():
    logits, wanted = torch.randn(2, 3, 7), torch.randint(0, 7, (2, 3))
    chance = logits.softmax(-1).gather(-1, wanted[..., None]).squeeze(-1)
    assert torch.allclose(log_odds(logits, wanted), (chance / (1 - chance)).log(), atol=1e-5)


def test_log_odds_of_certainty_still_have_a_slope():
    logits = torch.tensor([[[60.0, 0.0, -3.0]]], requires_grad=True)
    log_odds(logits, torch.tensor([[0]])).sum().backward()
    assert logits.grad[0, 0, 0] == pytest.approx(1.0)
    logits.grad = None
    logits.log_softmax(-1)[0, 0, 0].backward()
    assert logits.grad[0, 0, 0] == pytest.approx(0.0)  # which is why log-probabilities are not asked


@pytest.mark.parametrize("arch", TEXT)
def test_a_batch_gives_what_each_pair_gives_alone(arch):
    model = make(arch)
    together = gradients(model, TOKENIZERS, passages())
    assert [each.shape for each in together] == [(2, 3), (4, 8), (1, 1)]
    for one, passage in zip(together, passages(), strict=True):
        [alone] = gradients(model, TOKENIZERS, [passage])
        assert numpy.allclose(one, alone, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("arch", TEXT)
def test_a_gradient_is_that_of_the_words_own_rows_in_the_table(arch):
    """Of "dog" (source word 1) and the first output word; with a source table of its own, torch tells it, too."""
    model, passage = make(arch, tie="none"), passages()[0]
    [found] = gradients(model, TOKENIZERS, [passage])
    source, target = as_tensors(passage.parts, TOKENIZERS.source, torch.device("cpu"))
    read, said = (side.cores() for side in passage.sides(TOKENIZERS))
    rows = source.values[0, list(read[1].places)]
    odds = log_odds(model(source, target[:, :-1]), target[:, 1:])[0, list(said[0].places)].sum()
    table = model.get_parameter("source_embedding.weight")
    [slope] = torch.autograd.grad(odds, table)
    assert found[0, 1] == pytest.approx(float(slope[rows].norm() * table[rows].norm().detach()), rel=1e-3)


def test_nothing_stays_on_the_model():
    model = make("transformer")
    gradients(model, TOKENIZERS, passages())
    assert not model.get_submodule("source_embedding")._forward_hooks
    assert all(parameter.grad is None for parameter in model.parameters())


def test_gradients_are_fetched_before_they_are_made_double(without_doubles):
    [first, *_] = gradients(make("transformer"), TOKENIZERS, passages())
    assert first.dtype == numpy.float64

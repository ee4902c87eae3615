"""The doubly stochastic term is the paper's formula, over what is real."""

import pytest
import torch

from checks import SMALL
from corpora import small
from softgaze.config import resolve
from softgaze.errors import UsageError
from softgaze.models.base import Place, Source
from softgaze.symbols import PAD
from softgaze.training.evenly import Evenly
from softgaze.training.gradients import Amount, Gradients
from softgaze.training.guided import check_looking
from softgaze.training.loss import Pairs

WANTED = torch.tensor([[5, 6, 3], [7, 3, PAD]])
LENGTHS = torch.tensor([4, 2])


def pairs(source=None):
    return Pairs(source or Source(torch.full((2, 4), 5), LENGTHS), torch.full((2, 3), 2), WANTED, 5)


def test_it_is_the_formula_of_the_paper_whether_steps_come_at_once_or_one_by_one():
    weights = torch.rand(2, 2, 3, 4)  # (B, H, T, S)
    expected = 0.0
    for row, (steps, places) in enumerate(((3, 4), (2, 2))):
        given = weights[row].mean(0)[:steps, :places].sum(0)
        expected += float(((1 - given) ** 2).sum())
    at_once, one_by_one = Evenly(), Evenly()
    assert at_once(Place("cross", 0, 0), weights, weights) is weights
    at_once(Place("encoder", 0, 0), weights[:, :, :1], weights)
    for step in range(3):
        one_by_one(Place("cross", 0, step), weights[:, :, step : step + 1], weights)
    assert float(at_once.summed_loss(pairs())) == pytest.approx(expected)
    assert float(one_by_one.summed_loss(pairs())) == pytest.approx(expected)


def test_it_moves_the_gradient_and_not_the_loss_that_is_told():
    case = SMALL["captioner"]
    source = case.batch([4, 2], 3).source
    model = case.make().train()
    found = []
    for weight in (None, 1.0):
        settings = resolve(small(training={"doubly_stochastic": weight, "fast": False})).training
        gradients = Gradients(model, settings, torch.device("cpu"))
        losses, parts = gradients.of_part(pairs(source), Amount(5, 0), 1)
        found.append((losses, parts))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    assert any(
        (one - other).abs().max() > 1e-6 for one, other in zip(found[0][1], found[1][1], strict=True) if one is not None
    )


def test_it_needs_a_model_that_looks():
    with pytest.raises(UsageError, match="rnn never looks"):
        check_looking(resolve(small("rnn-luong", model={"arch": "rnn"}, training={"doubly_stochastic": 1.0})), None)

"""What is held is added up rightly, and measurements take turns. Never how fast anything is."""

import pytest
import torch

from softgaze.evaluation.why.layers import KINDS, Layer, SelfAttention
from softgaze.evaluation.why.measuring import Held, most_held, seconds

FLOAT = 4


def test_the_most_that_is_held_at_once_and_not_the_sum():
    with Held([]) as held:
        for _ in range(5):
            torch.ones(1000) + 1  # two at a time: the ones and the sum
    assert held.most == 2 * 1000 * FLOAT
    assert held.now == 0


def test_views_are_held_once_and_what_was_there_before_not_at_all():
    old = torch.ones(1000)
    with Held([old]) as held:
        kept = (old.view(10, 100).exp().t(), old[5:])
    assert held.most == 1000 * FLOAT
    assert len(kept) == 2


class Twice(Layer):
    """Its tanh keeps its own output for the way back."""

    def forward(self, vectors):
        return vectors.tanh().tanh()


def test_a_pass_holds_what_it_keeps_for_the_way_back():
    vectors = torch.randn(1, 100, 10, requires_grad=True)
    kept = 2 * vectors.numel() * FLOAT
    assert kept <= most_held(Twice(10), vectors) <= 3 * kept


@pytest.mark.parametrize("kind", KINDS)
def test_measuring_twice_holds_the_same(kind):
    layer, vectors = kind(8, 1), torch.randn(1, 40, 8, requires_grad=True)
    assert most_held(layer, vectors) == most_held(layer, vectors) > 0


def test_weights_of_short_attention_are_held():
    """Up to 128 positions the plain path runs: the memory must hold the weights of all heads."""
    assert most_held(SelfAttention(8), torch.randn(1, 128, 8, requires_grad=True)) > 4 * 128**2 * FLOAT


def test_measurements_take_turns(monkeypatch):
    monkeypatch.setattr("softgaze.evaluation.why.measuring.LEAST", 0.0)
    order = []
    found = seconds([lambda: order.append("a"), lambda: order.append("b")], 3, lambda: order.append("."))
    assert order == ["a", "b", *["a", ".", "b", "."] * 3]
    assert [len(times) for times in found] == [3, 3]

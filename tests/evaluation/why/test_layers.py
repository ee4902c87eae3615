"""The layers that are compared are those of the models, and the unrolled recurrence is the recurrence."""

import pytest
import torch

from softgaze.evaluation.why.layers import KINDS, Recurrence


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 7, 40])
def test_a_layer_keeps_the_shape_of_what_it_reads(kind, length):
    vectors = torch.randn(2, length, 8)
    assert kind(8, 1)(vectors).shape == vectors.shape


@pytest.mark.parametrize("length", [1, 2, 9])
def test_as_many_turns_as_positions_give_what_the_call_gives(length):
    torch.manual_seed(0)
    layer, inputs, carried = Recurrence(8), torch.randn(2, length, 8), None
    for _ in range(length):
        carried = layer.step(inputs, carried)
    assert torch.allclose(carried, layer(inputs), atol=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not Recurrence])
def test_an_application_of_a_stack_is_a_layer(kind):
    torch.manual_seed(0)
    layer, inputs, carried = kind(8), torch.randn(1, 9, 8), torch.randn(1, 9, 8)
    assert torch.equal(layer.step(inputs, None), layer(inputs))
    assert torch.equal(layer.step(inputs, carried), layer(carried))

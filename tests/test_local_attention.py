"""Local attention equals attention with a window mask, at a lower cost."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from checks import RAGGED, SMALL, Recorder, normal, same, same_tree
from softgaze.attention import MultiHeadAttention, attend, causal_mask, padding_mask
from softgaze.local_attention import LocalMultiHeadAttention, attend_in_blocks, local_mask


@pytest.mark.parametrize("size", [1, 2, 5, 16, 33])
@pytest.mark.parametrize("window_size", [1, 3, 7, 50])
@pytest.mark.parametrize("causal", [False, True])
def test_blocks_give_what_a_window_mask_gives_forwards_and_backwards(size, window_size, causal):
    inputs = [normal(3, 2, size, 4, seed=seed).requires_grad_() for seed in range(3)]
    mask = padding_mask(torch.tensor([size, max(1, size // 2), 1]), size)
    window = mask & local_mask(size, size, window_size)
    if causal:
        window = window & causal_mask(size)
    expected = attend(*inputs, window).context
    found = attend_in_blocks(*inputs, mask, window_size, causal=causal)
    same(found, expected)
    both = (torch.autograd.grad(each.square().sum(), inputs) for each in (found, expected))
    same_tree(*both)


def test_without_a_mask_every_item_is_real():
    inputs = [normal(1, 1, 9, 4, seed=seed) for seed in range(3)]
    same(attend_in_blocks(*inputs, None, 2), attend(*inputs, local_mask(9, 9, 2)).context)


def operations(heads: MultiHeadAttention, size: int) -> int:
    vectors = torch.randn(1, size, 16)
    with FlopCounterMode(display=False) as counter:
        heads(vectors, need_weights=type(heads) is MultiHeadAttention)
    return int(counter.get_total_flops())


def test_twice_the_length_costs_twice_as_much_and_not_four_times():
    torch.manual_seed(0)
    near, far = LocalMultiHeadAttention(16, 2, window_size=8), MultiHeadAttention(16, 2)
    assert operations(near, 1024) / operations(near, 512) == pytest.approx(2, rel=0.01)
    assert operations(far, 1024) / operations(far, 512) > 3


def test_a_hook_sees_weights_that_are_zero_far_away():
    model, hook = SMALL["transformer"].but(window_size=1).model, Recorder()
    same(model(*RAGGED, hook), model(*RAGGED))
    (_, weights, _), *_ = hook.seen["encoder", 0]
    assert not weights.masked_select(~local_mask(*weights.shape[-2:], 1)).any()
    assert weights.any()


def test_a_window_of_nothing_is_rejected():
    with pytest.raises(ValueError, match="at least 1"):
        LocalMultiHeadAttention(8, 2, window_size=0)

"""Looking nearby is looking everywhere with a window mask, for less."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from checks import RAGGED, SMALL, Recorder, normal, same, same_tree
from softgaze.attention import MultiHead, attend, causal_mask, padding_mask
from softgaze.nearby import NearbyHeads, attend_nearby, near_mask


@pytest.mark.parametrize("size", [1, 2, 5, 16, 33])
@pytest.mark.parametrize("reach", [1, 3, 7, 50])
@pytest.mark.parametrize("causal", [False, True])
def test_blocks_give_what_a_window_mask_gives_forwards_and_backwards(size, reach, causal):
    inputs = [normal(3, 2, size, 4, seed=seed).requires_grad_() for seed in range(3)]
    mask = padding_mask(torch.tensor([size, max(1, size // 2), 1]), size)
    window = mask & near_mask(size, size, reach)
    if causal:
        window = window & causal_mask(size)
    expected = attend(*inputs, window).context
    found = attend_nearby(*inputs, mask, reach, causal=causal)
    same(found, expected)
    both = (torch.autograd.grad(each.square().sum(), inputs) for each in (found, expected))
    same_tree(*both)


def test_without_a_mask_every_item_is_real():
    inputs = [normal(1, 1, 9, 4, seed=seed) for seed in range(3)]
    same(attend_nearby(*inputs, None, 2), attend(*inputs, near_mask(9, 9, 2)).context)


def operations(heads: MultiHead, size: int) -> int:
    vectors = torch.randn(1, size, 16)
    with FlopCounterMode(display=False) as counter:
        heads(vectors, heads.remember(vectors), need_weights=type(heads) is MultiHead)
    return int(counter.get_total_flops())


def test_twice_the_length_costs_twice_as_much_and_not_four_times():
    torch.manual_seed(0)
    near, far = NearbyHeads(16, 2, reach=8), MultiHead(16, 2)
    assert operations(near, 1024) / operations(near, 512) == pytest.approx(2, rel=0.01)
    assert operations(far, 1024) / operations(far, 512) > 3


def test_a_watch_sees_weights_that_are_zero_far_away():
    model, watch = SMALL["transformer"].but(reach=1).model, Recorder()
    same(model(*RAGGED, watch), model(*RAGGED))
    (_, weights, _), *_ = watch.seen["encoder", 0]
    assert not weights.masked_select(~near_mask(*weights.shape[-2:], 1)).any()
    assert weights.any()


def test_a_reach_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        NearbyHeads(8, 2, reach=0)

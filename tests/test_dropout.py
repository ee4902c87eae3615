"""Dropout from random bytes: the same in mean, the same each time for a seed, the same mask back as forth."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from softgaze.dropout import LEVELS, Dropout, dropout, seeded


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_the_mean_stays_and_the_share_is_zero(share):
    torch.manual_seed(1)
    dropped = dropout(torch.ones(400, 999), share)
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)
    assert (dropped == 0).float().mean().item() == pytest.approx(share, abs=0.005)


def test_what_is_kept_is_scaled_by_the_share_that_bytes_can_say():
    kept = dropout(torch.ones(1000), 0.1)
    assert set(kept.unique().tolist()) == {0.0, torch.tensor(LEVELS / (LEVELS - 26)).item()}


def test_a_seed_decides_the_mask():
    draws = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        draws.append(dropout(torch.ones(13, 7), 0.5))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_every_byte_of_a_drawn_number_is_random():
    """A byte that is always small would drop its places always: each of the eight must reach every level."""
    torch.manual_seed(0)
    shares = (dropout(torch.ones(20_000, 8), 0.5) == 0).float().mean(0)
    assert (shares - 0.5).abs().max() < 0.02


def test_the_gradient_passes_where_the_value_did():
    vectors = torch.randn(50, 3, dtype=torch.float64, requires_grad=True)
    dropped = dropout(vectors, 0.4)
    dropped.sum().backward()
    assert torch.allclose(vectors.grad * vectors, dropped)


def test_a_model_that_is_not_training_drops_nothing():
    layer, vectors = Dropout(0.5), torch.randn(100)
    assert not torch.equal(layer(vectors), vectors)
    assert torch.equal(layer.eval()(vectors), vectors)


def test_strange_shares_still_mean_what_they_say():
    vectors = torch.ones(3000)
    assert (dropout(vectors, 0.0005) == 0).float().mean() < 0.01  # less than a byte can say: the least it can
    assert (dropout(vectors, 0.9995) == 0).float().mean() > 0.99
    assert torch.equal(Dropout(0.0)(vectors), vectors)
    for wrong in (-0.1, 1.0):
        with pytest.raises(ValueError, match="dropout must be"):
            Dropout(wrong)


def test_nothing_is_dropped_from_nothing():
    assert dropout(torch.ones(0, 4), 0.5).shape == (0, 4)


def test_threads_with_noise_of_their_own_do_not_disturb_each_other():
    def draw(seed):
        with seeded(seed):
            return torch.cat([dropout(torch.ones(50), 0.5) for _ in range(200)])

    alone = [draw(seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(draw, (1, 2)))
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))
    assert not torch.equal(*alone)


def test_noise_ends_with_its_block():
    torch.manual_seed(1)
    expected = dropout(torch.ones(100), 0.5)
    torch.manual_seed(1)
    with seeded(9):
        inside = dropout(torch.ones(100), 0.5)
    assert torch.equal(dropout(torch.ones(100), 0.5), expected)
    assert not torch.equal(inside, expected)

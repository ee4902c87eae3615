"""The loss is torch's own over real tokens, and knows no padding."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from softgaze.data.batches import Batch
from softgaze.data.shards import Shards, write_shards
from softgaze.models import build
from softgaze.speed import measures
from softgaze.symbols import BEGIN, END, PAD
from softgaze.training import loss
from softgaze.training.loss import VocabularyLoss, collate, summed_loss

CPU = torch.device("cpu")


@pytest.fixture
def shards(tmp_path):
    write_shards(tmp_path / "new", [([5, 6, 7], [8, 9]), ([5], [9, 8, 7, 6]), ([4, 4], [5])], 20)
    return Shards(tmp_path / "new")


@pytest.fixture
def model():
    torch.manual_seed(0)
    return build("rnn-luong", source_vocabulary=20, width=8, dropout=0.0)


def batch(shards, *numbers):
    return collate(shards, Batch(torch.tensor(numbers).numpy(), 0), CPU)


def test_collate_marks_begin_and_end(shards):
    pairs = batch(shards, 0, 1)
    assert pairs.source.values.tolist() == [[5, 6, 7, END], [5, END, PAD, PAD]]
    assert pairs.source.lengths.tolist() == [4, 2]
    assert pairs.target.tolist() == [[BEGIN, 8, 9, PAD, PAD], [BEGIN, 9, 8, 7, 6]]
    assert pairs.wanted.tolist() == [[8, 9, END, PAD, PAD], [9, 8, 7, 6, END]]
    assert pairs.tokens == 8


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_cross_entropy_over_all_logits(shards, model, smoothing):
    pairs = batch(shards, 0, 1, 2)
    logits = model(pairs.source, pairs.target)
    reference = F.cross_entropy(
        logits.flatten(0, 1), pairs.wanted.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=smoothing
    )
    torch.testing.assert_close(summed_loss(model, pairs, smoothing), reference)


def test_a_batch_costs_what_its_pairs_cost_alone(shards, model):
    together = summed_loss(model, batch(shards, 0, 1, 2), 0.1)
    alone = sum(summed_loss(model, batch(shards, number), 0.1) for number in range(3))
    torch.testing.assert_close(together, alone)


# --- without all logits -----------------------------------------------------------------------------------------


def tokens(count=37, vocabulary=50, width=8, dtype=torch.float64):
    torch.manual_seed(5)
    features = torch.randn(count, width, dtype=dtype, requires_grad=True)
    weight = torch.randn(vocabulary, width, dtype=dtype, requires_grad=True)
    return features, weight, torch.randint(vocabulary, (count,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("held", [1, 50, 500, 10**6])  # a token at a time, in slices with a rest, all at once
def test_slices_give_torchs_loss_and_gradients(monkeypatch, smoothing, held):
    monkeypatch.setattr(loss, "LOGITS", held)
    features, weight, wanted = tokens()
    found = VocabularyLoss.apply(features, weight, wanted, smoothing)
    reference = F.cross_entropy(features @ weight.T, wanted, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(found, reference)
    both = (torch.autograd.grad(3 * each, (features, weight)) for each in (found, reference))
    for ours, torchs in zip(*both, strict=True):
        torch.testing.assert_close(ours, torchs)


def test_a_chance_too_small_for_its_number_still_has_its_loss():
    features, weight, wanted = tokens(dtype=torch.float32)
    found = VocabularyLoss.apply(features * 300, weight, wanted, 0.0)
    reference = F.cross_entropy(features * 300 @ weight.T, wanted, reduction="sum")
    assert reference > 1e4
    torch.testing.assert_close(found, reference)


def test_a_weight_that_is_no_number_gives_a_loss_that_is_none():
    features, weight, wanted = tokens()
    with torch.no_grad():
        weight[3, 3] = torch.nan
    assert VocabularyLoss.apply(features, weight, wanted, 0.1).isnan()


def test_no_more_logits_are_held_than_a_slice_has(monkeypatch):
    monkeypatch.setattr(loss, "LOGITS", 200)
    largest = 0

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                largest = max(largest, result.numel())
            return result

    features, weight, wanted = tokens(count=300)
    with Watching():
        VocabularyLoss.apply(features, weight, wanted, 0.1).backward()
    assert largest == max(features.numel(), weight.numel()) < 300 * 50


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_under_autocast_it_is_near_the_plain_loss(smoothing):
    features, weight, wanted = tokens(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = VocabularyLoss.apply(features, weight, wanted, smoothing)
    reference = F.cross_entropy(features @ weight.T, wanted, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(found, reference, rtol=0.02, atol=0.0)
    ours, torchs = (torch.autograd.grad(each, (features, weight)) for each in (found, reference))
    assert all(one.dtype == torch.float32 for one in ours)
    for one, other in zip(ours, torchs, strict=True):
        assert (one - other).norm() < 0.02 * other.norm()


@pytest.mark.parametrize("arch", ["rnn", "rnn-luong", "rnn-bahdanau", "conv", "transformer"])
def test_a_model_learns_the_same_with_the_measures_and_without(shards, arch):
    torch.manual_seed(0)
    model = build(arch, source_vocabulary=20, dropout=0.0).double().train()
    gradients = []
    for fast in (True, False):
        with measures(fast):
            summed = summed_loss(model, batch(shards, 0, 1, 2), 0.1)
        gradients.append(torch.autograd.grad(summed, list(model.parameters())))
    for ours, plain in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, plain)

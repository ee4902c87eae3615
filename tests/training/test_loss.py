"""Collation pads and marks both ends; the loss is torch's cross-entropy over the tokens that are not padding."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from softgaze.data.batching import Batch
from softgaze.data.shards import Shards, write_shards
from softgaze.dropout import seeded
from softgaze.models import build_model
from softgaze.special_tokens import BOS, EOS, PAD
from softgaze.training import loss
from softgaze.training.collate import collate
from softgaze.training.loss import SlicedCrossEntropy, summed_loss

CPU = torch.device("cpu")


@pytest.fixture
def shards(tmp_path):
    write_shards(tmp_path / "new", [([5, 6, 7], [8, 9]), ([5], [9, 8, 7, 6]), ([4, 4], [5])], 20)
    return Shards(tmp_path / "new")


@pytest.fixture
def model():
    torch.manual_seed(0)
    return build_model("rnn-luong", source_vocabulary=20, width=8, dropout=0.0)


def batch_of(shards, *indices):
    return collate(shards, Batch(torch.tensor(indices).numpy(), 0), CPU)


def test_collate_adds_bos_and_eos(shards):
    batch = batch_of(shards, 0, 1)
    assert batch.source.values.tolist() == [[5, 6, 7, EOS], [5, EOS, PAD, PAD]]
    assert batch.source.lengths.tolist() == [4, 2]
    assert batch.decoder_input.tolist() == [[BOS, 8, 9, PAD, PAD], [BOS, 9, 8, 7, 6]]
    assert batch.labels.tolist() == [[8, 9, EOS, PAD, PAD], [9, 8, 7, 6, EOS]]
    assert batch.num_tokens == 8


def test_given_lengths_change_nothing(shards):
    pairs = torch.tensor([1, 0]).numpy()
    one = collate(shards, Batch(pairs, 0), CPU, shards.lengths(pairs))
    other = collate(shards, Batch(pairs, 0), CPU)
    assert torch.equal(one.source.values, other.source.values)
    assert torch.equal(one.labels, other.labels)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_cross_entropy_over_all_logits(shards, model, smoothing):
    batch = batch_of(shards, 0, 1, 2)
    logits = model(batch.source, batch.decoder_input).flatten(0, 1)
    reference = F.cross_entropy(
        logits, batch.labels.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=smoothing
    )
    torch.testing.assert_close(summed_loss(model, batch, smoothing), reference)


def test_a_batch_costs_what_its_pairs_cost_alone(shards, model):
    together = summed_loss(model, batch_of(shards, 0, 1, 2), 0.1)
    alone = sum(summed_loss(model, batch_of(shards, index), 0.1) for index in range(3))
    torch.testing.assert_close(together, alone)


# --- in slices ----------------------------------------------------------------------------------------------------


def random_tokens(count=37, vocabulary=50, width=8, dtype=torch.float64):
    torch.manual_seed(5)
    features = torch.randn(count, width, dtype=dtype, requires_grad=True)
    weight = torch.randn(vocabulary, width, dtype=dtype, requires_grad=True)
    return features, weight, torch.randint(vocabulary, (count,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("max_logits", [1, 50, 500, 10**6])  # one token at a time, slices with a rest, all at once
def test_slices_give_torchs_loss_and_gradients(monkeypatch, smoothing, max_logits):
    monkeypatch.setattr(loss, "MAX_LOGITS", max_logits)
    features, weight, labels = random_tokens()
    ours = SlicedCrossEntropy.apply(features, weight, labels, smoothing)
    reference = F.cross_entropy(features @ weight.T, labels, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(ours, reference)
    gradients = (torch.autograd.grad(3 * value, (features, weight)) for value in (ours, reference))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("max_logits", [1, 500, 10**6])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_r_drop_adds_the_divergence_of_two_passes(monkeypatch, smoothing, max_logits):
    monkeypatch.setattr(loss, "MAX_LOGITS", max_logits)
    features, weight, labels = random_tokens()
    passes = torch.stack([features, features + torch.randn_like(features)])
    ours = SlicedCrossEntropy.apply(passes, weight, labels, smoothing, 5.0)
    one, other = (passes @ weight.T).log_softmax(-1)
    reference = sum(F.cross_entropy(p, labels, reduction="sum", label_smoothing=smoothing) / 2 for p in (one, other))
    for p, q in ((one, other), (other, one)):
        reference += 5 / 4 * F.kl_div(q, p, reduction="sum", log_target=True)  # KL(p, q)
    torch.testing.assert_close(ours, reference)
    gradients = (torch.autograd.grad(value, (features, weight), retain_graph=True) for value in (ours, reference))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("arch", ["rnn", "rnn-luong", "rnn-bahdanau", "conv", "transformer"])
def test_r_drop_without_dropout_is_the_plain_loss(shards, arch):
    torch.manual_seed(0)
    model = build_model(arch, source_vocabulary=20, dropout=0.0).double().train()
    batch = batch_of(shards, 0, 1, 2)
    losses = [summed_loss(model, batch, 0.1), summed_loss(model, batch, 0.1, r_drop=5.0)]
    torch.testing.assert_close(*losses)
    gradients = [torch.autograd.grad(value, list(model.parameters())) for value in losses]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_r_drop_with_dropout_costs_the_divergence(shards):
    torch.manual_seed(0)
    model = build_model("transformer", source_vocabulary=20, dropout=0.3).train()
    batch = batch_of(shards, 0, 1, 2)
    weighted = []
    for weight in (1e-9, 5.0):
        with seeded(7):
            weighted.append(summed_loss(model, batch, 0.1, r_drop=weight).item())
    assert weighted[1] > weighted[0] + 0.1


def test_a_probability_that_underflows_has_a_loss():
    features, weight, labels = random_tokens(dtype=torch.float32)
    ours = SlicedCrossEntropy.apply(features * 300, weight, labels, 0.0)
    reference = F.cross_entropy(features * 300 @ weight.T, labels, reduction="sum")
    assert reference > 1e4
    torch.testing.assert_close(ours, reference)


def test_a_weight_of_nan_gives_a_loss_of_nan():
    features, weight, labels = random_tokens()
    with torch.no_grad():
        weight[3, 3] = torch.nan
    assert SlicedCrossEntropy.apply(features, weight, labels, 0.1).isnan()


def test_only_the_logits_of_one_slice_are_in_memory(monkeypatch):
    monkeypatch.setattr(loss, "MAX_LOGITS", 200)
    largest = 0

    class LargestTensor(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                largest = max(largest, result.numel())
            return result

    features, weight, labels = random_tokens(count=300)
    with LargestTensor():
        SlicedCrossEntropy.apply(features, weight, labels, 0.1).backward()
    assert largest == max(features.numel(), weight.numel()) < 300 * 50


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_under_autocast_the_loss_is_close_to_float32(smoothing):
    features, weight, labels = random_tokens(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = SlicedCrossEntropy.apply(features, weight, labels, smoothing)
    reference = F.cross_entropy(features @ weight.T, labels, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(ours, reference, rtol=0.02, atol=0.0)
    gradients = [torch.autograd.grad(value, (features, weight)) for value in (ours, reference)]
    assert all(gradient.dtype == torch.float32 for gradient in gradients[0])
    for one, other in zip(*gradients, strict=True):
        assert (one - other).norm() < 0.02 * other.norm()


@pytest.mark.parametrize("arch", ["rnn", "rnn-luong", "rnn-bahdanau", "conv", "transformer"])
def test_slices_do_not_change_the_gradient_of_a_model(shards, arch):
    torch.manual_seed(0)
    model = build_model(arch, source_vocabulary=20, dropout=0.0).double().train()
    batch = batch_of(shards, 0, 1, 2)
    logits = model(batch.source, batch.decoder_input).flatten(0, 1)
    labels = batch.labels.flatten()
    reference = F.cross_entropy(logits, labels, ignore_index=PAD, reduction="sum", label_smoothing=0.1)
    losses = (summed_loss(model, batch, 0.1), reference)
    gradients = [torch.autograd.grad(value, list(model.parameters())) for value in losses]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)

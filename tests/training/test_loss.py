"""The loss is torch's own over real tokens, and knows no padding."""

import pytest
import torch
import torch.nn.functional as F

from softgaze.data.batches import Batch
from softgaze.data.shards import Shards, write_shards
from softgaze.models import build
from softgaze.symbols import BEGIN, END, PAD
from softgaze.training.loss import collate, summed_loss

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

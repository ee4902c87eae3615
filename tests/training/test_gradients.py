"""Halves side by side give the gradient of the whole, and the same bits as one after the other."""

import pytest
import torch
from torch import nn

from softgaze.config import Config, TrainingSettings
from softgaze.data.batches import Batch
from softgaze.data.shards import Shards, write_shards
from softgaze.models import Source, build
from softgaze.training.gradients import Amount, Gradients, draws_its_own_noise, halves, total, using_threads
from softgaze.training.loop import make_optimiser
from softgaze.training.loss import Pairs, collate, summed_loss

CPU = torch.device("cpu")
ARCHS = ["rnn", "rnn-luong", "rnn-bahdanau", "conv", "transformer"]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    place = tmp_path_factory.mktemp("shards") / "new"
    dice = torch.Generator().manual_seed(3)
    rows = [
        tuple(torch.randint(4, 30, (length,), generator=dice).tolist() for length in (2 + number % 5, 1 + number % 7))
        for number in range(11)
    ]
    write_shards(place, rows, 30)
    return Shards(place)


def gradients_of(arch, shards, numbers, *, threads=2, seed=1, fast=True, dropout=0.0, times=1, **options):
    torch.manual_seed(0)
    model = build(arch, source_vocabulary=30, dropout=dropout, **options).double().train()
    adder = Gradients(model, TrainingSettings(seed=seed, fast=fast, label_smoothing=0.1), CPU)
    batch = Batch(torch.tensor(numbers).numpy(), 0)
    parts = [collate(shards, part, CPU) for part in adder.divide(batch, shards.lengths(batch.pairs))]
    with using_threads(threads):
        losses = total(adder.add(parts, Amount.of(parts), 7, 0) for _ in range(times))
    assert losses.links == 0
    return model, losses.tokens, [each.grad for each in model.parameters()]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("rows", [1, 2, 11])
def test_halves_give_the_gradient_of_the_whole(shards, arch, rows):
    model, loss, found = gradients_of(arch, shards, range(rows))
    whole = collate(shards, Batch(torch.arange(rows).numpy(), 0), CPU)
    expected = summed_loss(model, whole, 0.1)
    assert loss == pytest.approx(float(expected.detach()))
    for one, other in zip(found, torch.autograd.grad(expected / whole.tokens, list(model.parameters())), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("arch", ARCHS)
def test_side_by_side_or_in_turn_the_bits_are_the_same(shards, arch):
    drawn = [gradients_of(arch, shards, range(11), threads=threads, dropout=0.3)[2] for threads in (1, 2, 2, 2)]
    for again in drawn[1:]:
        assert all(torch.equal(one, other) for one, other in zip(drawn[0], again, strict=True))


def test_the_noise_follows_from_the_seed(shards):
    one, other = (gradients_of("transformer", shards, range(11), seed=seed, dropout=0.3)[2] for seed in (1, 2))
    assert not all(torch.equal(*both) for both in zip(one, other, strict=True))


def test_the_two_halves_are_dropped_from_differently(shards):
    """The same row in both halves, with other noise: its loss differs."""
    torch.manual_seed(0)
    model = build("transformer", source_vocabulary=30, dropout=0.5).train()
    adder = Gradients(model, TrainingSettings(seed=1), CPU)
    pairs = collate(shards, Batch(torch.tensor([4]).numpy(), 0), CPU)
    first, again, other = (adder.of_part(pairs, Amount.of([pairs]), seed)[0] for seed in (5, 5, 6))
    assert first == again != other


def test_batches_add_up(shards):
    once = gradients_of("rnn-luong", shards, range(11))[2]
    twice = gradients_of("rnn-luong", shards, range(11), times=2)[2]
    for one, two in zip(once, twice, strict=True):
        torch.testing.assert_close(2 * one, two)


def lengths_of(rows):
    return torch.randint(1, 20, (rows, 2), generator=torch.Generator().manual_seed(rows)).numpy()


def padded(lengths):
    return len(lengths) * int(lengths.max(axis=0).sum())


def test_halves_are_even_and_pad_less_than_dealing_the_rows_out():
    lengths = lengths_of(200)
    parts = [lengths[places] for places in halves(lengths)]
    costs = [padded(part) + int(part[:, 1].sum()) for part in parts]
    assert max(costs) < 1.03 * min(costs)
    assert sum(map(padded, parts)) < 0.97 * sum(padded(lengths[first::2]) for first in (0, 1))


def test_every_row_is_in_one_half():
    adder = Gradients(build("rnn", source_vocabulary=30), TrainingSettings(), CPU)
    for rows in (1, 2, 7):
        parts = adder.divide(Batch(torch.arange(rows).numpy(), 3), lengths_of(rows))
        assert sorted(number for part in parts for number in part.pairs.tolist()) == list(range(rows))
        assert all(part.epoch == 3 and len(part.pairs) for part in parts)


@pytest.mark.parametrize(("settings", "parts"), [({}, 2), ({"fast": False}, 1), ({"batch_tokens": 600}, 1)])
def test_the_plain_way_and_small_batches_divide_nothing(settings, parts):
    adder = Gradients(build("rnn", source_vocabulary=30), TrainingSettings(**settings), CPU)
    assert len(adder.divide(Batch(torch.arange(8).numpy(), 0), lengths_of(8))) == parts


def test_stacked_rnns_take_turns_and_still_follow_the_seed(shards):
    model = build("rnn-luong", source_vocabulary=30, layers=2, dropout=0.3)
    assert not draws_its_own_noise(model)
    assert Gradients(model, TrainingSettings(), CPU).pool is None
    assert draws_its_own_noise(nn.Sequential(nn.GRU(4, 4, 2)))


def test_convolutions_learn_from_their_own_gradients():
    """Gradients of a convolution lie in memory otherwise than its weights, and a fused optimiser reads in order."""
    draw = torch.Generator().manual_seed(0)
    values = torch.randint(0, 256, (2, 16, 48), dtype=torch.uint8, generator=draw)
    pairs = Pairs(Source(values, torch.tensor([16, 16])), torch.tensor([[1, 5], [1, 6]]), torch.tensor([[5, 2]] * 2), 4)
    torch.manual_seed(0)
    options = {"width": 16, "layers": 1, "encoder_layers": 1, "heads": 2, "dropout": 0.0}
    ours, plain = (build("captioner", source_vocabulary=48, target_vocabulary=9, **options).train() for _ in range(2))
    plain.load_state_dict(ours.state_dict())
    Gradients(ours, TrainingSettings(label_smoothing=0.0), CPU).add([pairs], Amount.of([pairs]), 1, 0)
    make_optimiser(ours, Config()).step()
    (summed_loss(plain, pairs, 0.0) / pairs.tokens).backward()
    torch.optim.AdamW(plain.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0).step()
    for one, other in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other)

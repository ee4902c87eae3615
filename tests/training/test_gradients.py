"""Gradients: computed in halves they equal those of the whole batch, with the same bits in parallel or in sequence."""

import threading

import pytest
import torch
from torch import nn

from softgaze import runtime
from softgaze.config import TrainingSettings
from softgaze.data.batching import Batch
from softgaze.data.shards import Shards, write_shards
from softgaze.models import Source, build_model
from softgaze.training.collate import PaddedBatch, collate
from softgaze.training.gradients import (
    GradientAccumulator,
    LossSums,
    TokenCounts,
    autocast,
    balanced_halves,
    has_torch_rnn_dropout,
    make_optimizer,
    thread_pool,
    uses_bfloat16,
)
from softgaze.training.loss import summed_loss

CPU = torch.device("cpu")
ARCHS = ["rnn", "rnn-luong", "rnn-bahdanau", "conv", "transformer"]


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    path = tmp_path_factory.mktemp("shards") / "new"
    generator = torch.Generator().manual_seed(3)
    rows = [
        tuple(torch.randint(4, 30, (size,), generator=generator).tolist() for size in (2 + index % 5, 1 + index % 7))
        for index in range(11)
    ]
    write_shards(path, rows, 30)
    return Shards(path)


def first_rows(count):
    return Batch(torch.arange(count).numpy(), 0)


def compute(arch, shards, rows, *, in_parallel=True, seed=1, dropout=0.0, times=1):
    """Return a model, its summed loss over the first rows, and its gradients."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    model = build_model(arch, source_vocabulary=30, dropout=dropout).double().train()
    settings = TrainingSettings(seed=seed, label_smoothing=0.1, precision="float32")
    accumulator = GradientAccumulator(model, settings, CPU)
    batch = first_rows(rows)
    parts = [collate(shards, part, CPU) for part, _ in accumulator.split(batch, shards.lengths(batch.pairs))]
    if not in_parallel:  # with as many intra-op threads as a worker of the pool has
        accumulator.pool = None
        torch.set_num_threads(1)
    losses = LossSums.total(accumulator.add(parts, TokenCounts.of(parts), 7, 0) for _ in range(times))
    assert losses.alignment == 0
    return model, losses.tokens, [parameter.grad for parameter in model.parameters()]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("rows", [1, 2, 11])
def test_halves_give_the_gradient_of_the_whole_batch(shards, arch, rows):
    model, loss, computed = compute(arch, shards, rows)
    whole = collate(shards, first_rows(rows), CPU)
    expected = summed_loss(model, whole, 0.1)
    assert loss == pytest.approx(float(expected.detach()))
    reference = torch.autograd.grad(expected / whole.num_tokens, list(model.parameters()))
    for one, other in zip(computed, reference, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("arch", ARCHS)
def test_in_parallel_or_in_sequence_the_bits_are_the_same(shards, arch):
    runs = [compute(arch, shards, 11, in_parallel=parallel, dropout=0.3)[2] for parallel in (False, True, True)]
    for again in runs[1:]:
        assert all(torch.equal(one, other) for one, other in zip(runs[0], again, strict=True))


def test_dropout_depends_on_the_seed(shards):
    one, other = (compute("transformer", shards, 11, seed=seed, dropout=0.3)[2] for seed in (1, 2))
    assert not all(torch.equal(*both) for both in zip(one, other, strict=True))


def test_each_part_has_its_own_dropout(shards):
    torch.manual_seed(0)
    model = build_model("transformer", source_vocabulary=30, dropout=0.5).train()
    accumulator = GradientAccumulator(model, TrainingSettings(label_smoothing=0.1, seed=1), CPU)
    batch = collate(shards, first_rows(1), CPU)
    losses = [accumulator.losses_and_gradients(batch, TokenCounts.of([batch]), seed)[0] for seed in (5, 5, 6)]
    assert losses[0] == losses[1] != losses[2]


def test_gradients_of_batches_are_summed(shards):
    once = compute("rnn-luong", shards, 11)[2]
    twice = compute("rnn-luong", shards, 11, times=2)[2]
    for one, two in zip(once, twice, strict=True):
        torch.testing.assert_close(2 * one, two)


def random_lengths(rows):
    return torch.randint(1, 20, (rows, 2), generator=torch.Generator().manual_seed(rows)).numpy()


def padded_tokens(lengths):
    return len(lengths) * int(lengths.max(axis=0).sum())


def test_halves_cost_the_same_and_pad_less_than_every_other_row():
    lengths = random_lengths(200)
    parts = [lengths[rows] for rows in balanced_halves(lengths)]
    costs = [padded_tokens(part) + int(part[:, 1].sum()) for part in parts]
    assert max(costs) < 1.03 * min(costs)
    assert sum(map(padded_tokens, parts)) < 0.97 * sum(padded_tokens(lengths[first::2]) for first in (0, 1))


def test_every_row_is_in_one_half():
    accumulator = GradientAccumulator(build_model("rnn", source_vocabulary=30), TrainingSettings(), CPU)
    for rows in (1, 2, 7):
        lengths = random_lengths(rows)
        parts = accumulator.split(Batch(torch.arange(rows).numpy(), 3), lengths)
        assert sorted(index for part, _ in parts for index in part.pairs.tolist()) == list(range(rows))
        assert all(part.epoch == 3 and len(part.pairs) for part, _ in parts)
        assert all((lengths[part.pairs] == part_lengths).all() for part, part_lengths in parts)


@pytest.mark.parametrize(("settings", "parts"), [({}, 2), ({"fast": False}, 1), ({"batch_tokens": 600}, 1)])
def test_small_batches_and_the_plain_way_are_not_split(settings, parts):
    accumulator = GradientAccumulator(build_model("rnn", source_vocabulary=30), TrainingSettings(**settings), CPU)
    assert len(accumulator.split(first_rows(8), random_lengths(8))) == parts


def test_one_thread_computes_a_batch_at_once():
    torch.set_num_threads(1)
    accumulator = GradientAccumulator(build_model("rnn", source_vocabulary=30), TrainingSettings(), CPU)
    assert accumulator.pool is None
    assert len(accumulator.split(first_rows(8), random_lengths(8))) == 1


def test_stacked_rnns_with_dropout_are_computed_at_once():
    model = build_model("rnn-luong", source_vocabulary=30, layers=2, dropout=0.3)
    assert has_torch_rnn_dropout(model)
    assert GradientAccumulator(model, TrainingSettings(), CPU).pool is None
    assert not has_torch_rnn_dropout(nn.Sequential(nn.GRU(4, 4, 2)))


def test_a_pool_changes_the_threads_of_its_workers_only():
    counts, others = [], []
    counts += thread_pool(2, 1).map(lambda _: (torch.ones(9) @ torch.ones(9), torch.get_num_threads())[1], range(4))
    new_thread = threading.Thread(target=lambda: others.append(torch.get_num_threads()))
    new_thread.start()
    new_thread.join()
    assert counts == [1] * 4
    assert (torch.get_num_threads(), others) == (2, [2])


def test_convolutions_are_updated_from_their_gradients():
    """Gradients of a convolution have another memory layout than its weights, which a fused optimizer ignores."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(0, 256, (2, 16, 48), dtype=torch.uint8, generator=generator)
    source = Source(values, torch.tensor([16, 16]))
    batch = PaddedBatch(source, torch.tensor([[1, 5], [1, 6]]), torch.tensor([[5, 2]] * 2), 4)
    torch.manual_seed(0)
    options = {"width": 16, "layers": 1, "encoder_layers": 1, "heads": 2, "dropout": 0.0}
    ours, plain = (
        build_model("captioner", source_vocabulary=48, target_vocabulary=9, **options).train() for _ in range(2)
    )
    plain.load_state_dict(ours.state_dict())
    settings = TrainingSettings(label_smoothing=0.0, precision="float32")
    GradientAccumulator(ours, settings, CPU).add([batch], TokenCounts.of([batch]), 1, 0)
    make_optimizer(ours, settings).step()
    (summed_loss(plain, batch, 0.0) / batch.num_tokens).backward()
    torch.optim.AdamW(plain.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0).step()
    for one, other in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other)


# --- precision ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_the_forward_pass_has_the_chosen_precision_and_weights_are_float32(name):
    layer = nn.Linear(3, 3)
    with autocast(CPU, name == "bfloat16"):
        result = layer(torch.ones(1, 3))
    assert result.dtype == getattr(torch, name)
    result.float().sum().backward()
    assert layer.weight.dtype == layer.weight.grad.dtype == torch.float32


@pytest.mark.parametrize(
    ("flags", "expected"), [({"amx_bf16"}, True), ({"avx512_bf16", "fma"}, True), ({"avx512f"}, False), (set(), False)]
)
def test_auto_takes_bfloat16_if_the_cpu_has_it(monkeypatch, flags, expected):
    monkeypatch.setattr(runtime, "cpu_flags", lambda: flags)
    assert uses_bfloat16(CPU, "auto") is expected
    assert uses_bfloat16(CPU, "bfloat16")
    assert not uses_bfloat16(CPU, "float32")
    assert not uses_bfloat16(torch.device("mps"), "auto")

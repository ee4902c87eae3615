"""Batches: a pure function of (seed, step), each pair once per epoch, within budget, with little padding."""

from collections import Counter
from itertools import islice, takewhile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.data.batching import BatchSampler, batch_by_length, padding_share, permute
from softgaze.data.shards import Shards, VectorSpec, write_shards


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 40, (3000, 2))
    directory = tmp_path_factory.mktemp("batches") / "new"
    write_shards(directory, (([5] * int(a), [6] * int(b)) for a, b in sizes), 100)
    return Shards(directory)


@given(count=st.integers(1, 500), key=st.integers(0, 2**63))
def test_the_order_is_a_permutation(count, key):
    assert sorted(permute(np.arange(count), count, key)) == list(range(count))


def test_the_order_is_well_mixed():
    order = permute(np.arange(10_000), 10_000, 3)
    assert abs(np.corrcoef(order, np.arange(10_000))[0, 1]) < 0.05
    assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 0.05


@pytest.mark.parametrize("step", [0, 1, 7, 40, 100, 250])
def test_batch_n_is_the_same_wherever_one_starts(shards, step):
    batches = BatchSampler(shards, 400, seed=1)
    whole = list(islice(batches.batches_from(0), step + 3))
    for straight, resumed in zip(whole[step:], batches.batches_from(step), strict=False):
        assert straight.pairs.tolist() == resumed.pairs.tolist()
        assert straight.epoch == resumed.epoch


def test_every_pair_comes_once_an_epoch_in_another_order_each_time(shards):
    batches = BatchSampler(shards, 400, seed=1)
    epochs: dict[int, list[int]] = {0: [], 1: []}
    for batch in batches.batches_from(0):
        if batch.epoch > 1:
            break
        epochs[batch.epoch] += batch.pairs.tolist()
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(len(shards)))
    assert epochs[0] != epochs[1]


def test_another_seed_is_another_order(shards):
    first, second = (next(BatchSampler(shards, 400, seed).batches_from(0)).pairs.tolist() for seed in (1, 2))
    assert first != second


def test_batches_keep_their_budget(shards):
    for batch in islice(BatchSampler(shards, 400, seed=1).batches_from(0), 200):
        assert len(batch.pairs) * shards.lengths(batch.pairs).max() <= 400


@given(lengths=st.lists(st.integers(0, 50)), tokens=st.integers(1, 100), shortest=st.integers(0, 10))
def test_batches_by_length_cover_every_sequence_once_and_keep_the_budget(lengths, tokens, shortest):
    batches = [batch.tolist() for batch in batch_by_length(lengths, tokens, shortest)]
    order = [index for batch in batches for index in batch]
    assert order == sorted(range(len(lengths)), key=lambda index: lengths[index])
    for batch in batches:
        longest = max(shortest, *(lengths[index] for index in batch), 0)
        assert len(batch) == 1 or len(batch) * longest <= tokens


def test_sorting_saves_padding(shards):
    sorted_batches = [batch.pairs for batch in islice(BatchSampler(shards, 400, seed=1).batches_from(0), 150)]
    unsorted = np.array_split(np.arange(len(shards)), 150)
    assert padding_share(shards, sorted_batches) < 0.75 * padding_share(shards, unsorted)


def test_pictures_of_one_size_are_not_sorted_by_their_captions(tmp_path):
    sizes = np.random.default_rng(0).integers(1, 16, 640)
    write_shards(tmp_path / "new", (([5] * 16, [6] * int(size)) for size in sizes), 100)
    pictures = Shards(tmp_path / "new")
    means = [
        pictures.lengths(batch.pairs)[:, 1].mean()
        for batch in islice(BatchSampler(pictures, 512, 1).batches_from(0), 20)
    ]
    assert np.std(means) < 2 * sizes.std() / 32**0.5


# --- several captions per file


def caption_sampler(directory, counts, tokens=12):
    """Pictures of three regions with so many captions each."""
    sources = [np.full((3, 2), number, dtype=np.float32) for number in range(len(counts))]
    rows = [(sources[number], [4]) for number, count in enumerate(counts) for _ in range(count)]
    write_shards(directory / "pictures", rows, 9, vectors=VectorSpec("<f4", 2))
    return BatchSampler(Shards(directory / "pictures"), tokens, 1)


def test_every_file_comes_equally_often_and_with_all_its_captions(tmp_path):
    counts = [5] * 20 + [3, 7]
    sampler, files = caption_sampler(tmp_path, counts), np.repeat(np.arange(22), counts)
    for epoch in (epochs := epochs_of(sampler, 7)):
        assert np.bincount(files[epoch]).tolist() == [5] * 22
    assert set(epochs[0]) >= set(range(100))  # five of five captions in each epoch
    assert set(epochs[0]) | set(epochs[1]) == set(range(110))  # the file of seven continues where it stopped
    assert epochs[0] != epochs[1]


def test_a_round_of_an_epoch_has_every_file_once(tmp_path):
    sampler, files = caption_sampler(tmp_path, [5] * 20), np.arange(100) // 5
    order = sampler.files.pairs(np.arange(100), 1, 0)
    for start in range(0, 100, 20):
        assert sorted(files[order[start : start + 20]]) == list(range(20))


# --- general-domain pairs


def mixed_sampler(directory, own, general, per_epoch, tokens=40):
    rows = [([4] * (1 + row % 7), [5] * (1 + row % 5)) for row in range(own + general)]
    write_shards(directory / f"{own}-{general}", rows, 9)
    return BatchSampler(Shards(directory / f"{own}-{general}"), tokens, 1, general, per_epoch)


def epochs_of(sampler, count):
    """The pairs of each of the first epochs."""
    batches = takewhile(lambda batch: batch.epoch < count, sampler.batches_from(0))
    epochs = [[] for _ in range(count)]
    for batch in batches:
        epochs[batch.epoch] += batch.pairs.tolist()
    return epochs


@pytest.mark.parametrize(("own", "general", "per_epoch"), [(30, 100, 30), (20, 7, 20), (5, 40, 1)])
def test_every_epoch_has_all_pairs_and_the_next_general_ones(tmp_path, own, general, per_epoch):
    drawn = []
    for pairs in epochs_of(mixed_sampler(tmp_path, own, general, per_epoch), 12):
        assert sorted(pair for pair in pairs if pair < own) == [*range(own)]
        drawn.append([pair for pair in pairs if pair >= own])
        assert len(drawn[-1]) == per_epoch
    counts = Counter(pair for epoch in drawn for pair in epoch)
    assert set(counts) <= {*range(own, own + general)}
    assert max(counts.values()) - min(counts[pair] for pair in range(own, own + general)) <= 1  # all before one twice
    if per_epoch > 10:
        assert drawn[0] != drawn[1]


def test_epochs_take_turns_with_the_segmentations_of_all_pairs(tmp_path):
    rows = [([4] * (1 + row % 7), [5] * (1 + row % 5)) for row in range(30 * 3 + 10)]
    write_shards(tmp_path / "rows", rows, 9)
    for mixed, per_epoch in ((10, 5), (0, 0)):
        sampler = BatchSampler(Shards(tmp_path / "rows"), 40, 1, mixed, per_epoch, segmentations=3 if mixed else 4)
        pairs = sampler.num_pairs
        for epoch, drawn in enumerate(epochs_of(sampler, 6)):
            own = [row for row in drawn if row < 100 - mixed]
            turn = epoch % sampler.segmentations
            assert sorted(own) == [pair * sampler.segmentations + turn for pair in range(pairs)]
            assert len(drawn) - len(own) == per_epoch


def test_mixed_batches_start_anywhere(tmp_path):
    sampler = mixed_sampler(tmp_path, 30, 100, 30)
    straight = list(islice(sampler.batches_from(0), 60))
    for step in (1, 17, 45):
        resumed = islice(sampler.batches_from(step), 60 - step)
        for expected, batch in zip(straight[step:], resumed, strict=True):
            assert (expected.pairs == batch.pairs).all()

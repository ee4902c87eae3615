"""Batches: a pure function of (seed, step), each pair once an epoch, within budget, with little padding."""

from itertools import islice

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.data.batches import Batches, cut_by_budget, padding_share, shuffled
from softgaze.data.shards import Shards, write_shards


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    dice = numpy.random.default_rng(0)
    sizes = dice.integers(1, 40, (3000, 2))
    place = tmp_path_factory.mktemp("batches") / "new"
    write_shards(place, (([5] * int(a), [6] * int(b)) for a, b in sizes), 100)
    return Shards(place)


@given(count=st.integers(1, 500), key=st.integers(0, 2**63))
def test_the_order_is_a_permutation(count, key):
    assert sorted(shuffled(numpy.arange(count), count, key)) == list(range(count))


def test_the_order_is_well_mixed():
    order = shuffled(numpy.arange(10_000), 10_000, 3)
    assert abs(numpy.corrcoef(order, numpy.arange(10_000))[0, 1]) < 0.05
    assert abs(numpy.corrcoef(order[1:], order[:-1])[0, 1]) < 0.05


@pytest.mark.parametrize("step", [0, 1, 7, 40, 100, 250])
def test_batch_n_is_the_same_wherever_one_starts(shards, step):
    batches = Batches(shards, 400, seed=1)
    whole = list(islice(batches.starting(0), step + 3))
    for straight, resumed in zip(whole[step:], batches.starting(step), strict=False):
        assert straight.pairs.tolist() == resumed.pairs.tolist()
        assert straight.epoch == resumed.epoch


def test_every_pair_comes_once_an_epoch_in_another_order_each_time(shards):
    batches = Batches(shards, 400, seed=1)
    epochs: dict[int, list[int]] = {0: [], 1: []}
    for batch in batches.starting(0):
        if batch.epoch > 1:
            break
        epochs[batch.epoch] += batch.pairs.tolist()
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(len(shards)))
    assert epochs[0] != epochs[1]


def test_another_seed_is_another_order(shards):
    first, second = (next(Batches(shards, 400, seed).starting(0)).pairs.tolist() for seed in (1, 2))
    assert first != second


def test_batches_keep_their_budget(shards):
    for batch in islice(Batches(shards, 400, seed=1).starting(0), 200):
        assert len(batch.pairs) * shards.lengths(batch.pairs).max() <= 400


@given(lengths=st.lists(st.integers(1, 50), min_size=1), tokens=st.integers(1, 100))
def test_cuts_leave_nothing_out_and_one_row_at_least(lengths, tokens):
    ascending = numpy.array(sorted(lengths))
    parts = numpy.split(ascending, cut_by_budget(ascending, tokens))
    assert numpy.concatenate(parts).tolist() == ascending.tolist()
    assert all(len(part) >= 1 for part in parts)
    assert all(len(part) == 1 or len(part) * part[-1] <= tokens for part in parts)


def test_sorting_saves_padding(shards):
    sorted_batches = [batch.pairs for batch in islice(Batches(shards, 400, seed=1).starting(0), 150)]
    anyhow = numpy.array_split(numpy.arange(len(shards)), 150)
    assert padding_share(shards, sorted_batches) < 0.75 * padding_share(shards, anyhow)


def test_pictures_of_one_size_are_not_sorted_by_their_captions(tmp_path):
    sizes = numpy.random.default_rng(0).integers(1, 16, 640)
    write_shards(tmp_path / "new", (([5] * 16, [6] * int(size)) for size in sizes), 100)
    pictures = Shards(tmp_path / "new")
    means = [pictures.lengths(batch.pairs)[:, 1].mean() for batch in islice(Batches(pictures, 512, 1).starting(0), 20)]
    assert numpy.std(means) < 2 * sizes.std() / 32**0.5

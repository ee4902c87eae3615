"""Shards give back what was written, in any order, from any shard."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.data import shards as module
from softgaze.data.shards import Shards, write_shards
from softgaze.errors import DataError

ids = st.lists(st.integers(0, 99), min_size=1, max_size=9)


@given(pairs=st.lists(st.tuples(ids, ids), min_size=1, max_size=30), size=st.integers(1, 7), wide=st.booleans())
def test_what_is_written_is_read(tmp_path_factory, pairs, size, wide):
    directory = tmp_path_factory.mktemp("shards") / "new"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAIRS", size)  # many shards from few pairs
        patch.setattr(module, "BUFFER", 2)
        assert write_shards(directory, pairs, 70_000 if wide else 100) == len(pairs)
        shards = Shards(directory)
        assert len(shards) == len(pairs)
        assert [tuple(side.tolist() for side in shards[number]) for number in range(len(pairs))] == pairs
        order = np.arange(len(pairs))[::-1].copy()
        assert shards.lengths(order).tolist() == [[len(a), len(b)] for a, b in reversed(pairs)]
        for rows, wanted in zip(shards.gather(order), zip(*reversed(pairs), strict=True), strict=True):
            assert rows.tokens.tolist() == [token for row in wanted for token in row]
            assert rows.row.tolist() == [number for number, row in enumerate(wanted) for _ in row]
            assert rows.column.tolist() == [column for row in wanted for column in range(len(row))]
            assert rows.lengths.tolist() == [len(row) for row in wanted]


links = st.lists(st.integers(0, 99), max_size=4).map(lambda numbers: numbers * 3)


@given(pairs=st.lists(st.tuples(ids, ids, links), min_size=1, max_size=30), size=st.integers(1, 7), wide=st.booleans())
def test_links_stay_with_their_pairs(tmp_path_factory, pairs, size, wide):
    directory = tmp_path_factory.mktemp("shards") / "new"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAIRS", size)
        patch.setattr(module, "BUFFER", 2)
        assert write_shards(directory, pairs, 100, 70_000 if wide else 99) == len(pairs)
        shards = Shards(directory)
        assert shards.has_links
        for number, (source, target, own) in enumerate(pairs):
            assert [side.tolist() for side in shards[number]] == [source, target]
            assert shards.links(number).shape == (len(own) // 3, 3)
            assert shards.links(number).flatten().tolist() == own


def test_pairs_without_links_say_so(tmp_path):
    write_shards(tmp_path / "new", [([5], [1])], 10)
    assert not Shards(tmp_path / "new").has_links
    with pytest.raises(ValueError, match="without links"):
        Shards(tmp_path / "new").links(0)


def test_ids_and_links_beyond_16_bits_are_kept(tmp_path):
    write_shards(tmp_path / "new", [([70_000], [1], [0, 0, 70_001])], 80_000, 70_001)
    shards = Shards(tmp_path / "new")
    assert (shards[0][0].tolist(), shards.links(0).tolist()) == ([70_000], [[0, 0, 70_001]])


def test_a_directory_without_shards_is_an_error(tmp_path):
    with pytest.raises(DataError, match=str(tmp_path)):
        Shards(tmp_path)


# --- vectors ----------------------------------------------------------------------------------------------------


@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    repeats=st.lists(st.integers(1, 3), min_size=8, max_size=8),
    size=st.integers(1, 7),
    kind=st.sampled_from(["|u1", "<f2", "<f4"]),
)
def test_vectors_are_read_as_written_and_a_shared_source_is_kept_once(tmp_path_factory, lengths, repeats, size, kind):
    directory, rng = tmp_path_factory.mktemp("shards") / "new", np.random.default_rng(1)
    sources = [rng.integers(0, 200, (length, 3)).astype(kind) for length in lengths]
    pairs = [(source, [number + 1]) for number, source in enumerate(sources) for _ in range(repeats[number])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAIRS", size)
        patch.setattr(module, "BUFFER", 6)
        assert write_shards(directory, pairs, 100, vectors=module.VectorSpec(kind, 3)) == len(pairs)
        shards = Shards(directory)
        for number, (source, target) in enumerate(pairs):
            found = shards[number]
            assert found[0].dtype == np.dtype(kind)
            assert (found[0] == source).all()
            assert found[1].tolist() == target
        order = np.arange(len(pairs))[::-1].copy()
        assert shards.lengths(order).tolist() == [[len(source), 1] for source, _ in reversed(pairs)]
        gathered = shards.gather(order)[0]
        assert (gathered.tokens == np.concatenate([source for source, _ in reversed(pairs)])).all()
        stored = sum(part[0].tokens.shape[0] for part in shards.shards)
        assert stored <= sum(lengths) + sum(lengths) * (len(shards.shards) - 1)
        if len(shards.shards) == 1:
            assert stored == sum(lengths)

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from search.scripted import Script, drawn
from softgaze.engines.torch_engine import TensorLogProbs, TorchDecoder
from softgaze.models import Source
from softgaze.search import SearchOptions
from softgaze.search.beam import beam_search
from softgaze.search.decoder import BLOCK, IMPOSSIBLE, MIN_LOG_PROB, ArrayLogProbs

SIZES = st.sampled_from([3, 7, BLOCK, 5 * BLOCK, 5 * BLOCK + 1, 9 * BLOCK - 1, 40 * BLOCK + 17])
both = pytest.mark.parametrize("kind", [TensorLogProbs, ArrayLogProbs])


def scores(seed, rows, vocabulary):
    return torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * 3


def chances(kind, logits):
    return kind(logits if kind is TensorLogProbs else logits.log_softmax(-1).numpy())


@both
@given(seed=st.integers(0, 2**32), sentences=st.integers(1, 3), width=st.integers(1, 5), size=SIZES, data=st.data())
def test_the_best_are_those_of_a_whole_sort(kind, seed, sentences, width, size, data):
    count = data.draw(st.integers(1, 12))
    logits = scores(seed, sentences * width, size)
    totals = scores(seed + 1, sentences, width).numpy()
    totals[0, 1:2] = IMPOSSIBLE  # a hypothesis that is not there
    ours = chances(kind, logits)
    ours.forbid(np.array([0, size - 1]))
    expected = logits.log_softmax(-1).view(sentences, width, size) + torch.from_numpy(totals)[..., None]
    expected[..., [0, size - 1]] = IMPOSSIBLE
    wanted = expected.flatten(1).sort(dim=1, descending=True).values[:, :count]
    found, places = ours.topk(totals, count)
    np.testing.assert_allclose(found, wanted.numpy(), atol=1e-5)
    for own, line, place in zip(expected.flatten(1).numpy(), found, places, strict=True):
        real = line > IMPOSSIBLE
        np.testing.assert_allclose(own[place[real]], line[real], atol=1e-5)
        assert len(set(place[real].tolist())) == real.sum()


@both
def test_what_is_forbidden_or_forced_is_all_that_changes(kind):
    logits = scores(0, 3, 9)
    before = logits.log_softmax(-1).numpy()
    ours = chances(kind, logits)
    ours.forbid_in(np.array([0, 0]), np.array([4, 5]))
    ours.force(np.array([2]), np.array([7]))
    expected = before.copy()
    expected[0, [4, 5]] = IMPOSSIBLE
    expected[2, [*range(7), 8]] = IMPOSSIBLE
    np.testing.assert_allclose(ours.array(), expected, atol=1e-6)
    assert ours.count_others(7).tolist() == [6, 8, 0]
    assert ours.count_others(4).tolist() == [7, 8, 1]


@both
def test_what_a_model_excludes_is_unlikely_but_not_impossible(kind):
    ours = chances(kind, torch.tensor([[0.0, -torch.inf, -1e30]]))
    assert ours.array().tolist() == [[0.0, MIN_LOG_PROB, MIN_LOG_PROB]]


@given(seed=st.integers(0, 2**32))
def test_one_search_finds_the_same_with_either_kind(seed):
    """The same steps, their chances once on a device and once in plain memory."""
    source = Source.of([(7,), (8, 9)])

    class Plain(TorchDecoder):
        def step(self, rows, tokens):
            return ArrayLogProbs(super().step(rows, tokens).array())

    options = SearchOptions(beam_size=3, num_hypotheses=3)
    one, other = (beam_search(decoder(Script(drawn(seed)), source), options) for decoder in (TorchDecoder, Plain))
    assert [[each.tokens for each in found] for found in one] == [[each.tokens for each in found] for found in other]


def test_rows_that_stay_are_not_reordered():
    """Greedy search copies nothing until a sentence leaves."""
    moved = []

    class Counting(TorchDecoder):
        def __setattr__(self, name, value):
            if name == "rows" and hasattr(self, "rows"):
                moved.append(value)
            super().__setattr__(name, value)

    follow = drawn(0)
    beam_search(Counting(Script(follow), Source.of([(7,), (8,), (9,)])), SearchOptions(beam_size=1))
    assert moved == sorted(set(moved), reverse=True)

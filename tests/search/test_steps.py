import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from search.scripted import Script, drawn
from softgaze.models import Source
from softgaze.search.beam import search_beams
from softgaze.search.steps import NEVER, UNLIKELY, ArrayChances
from softgaze.search.torch_steps import BLOCK, TensorChances, TorchSteps

SIZES = st.sampled_from([3, 7, BLOCK, 5 * BLOCK, 5 * BLOCK + 1, 9 * BLOCK - 1, 40 * BLOCK + 17])
both = pytest.mark.parametrize("kind", [TensorChances, ArrayChances])


def scores(seed, rows, vocabulary):
    return torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * 3


def chances(kind, logits):
    return kind(logits if kind is TensorChances else logits.log_softmax(-1).numpy())


@both
@given(seed=st.integers(0, 2**32), sentences=st.integers(1, 3), width=st.integers(1, 5), size=SIZES, data=st.data())
def test_the_best_are_those_of_a_whole_sort(kind, seed, sentences, width, size, data):
    count = data.draw(st.integers(1, 12))
    logits = scores(seed, sentences * width, size)
    totals = scores(seed + 1, sentences, width).numpy()
    totals[0, 1:2] = NEVER  # a hypothesis that is not there
    ours = chances(kind, logits)
    ours.forbid(numpy.array([0, size - 1]))
    expected = logits.log_softmax(-1).view(sentences, width, size) + torch.from_numpy(totals)[..., None]
    expected[..., [0, size - 1]] = NEVER
    wanted = expected.flatten(1).sort(dim=1, descending=True).values[:, :count]
    found, places = ours.best(totals, count)
    numpy.testing.assert_allclose(found, wanted.numpy(), atol=1e-5)
    for own, line, place in zip(expected.flatten(1).numpy(), found, places, strict=True):
        real = line > NEVER
        numpy.testing.assert_allclose(own[place[real]], line[real], atol=1e-5)
        assert len(set(place[real].tolist())) == real.sum()


@both
def test_what_is_forbidden_or_forced_is_all_that_changes(kind):
    logits = scores(0, 3, 9)
    before = logits.log_softmax(-1).numpy()
    ours = chances(kind, logits)
    ours.forbid_in(numpy.array([0, 0]), numpy.array([4, 5]))
    ours.force(numpy.array([2]), numpy.array([7]))
    expected = before.copy()
    expected[0, [4, 5]] = NEVER
    expected[2, [*range(7), 8]] = NEVER
    numpy.testing.assert_allclose(ours.array(), expected, atol=1e-6)
    assert ours.others(7).tolist() == [6, 8, 0]
    assert ours.others(4).tolist() == [7, 8, 1]


@both
def test_what_a_model_excludes_is_unlikely_but_not_impossible(kind):
    ours = chances(kind, torch.tensor([[0.0, -torch.inf, -1e30]]))
    assert ours.array().tolist() == [[0.0, UNLIKELY, UNLIKELY]]


@given(seed=st.integers(0, 2**32))
def test_one_search_finds_the_same_with_either_kind(seed):
    """The same steps, their chances once on a device and once in plain memory."""
    source = Source.of([(7,), (8, 9)])

    class Plain(TorchSteps):
        def read(self, rows, tokens):
            return ArrayChances(super().read(rows, tokens).array())

    one, other = (search_beams(steps(Script(drawn(seed)), source), 3, 3) for steps in (TorchSteps, Plain))
    assert [[each.tokens for each in found] for found in one] == [[each.tokens for each in found] for found in other]


def test_rows_that_stay_are_not_reordered():
    """Greedy search copies nothing until a sentence leaves."""
    moved = []

    class Counting(TorchSteps):
        def __setattr__(self, name, value):
            if name == "rows" and hasattr(self, "rows"):
                moved.append(value)
            super().__setattr__(name, value)

    follow = drawn(0)
    search_beams(Counting(Script(follow), Source.of([(7,), (8,), (9,)])), 1)
    assert moved == sorted(set(moved), reverse=True)

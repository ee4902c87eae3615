"""Counts and chains against what can be worked out by hand."""

import pytest
import torch
from torch import nn

from softgaze.evaluation.why.layers import (
    KERNEL,
    KINDS,
    REACH,
    Convolution,
    Recurrence,
    SelfAttention,
    WindowedAttention,
)
from softgaze.evaluation.why.operations import count, longest_chain, parts
from softgaze.nearby import near_mask

SIZES = [(48, 8), (48, 16), (144, 16), (288, 8)]  # beyond 128 positions attention takes a fused kernel


def counted(kind, length, width):
    layer, vectors = kind(width), torch.randn(1, length, width)
    with torch.no_grad():
        return parts(count(lambda: layer(vectors)))


@pytest.mark.parametrize(("length", "width"), SIZES)
def test_self_attention_multiplies_all_positions_with_each_other(length, width):
    assert counted(SelfAttention, length, width) == {
        "products with learned matrices": 8 * length * width**2,  # four of them, each addition beside a multiplication
        "products of positions with each other": 4 * length**2 * width,  # scores and contexts
    }


@pytest.mark.parametrize(("length", "width"), SIZES)
def test_windowed_attention_multiplies_each_block_with_three(length, width):
    found = counted(WindowedAttention, length, width)
    assert found["products of positions with each other"] == 4 * length * 3 * REACH * width


def test_a_window_is_counted_with_as_much_more_than_it_sees_as_is_said():
    length, width = 288, 8
    products = counted(WindowedAttention, length, width)["products of positions with each other"]
    seen = int(near_mask(length, length, REACH)[0, 0, length // 2].sum())
    assert seen == 2 * REACH + 1
    assert f"{products / (4 * length * width * seen):.2f} times as many" in " ".join(count.__doc__.split())


@pytest.mark.parametrize(("length", "width"), SIZES)
def test_recurrence_and_convolution_multiply_each_position_with_matrices(length, width):
    assert sum(counted(Recurrence, length, width).values()) == 2 * 3 * 2 * length * width**2  # three gates, x and h
    assert sum(counted(Convolution, length, width).values()) == 2 * KERNEL * 2 * length * width**2  # and its gate


def test_the_count_includes_the_way_back():
    layer, vectors = nn.Linear(4, 4), torch.randn(3, 4, requires_grad=True)
    assert sum(count(lambda: layer(vectors).sum().backward()).values()) == 3 * (2 * 3 * 4 * 4)


@pytest.mark.parametrize(("turns", "expected"), [(1, 1), (2, 2), (10, 10)])
def test_a_chain_is_as_long_as_operations_wait_for_each_other(turns, expected):
    def run(vectors):
        for _ in range(turns):
            vectors = vectors + 1
        return vectors

    assert longest_chain(run, torch.randn(3)) == expected


def test_what_runs_side_by_side_or_computes_nothing_makes_no_chain_longer():
    def run(vectors):
        many = [vectors.view(2, 2).t().exp() for _ in range(5)]
        return torch.stack(many)

    assert longest_chain(run, torch.randn(4)) == 2


def test_an_operation_in_place_counts():
    assert longest_chain(lambda vectors: vectors.exp().add_(1).tanh_(), torch.randn(4)) == 3


def test_what_does_not_depend_on_the_input_is_not_waited_for():
    def run(vectors):
        other = torch.ones(3)
        for _ in range(9):
            other = other * 2
        return vectors + other

    assert longest_chain(run, torch.randn(3)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_chain_of_a_recurrence_grows_with_the_length(kind):
    """Also past 128 positions, where attention would take a fused kernel."""
    short, middle, long = (longest_chain(kind(8), torch.randn(1, length, 8)) for length in (48, 96, 288))
    if kind is Recurrence:
        assert (middle - short) * 4 == long - middle > 0
    else:
        assert short == middle == long


@pytest.mark.parametrize("kind", KINDS)
def test_no_chain_depends_on_the_width(kind):
    assert longest_chain(kind(8), torch.randn(1, 40, 8)) == longest_chain(kind(32), torch.randn(1, 40, 32))

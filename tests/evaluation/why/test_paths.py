"""Paths that are found are those of the theory, on lengths small enough to count on fingers."""

import math

import pytest
import torch
from torch import nn

from softgaze.evaluation.why.layers import (
    KERNEL,
    KINDS,
    REACH,
    Convolution,
    DilatedConvolution,
    Layer,
    Recurrence,
    SelfAttention,
    WindowedAttention,
)
from softgaze.evaluation.why.paths import heard, longest_path

SIDE = KERNEL // 2  # how far a kernel reaches to one side


def dilated(length):
    """Who has heard, as a set of numbers: each layer reaches a kernel's width further, until it is too far."""
    known, layers, dilation = {0}, 0, 1
    while len(known) < length:
        more = {place + step for place in known for step in (-dilation, 0, dilation)} & set(range(length))
        layers, dilation = (layers + 1, dilation * KERNEL) if more > known else (layers, 1)
        known |= more
    return layers


EXPECTED = {
    SelfAttention: lambda length: 1,
    Recurrence: lambda length: length,
    Convolution: lambda length: math.ceil((length - 1) / SIDE),
    DilatedConvolution: dilated,
    WindowedAttention: lambda length: math.ceil((length - 1) / REACH),
}


@pytest.mark.parametrize("length", [2, 3, 10, 34, 50, 130])
@pytest.mark.parametrize("kind", KINDS)
def test_the_longest_path_is_that_of_the_theory(kind, length):
    torch.manual_seed(length)
    assert longest_path(kind, length) == EXPECTED[kind](length)


def test_depth_of_each_position():
    assert heard(SelfAttention, 5, 2) == [1, 1, 1, 1, 1]
    assert heard(Recurrence, 5, 2) == [None, None, 1, 2, 3]  # nobody hears of what comes after
    assert heard(Convolution, 5, 2) == [2, 1, 1, 1, 2]
    assert heard(DilatedConvolution, 9, 4) == [2, 2, 2, 1, 1, 1, 2, 2, 2]


class Deaf(Layer):
    """Each position by itself."""

    def __init__(self, width, number=0):
        super().__init__(width)
        self.alone = nn.Linear(width, width)

    def forward(self, vectors):
        return self.alone(vectors)


def test_where_nothing_is_passed_on_only_the_position_itself_hears():
    assert heard(Deaf, 4, 1) == [None, 1, None, None]


@pytest.mark.parametrize("length", [100, 300, 1000])
def test_dilated_paths_grow_with_the_logarithm(length):
    assert longest_path(DilatedConvolution, length) <= 2 * math.log(length, KERNEL) + 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not Recurrence])
def test_in_a_stack_everybody_hears_of_everybody(kind):
    assert all(None not in heard(kind, 31, start) for start in (0, 15, 30))

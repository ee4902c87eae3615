"""Layers and their measurements: counts, chains and paths equal those worked out by hand."""

import math

import pytest
import torch
from torch import nn

from softgaze.evaluation.complexity.layers import (
    KERNEL,
    LAYERS,
    WINDOW,
    ConvolutionLayer,
    DilatedConvolutionLayer,
    Layer,
    LocalAttentionLayer,
    MemoryTracker,
    RecurrentLayer,
    SelfAttentionLayer,
    arrival_depths,
    count_flops,
    group_flops,
    longest_path,
    measure_times,
    peak_bytes,
    sequential_operations,
)
from softgaze.local_attention import local_mask

SIZES = [(48, 8), (48, 16), (144, 16), (288, 8)]  # beyond 128 positions attention uses a fused kernel
FLOAT = 4


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("length", [1, 7, 40])
def test_a_layer_keeps_the_shape_of_its_input(kind, length):
    vectors = torch.randn(2, length, 8)
    assert kind(8, 1)(vectors).shape == vectors.shape


@pytest.mark.parametrize("length", [1, 2, 9])
def test_n_steps_of_a_recurrence_equal_its_forward_pass(length):
    torch.manual_seed(0)
    layer, inputs, carried = RecurrentLayer(8), torch.randn(2, length, 8), None
    for _ in range(length):
        carried = layer.step(inputs, carried)
    assert torch.allclose(carried, layer(inputs), atol=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in LAYERS if kind is not RecurrentLayer])
def test_an_application_of_a_stack_is_a_layer(kind):
    torch.manual_seed(0)
    layer, inputs, carried = kind(8), torch.randn(1, 9, 8), torch.randn(1, 9, 8)
    assert torch.equal(layer.step(inputs, None), layer(inputs))
    assert torch.equal(layer.step(inputs, carried), layer(carried))


# --- operations


def counted(kind, length, width):
    layer, vectors = kind(width), torch.randn(1, length, width)
    with torch.no_grad():
        return group_flops(count_flops(lambda: layer(vectors)))


@pytest.mark.parametrize(("length", "width"), SIZES)
def test_self_attention_multiplies_all_positions_with_each_other(length, width):
    assert counted(SelfAttentionLayer, length, width) == {
        "products with learned matrices": 8 * length * width**2,  # four of them, each addition beside a multiplication
        "products of positions with each other": 4 * length**2 * width,  # scores and contexts
    }


@pytest.mark.parametrize(("length", "width"), SIZES)
def test_windowed_attention_multiplies_each_block_with_three(length, width):
    found = counted(LocalAttentionLayer, length, width)
    assert found["products of positions with each other"] == 4 * length * 3 * WINDOW * width


def test_the_overhead_of_local_attention_is_as_documented():
    length, width = 288, 8
    products = counted(LocalAttentionLayer, length, width)["products of positions with each other"]
    seen = int(local_mask(length, length, WINDOW)[0, 0, length // 2].sum())
    assert seen == 2 * WINDOW + 1
    assert f"{products / (4 * length * width * seen):.2f} times as many" in " ".join(count_flops.__doc__.split())


@pytest.mark.parametrize(("length", "width"), SIZES)
def test_recurrence_and_convolution_multiply_each_position_with_matrices(length, width):
    assert sum(counted(RecurrentLayer, length, width).values()) == 2 * 3 * 2 * length * width**2  # three gates, x and h
    assert sum(counted(ConvolutionLayer, length, width).values()) == 2 * KERNEL * 2 * length * width**2  # and its gate


def test_the_count_includes_the_backward_pass():
    layer, vectors = nn.Linear(4, 4), torch.randn(3, 4, requires_grad=True)
    assert sum(count_flops(lambda: layer(vectors).sum().backward()).values()) == 3 * (2 * 3 * 4 * 4)


@pytest.mark.parametrize(("turns", "expected"), [(1, 1), (2, 2), (10, 10)])
def test_a_chain_is_as_long_as_operations_wait_for_each_other(turns, expected):
    def run(vectors):
        for _ in range(turns):
            vectors = vectors + 1
        return vectors

    assert sequential_operations(run, torch.randn(3)) == expected


def test_parallel_operations_and_views_do_not_lengthen_a_chain():
    def run(vectors):
        many = [vectors.view(2, 2).t().exp() for _ in range(5)]
        return torch.stack(many)

    assert sequential_operations(run, torch.randn(4)) == 2


def test_an_operation_in_place_counts():
    assert sequential_operations(lambda vectors: vectors.exp().add_(1).tanh_(), torch.randn(4)) == 3


def test_operations_independent_of_the_input_do_not_count():
    def run(vectors):
        other = torch.ones(3)
        for _ in range(9):
            other = other * 2
        return vectors + other

    assert sequential_operations(run, torch.randn(3)) == 1


@pytest.mark.parametrize("kind", LAYERS)
def test_only_the_chain_of_a_recurrence_grows_with_the_length(kind):
    """Also past 128 positions, where attention would take a fused kernel."""
    short, middle, long = (sequential_operations(kind(8), torch.randn(1, length, 8)) for length in (48, 96, 288))
    if kind is RecurrentLayer:
        assert (middle - short) * 4 == long - middle > 0
    else:
        assert short == middle == long


@pytest.mark.parametrize("kind", LAYERS)
def test_no_chain_depends_on_the_width(kind):
    assert sequential_operations(kind(8), torch.randn(1, 40, 8)) == sequential_operations(
        kind(32), torch.randn(1, 40, 32)
    )


# --- paths

SIDE = KERNEL // 2  # how far a kernel reaches to one side


def dilated(length):
    """Who has arrival_depths, as a set of numbers: each layer reaches a kernel's width further, until it is too far."""
    known, layers, dilation = {0}, 0, 1
    while len(known) < length:
        more = {place + step for place in known for step in (-dilation, 0, dilation)} & set(range(length))
        layers, dilation = (layers + 1, dilation * KERNEL) if more > known else (layers, 1)
        known |= more
    return layers


EXPECTED = {
    SelfAttentionLayer: lambda length: 1,
    RecurrentLayer: lambda length: length,
    ConvolutionLayer: lambda length: math.ceil((length - 1) / SIDE),
    DilatedConvolutionLayer: dilated,
    LocalAttentionLayer: lambda length: math.ceil((length - 1) / WINDOW),
}


@pytest.mark.parametrize("length", [2, 3, 10, 34, 50, 130])
@pytest.mark.parametrize("kind", LAYERS)
def test_the_longest_path_is_that_of_the_theory(kind, length):
    torch.manual_seed(length)
    assert longest_path(kind, length) == EXPECTED[kind](length)


def test_depth_of_each_position():
    assert arrival_depths(SelfAttentionLayer, 5, 2) == [1, 1, 1, 1, 1]
    assert arrival_depths(RecurrentLayer, 5, 2) == [None, None, 1, 2, 3]  # earlier positions never receive the signal
    assert arrival_depths(ConvolutionLayer, 5, 2) == [2, 1, 1, 1, 2]
    assert arrival_depths(DilatedConvolutionLayer, 9, 4) == [2, 2, 2, 1, 1, 1, 2, 2, 2]


class Deaf(Layer):
    """Each position by itself."""

    def __init__(self, width, number=0):
        super().__init__(width)
        self.alone = nn.Linear(width, width)

    def forward(self, vectors):
        return self.alone(vectors)


def test_without_mixing_only_the_position_itself_is_reached():
    assert arrival_depths(Deaf, 4, 1) == [None, 1, None, None]


@pytest.mark.parametrize("length", [100, 300, 1000])
def test_dilated_paths_grow_with_the_logarithm(length):
    assert longest_path(DilatedConvolutionLayer, length) <= 2 * math.log(length, KERNEL) + 1


@pytest.mark.parametrize("kind", [kind for kind in LAYERS if kind is not RecurrentLayer])
def test_a_stack_connects_all_positions(kind):
    assert all(None not in arrival_depths(kind, 31, start) for start in (0, 15, 30))


# --- time and memory


def test_memory_is_the_peak_and_not_the_sum():
    with MemoryTracker([]) as held:
        for _ in range(5):
            torch.ones(1000) + 1  # two at a time: the ones and the sum
    assert held.peak == 2 * 1000 * FLOAT
    assert held.current == 0


def test_views_count_once_and_excluded_tensors_do_not_count():
    old = torch.ones(1000)
    with MemoryTracker([old]) as held:
        kept = (old.view(10, 100).exp().t(), old[5:])
    assert held.peak == 1000 * FLOAT
    assert len(kept) == 2


class Twice(Layer):
    """Its tanh keeps its own output for the way back."""

    def forward(self, vectors):
        return vectors.tanh().tanh()


def test_a_training_pass_holds_its_saved_activations():
    vectors = torch.randn(1, 100, 10, requires_grad=True)
    kept = 2 * vectors.numel() * FLOAT
    assert kept <= peak_bytes(Twice(10), vectors) <= 3 * kept


@pytest.mark.parametrize("kind", LAYERS)
def test_peak_memory_is_reproducible(kind):
    layer, vectors = kind(8, 1), torch.randn(1, 40, 8, requires_grad=True)
    assert peak_bytes(layer, vectors) == peak_bytes(layer, vectors) > 0


def test_the_weights_of_short_attention_are_in_memory():
    """Up to 128 positions the plain path runs: the memory must hold the weights of all heads."""
    assert peak_bytes(SelfAttentionLayer(8), torch.randn(1, 128, 8, requires_grad=True)) > 4 * 128**2 * FLOAT


def test_measurements_take_turns(monkeypatch):
    monkeypatch.setattr("softgaze.evaluation.complexity.layers.MIN_SECONDS", 0.0)
    order = []
    found = measure_times([lambda: order.append("a"), lambda: order.append("b")], 3, lambda: order.append("."))
    assert order == ["a", "b", *["a", ".", "b", "."] * 3]
    assert [len(times) for times in found] == [3, 3]

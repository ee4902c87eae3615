"""The layer types under comparison, their theoretical complexity, and the measurements of one layer.

Each layer is the one that the models are built of, (B, N, D) -> (B, N, D).
"""

import math
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from softgaze.attention import MultiHeadAttention
from softgaze.local_attention import LocalMultiHeadAttention
from softgaze.models.conv import ConvEncoderLayer
from softgaze.models.rnn import GRU

HEADS, KERNEL, WINDOW = 4, 3, 16
PATH_WIDTH = 2 * HEADS  # of vectors in `arrival_depths`; no path depends on the width
ROUNDING = 1e-9
MIN_SECONDS = 0.004  # a shorter training pass is repeated for this long

# Operators of the FLOP counter, by the factors of their products.
FLOP_KINDS = {
    "addmm": "products with learned matrices",
    "mm": "products with learned matrices",
    "bmm": "products of positions with each other",
    "convolution": "convolution",
}
# Views that torch does not mark as such.
UNMARKED_VIEWS = {torch.ops.aten._unsafe_view, torch.ops.aten.unsafe_split}


class Law(NamedTuple):
    """A complexity: its formula, and its value for length n and width d."""

    formula: str
    value: Callable[[int, int], float]


class Theory(NamedTuple):
    """A row of Vaswani's table, and the memory usually given with it."""

    operations: Law
    sequential: Law
    path: Law
    memory: Law


CONSTANT = Law("1", lambda n, d: 1)
LENGTH = Law("n", lambda n, d: n)
VECTORS = Law("n·d", lambda n, d: n * d)


class Layer(nn.Module):
    """A layer with `depth` layers below it in a stack."""

    name: ClassVar[str]
    theory: ClassVar[Theory]

    def __init__(self, width: int, depth: int = 0) -> None:
        super().__init__()

    def step(self, inputs: Tensor, carried: Tensor | None) -> Tensor:
        """Apply the unrolled layer once, so that information moves by one hop.

        `carried` is the result of the previous application, None at first: here, the input of the next layer.
        """
        outputs: Tensor = self(inputs if carried is None else carried)
        return outputs


class SelfAttentionLayer(Layer):
    """Every position attends to every position."""

    name = "self-attention"
    theory = Theory(Law("n²·d", lambda n, d: n**2 * d), CONSTANT, CONSTANT, Law("h·n²", lambda n, d: HEADS * n**2))

    def __init__(self, width: int, depth: int = 0) -> None:
        super().__init__(width)
        self.attention = self.make_attention(width)

    def make_attention(self, width: int) -> MultiHeadAttention:
        """Build the attention, without position embeddings."""
        return MultiHeadAttention(width, HEADS)

    def forward(self, vectors: Tensor) -> Tensor:
        context: Tensor = self.attention(vectors, self.attention.project_kv(vectors)).context
        return context


class LocalAttentionLayer(SelfAttentionLayer):
    """Every position attends to its neighbours on either side."""

    name = "local self-attention"
    theory = Theory(Law("r·n·d", lambda n, d: WINDOW * n * d), CONSTANT, Law("n/r", lambda n, d: n / WINDOW), VECTORS)

    def make_attention(self, width: int) -> MultiHeadAttention:
        return LocalMultiHeadAttention(width, HEADS, window_size=WINDOW)


class RecurrentLayer(Layer):
    """Every position reads the state of the previous one."""

    name = "recurrence"
    theory = Theory(Law("n·d²", lambda n, d: n * d**2), LENGTH, LENGTH, VECTORS)

    def __init__(self, width: int, depth: int = 0) -> None:
        super().__init__(width)
        self.cell = GRU(width, width)

    def forward(self, vectors: Tensor) -> Tensor:
        batch, _, width = vectors.shape
        outputs: Tensor = self.cell(vectors, (vectors.new_zeros(batch, 1, width),))[0]
        return outputs

    def step(self, inputs: Tensor, carried: Tensor | None) -> Tensor:
        """Apply the cell once at every position, to its input and the carried state of its left neighbour.

        After N applications all positions have the state that `forward` returns.
        """
        carried = torch.zeros_like(inputs) if carried is None else carried
        previous = F.pad(carried[:, :-1], (0, 0, 1, 0))
        words, states = (vectors.flatten(0, 1)[:, None] for vectors in (inputs, previous))  # (B·N, 1, D)
        outputs: Tensor = self.cell(words, (states,))[0]
        return outputs.view_as(inputs)


class ConvolutionLayer(Layer):
    """Every position reads its nearest neighbours."""

    name = "convolution"
    theory = Theory(
        Law("k·n·d²", lambda n, d: KERNEL * n * d**2), CONSTANT, Law("n/k", lambda n, d: n / KERNEL), VECTORS
    )
    dilation = 1

    def __init__(self, width: int, depth: int = 0) -> None:
        super().__init__(width)
        self.convolution = ConvEncoderLayer(width, KERNEL, self.dilation**depth, dropout=0.0)

    def forward(self, vectors: Tensor) -> Tensor:
        outputs: Tensor = self.convolution(vectors, torch.ones_like(vectors[..., :1]))
        return outputs


class DilatedConvolutionLayer(ConvolutionLayer):
    """The distance between the inputs of a kernel grows by a factor with each layer."""

    name = "convolution, dilated"
    theory = ConvolutionLayer.theory._replace(path=Law("log_k n", lambda n, d: math.log(n, KERNEL)))
    dilation = KERNEL


LAYERS: tuple[type[Layer], ...] = (
    SelfAttentionLayer,
    RecurrentLayer,
    ConvolutionLayer,
    DilatedConvolutionLayer,
    LocalAttentionLayer,
)


# --- operations -------------------------------------------------------------------------------------------------


def count_flops(run: Callable[[], object]) -> dict[str, int]:
    """Count multiplications and additions of matrix products, by operator.

    Attention uses the plain kernel, since the counter does not see into fused ones. Local attention is counted in the
    blocks of its implementation: 3·r keys for each query, of which 2·r + 1 are in the window, so 1.45 times as many as
    needed for r = 16.
    """
    counter = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), counter:
        run()
    return {packet.__name__: flops for packet, flops in counter.get_flop_counts()["Global"].items()}


def group_flops(flops: dict[str, int]) -> dict[str, int]:
    """Sum the counts of `count_flops` by the kind of product."""
    groups: Counter[str] = Counter()
    for operator, count in flops.items():
        groups[FLOP_KINDS.get(operator, operator)] += count
    return dict(groups)


@torch.no_grad()
def sequential_operations(run: Callable[[Tensor], Tensor], vectors: Tensor) -> int:
    """Return the length of the longest chain of operations from input to output, each waiting for the previous one.

    The chain is found in the graph of the run. torch's GRU on a CPU is a loop over cells, which the graph shows;
    attention uses the plain kernel.
    """
    depths = _DepthTracker(vectors)
    with sdpa_kernel(SDPBackend.MATH), depths:
        return depths.depths[id(run(vectors))]


class _DepthTracker(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Track how many operations lie between the input and each tensor that depends on it."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.depths = {id(vectors): 0}
        self.alive = [vectors]  # so that no id is reused

    def __torch_dispatch__(self, operator: OpOverload, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        depths = [self.depths[id(tensor)] for tensor in _tensors((args, kwargs)) if id(tensor) in self.depths]
        result = operator(*args, **(kwargs or {}))
        if depths:
            is_view = operator.is_view or operator.overloadpacket in UNMARKED_VIEWS
            for tensor in _tensors(result):
                self.depths[id(tensor)] = max(depths) + (not is_view)
                self.alive.append(tensor)
        return result


def _tensors(tree: Any) -> Iterable[Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor))


# --- path length ------------------------------------------------------------------------------------------------


def longest_path(layer: type[Layer], length: int) -> int:
    """Return the number of applications until every reachable position depends on the first one."""
    return max(depth for depth in arrival_depths(layer, length, 0) if depth is not None)


def arrival_depths(layer: type[Layer], length: int, start: int) -> list[int | None]:
    """Return for each position after how many applications it depends on the input at `start`; None if never.

    Applications are layers of a stack, or cells of a recurrence. A layer that reaches no new position, because its
    dilation is larger than the sequence, is skipped, and the stack starts again with the first layer.
    """
    depths: list[int | None] = [None] * length
    applied = depth = 0
    while True:
        reached = torch.tensor([arrival is not None for arrival in depths])
        new = _reached_by(layer(PATH_WIDTH, depth).double(), reached, start) & ~reached
        if bool(new.any()):
            applied, depth = applied + 1, depth + 1
            depths = [applied if is_new else arrival for is_new, arrival in zip(new.tolist(), depths, strict=True)]
        elif depth:
            depth = 0
        else:
            return depths


@torch.no_grad()
def _reached_by(layer: Layer, reached: Tensor, start: int) -> Tensor:
    """Return the positions (N,) that one application makes depend on `start`, given those that already do.

    The reached positions are changed, all others drawn again, so that no signal is too weak to be seen.
    """

    def changed(vectors: Tensor, positions: Tensor) -> Tensor:
        return torch.where(positions[:, None], torch.randn_like(vectors), vectors)[None]

    inputs = torch.randn(len(reached), PATH_WIDTH, dtype=torch.double)
    carried = torch.randn_like(inputs) if bool(reached.any()) else None
    is_start = torch.arange(len(reached)) == start
    other = layer.step(changed(inputs, is_start), None if carried is None else changed(carried, reached))
    same = layer.step(inputs[None], None if carried is None else carried[None])
    return ((other - same)[0].abs() > ROUNDING).any(-1)


# --- time and memory --------------------------------------------------------------------------------------------


def training_pass(layer: Layer, vectors: Tensor) -> None:
    """Run forward, and backward to the input and the parameters."""
    layer(vectors).sum().backward()


def measure_times(
    passes: Sequence[Callable[[], None]], rounds: int, advance: Callable[[], object]
) -> list[list[float]]:
    """Return seconds of each pass in every round; passes take turns, so that load on the machine affects all."""
    times: list[list[float]] = [[] for _ in passes]
    for run in passes:
        run()  # warm-up
    for _ in range(rounds):
        for pass_times, run in zip(times, passes, strict=True):
            repeats: list[float] = []
            while not repeats or sum(repeats) < MIN_SECONDS:
                start = time.perf_counter()
                run()
                repeats.append(time.perf_counter() - start)
            pass_times.append(median(repeats))
            advance()
    return times


def peak_bytes(layer: Layer, vectors: Tensor) -> int:
    """Return the peak memory of a training pass beyond input, parameters and their gradients.

    Memory that a kernel allocates and frees internally is not seen.
    """
    training_pass(layer, vectors)  # creates the gradients
    owned = [vectors, *layer.parameters()]
    tracker = MemoryTracker([*owned, *(tensor.grad for tensor in owned if tensor.grad is not None)])
    with tracker:
        training_pass(layer, vectors)
    return tracker.peak


class MemoryTracker(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sum the memory of all live tensors, except the given ones; views share their storage."""

    def __init__(self, excluded: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.current: int = 0
        self.peak: int = 0
        self.known = {tensor.untyped_storage()._cdata for tensor in excluded}

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = operator(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            storage = tensor.untyped_storage()
            if storage._cdata not in self.known:
                self.known.add(storage._cdata)
                self.current += storage.nbytes()
                self.peak = max(self.peak, self.current)
                weakref.finalize(storage, self._free, storage._cdata, storage.nbytes())
        return result

    def _free(self, address: int, size: int) -> None:
        self.known.discard(address)
        self.current -= size

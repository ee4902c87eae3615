"""What a computation costs: operations counted while it runs, and the longest chain of them that must run in turn."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

# What the counter calls a product, and what it is a product of.
PARTS = {
    "addmm": "products with learned matrices",
    "mm": "products with learned matrices",
    "bmm": "products of positions with each other",
    "convolution": "convolution",
}
# Not marked as views, since nobody may write to what they give; they compute nothing all the same.
UNMARKED_VIEWS = {torch.ops.aten._unsafe_view, torch.ops.aten.unsafe_split}


def count(run: Callable[[], object]) -> dict[str, int]:
    """Multiplications and additions of a run, in matrix products alone, by the operator that did them.

    Attention takes the plain path, whose products the counter sees; inside a fused kernel it is blind. So the count
    belongs to the layer, not to the kernel: what a kernel computes twice does not count twice. A window is counted in
    the blocks that the layer itself cuts it into: 3·reach keys for each query, of which 2·reach + 1 are in the window,
    so 1.45 times as many as it has at a reach of 16, and close to 1.5 at any that is longer.
    """
    counter = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), counter:
        run()
    return {packet.__name__: number for packet, number in counter.get_flop_counts()["Global"].items()}


def parts(counted: dict[str, int]) -> dict[str, int]:
    """The same by what is multiplied with what."""
    found: Counter[str] = Counter()
    for operator, number in counted.items():
        found[PARTS.get(operator, operator)] += number
    return dict(found)


@torch.no_grad()
def longest_chain(run: Callable[[Tensor], Tensor], vectors: Tensor) -> int:
    """How many operations must run one after another, each waiting for the one before, to get from input to output.

    Found in the graph of the run itself. torch's GRU on a CPU is a loop over cells, which the graph shows; attention
    takes the plain path.
    """
    chain = Chain(vectors)
    with sdpa_kernel(SDPBackend.MATH), chain:
        return chain.depth(run(vectors))


class Chain(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Knows of every tensor how many operations lie between the input and it; what is no part of that has no depth."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.depths = {id(vectors): 0}
        self.kept = [vectors]  # so that no number of a tensor is given to another

    def __torch_dispatch__(self, operator: OpOverload, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator; what it gives is one deeper than the deepest it reads. A view is no operation."""
        depths = [self.depths[id(each)] for each in tensors((args, kwargs)) if id(each) in self.depths]
        result = operator(*args, **(kwargs or {}))
        if depths:
            is_view = operator.is_view or operator.overloadpacket in UNMARKED_VIEWS
            for each in tensors(result):
                self.depths[id(each)] = max(depths) + (not is_view)
                self.kept.append(each)
        return result

    def depth(self, tensor: Tensor) -> int:
        """Of what the run gave."""
        return self.depths[id(tensor)]


def tensors(tree: Any) -> Iterable[Tensor]:
    """Those anywhere in arguments or results."""
    return (each for each in tree_leaves(tree) if isinstance(each, Tensor))

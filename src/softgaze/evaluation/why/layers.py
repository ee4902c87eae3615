"""The kinds of layer that are compared, each the one our models are made of, and what theory says of it.

Every layer is (B, N, D) -> (B, N, D). Nothing here counts or measures.
"""

import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.attention import MultiHead
from softgaze.models.conv import EncoderLayer
from softgaze.models.rnn import GRU
from softgaze.nearby import NearbyHeads

HEADS, KERNEL, REACH = 4, 3, 16


class Law(NamedTuple):
    """How something should grow: as it is written, and as a function of length and width."""

    formula: str
    value: Callable[[int, int], float]


class Theory(NamedTuple):
    """A row of the paper's table, and the memory that the usual telling adds to it."""

    operations: Law
    sequential: Law
    path: Law
    memory: Law


CONSTANT = Law("1", lambda n, d: 1)
LENGTH = Law("n", lambda n, d: n)
VECTORS = Law("n·d", lambda n, d: n * d)
CONVOLVED = Law("k·n·d²", lambda n, d: KERNEL * n * d**2)


class Layer(nn.Module):
    """One layer of a stack, `number` of them below it."""

    name: ClassVar[str]
    theory: ClassVar[Theory]

    def __init__(self, width: int, number: int = 0) -> None:
        super().__init__()

    def step(self, inputs: Tensor, carried: Tensor | None) -> Tensor:
        """The unrolled form: one application, after which every position has read what it reaches in one go.

        `carried` is what the application before left, None at the first; here it is what the layer above reads.
        """
        stepped: Tensor = self(inputs if carried is None else carried)
        return stepped


class SelfAttention(Layer):
    """Every position looks at every other."""

    name = "self-attention"
    theory = Theory(Law("n²·d", lambda n, d: n**2 * d), CONSTANT, CONSTANT, Law("h·n²", lambda n, d: HEADS * n**2))

    def __init__(self, width: int, number: int = 0) -> None:
        super().__init__(width)
        self.heads = self.make_heads(width)

    def make_heads(self, width: int) -> MultiHead:
        """Without positions: they are another layer's."""
        return MultiHead(width, HEADS)

    def forward(self, vectors: Tensor) -> Tensor:
        """The sequence is its own memory."""
        context: Tensor = self.heads(vectors, self.heads.remember(vectors)).context
        return context


class WindowedAttention(SelfAttention):
    """Every position looks at its neighbours on either side."""

    name = "windowed self-attention"
    theory = Theory(
        Law("r·n·d", lambda n, d: REACH * n * d),
        CONSTANT,
        Law("n/r", lambda n, d: n / REACH),
        VECTORS,
    )

    def make_heads(self, width: int) -> MultiHead:
        """In blocks, wherever that saves something."""
        return NearbyHeads(width, HEADS, reach=REACH)


class Recurrence(Layer):
    """Every position reads the state that the one before it left."""

    name = "recurrence"
    theory = Theory(Law("n·d²", lambda n, d: n * d**2), LENGTH, LENGTH, VECTORS)

    def __init__(self, width: int, number: int = 0) -> None:
        super().__init__(width)
        self.cell = GRU(width, width)

    def forward(self, vectors: Tensor) -> Tensor:
        """All positions in one call, from a state of zeros."""
        batch, _, width = vectors.shape
        outputs: Tensor = self.cell(vectors, (vectors.new_zeros(batch, 1, width),))[0]
        return outputs

    def step(self, inputs: Tensor, carried: Tensor | None) -> Tensor:
        """One turn of the loop that a call hides: each position reads its word and the state its neighbour has by now.

        After as many turns as there are positions, all have the state that the call gives them.
        """
        carried = torch.zeros_like(inputs) if carried is None else carried
        before = F.pad(carried[:, :-1], (0, 0, 1, 0))
        words, states = (each.flatten(0, 1)[:, None] for each in (inputs, before))  # (B·N, 1, D)
        outputs: Tensor = self.cell(words, (states,))[0]
        return outputs.view_as(inputs)


class Convolution(Layer):
    """Every position reads its nearest neighbours."""

    name = "convolution"
    theory = Theory(CONVOLVED, CONSTANT, Law("n/k", lambda n, d: n / KERNEL), VECTORS)
    dilation = 1

    def __init__(self, width: int, number: int = 0) -> None:
        super().__init__(width)
        self.convolution = EncoderLayer(width, KERNEL, self.dilation**number, dropout=0.0)

    def forward(self, vectors: Tensor) -> Tensor:
        """Nothing is padding."""
        convolved: Tensor = self.convolution(vectors, torch.ones_like(vectors[..., :1]))
        return convolved


class DilatedConvolution(Convolution):
    """Each layer reads a kernel's width further than the one below it."""

    name = "convolution, dilated"
    theory = Convolution.theory._replace(path=Law("log_k n", lambda n, d: math.log(n, KERNEL)))
    dilation = KERNEL


KINDS: tuple[type[Layer], ...] = (SelfAttention, Recurrence, Convolution, DilatedConvolution, WindowedAttention)

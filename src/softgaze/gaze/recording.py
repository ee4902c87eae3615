"""Everything a model looked at while it wrote one text: all layers × heads of every kind of attention. Numbers only.

Letters: L layers, H heads, Q queries, K keys. A decoder that writes T tokens has T + 1 queries: the last predicts END.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import numpy.typing

from softgaze.data.photo import Photo
from softgaze.gaze.view import KINDS, View
from softgaze.gaze.words import Side

Array = numpy.typing.NDArray[numpy.float32]
Matrix = numpy.typing.NDArray[numpy.float64]
Flags = numpy.typing.NDArray[numpy.bool_]

OWN_SHARE = 0.5  # in a rollout, how much of a vector is itself (its residual) and not what it looked at


@dataclass(frozen=True, eq=False)
class Stack:
    """One kind of attention."""

    weights: Array  # (L, H, Q, K)
    norms: Array  # (L, H, K) lengths of the value vectors

    def __post_init__(self) -> None:
        layers, heads, _, keys = self.weights.shape
        if self.norms.shape != (layers, heads, keys):
            raise ValueError(f"weights of {self.weights.shape} do not fit lengths of {self.norms.shape}")


@dataclass(frozen=True, eq=False)
class Part:
    """What was read and written in one go; kinds of attention a model does not have are None."""

    cross: Stack | None = None
    encoder: Stack | None = None
    decoder: Stack | None = None

    def stack(self, kind: str) -> Stack:
        """The attention of a kind, which must be there."""
        found: Stack | None = getattr(self, kind)
        if found is None:
            raise ValueError(f"this model has no {KINDS[kind]}")
        return found

    def map(self, view: View) -> Matrix:
        """Weights (Q, K) of a view; rows are steps, columns pieces."""
        if view.measure == "rollout":
            return rollout(self, view.kind)
        stack = self.stack(view.kind)
        layers, heads = (
            chosen(view.layer, "layer", len(stack.weights)),
            chosen(view.head, "head", stack.weights.shape[1]),
        )
        weights = stack.weights[layers, heads].astype(numpy.float64)
        if view.measure == "norms":
            return shares((weights * stack.norms[layers, heads, None]).mean(axis=(0, 1)))
        mean: Matrix = weights.mean(axis=(0, 1))
        return mean


@dataclass(frozen=True, eq=False)
class Recording:
    """A text of one or more parts, which saw nothing of each other."""

    source: Side
    target: Side
    parts: tuple[Part, ...]
    note: str = ""  # what was changed while it was written, for every figure
    photo: Photo | None = None  # what the grid of the source lies on
    chances: tuple[float, ...] = ()  # the probability of each piece of the target; none where it is not known

    def __post_init__(self) -> None:
        if self.chances and len(self.chances) != len(self.target.pieces):
            raise ValueError(f"{len(self.chances)} probabilities are not those of {len(self.target.pieces)} outputs")
        sides = {"cross": (self.target, self.source), "encoder": (self.source,) * 2, "decoder": (self.target,) * 2}
        for kind, (rows, columns) in sides.items():
            shapes = [part.stack(kind).weights.shape[2:] for part in self.parts if getattr(part, kind) is not None]
            found = tuple(sum(sizes) for sizes in zip(*shapes, strict=True))
            if shapes and found != (len(rows.pieces), len(columns.pieces)):
                wanted = f"{len(rows.pieces)} outputs × {len(columns.pieces)} inputs"
                raise ValueError(f"weights of {found} do not fit {wanted} ({kind})")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of attention there are."""
        return tuple(kind for kind in KINDS if self.parts and getattr(self.parts[0], kind) is not None)

    def size(self, kind: str) -> tuple[int, int]:
        """(layers, heads) of a kind."""
        layers, heads = self.parts[0].stack(kind).weights.shape[:2]
        return layers, heads

    def map(self, view: View) -> Matrix:
        """The maps of all parts, one below and right of the other; nobody looked at another part."""
        return along_the_diagonal([part.map(view) for part in self.parts])


def chosen(number: int | None, name: str, count: int) -> slice:
    """One layer or head, or all of them."""
    if number is None:
        return slice(None)
    if number >= count:
        raise ValueError(f"there is no {name} {number}: they are counted from 0 to {count - 1}")
    return slice(number, number + 1)


def shares(weights: Matrix) -> Matrix:
    """Rows that sum to 1; a row that looked nowhere stays zero."""
    totals = weights.sum(axis=-1, keepdims=True)
    divided: Matrix = weights / numpy.where(totals > 0, totals, 1.0)
    return divided


def along_the_diagonal(blocks: Sequence[Matrix], empty: float = 0.0) -> Matrix:
    """(ΣQ, ΣK), `empty` outside the blocks."""
    height, width = (sum(block.shape[axis] for block in blocks) for axis in (0, 1))
    whole = numpy.full((height, width), empty)
    row = column = 0
    for block in blocks:
        whole[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return whole


# --- rollout (Abnar & Zuidema 2020), carried over to decoders that also look at a source ------------------------


def rollout(part: Part, kind: str) -> Matrix:
    """How much of each vector comes from each input, if every layer keeps half and takes half from where it looks.

    A decoder's vector is a share of source and target inputs; for "cross" only the source's is shown, summing to 1.
    """
    if kind != "cross":
        return through(means(part.stack(kind)))
    read = through(means(part.encoder)) if part.encoder else numpy.eye(part.stack("cross").weights.shape[-1])
    looks = means(part.stack("cross"))
    own = means(part.decoder) if part.decoder else [None] * len(looks)
    seen = numpy.zeros(looks[0].shape)  # (Q, K) what each step has of the source so far
    for self_look, look in zip(own, looks, strict=True):
        if self_look is not None:
            seen = mixed(seen, self_look @ seen)
        seen = mixed(seen, look @ read)
    return shares(seen)


def means(stack: Stack) -> list[Any]:
    """Each layer's mean of heads, (Q, K)."""
    return [layer.mean(axis=0).astype(numpy.float64) for layer in stack.weights]


def through(layers: Sequence[Matrix]) -> Matrix:
    """Self-attention from the first layer to the last."""
    seen = numpy.eye(layers[0].shape[-1])
    for look in layers:
        seen = mixed(seen, look @ seen)
    return seen


def mixed(own: Matrix, looked: Matrix) -> Matrix:
    """A vector after its residual."""
    return OWN_SHARE * own + (1 - OWN_SHARE) * looked

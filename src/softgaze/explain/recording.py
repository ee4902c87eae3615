"""The recorded attention of one translation, all layers and heads, and which map of it is shown.

Shapes: L layers, H heads, Q queries, K keys. A decoder that writes T tokens has T + 1 queries: the last predicts EOS.
"""

from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing

from softgaze.data.images import Photo
from softgaze.errors import DataError, pick
from softgaze.explain.word_spans import TokenizedText

Array = np.typing.NDArray[np.float32]
Matrix = np.typing.NDArray[np.float64]
Flags = np.typing.NDArray[np.bool_]

RESIDUAL_SHARE = 0.5  # in a rollout, the share of a layer's output that comes from its residual connection

KINDS = {
    "cross": "cross-attention",
    "encoder": "self-attention of the encoder",
    "decoder": "self-attention of the decoder",
}
# A decoder step reads one word and predicts the next, so its row can be labelled with either. Papers differ.
ROWS = {"predicting": "used to predict its word", "reading": "after reading its word"}
MEASURES = {"weights": "weights", "norms": "weights × value norms", "rollout": "attention rollout through all layers"}
UNITS = {"words": "words with their punctuation", "subwords": "subwords"}
BY_GUIDING = "the alignments this head was guided by; agreement with occlusion"
BY_TOOLKIT = "the head that its toolkit trains on alignments"  # of an imported model, before any measurement
BY_ENTROPY = "the layer of the lowest entropy in this sentence"  # of a model without any selection
LINKED = "words without attached punctuation"  # the unit of alignments in every view


class HeadSelector(NamedTuple):
    """Heads of one kind of attention; None selects every layer, or every head."""

    kind: str = "cross"
    layer: int | None = None
    head: int | None = None


# --- which map is shown -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """One map of a recording. Layers and heads are counted from 0; None is the mean of all."""

    kind: str = "cross"
    layer: int | None = None
    head: int | None = None
    rows: str = "predicting"
    measure: str = "weights"
    unit: str = "words"

    def __post_init__(self) -> None:
        for name, table in (("kind", KINDS), ("rows", ROWS), ("measure", MEASURES), ("unit", UNITS)):
            pick(name, getattr(self, name), table)
        for name in ("layer", "head"):
            index = getattr(self, name)
            if index is not None and (not isinstance(index, int) or isinstance(index, bool) or index < 0):
                raise ValueError(f"{name} must be an integer of at least 0, or None for the mean of all, got {index!r}")

    @property
    def is_shifted(self) -> bool:
        """Whether the row of a word is the step after the one that predicted it; an encoder has no such steps."""
        return self.rows == "reading" and self.kind != "encoder"

    def describe(self, layers: int, heads: int, unit: str | None = None) -> str:
        """Describe the map for a caption; `unit` replaces the unit of the view."""
        parts = [KINDS[self.kind]]
        if self.measure != "rollout":
            for name, index, count in (("layer", self.layer, layers), ("head", self.head, heads)):
                one = f"mean of {count} {name}s" if index is None else f"{name} {index} of {count} (from 0)"
                parts.append(f"one {name}" if count == 1 else one)
        rows = ROWS["reading" if self.kind == "encoder" else self.rows]
        parts += [MEASURES[self.measure], unit or UNITS[self.unit]]
        return f"{', '.join(parts)}; each row is the attention {rows}"


@dataclass(frozen=True)
class SelectedMap:
    """The map that a measurement selected for a model, and its score."""

    view: View
    score: float
    by: str  # the criterion
    sentences: int  # sample size

    def describe(self) -> str:
        """Describe the selection for a caption."""
        if not self.sentences:
            return f"selected as {self.by}; not measured"
        return f"selected by {self.by}: {self.score:.2f} on {self.sentences} sentences"

    def to_dict(self) -> dict[str, Any]:
        """Return a flat record for a bundle and for JSON."""
        return {**asdict(self.view), "score": self.score, "by": self.by, "sentences": self.sentences}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> "SelectedMap":
        """Read a record of `to_dict`; other keys are ignored."""
        try:
            return cls(cls.view_of(stored), float(stored["score"]), str(stored["by"]), int(stored["sentences"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"the stored selection of an attention map is invalid: {error}") from error

    @staticmethod
    def view_of(stored: dict[str, Any]) -> View:
        """Read the view of a record."""
        return View(**{field.name: stored[field.name] for field in fields(View)})


# --- the recording ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AttentionStack:
    """One kind of attention, all layers and heads."""

    weights: Array  # (L, H, Q, K)
    norms: Array  # (L, H, K) norms of the value vectors

    def __post_init__(self) -> None:
        layers, heads, _, keys = self.weights.shape
        if self.norms.shape != (layers, heads, keys):
            raise ValueError(
                f"weights of shape {self.weights.shape} need value norms of shape {(layers, heads, keys)}, "
                f"got {self.norms.shape}"
            )


@dataclass(frozen=True, eq=False)
class PartAttention:
    """The attention of one part of a text; a kind the model does not have is None."""

    cross: AttentionStack | None = None
    encoder: AttentionStack | None = None
    decoder: AttentionStack | None = None

    def stack(self, kind: str) -> AttentionStack:
        """Return one kind of attention, or raise if the model does not have it."""
        stack: AttentionStack | None = getattr(self, kind)
        if stack is None:
            raise ValueError(f"this model has no {KINDS[kind]}")
        return stack

    def map(self, view: View) -> Matrix:
        """Return the weights (Q, K) of a view, one row for each token step."""
        if view.measure == "rollout":
            return rollout(self, view.kind)
        stack = self.stack(view.kind)
        selected = []
        for name, index, count in zip(("layer", "head"), (view.layer, view.head), stack.weights.shape[:2], strict=True):
            if index is not None and index >= count:
                raise ValueError(f"there is no {name} {index}: this model has {name}s 0 to {count - 1}")
            selected.append(slice(None) if index is None else slice(index, index + 1))
        layers, heads = selected
        weights = stack.weights[layers, heads].astype(np.float64)
        if view.measure == "norms":
            return normalize_rows((weights * stack.norms[layers, heads, None]).mean(axis=(0, 1)))
        mean: Matrix = weights.mean(axis=(0, 1))
        return mean


@dataclass(frozen=True, eq=False)
class Recording:
    """The attention of one text and its translation. Parts of a long text are independent of each other."""

    source: TokenizedText
    target: TokenizedText
    parts: tuple[PartAttention, ...]
    note: str = ""  # interventions, or the engine that recorded; shown in every caption
    photo: Photo | None = None  # the image under the grid of the source
    token_probs: tuple[float, ...] = ()  # probability of each target token; empty if unknown
    attribution: str = ""  # the method, if the weights are contributions to each word instead of attention

    def __post_init__(self) -> None:
        if self.token_probs and len(self.token_probs) != len(self.target.tokens):
            raise ValueError(
                f"expected {len(self.target.tokens)} token probabilities, one for each target token, "
                f"got {len(self.token_probs)}"
            )
        sides = {"cross": (self.target, self.source), "encoder": (self.source,) * 2, "decoder": (self.target,) * 2}
        for kind, (queries, keys) in sides.items():
            shapes = [part.stack(kind).weights.shape[2:] for part in self.parts if getattr(part, kind) is not None]
            total = tuple(sum(sizes) for sizes in zip(*shapes, strict=True))
            expected = len(queries.tokens), len(keys.tokens)
            if shapes and total != expected:
                raise ValueError(
                    f"expected {kind} weights for {expected[0]} queries × {expected[1]} keys, "
                    f"got {total[0]} × {total[1]}"
                )

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind for kind in KINDS if self.parts and getattr(self.parts[0], kind) is not None)

    def size(self, kind: str) -> tuple[int, int]:
        layers, heads = self.parts[0].stack(kind).weights.shape[:2]
        return layers, heads

    def map(self, view: View) -> Matrix:
        """Return the token map of a view: the maps of all parts along the diagonal."""
        blocks = [part.map(view) for part in self.parts]
        matrix = np.zeros([sum(block.shape[axis] for block in blocks) for axis in (0, 1)])  # (ΣQ, ΣK)
        row = column = 0
        for block in blocks:
            height, width = block.shape
            matrix[row : row + height, column : column + width] = block
            row, column = row + height, column + width
        return matrix


def normalize_rows(weights: Matrix) -> Matrix:
    """Scale rows to sum to 1; a row of zeros stays zero."""
    totals = weights.sum(axis=-1, keepdims=True)
    normalized: Matrix = weights / np.where(totals > 0, totals, 1.0)
    return normalized


# --- rollout (Abnar & Zuidema 2020), extended to decoders with cross-attention ----------------------------------


def rollout(part: PartAttention, kind: str) -> Matrix:
    """Return the share of each input in each output vector, if every layer keeps half of its input (the residual).

    A decoder vector mixes source and target inputs; for "cross" only the source share is returned, rows sum to 1.
    """

    def head_means(stack: AttentionStack) -> list[Any]:
        return [layer.mean(axis=0).astype(np.float64) for layer in stack.weights]  # each (Q, K)

    def mix(residual: Matrix, attended: Matrix) -> Matrix:
        return RESIDUAL_SHARE * residual + (1 - RESIDUAL_SHARE) * attended

    def self_rollout(stack: AttentionStack) -> Matrix:
        shares = np.eye(stack.weights.shape[-1])
        for weights in head_means(stack):
            shares = mix(shares, weights @ shares)
        return shares

    if kind != "cross":
        return self_rollout(part.stack(kind))
    cross = head_means(part.stack("cross"))
    encoded = self_rollout(part.encoder) if part.encoder else np.eye(cross[0].shape[-1])
    decoder = head_means(part.decoder) if part.decoder else [None] * len(cross)
    shares = np.zeros(cross[0].shape)  # (Q, K) of the source in each decoder vector
    for self_weights, cross_weights in zip(decoder, cross, strict=True):
        if self_weights is not None:
            shares = mix(shares, self_weights @ shares)
        shares = mix(shares, cross_weights @ encoded)
    return normalize_rows(shares)

"""Cross-entropy with label smoothing (Szegedy 2016), over real tokens only."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy
import torch
import torch.nn.functional as F
from torch import Tensor

from softgaze.data.batches import Batch
from softgaze.data.shards import Rows, Shards
from softgaze.models.base import Seq2Seq, Source, Watch
from softgaze.speed import is_fast
from softgaze.symbols import BEGIN, END, PAD

LOGITS = 2**23  # held at once: 32 MB; fewer make the products slower, more only take memory


class Links(NamedTuple):
    """Which pieces mean each other, in a batch."""

    places: tuple[Tensor, Tensor, Tensor]  # each (N,): the row of the batch, the target piece, the source piece
    shares: Tensor  # (N,) of the target piece's weight that belongs there; those of one target piece sum to 1
    pieces: int  # target pieces that have links


class Pairs(NamedTuple):
    """A batch as tensors."""

    source: Source
    target: Tensor  # (B, T) BEGIN and the sentence: what the decoder reads
    wanted: Tensor  # (B, T) the sentence and END: what it should say
    tokens: int  # real tokens in `wanted`
    links: Links | None = None  # where they are to be learnt from


def collate(shards: Shards, batch: Batch, device: torch.device) -> Pairs:
    """Read and pad the pairs of a batch. Sources of ids end with END, so that no source is ever empty."""
    sources, targets = shards.gather(batch.pairs)
    source, lengths = pad_source(sources)
    target, wanted = pad(targets, before=BEGIN), pad(targets, after=END)
    tokens = len(targets.tokens) + len(targets.lengths)
    links = collate_links(shards, batch, device) if shards.has_links else None
    return Pairs(Source(source.to(device), lengths.to(device)), target.to(device), wanted.to(device), tokens, links)


def collate_links(shards: Shards, batch: Batch, device: torch.device) -> Links:
    """Read the links of a batch."""
    found = [shards.links(number).astype("int64") for number in batch.pairs.tolist()]
    rows = numpy.arange(len(found)).repeat([len(links) for links in found])
    targets, sources, parts = numpy.concatenate(found).T
    row, target, source = (torch.from_numpy(each.copy()).to(device) for each in (rows, targets, sources))
    shares = 1 / parts
    return Links((row, target, source), torch.from_numpy(shares).float().to(device), round(shares.sum()))


def pad_source(rows: Rows) -> tuple[Tensor, Tensor]:
    """What a model reads, and how much of it is real: ids (B, S) and their END, or vectors (B, S, W) as they are."""
    if rows.tokens.ndim == 1:
        return pad(rows, after=END), torch.from_numpy(rows.lengths + 1)
    size = len(rows.lengths), rows.lengths.max(), rows.tokens.shape[1]
    padded = numpy.zeros(size, dtype=numpy.uint8 if rows.tokens.dtype.kind == "u" else numpy.float32)
    padded[rows.row, rows.column] = rows.tokens
    return torch.from_numpy(padded), torch.from_numpy(rows.lengths)


def pad(rows: Rows, before: int | None = None, after: int | None = None) -> Tensor:
    """Rows of ids as one tensor, each with a special token before or after it."""
    padded = numpy.full((len(rows.lengths), rows.lengths.max() + 1), PAD, dtype=numpy.int64)
    padded[rows.row, rows.column + (before is not None)] = rows.tokens
    if before is not None:
        padded[:, 0] = before
    if after is not None:
        padded[numpy.arange(len(padded)), rows.lengths] = after
    return torch.from_numpy(padded)


def summed_loss(model: Seq2Seq, pairs: Pairs, smoothing: float, watch: Watch | None = None) -> Tensor:
    """The loss summed over the batch's tokens; divide by their number once all batches of an update are counted."""
    features = model.decode(model.encode(pairs.source), pairs.target, watch)
    real = pairs.wanted != PAD
    features, wanted = features[real], pairs.wanted[real]  # (tokens, D): padding is never projected
    if is_fast():
        loss: Tensor = VocabularyLoss.apply(features, model.output.weight, wanted, smoothing)  # type: ignore[no-untyped-call]
        return loss
    logits = model.output(features)
    precise = torch.promote_types(logits.dtype, torch.float32)
    return F.cross_entropy(logits.to(precise), wanted, reduction="sum", label_smoothing=smoothing)


class VocabularyLoss(torch.autograd.Function):
    """Σ −log softmax(x Wᵀ)[wanted], smoothed, without ever holding all logits: 4,096 tokens × 11,000 are 180 MB.

    A slice of tokens at a time gives its loss and at once its gradients: (p − q) W and (p − q)ᵀ x, where p is the
    softmax and q the smoothed target. The uniform part of q is the same for every logit, so sums of W and x do for it.
    """

    @staticmethod
    def forward(context: Any, features: Tensor, weight: Tensor, wanted: Tensor, smoothing: float) -> Tensor:
        """features (N, D), weight (V, D), wanted (N,) -> the sum of the losses."""
        kind = features.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else features.dtype
        precise = torch.promote_types(dtype, torch.float32)
        inputs, matrix = features.to(dtype), weight.to(dtype)
        with torch.autocast(kind, enabled=False):
            uniform = smoothing / len(weight)
            total = -uniform * (inputs.sum(0).to(precise) @ matrix.sum(0).to(precise))
            learning = any(context.needs_input_grad)
            to_features, to_weight = torch.empty_like(inputs), torch.zeros_like(weight)
            size = LOGITS // len(weight)
            room = inputs.new_empty(min(max(1, size), len(inputs)), len(weight))  # used again by every slice
            for rows in slices(len(inputs), size):
                right = wanted[rows, None]
                logits = torch.mm(inputs[rows], matrix.T, out=room[: len(right)]).to(precise)
                chances = logits.softmax(-1)
                total += (log_sum(logits, chances, right) - (1 - smoothing) * logits.gather(1, right)).sum()
                if learning:
                    errors = chances.scatter_add_(1, right, chances.new_full(right.shape, smoothing - 1)).to(dtype)
                    torch.mm(errors, matrix, out=to_features[rows])
                    to_weight += errors.T @ inputs[rows]
            if learning:
                to_features -= uniform * matrix.sum(0)
                to_weight -= uniform * inputs.sum(0)
                context.save_for_backward(to_features.to(features.dtype), to_weight)
        return total

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """All is there; only scale it."""
        to_features, to_weight = context.saved_tensors
        return to_features * gradient, to_weight * gradient, None, None


def slices(count: int, size: int) -> Iterator[slice]:
    """Neighbouring slices of at most `size` that cover `count` things."""
    return (slice(start, start + max(1, size)) for start in range(0, count, max(1, size)))


def log_sum(logits: Tensor, chances: Tensor, right: Tensor) -> Tensor:
    """log Σ exp(logits), (N, 1): read off the softmax that is there already, unless a chance is too small to be one."""
    chosen = chances.gather(1, right)
    if bool((chosen > torch.finfo(chosen.dtype).tiny).all()):
        return logits.gather(1, right) - chosen.log()
    return logits.logsumexp(1, keepdim=True)

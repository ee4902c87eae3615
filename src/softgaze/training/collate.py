"""Batches of encoded pairs as padded tensors."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softgaze.data.batching import Batch
from softgaze.data.shards import Array, RaggedRows, Shards
from softgaze.models.base import Source
from softgaze.special_tokens import BOS, EOS, PAD


class AlignmentTargets(NamedTuple):
    """The gold attention of the aligned target tokens of a batch, as a sparse matrix of N entries."""

    indices: tuple[Tensor, Tensor, Tensor]  # each (N,): row of the batch, target position, source position
    weights: Tensor  # (N,); the weights of one target position sum to 1
    num_tokens: int  # aligned target tokens


class PaddedBatch(NamedTuple):
    """The tensors of one batch."""

    source: Source
    decoder_input: Tensor  # (B, T) BOS and the target
    labels: Tensor  # (B, T) the target and EOS
    num_tokens: int  # labels that are not padding
    alignment: AlignmentTargets | None = None


def collate(shards: Shards, batch: Batch, device: torch.device, lengths: Array | None = None) -> PaddedBatch:
    """Read and pad the pairs of a batch. `lengths` (B, 2) saves a lookup; token sources end with EOS."""
    sources, targets = shards.gather(batch.pairs, lengths)
    if sources.tokens.ndim == 1:
        source, source_lengths = pad_tokens(sources, after=EOS), torch.from_numpy(sources.lengths + 1)
    else:
        size = len(sources.lengths), sources.lengths.max(), sources.tokens.shape[1]
        padded = np.zeros(size, dtype=np.uint8 if sources.tokens.dtype.kind == "u" else np.float32)
        padded[sources.row, sources.column] = sources.tokens
        source, source_lengths = torch.from_numpy(padded), torch.from_numpy(sources.lengths)  # (B, S, W)
    return PaddedBatch(
        Source(source.to(device), source_lengths.to(device)),
        pad_tokens(targets, before=BOS).to(device),
        pad_tokens(targets, after=EOS).to(device),
        len(targets.tokens) + len(targets.lengths),
        collate_alignment(shards, batch, device) if shards.has_links else None,
    )


def collate_alignment(shards: Shards, batch: Batch, device: torch.device) -> AlignmentTargets:
    """Read the alignment of a batch; the stored divisor of a link becomes its weight."""
    links = [shards.links(pair).astype("int64") for pair in batch.pairs.tolist()]
    rows = np.arange(len(links)).repeat([len(of_pair) for of_pair in links])
    targets, sources, divisors = np.concatenate(links).T
    row, target, source = (torch.from_numpy(column.copy()).to(device) for column in (rows, targets, sources))
    weights = 1 / divisors
    return AlignmentTargets((row, target, source), torch.from_numpy(weights).float().to(device), round(weights.sum()))


def pad_tokens(rows: RaggedRows, before: int | None = None, after: int | None = None) -> Tensor:
    """Return token ids (B, T) with a special token before or after each row."""
    padded = np.full((len(rows.lengths), rows.lengths.max() + 1), PAD, dtype=np.int64)
    padded[rows.row, rows.column + (before is not None)] = rows.tokens
    if before is not None:
        padded[:, 0] = before
    if after is not None:
        padded[np.arange(len(padded)), rows.lengths] = after
    return torch.from_numpy(padded)

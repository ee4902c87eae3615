"""Batches of encoded pairs as padded tensors."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softgaze.data.batching import Batch
from softgaze.data.shards import Array, RaggedRows, Shards
from softgaze.data.tokenizer import Frame
from softgaze.models.base import Source
from softgaze.special_tokens import EOS, PAD


class AlignmentTargets(NamedTuple):
    """The gold attention of the aligned target tokens of a batch, as a sparse matrix of N entries."""

    indices: tuple[Tensor, Tensor, Tensor]  # each (N,): row of the batch, target position, source position
    weights: Tensor  # (N,); the weights of one target position sum to 1
    num_tokens: int  # aligned target tokens


class PaddedBatch(NamedTuple):
    """The tensors of one batch."""

    source: Source
    decoder_input: Tensor  # (B, T) BOS or language tokens, and the target
    labels: Tensor  # (B, T) the target and EOS; PAD where the next token is a given language token
    num_tokens: int  # labels that are not padding
    alignment: AlignmentTargets | None = None


def collate(
    shards: Shards, batch: Batch, device: torch.device, lengths: Array | None = None, frame: Frame = Frame()
) -> PaddedBatch:
    """Read and pad the pairs of a batch with the special tokens of `frame`. `lengths` (B, 2) saves a lookup."""
    sources, targets = shards.gather(batch.pairs, lengths)
    if sources.tokens.ndim == 1:
        source = pad_tokens(sources, frame.before, frame.after)
        source_lengths = torch.from_numpy(sources.lengths + len(frame.before) + len(frame.after))
    else:
        size = len(sources.lengths), sources.lengths.max(), sources.tokens.shape[1]
        padded = np.zeros(size, dtype=np.uint8 if sources.tokens.dtype.kind == "u" else np.float32)
        padded[sources.row, sources.column] = sources.tokens
        source, source_lengths = torch.from_numpy(padded), torch.from_numpy(sources.lengths)  # (B, S, W)
    return PaddedBatch(
        Source(source.to(device), source_lengths.to(device)),
        pad_tokens(targets, before=frame.start).to(device),
        pad_tokens(targets, before=(PAD,) * (len(frame.start) - 1), after=(EOS,)).to(device),
        len(targets.tokens) + len(targets.lengths),
        collate_alignment(shards, batch, device, frame) if shards.has_links else None,
    )


def collate_alignment(shards: Shards, batch: Batch, device: torch.device, frame: Frame) -> AlignmentTargets:
    """Read the alignment of a batch; the stored divisor of a link becomes its weight."""
    links = [shards.links(pair).astype("int64") for pair in batch.pairs.tolist()]
    rows = np.arange(len(links)).repeat([len(of_pair) for of_pair in links])
    targets, sources, divisors = np.concatenate(links).T
    row, target, source = (torch.from_numpy(column.copy()).to(device) for column in (rows, targets, sources))
    target, source = target + len(frame.start) - 1, source + len(frame.before)
    weights = 1 / divisors
    return AlignmentTargets((row, target, source), torch.from_numpy(weights).float().to(device), round(weights.sum()))


def pad_tokens(rows: RaggedRows, before: tuple[int, ...] = (), after: tuple[int, ...] = ()) -> Tensor:
    """Return token ids (B, T) with special tokens before and after each row."""
    width = rows.lengths.max() + len(before) + len(after)
    padded = np.full((len(rows.lengths), width), PAD, dtype=np.int64)
    padded[:, : len(before)] = before
    padded[rows.row, rows.column + len(before)] = rows.tokens
    for offset, token in enumerate(after):
        padded[np.arange(len(padded)), len(before) + rows.lengths + offset] = token
    return torch.from_numpy(padded)

"""Cross-entropy with label smoothing (Szegedy 2016), over real tokens only."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from softgaze.data.batches import Batch
from softgaze.data.shards import Array, Shards
from softgaze.models.base import Seq2Seq, Source
from softgaze.symbols import BEGIN, END, PAD


class Pairs(NamedTuple):
    """A batch as tensors."""

    source: Source
    target: Tensor  # (B, T) BEGIN and the sentence: what the decoder reads
    wanted: Tensor  # (B, T) the sentence and END: what it should say
    tokens: int  # real tokens in `wanted`


def collate(shards: Shards, batch: Batch, device: torch.device) -> Pairs:
    """Read and pad the pairs of a batch. Sources end with END, so that no source is ever empty."""
    rows = [shards[number] for number in batch.pairs.tolist()]
    lengths = torch.tensor([len(source) + 1 for source, _ in rows])
    source = pad([source for source, _ in rows], after=END)
    target, wanted = pad([row for _, row in rows], before=BEGIN), pad([row for _, row in rows], after=END)
    tokens = sum(len(row) + 1 for _, row in rows)
    return Pairs(Source(source.to(device), lengths.to(device)), target.to(device), wanted.to(device), tokens)


def pad(rows: list[Array], before: int | None = None, after: int | None = None) -> Tensor:
    """Rows of ids as one tensor, each with a special token before or after it."""
    result = torch.full((len(rows), max(map(len, rows)) + 1), PAD, dtype=torch.long)
    for number, row in enumerate(rows):
        start = 0 if before is None else 1
        result[number, start : start + len(row)] = torch.from_numpy(row.astype("int64"))
        if before is not None:
            result[number, 0] = before
        if after is not None:
            result[number, len(row)] = after
    return result


def summed_loss(model: Seq2Seq, pairs: Pairs, smoothing: float) -> Tensor:
    """The loss summed over the batch's tokens; divide by their number once all batches of an update are counted."""
    features = model.decode(model.encode(pairs.source), pairs.target)
    real = pairs.wanted != PAD
    logits = model.output(features[real])  # (tokens, V): padding is never projected
    return F.cross_entropy(logits.float(), pairs.wanted[real], reduction="sum", label_smoothing=smoothing)

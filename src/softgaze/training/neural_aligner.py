"""Train the network of a neural aligner (`alignment.mask_align`) on top of a statistical one.

The loss has four parts: the prediction of both sides, the links that the statistical aligner expects in each direction,
and the agreement of both directions. Pairs are joined at random, so that the network knows long ones.
"""

import hashlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.alignment import StatisticalAligner
from softgaze.alignment.cooccurrence import Ids, Values
from softgaze.alignment.mask_align import WIDTH, MaskAlign, MaskedAttention, MaskedDecoder, PartVocabulary, Predicted
from softgaze.alignment.words import split_words
from softgaze.atomic_io import remove
from softgaze.attention import MultiHeadAttention
from softgaze.data.batching import hash_key
from softgaze.dropout import seeded
from softgaze.errors import DataError
from softgaze.models.base import Source
from softgaze.models.transformer import FeedForward, TransformerEncoderLayer
from softgaze.training.checkpoint import TrainingProgress, load_checkpoint, newest_checkpoint, save_checkpoint
from softgaze.training.gradients import autocast, uses_bfloat16
from softgaze.training.signals import catch_signals
from softgaze.training.train import Interrupted
from softgaze.training.warm_start import BRANCH_SCALE, Occurrences, add_noise, copy_values, token_vectors

MAX_PAIRS = 500_000  # evenly spaced; more than an hour of one core reads
MAX_PARTS = 120  # of a joined pair, on either side
POOL_PAIRS = 20_000  # aligned and shuffled at once
JOINED = (1, 1, 1, 2, 3)  # pairs in a joined one, drawn from these
BATCH_PARTS = 1536  # padded parts of the longer side
LENGTH_NOISE = 3.0  # parts: batches differ between epochs
LEARNING_RATE, WARMUP, LAST_RATE = 0.003, 100, 0.02
WEIGHT_DECAY, MAX_NORM = 0.01, 1.0
AGREEMENT = 5.0  # weight of the squared difference of both directions
MIN_ATTENTION = 1e-6  # keeps its logarithm finite
CHECKPOINT_SECONDS = 60.0
SEED = 1

Report = Callable[[str, float], None]  # what is being done, and the share that is done


class Row(NamedTuple):
    """A pair, or several in one: rows of the embedding, and the link posteriors of the statistical aligner."""

    source: Ids
    target: Ids
    forward: Values  # (target parts, source parts)
    reverse: Values  # (target parts, source parts)

    @classmethod
    def joined(cls, rows: Sequence["Row"]) -> "Row":
        """Return one row of several; links stay inside their parts."""
        sides = [np.concatenate([row[side] for row in rows]) for side in (0, 1)]
        links = np.zeros((2, len(sides[1]), len(sides[0])), np.float32)
        source = target = 0
        for row in rows:
            cells = slice(target, target := target + len(row.target)), slice(source, source := source + len(row.source))
            links[0][cells], links[1][cells] = row.forward, row.reverse
        return cls(*sides, *links)


class AlignedText:
    """The sentence pairs that the network learns from; the batches are a function of the text and the seed."""

    def __init__(self, pairs: Sequence[tuple[str, str]], statistics: StatisticalAligner) -> None:
        self.statistics = statistics
        texts = ((split_words(source), split_words(target)) for source, target in pairs[:: -(-len(pairs) // MAX_PAIRS)])
        self.parts = [pair for pair in texts if all(0 < len(side.parts) <= MAX_PARTS for side in pair)]
        if not self.parts:
            raise DataError(f"there are no sentence pairs to learn from (both sides with 1 to {MAX_PARTS:,} words)")
        source, target = (PartVocabulary.of(pair[side] for pair in self.parts) for side in (0, 1))
        self.vocabularies = source, target
        self.ids = [(source.find(one), target.find(other)) for one, other in self.parts]

    @cached_property
    def sizes(self) -> tuple[int, int]:
        return len(self.vocabularies[0]), len(self.vocabularies[1])

    @cached_property
    def occurrences(self) -> Occurrences:
        """Which rows of the embedding occur in which pairs."""
        sides = [np.concatenate([ids[side] for ids in self.ids]) for side in (0, 1)]
        pair = [np.repeat(np.arange(len(self.ids)), [len(ids[side]) for ids in self.ids]) for side in (0, 1)]
        size = sum(self.sizes)
        codes = np.unique(np.concatenate(pair) * size + np.concatenate([sides[0], sides[1] + self.sizes[0]]))
        return Occurrences(codes // size, codes % size, len(self.ids), *sides)

    @cached_property
    def shares(self) -> Tensor:
        """The relative frequency of each row of the embedding on its side; half an occurrence for unseen ones."""
        counts = [
            np.bincount(tokens, minlength=size) + 0.5
            for tokens, size in zip(self.occurrences[3:], self.sizes, strict=True)
        ]
        return torch.from_numpy(np.concatenate([count / count.sum() for count in counts])).float()

    def batches_from(self, step: int) -> Iterator[list[Row]]:
        """Yield the batches from number `step` on."""
        epoch = 0
        while True:
            order = random.Random(hash_key(SEED, epoch)).sample(range(len(self.ids)), len(self.ids))
            for start in range(0, len(order), POOL_PAIRS):
                pool = order[start : start + POOL_PAIRS]
                batches = self.pool_batches(pool, random.Random(hash_key(SEED, epoch, start)))
                if step < len(batches):
                    posteriors = self.statistics.part_posteriors([self.parts[n] for n in pool], [None] * len(pool))
                    rows = {n: Row(*self.ids[n], *both) for n, both in zip(pool, posteriors, strict=True)}
                    for batch in batches[step:]:
                        yield [Row.joined([rows[n] for n in group]) for group in batch]
                step = max(0, step - len(batches))
            epoch += 1

    def pool_batches(self, pool: Sequence[int], rng: random.Random) -> list[list[list[int]]]:
        """Return batches of groups of pairs, each group to be joined; groups that are too long are left out."""
        numbers = iter(pool)
        groups: list[tuple[float, int, list[int]]] = []
        while group := list(islice(numbers, rng.choice(JOINED))):
            lengths = [sum(len(self.ids[n][side]) for n in group) for side in (0, 1)]
            if max(lengths) <= MAX_PARTS:
                groups.append((sum(lengths) + rng.uniform(0, LENGTH_NOISE), max(lengths), group))
        batches: list[list[list[int]]] = []
        longest = MAX_PARTS * BATCH_PARTS
        for _, length, group in sorted(groups):
            longest = max(longest, length)
            if longest * (len(batches[-1]) + 1 if batches else 1) > BATCH_PARTS:
                batches.append([])
                longest = length
            batches[-1].append(group)
        rng.shuffle(batches)
        return batches


# --- training ---------------------------------------------------------------------------------------------------


def train_network(
    pairs: Sequence[tuple[str, str]],
    statistics: StatisticalAligner,
    minutes: float,
    *,
    directory: Path | None = None,
    device: torch.device | None = None,
    report: Report = lambda message, share: None,
) -> StatisticalAligner:
    """Return the aligner with a network that was trained for so many minutes.

    With a `directory` for checkpoints, an interrupted training is saved there, and the same call resumes.
    """
    started = time.monotonic()
    device = device or torch.device("cpu")
    text = AlignedText(pairs, statistics)
    checkpoints = directory / fingerprint(text) if directory else None
    model = start_network(text).to(device).train()
    optimizer = make_optimizer(model)
    progress = TrainingProgress()
    newest = newest_checkpoint(checkpoints)[0] if checkpoints else None
    if newest is not None:
        progress = load_checkpoint(newest, model, optimizer)
        report(f"neural aligner: resuming at update {progress.step:,}", progress.elapsed / (60 * minutes))
    started -= progress.elapsed
    saved = progress.elapsed
    shares = text.shares.to(device)
    with catch_signals() as stop:
        for batch in text.batches_from(progress.step):
            used = progress.elapsed / (60 * minutes)
            if used >= 1:
                break
            loss = update(model, optimizer, batch, shares, progress.step, used)
            progress.step += 1
            progress.elapsed = time.monotonic() - started
            report(f"neural aligner: update {progress.step:,}, loss {loss:.2f}", min(1.0, used))
            if checkpoints and (stop or progress.elapsed > saved + CHECKPOINT_SECONDS):
                save_checkpoint(checkpoints, model, optimizer, progress)
                saved = progress.elapsed
            if stop:
                raise Interrupted(stop.exit_code, progress.step)
    if directory:
        remove(directory)
    trained = MaskedAttention(model.cpu(), text.vocabularies)
    return replace(statistics, network=MaskedAttention.of(trained.arrays()))  # rounded as in a file


def fingerprint(text: AlignedText) -> str:
    """Return a name for the checkpoints of this text: another text does not resume from them."""
    digest = hashlib.sha256()
    for pair in text.parts:
        digest.update(repr([side.parts for side in pair]).encode())
    return digest.hexdigest()[:16]


@torch.no_grad()
def start_network(text: AlignedText) -> MaskAlign:
    """Return a network with a warm start: parts that share pairs are close, and cross-attention copies."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = MaskAlign(*text.sizes)
    vectors = token_vectors(text.occurrences, sum(text.sizes), WIDTH, generator)
    model.embedding.weight.copy_(add_noise(vectors, generator))
    model.bias.copy_(text.shares.log())
    for layer in (module for module in model.modules() if isinstance(module, TransformerEncoderLayer)):
        layer.attention.output.weight.mul_(BRANCH_SCALE)
    for feed_forward in (module for module in model.modules() if isinstance(module, FeedForward)):
        feed_forward.outer.weight.mul_(BRANCH_SCALE)
    for decoder in (module for module in model.modules() if isinstance(module, MaskedDecoder)):
        copy_values(decoder.cross, 1.0)
        for attention in decoder.attention:
            copy_values(cast(MultiHeadAttention, attention), -0.5)
    return model


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=LEARNING_RATE, betas=(0.9, 0.98), fused=True)


def update(
    model: MaskAlign,
    optimizer: torch.optim.Optimizer,
    batch: Sequence[Row],
    shares: Tensor,
    step: int,
    used: float,
) -> float:
    """Make one optimizer step, unless a gradient is not finite; return the loss."""
    for group in optimizer.param_groups:
        group["lr"] = LEARNING_RATE * min(1.0, (step + 1) / WARMUP) * max(LAST_RATE, 1 - used)
    with seeded(hash_key(SEED, step)):
        loss = objective(model, batch, shares)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    if nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM).isfinite():
        optimizer.step()
    return loss.item()


# --- the loss ---------------------------------------------------------------------------------------------------


def objective(model: MaskAlign, batch: Sequence[Row], shares: Tensor) -> Tensor:
    """Return the loss of a batch: means of both directions."""
    device = shares.device
    source, target = (Source.of([row[side].tolist() for row in batch], device) for side in (0, 1))
    with autocast(device, uses_bfloat16(device, "auto")):
        forward, reverse = model(source, target)
    is_source, is_target = (
        torch.arange(side.values.shape[1], device=device) < side.lengths[:, None] for side in (source, target)
    )
    links = np.zeros((2, *is_target.shape, is_source.shape[1]), np.float32)
    for number, row in enumerate(batch):
        links[:, number, : len(row.target), : len(row.source)] = row.forward, row.reverse
    expected = torch.from_numpy(links).to(device)
    directions = (
        (forward, target.values + model.offset, is_target, expected[0]),
        (reverse, source.values, is_source, expected[1].transpose(1, 2)),
    )
    losses = [
        prediction_loss(model, each, tokens[real], real, shares) + link_loss(each.attention[real], own[real])
        for each, tokens, real, own in directions
    ]
    difference = forward.attention[..., :-1] - reverse.attention[..., :-1].transpose(1, 2)
    cells = is_target[:, :, None] & is_source[:, None, :]
    agreement = (difference.square() * cells).sum() / (is_source.sum() + is_target.sum()) * 2
    loss: Tensor = (losses[0] + losses[1]) / 2 + AGREEMENT * agreement
    return loss


def prediction_loss(model: MaskAlign, predicted: Predicted, tokens: Tensor, real: Tensor, shares: Tensor) -> Tensor:
    """Return the mean cross-entropy over the parts in this batch alone, corrected for being in it (Bengio 2008)."""
    candidates, labels = torch.unique(tokens, return_inverse=True)
    features, weight = predicted.features[real], model.embedding.weight[candidates]
    with autocast(weight.device, features.dtype == torch.bfloat16):
        logits = (features @ weight.T).float()
    in_batch = 1 - (1 - shares[candidates]) ** len(tokens)
    return F.cross_entropy(logits + model.bias[candidates] - in_batch.log(), labels)


def link_loss(attention: Tensor, expected: Tensor) -> Tensor:
    """Return the mean cross-entropy of attention (N, K + 1) and expected links (N, K); the rest is unaligned."""
    rest = (1 - expected.sum(-1, keepdim=True)).clamp_min(0)
    logs = attention.clamp_min(MIN_ATTENTION).log()
    loss: Tensor = -(torch.cat([expected, rest], -1) * logs).sum(-1).mean()
    return loss

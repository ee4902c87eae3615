"""Losses and gradients of a batch. On a CPU with two or more threads its two halves are computed in parallel.

Two threads that share every operation wait for each other at every operation; two that take half of the rows each wait
once per update. The result depends on the halves alone, not on whether they were computed at the same time; a run with
one thread, which computes whole batches, gets other weights than a run with several.
"""

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from threading import Barrier
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from softgaze.config import Config, TrainingSettings
from softgaze.data.batching import Batch, hash_key
from softgaze.data.shards import Array
from softgaze.dropout import seeded
from softgaze.models.base import Seq2Seq, SingleSiteHook
from softgaze.runtime import has_bfloat16
from softgaze.training.attention_losses import AlignmentLoss, CoverageLoss, GuidedHead
from softgaze.training.collate import PaddedBatch
from softgaze.training.loss import summed_loss

HALVES = 2
MIN_SPLIT_TOKENS = 1000  # smaller batches spend more time in Python, which runs one thread at a time


class TokenCounts(NamedTuple):
    """Denominators of the losses of an update."""

    tokens: int
    aligned: int  # target tokens with a gold alignment

    @classmethod
    def of(cls, batches: Iterable[PaddedBatch]) -> "TokenCounts":
        batches = list(batches)
        aligned = sum(batch.alignment.num_tokens for batch in batches if batch.alignment)
        return cls(sum(batch.num_tokens for batch in batches), aligned)


class LossSums(NamedTuple):
    """Losses summed over tokens."""

    tokens: float
    alignment: float

    @classmethod
    def total(cls, losses: Iterable["LossSums"]) -> "LossSums":
        return cls(*(sum(values) for values in zip(cls(0.0, 0.0), *losses, strict=True)))


class GradientAccumulator:
    """Adds the gradients of batches to the parameters of a model; `guided` adds the alignment loss of one head."""

    def __init__(
        self,
        model: Seq2Seq,
        settings: TrainingSettings,
        device: torch.device,
        guided: GuidedHead | None = None,
        rank: int = 0,
    ) -> None:
        self.model, self.settings, self.device, self.guided = model, settings, device, guided
        self.rank_key = (rank,) if rank else ()  # ranks drop out different values
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.bfloat16 = uses_bfloat16(device, settings.precision)
        is_large = (settings.batch_tokens or MIN_SPLIT_TOKENS) >= MIN_SPLIT_TOKENS
        threads = torch.get_num_threads()
        # Stacked RNNs of torch draw dropout masks from the global generator, whose order threads would change. Halves
        # in sequence would cost 10 to 15 % more than the batch at once.
        splits = is_large and settings.fast and device.type == "cpu" and threads >= HALVES
        self.pool = thread_pool(HALVES, threads // HALVES) if splits and not has_torch_rnn_dropout(model) else None

    def split(self, batch: Batch, lengths: Array) -> list[tuple[Batch, Array]]:
        """Return the parts of a batch, with their `lengths` (N, 2), that are computed separately."""
        parts = balanced_halves(lengths) if self.pool and len(batch.pairs) > 1 else [slice(None)]
        return [(Batch(batch.pairs[rows], batch.epoch), lengths[rows]) for rows in parts]

    def add(self, parts: Sequence[PaddedBatch], counts: TokenCounts, *key: int) -> LossSums:
        """Add the gradient of the losses divided by `counts`; return the summed losses. `key` seeds the dropout."""
        seeds = [hash_key(self.settings.seed, *key, part, *self.rank_key) % 2**63 for part in range(len(parts))]
        run = map if self.pool is None or len(parts) < HALVES else self.pool.map
        results = list(run(self.losses_and_gradients, parts, [counts] * len(parts), seeds))
        for _, gradients in results:  # in this order, because sums of floats depend on it
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                if gradient is None:
                    continue
                if parameter.grad is not None:
                    parameter.grad.add_(gradient)
                elif gradient.stride() == parameter.stride():
                    parameter.grad = gradient
                else:  # channels-last of a convolution: the fused optimizer requires the layout of the parameter
                    parameter.grad = torch.empty_like(parameter).copy_(gradient)
        return LossSums.total(losses for losses, _ in results)

    def losses_and_gradients(
        self, batch: PaddedBatch, counts: TokenCounts, seed: int
    ) -> tuple[LossSums, Sequence[Tensor | None]]:
        """Return the summed losses of some rows, and the gradient of each parameter."""
        settings, smoothing, r_drop = self.settings, self.settings.label_smoothing, self.settings.r_drop
        assert smoothing is not None  # the settings are resolved
        alignment, penalty = None, None
        with seeded(seed), autocast(self.device, self.bfloat16):
            if settings.doubly_stochastic:
                coverage = CoverageLoss()
                loss = summed_loss(self.model, batch, smoothing, coverage, r_drop)
                penalty = settings.doubly_stochastic * coverage.summed(batch) / counts.tokens
            elif self.guided is not None and batch.alignment is not None and batch.alignment.num_tokens:
                guided = AlignmentLoss(self.guided.head, self.guided.rows)
                hook = SingleSiteHook("cross", self.guided.layer, guided)
                loss = summed_loss(self.model, batch, smoothing, hook, r_drop)
                alignment = guided.summed(batch.alignment)
                penalty = self.guided.weight * alignment / counts.aligned
            else:
                loss = summed_loss(self.model, batch, smoothing, r_drop=r_drop)
        objective = loss / counts.tokens if penalty is None else loss / counts.tokens + penalty
        losses = LossSums(float(loss.detach()), 0.0 if alignment is None else float(alignment.detach()))
        return losses, torch.autograd.grad(objective, self.parameters, allow_unused=True)


def thread_pool(workers: int, threads: int) -> ThreadPoolExecutor:
    """Return a pool whose workers compute with `threads` intra-op threads each; other threads keep their number."""
    default, started = torch.get_num_threads(), Barrier(workers + 1)

    def start() -> None:
        torch.get_num_threads()  # a thread takes the process-wide default at its first use of torch
        torch.set_num_threads(threads)
        started.wait()

    pool = ThreadPoolExecutor(workers, initializer=start)
    for _ in range(workers):
        pool.submit(int)
    started.wait()
    torch.set_num_threads(default)  # the workers also changed the default of threads to come
    return pool


def has_torch_rnn_dropout(model: nn.Module) -> bool:
    """Return whether a stacked RNN of torch drops out values."""
    return any(isinstance(module, nn.RNNBase) and module.dropout for module in model.modules())


# --- splitting a batch --------------------------------------------------------------------------------------------


def balanced_halves(lengths: Array) -> list[Array]:
    """Split pairs of `lengths` (N, 2) into those with a relatively short source and the others, at equal cost.

    Pairs of a similar length ratio need less padding together.
    """
    order = (lengths[:, 0] - lengths[:, 1]).argsort(kind="stable")
    ordered = lengths[order]
    first = cumulative_cost(ordered)[:-1]  # with 1 … N−1 pairs in the first half
    second = cumulative_cost(ordered[::-1])[::-1][1:]
    cut = int(abs(first - second).argmin()) + 1
    return [order[:cut], order[cut:]]


def cumulative_cost(lengths: Array) -> Array:
    """Return the cost of the first 1 … N pairs: padded tokens of both sides, and a softmax per target token."""
    rows = np.arange(1, len(lengths) + 1)
    cost: Array = rows * np.maximum.accumulate(lengths).sum(axis=1) + lengths[:, 1].cumsum()
    return cost


def rank_shares(lengths: Array, world_size: int) -> list[Array]:
    """Split pairs of `lengths` (N, 2) into shares of about equal length; with fewer pairs than ranks some are empty."""
    order = lengths.max(axis=1).argsort(kind="stable")
    edges = lengths[order].sum(axis=1).cumsum()
    cuts = np.searchsorted(edges, edges[-1] * np.arange(1, world_size) / world_size)
    return np.split(order, cuts)


# --- precision ----------------------------------------------------------------------------------------------------


def autocast(device: torch.device, bfloat16: bool) -> AbstractContextManager[object]:
    """Return the context of a forward pass; weights and optimizer stay in float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if bfloat16 else nullcontext()


def uses_bfloat16(device: torch.device, precision: str) -> bool:
    """Return whether to compute in bfloat16: on request, or if `auto` finds hardware for it (emulation is slower)."""
    if precision != "auto":
        return precision == "bfloat16"
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and has_bfloat16()


# --- optimizer and learning rate


def make_optimizer(model: Seq2Seq, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Return AdamW with weight decay on matrices only: decaying biases and norms does not regularise."""
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=1.0, betas=(0.9, settings.beta2), eps=1e-9, fused=True)


def learning_rate(config: Config, step: int, used: float | None = None, remaining: float = 1.0) -> float:
    """Return the learning rate of update `step`, counted from 1; `config` must be resolved.

    `used` is the share of the budget before this update, and `remaining` that of the decay after the patience.
    """
    settings = config.training
    peak, warmup = settings.learning_rate, settings.warmup
    assert peak is not None
    assert warmup is not None
    if settings.schedule == "cosine":  # 0 at the last step
        last = config.budget.steps or step
        done = min(1.0, max(0, step - warmup) / max(1, last - warmup))
        return peak * (step / warmup if step <= warmup else 0.5 * (1 + math.cos(math.pi * done)))
    if settings.decay and used is not None:
        remaining = min(remaining, (1 - used) / settings.decay)
    rate = peak * min(1.0, step / max(1, warmup))
    if settings.schedule == "inverse-sqrt" and step > warmup:  # Vaswani 2017, §5.3
        rate = peak * math.sqrt(max(warmup, 1) / step)
    return rate * min(1.0, max(0.0, remaining))

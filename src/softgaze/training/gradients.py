"""The gradient of a batch, its two halves computed side by side on a CPU.

Two threads that share every operation wait for each other at every operation; two that take half of the rows each meet
once an update. What comes out depends on the halves alone, not on whether they were computed at the same time.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy
import torch
from torch import Tensor, nn

from softgaze.config import TrainingSettings
from softgaze.data.batches import Batch, hash_key
from softgaze.data.shards import Array
from softgaze.devices import using_threads
from softgaze.dropout import noise
from softgaze.models.base import OneWatch, Seq2Seq
from softgaze.speed import measures
from softgaze.training.evenly import Evenly
from softgaze.training.guided import Guidance, Guide
from softgaze.training.loss import Pairs, summed_loss
from softgaze.training.precision import autocast

HALVES = 2
LARGE = 1000  # tokens of a batch worth dividing: in smaller ones Python, which runs one thread at a time, costs more


class Amount(NamedTuple):
    """What an update learns from: each summed loss is divided by its own."""

    tokens: int
    pieces: int  # that have links

    @classmethod
    def of(cls, parts: Iterable[Pairs]) -> "Amount":
        """All of them together."""
        counts = [(0, 0), *((part.tokens, part.links.pieces if part.links else 0) for part in parts)]
        return cls(*(sum(each) for each in zip(*counts, strict=True)))


class Losses(NamedTuple):
    """Summed."""

    tokens: float
    links: float


Part = tuple[Losses, Sequence[Tensor | None]]  # and the gradient of each parameter


class Gradients:
    """Adds the gradients of batches to a model's parameters; with `guidance`, also those of one head's links."""

    def __init__(
        self,
        model: Seq2Seq,
        settings: TrainingSettings,
        device: torch.device,
        guidance: Guidance | None = None,
        rank: int = 0,
    ) -> None:
        self.model, self.settings, self.device, self.guidance = model, settings, device, guidance
        self.own_key = (rank,) if rank else ()  # noise of its own for each of those who share a batch
        self.parameters = [each for each in model.parameters() if each.requires_grad]
        large = (settings.batch_tokens or LARGE) >= LARGE
        self.parts = HALVES if large and settings.fast and device.type == "cpu" else 1
        self.pool = ThreadPoolExecutor(HALVES) if self.parts > 1 and draws_its_own_noise(model) else None

    def divide(self, batch: Batch, lengths: Array) -> list[Batch]:
        """A batch whose pairs have `lengths` (N, 2), as the parts that are computed apart."""
        parts = halves(lengths) if self.parts == HALVES and len(batch.pairs) > 1 else [slice(None)]
        return [Batch(batch.pairs[places], batch.epoch) for places in parts]

    def add(self, parts: Sequence[Pairs], amount: Amount, *key: int) -> Losses:
        """The losses of a batch in `parts`; the gradient of their means over `amount` is added.

        The noise follows from `key`.
        """
        seeds = [hash_key(self.settings.seed, *key, number, *self.own_key) % 2**63 for number in range(len(parts))]
        amounts = [amount] * len(parts)
        threads = torch.get_num_threads()
        with measures(self.settings.fast):
            if self.pool is None or threads < 2 or len(parts) < 2:
                found = [self.of_part(*each) for each in zip(parts, amounts, seeds, strict=True)]
            else:
                with using_threads(threads // len(parts)):
                    found = list(self.pool.map(self.of_part, parts, amounts, seeds))
        for _, gradients in found:  # always in this order: sums of floats depend on it
            self.accumulate(gradients)
        return total([losses for losses, _ in found])

    def of_part(self, pairs: Pairs, amount: Amount, seed: int) -> Part:
        """Losses and gradients of some rows."""
        with noise(seed), autocast(self.device, self.settings.precision):
            loss, links, uneven = self.losses(pairs)
        mean = loss / amount.tokens
        if uneven is not None and self.settings.doubly_stochastic is not None:
            mean = mean + self.settings.doubly_stochastic * uneven / amount.tokens
        if links is not None and self.guidance is not None:
            mean = mean + self.guidance.weight * links / amount.pieces
        found = Losses(float(loss.detach()), 0.0 if links is None else float(links.detach()))
        return found, torch.autograd.grad(mean, self.parameters, allow_unused=True)

    def losses(self, pairs: Pairs) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Summed over tokens; over the pieces that have links, if any; over sources looked at unevenly, if asked."""
        smoothing = self.settings.label_smoothing
        if self.settings.doubly_stochastic:
            evenly = Evenly()
            return summed_loss(self.model, pairs, smoothing, evenly), None, evenly.summed_loss(pairs)
        if self.guidance is None or pairs.links is None or not pairs.links.pieces:
            return summed_loss(self.model, pairs, smoothing), None, None
        guide = Guide(self.guidance.head)
        watch = OneWatch("cross", self.guidance.layer, guide)
        loss = summed_loss(self.model, pairs, smoothing, watch)
        return loss, guide.summed_loss(pairs.links), None

    def accumulate(self, gradients: Sequence[Tensor | None]) -> None:
        """Add to what is there."""
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            if gradient is not None:
                parameter.grad = (
                    laid_out(gradient, parameter) if parameter.grad is None else parameter.grad.add_(gradient)
                )


def laid_out(gradient: Tensor, parameter: Tensor) -> Tensor:
    """With its numbers in memory where the parameter has them: the fused optimiser reads both from first to last.

    A convolution over channels that lie last gives gradients that lie so too.
    """
    return gradient if gradient.stride() == parameter.stride() else torch.empty_like(parameter).copy_(gradient)


def total(losses: Iterable[Losses]) -> Losses:
    """Added up."""
    return Losses(*(sum(each) for each in zip(Losses(0.0, 0.0), *losses, strict=True)))


def halves(lengths: Array) -> list[Array]:
    """Places of the pairs whose source is short for its target, and of the others: as much to do, less to pad."""
    order = (lengths[:, 0] - lengths[:, 1]).argsort(kind="stable")
    ordered = lengths[order]
    first = work(ordered)[:-1]  # with 1 … N−1 pairs in the first half
    second = work(ordered[::-1])[::-1][1:]
    cut = int(abs(first - second).argmin()) + 1
    return [order[:cut], order[cut:]]


def shares(lengths: Array, count: int) -> list[Array]:
    """Places of the pairs in `count` shares with about as much to do; with fewer pairs than that, some are empty."""
    order = lengths.max(axis=1).argsort(kind="stable")
    edges = lengths[order].sum(axis=1).cumsum()
    cuts = numpy.searchsorted(edges, edges[-1] * numpy.arange(1, count) / count)
    return numpy.split(order, cuts)


def work(lengths: Array) -> Array:
    """What the first 1 … N pairs cost together: padded tokens of both sides, and a vocabulary for each real one."""
    rows = numpy.arange(1, len(lengths) + 1)
    padded: Array = rows * numpy.maximum.accumulate(lengths).sum(axis=1) + lengths[:, 1].cumsum()
    return padded


def draws_its_own_noise(model: nn.Module) -> bool:
    """Whether all dropout is ours. Torch's stacked RNNs draw from one generator, in whatever order threads come by."""
    return not any(isinstance(module, nn.RNNBase) and module.dropout for module in model.modules())

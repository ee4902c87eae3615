"""How good is it now? Loss, BLEU and chrF on held-out text."""

import math
from collections.abc import Sequence

import numpy
import torch

from softgaze.bundle import Tokenizers
from softgaze.config import ValidationSettings
from softgaze.data.batches import Batch, cut_by_budget
from softgaze.data.shards import Shards
from softgaze.metrics import score
from softgaze.models.base import Seq2Seq, Source
from softgaze.search import Rules, greedy
from softgaze.training.loss import collate, summed_loss
from softgaze.training.prepare import Prepared

Samples = tuple[tuple[str, str, str], ...]  # source, reference, translation

TOKENS = 4096  # a batch: validation must fit wherever training does


@torch.no_grad()
def dev_loss(model: Seq2Seq, shards: Shards, device: torch.device) -> float:
    """Loss a token, without smoothing: its exponential is the perplexity."""
    numbers = numpy.arange(len(shards))
    longest = shards.lengths(numbers).max(axis=1) + 1
    order = longest.argsort(kind="stable")
    total, tokens = 0.0, 0
    for pairs in numpy.split(numbers[order], cut_by_budget(longest[order], TOKENS)):
        batch = collate(shards, Batch(pairs, 0), device)
        total += float(summed_loss(model, batch, smoothing=0.0))
        tokens += batch.tokens
    return total / tokens


def translations(model: Seq2Seq, tokenizers: Tokenizers, texts: Sequence[str], device: torch.device) -> list[str]:
    """Greedy translations, in order."""
    sources = [tokenizers.source.closed(items) for items in tokenizers.source.encode(texts)]
    order = sorted(range(len(sources)), key=lambda number: len(sources[number]))
    lengths = numpy.array([len(sources[number]) for number in order])
    result = [""] * len(texts)
    for numbers in numpy.split(numpy.array(order), cut_by_budget(lengths, TOKENS)):
        batch = Source.of([sources[number] for number in numbers], device)
        for number, found in zip(numbers, greedy(model, batch, rules=Rules()), strict=True):
            result[number] = tokenizers.target.decode(found.tokens)
    return result


def quality(
    model: Seq2Seq, prepared: Prepared, settings: ValidationSettings, device: torch.device
) -> tuple[dict[str, float], Samples]:
    """Scores by name, and sample translations. Training mode is put back."""
    training = model.training
    model.eval()
    some = prepared.dev_text[: settings.sentences]
    written = translations(model, prepared.tokenizers, [pair.source for pair in some], device)
    scores = score(written, [pair.target for pair in some], language=prepared.facts["languages"][1], ter=False)
    loss = dev_loss(model, prepared.dev, device)
    model.train(training)
    samples = tuple((pair.source, pair.target, text) for pair, text in zip(some, written, strict=True))
    return {"loss": loss, "bleu": scores.bleu, "chrf": scores.chrf}, samples[: settings.samples]


def better_when_higher(scores: dict[str, float], metric: str) -> float:
    """The chosen metric, turned so that more is better; nothing is worse than a number that is none.

    Early BLEU is often 0.0 twice in a row: a thousandth of the loss breaks such ties.
    """
    value = -scores["loss"] if metric == "loss" else scores[metric] - scores["loss"] / 1000
    return value if math.isfinite(value) else -math.inf

"""Losses on the cross-attention: guided alignment (Chen 2016, Garg 2019) and coverage (Xu 2015, §4.2.1).

Both are attention hooks that record the weights before dropout, with their gradient, and do not change them.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from softgaze.config import Config, TrainingSettings
from softgaze.errors import UsageError
from softgaze.models import MODELS, build_model
from softgaze.models.base import AttentionSite, Seq2Seq
from softgaze.special_tokens import PAD, SPECIAL_TOKENS
from softgaze.training.collate import AlignmentTargets, PaddedBatch

DEFAULT_WEIGHT = 1.0  # of the alignment loss per aligned token, relative to the loss per token
PREDICTING, READING = "predicting", "reading"  # the row of a token is the step that predicts it, or the step after it
# Keeps the logarithm of an attention weight finite. Smaller weights learn nothing: with 1e-9, a long run in bfloat16
# gave up 4 to 16 % of its links (docs/log.md). The gradient, 1 / MIN_PROBABILITY, is finite in bfloat16, too.
MIN_PROBABILITY = 1e-36
# Label smoothing: the share of a row that belongs to all source positions. Without it, scores grew over thousands of
# updates until bfloat16 could not tell positions apart, and their gradient dominated the updates (docs/log.md).
SMOOTHING = 0.1


class AlignmentLoss:
    """Cross-entropy between the gold alignment of each target token and the attention weights of one head."""

    def __init__(self, head: int, rows: str = PREDICTING) -> None:
        self.head = head
        self.shift = 0 if rows == PREDICTING else 1  # the step after the one that predicts a token has read it
        self.weights: list[Tensor] = []  # each (B, Q, S): all steps at once, or one by one

    def __call__(self, site: AttentionSite, weights: Tensor, values: Tensor) -> Tensor:
        self.weights.append(weights[:, self.head])
        return weights

    def summed(self, targets: AlignmentTargets) -> Tensor:
        """Return the loss summed over the aligned tokens, with smoothed labels."""
        row, target, source = targets.indices
        weights = torch.cat(self.weights, 1)[row, target + self.shift]  # (N, S)
        weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
        log_probs = weights.clamp(min=MIN_PROBABILITY).log()
        linked = log_probs.gather(1, source[:, None]).squeeze(1)
        is_attended = weights > MIN_PROBABILITY  # neither padding nor outside of a window
        average = (log_probs * is_attended).sum(1) / is_attended.sum(1).clamp(min=1)
        return -(targets.weights * torch.lerp(linked, average, SMOOTHING)).sum()


class CoverageLoss:
    """Doubly stochastic attention: Σᵢ (1 − Σₜ αₜᵢ)² pulls the total weight of every source position towards 1."""

    def __init__(self) -> None:
        self.weights: dict[int, list[Tensor]] = {}  # by layer, each (B, Q, S): all steps at once, or one by one

    def __call__(self, site: AttentionSite, weights: Tensor, values: Tensor) -> Tensor:
        if site.kind == "cross":
            self.weights.setdefault(site.layer, []).append(weights.mean(1))
        return weights

    def summed(self, batch: PaddedBatch) -> Tensor:
        """Return the loss summed over the source positions of a batch, for the mean of layers and heads."""
        weights = torch.stack([torch.cat(steps, 1) for steps in self.weights.values()]).mean(0)  # (B, T, S)
        weights = weights[: len(batch.labels)]  # of the first pass of R-Drop
        coverage = (weights * (batch.labels != PAD)[..., None]).sum(1)  # (B, S)
        real = torch.arange(coverage.shape[1], device=coverage.device) < batch.source.lengths[:, None]
        return ((1 - coverage).square() * real).sum()


class GuidedHead(NamedTuple):
    """The attention head that learns from gold alignments, the weight of its loss, and the rows that learn."""

    layer: int
    head: int
    weight: float
    rows: str = PREDICTING

    @classmethod
    def choose(cls, settings: TrainingSettings, model: Seq2Seq) -> "GuidedHead":
        """Return the head of the settings, by default head 0 of the penultimate layer (Garg 2019)."""
        layers, heads = model.cross_attention_shape
        layer = max(0, layers - 2) if settings.guided_layer is None else settings.guided_layer
        head = settings.guided_head or 0
        for name, value, count in (("layer", layer, layers), ("head", head, heads)):
            if value >= count:
                raise UsageError(f"training.guided_{name} is {value}; this model has {name}s 0 to {count - 1}")
        # The step after a word knows which word to align; a head that is alone in its layer predicts the next word.
        rows = settings.guided_rows or (READING if heads > 1 else PREDICTING)
        return cls(layer, head, settings.guided_weight or DEFAULT_WEIGHT, rows)


def check_attention_settings(config: Config, *, guided: bool) -> None:
    """Raise a `UsageError` if the settings need cross-attention, a head or alignments that do not exist."""
    settings, arch = config.training, config.model.arch
    for name in ("weight", "layer", "head", "rows"):
        if getattr(settings, f"guided_{name}") is not None and not guided:
            raise UsageError(f"training.guided_{name} has no effect without alignments; add --guided auto or FILE")
    if guided and settings.doubly_stochastic is not None:
        raise UsageError("training.doubly_stochastic and --guided both constrain the attention; use only one of them")
    requested = {
        "--guided": guided,
        "training.doubly_stochastic": settings.doubly_stochastic is not None,
        "--attention-history": config.validation.attention_history,
    }
    for name, is_requested in requested.items():
        if is_requested and not MODELS[arch].has_cross_attention:
            raise UsageError(f"{name} needs a model with attention; {arch} has none")
    if guided:  # the smallest model of these settings has the same layers and heads
        sizes = {"source_vocabulary": MODELS[arch].min_source_size, "target_vocabulary": len(SPECIAL_TOKENS) + 1}
        GuidedHead.choose(settings, build_model(arch, config.model.size, **sizes, **config.model.options))

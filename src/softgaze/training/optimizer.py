"""AdamW and its learning-rate schedules. It depends on the step and on the used share of the budget."""

import math

import torch

from softgaze.config import Config, TrainingSettings
from softgaze.models.base import Seq2Seq


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

"""AdamW and its learning-rate schedules. The learning rate depends on the step alone, never on the clock."""

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


def learning_rate(config: Config, step: int) -> float:
    """Return the learning rate of update `step`, counted from 1; `config` must be resolved."""
    settings = config.training
    peak, warmup = settings.learning_rate, settings.warmup
    assert peak is not None
    assert warmup is not None
    if step <= warmup:
        return peak * step / warmup
    if settings.schedule == "inverse-sqrt":  # Vaswani 2017, §5.3
        return peak * math.sqrt(max(warmup, 1) / step)
    if settings.schedule == "cosine":  # 0 at the last step
        last = config.budget.steps or step
        done = min(1.0, (step - warmup) / max(1, last - warmup))
        return peak * (0.5 * (1 + math.cos(math.pi * done)))
    return peak

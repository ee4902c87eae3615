"""The learning rate at each update: a warm-up, then a course. It depends on the step alone, never on the clock."""

import math
from collections.abc import Callable

from softgaze.config import Config

Course = Callable[[int, int, int], float]  # (step, warm-up, last step) -> share of the peak, after the warm-up


def inverse_sqrt(step: int, warmup: int, last: int) -> float:
    """√(warm-up / step) (Vaswani 2017, §5.3): needs no end."""
    return math.sqrt(max(warmup, 1) / step)


def cosine(step: int, warmup: int, last: int) -> float:
    """From 1 at the end of the warm-up to 0 at the last step."""
    done = (step - warmup) / max(1, last - warmup)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def constant(step: int, warmup: int, last: int) -> float:
    """The peak, for ever."""
    return 1.0


COURSES: dict[str, Course] = {"inverse-sqrt": inverse_sqrt, "cosine": cosine, "constant": constant}


def learning_rate(config: Config, step: int) -> float:
    """The rate of update `step`, counted from 1; the settings must be resolved."""
    training = config.training
    peak, warmup = training.learning_rate, training.warmup
    assert peak is not None
    assert warmup is not None
    if step <= warmup:
        return peak * step / warmup
    return peak * COURSES[training.schedule](step, warmup, config.budget.steps or step)

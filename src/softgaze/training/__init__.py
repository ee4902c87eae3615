"""Training: a pure function of (data, settings, seed), whatever happens on the way."""

from softgaze.training.launch import Interrupted, train

__all__ = ["Interrupted", "train"]

"""Attention as something to look at."""

from softgaze.gaze.attention import Attention
from softgaze.gaze.record import record

__all__ = ["Attention", "record"]

"""Attention as something to look at, to measure, and to keep. What needs torch is imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from softgaze.gaze.alignment import Alignment, aer
from softgaze.gaze.attention import Attention, Comparison
from softgaze.gaze.recording import Recording
from softgaze.gaze.view import Choice, View

if TYPE_CHECKING:
    from softgaze.gaze.watching import Passage, record

LATER = {
    "Passage": "softgaze.gaze.watching",
    "record": "softgaze.gaze.watching",
}

__all__ = ["Alignment", "Attention", "Choice", "Comparison", "Passage", "Recording", "View", "aer", "record"]


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'softgaze.gaze' has no attribute {name!r}")
    return getattr(import_module(LATER[name]), name)

"""Attention as something to look at, to measure, and to keep. What needs torch is imported when it is needed."""

from softgaze.gaze.alignment import Alignment, aer
from softgaze.gaze.attention import Attention, Comparison
from softgaze.gaze.passages import Passage, record
from softgaze.gaze.recording import Recording
from softgaze.gaze.view import Choice, View

__all__ = ["Alignment", "Attention", "Choice", "Comparison", "Passage", "Recording", "View", "aer", "record"]

"""Attention maps: record, measure, compare and store them. Torch is imported only where a model runs."""

from softgaze.explain.alignment import Alignment, aer
from softgaze.explain.attention_map import Attention, MapComparison
from softgaze.explain.recording import Recording, SelectedMap, View
from softgaze.explain.scoring import TokenizedPair, record_attention

__all__ = [
    "Alignment",
    "Attention",
    "MapComparison",
    "Recording",
    "SelectedMap",
    "TokenizedPair",
    "View",
    "aer",
    "record_attention",
]

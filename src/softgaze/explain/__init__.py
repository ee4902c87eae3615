"""Attention maps: record, measure, compare and store them. Torch is imported only where a model runs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# Imported on first use, so that a module of this package loads alone.
_MODULES = {
    "alignment": ("Alignment", "aer"),
    "attention_map": ("Attention", "MapComparison"),
    "recording": ("Recording", "SelectedMap", "View"),
    "scoring": ("TokenizedPair", "record_attention"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

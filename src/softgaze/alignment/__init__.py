"""Word alignment of sentence pairs from statistics of parallel text: a tool of its own, without a translation model."""

from softgaze.alignment.combined import CombinedAligner, combined_alignment
from softgaze.alignment.statistical import StatisticalAligner, train_aligner

__all__ = ["CombinedAligner", "StatisticalAligner", "combined_alignment", "train_aligner"]

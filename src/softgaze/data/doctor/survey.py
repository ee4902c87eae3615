"""The first reading: lengths, scripts and repeats are added up to what is normal for this corpus.

Knows sums; judges nothing and keeps no text.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from softgaze.data.doctor.characters import FIRST_SCRIPT, HAN, KANA, KINDS, SCRIPTS, Array
from softgaze.data.doctor.likeness import Piece
from softgaze.data.doctor.lines import Lines, Window
from softgaze.data.doctor.report import Lengths, Side

_LONGEST_COUNTED = 1 << 16
_RATIO_STEP, _RATIO_LIMIT = 0.005, 6.0


class _Histogram:
    """Counts of whole numbers, from which every quantile follows; what is beyond the limit counts as the limit."""

    def __init__(self) -> None:
        self.counts = np.zeros(_LONGEST_COUNTED + 1, np.int64)
        self.total, self.maximum = 0, 0

    def add(self, values: Array) -> None:
        """Count `values`."""
        counts = np.bincount(np.minimum(values, _LONGEST_COUNTED))
        self.counts[: len(counts)] += counts
        self.total += int(values.sum())
        self.maximum = max(self.maximum, int(values.max(initial=0)))

    def quantile(self, share: float) -> int:
        """Find the smallest number with at least this share of all at or below it."""
        running = np.cumsum(self.counts)
        return int(np.searchsorted(running, max(1.0, share * running[-1])))

    def summary(self) -> Lengths:
        """Describe the distribution in a few numbers."""
        quantiles = (self.quantile(share) for share in (0.5, 0.95, 0.99))
        median, p95, p99 = quantiles
        count = int(self.counts.sum())
        mean = self.total / max(1, count)
        return Lengths(self.quantile(0), median, mean, p95, p99, self.maximum, self._bars(p99))

    def _bars(self, p99: int) -> tuple[tuple[int, int | None, int], ...]:
        width = next((nice for nice in (1, 2, 5, 10, 20, 50, 100, 200, 500) if nice * 10 >= p99), 1000)
        edges = range(1, 10 * width + 2, width)
        bars = [(low, high - 1, int(self.counts[low:high].sum())) for low, high in pairwise(edges)]
        return (*bars, (edges[-1], None, int(self.counts[edges[-1] :].sum())))


def log_ratio(source: Array, target: Array) -> Array:
    """How much longer the target is; ten added characters keep short lines from looking extreme."""
    return np.asarray(np.log((target + 10) / (source + 10)))


class Hashes:
    """Eight bytes for each pair and eight for each source, to find repeats; equal texts always meet, others never do.

    Python's own string hashes have 64 bits: among ten million pairs the chance of one false repeat is 0.000003.
    """

    def __init__(self) -> None:
        self._sources: list[Array] = []
        self._pairs: list[Array] = []

    @staticmethod
    def of(sources: Iterable[str], targets: Iterable[str]) -> tuple[Array, Array]:
        """Hash each source, and each pair."""
        source = np.fromiter(map(hash, sources), np.int64).view(np.uint64)
        target = np.fromiter(map(hash, targets), np.int64).view(np.uint64)
        mixed = (source ^ (source >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + target
        return source, (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)

    def add(self, sources: Array, pairs: Array) -> None:
        """Remember the hashes of some pairs."""
        self._sources.append(sources)
        self._pairs.append(pairs)

    def repeats(self) -> tuple[Array, Array, Array]:
        """Sort out pairs met more than once, sources met with more than one target, and all pairs. Forgets the rest."""
        sources, pairs = (np.concatenate(parts or [np.zeros(0, np.uint64)]) for parts in (self._sources, self._pairs))
        self._sources, self._pairs = [], []
        distinct, first, counts = np.unique(pairs, return_index=True, return_counts=True)
        own = np.sort(sources[first])
        return distinct[counts > 1], np.unique(own[1:][own[1:] == own[:-1]]), distinct


def contains(table: Array, values: Array) -> Array:
    """Which of `values` are in the sorted `table`."""
    if not len(table):
        return np.zeros(len(values), bool)
    place = np.minimum(np.searchsorted(table, values), len(table) - 1)
    return np.asarray(table[place] == values)


class Survey:
    """What the first reading adds up, and from it the corpus' own idea of normal."""

    def __init__(self) -> None:
        self.rows = self.usable = 0
        self.words, self.characters = (_Histogram(), _Histogram()), (_Histogram(), _Histogram())
        self.dominated = np.zeros((2, KINDS - FIRST_SCRIPT), np.int64)
        self.ratios = np.zeros(round(2 * _RATIO_LIMIT / _RATIO_STEP) + 1, np.int64)
        self.hashes = Hashes()
        self.sample: list[Piece] = []

    def add(self, window: Window, source: Lines, target: Lines) -> None:
        """Count one window, of which only lines with text on both sides matter."""
        good = ~source.blank & ~target.blank
        self.rows += len(good)
        self.usable += int(good.sum())
        for side, lines in enumerate((source, target)):
            self.words[side].add(lines.words[good])
            self.characters[side].add(lines.length[good])
            lettered = lines.scripts[good & (lines.scripts.sum(axis=1) > 0)]
            self.dominated[side] += np.bincount(lettered.argmax(axis=1), minlength=self.dominated.shape[1])
        ratio = np.clip(log_ratio(source.length[good], target.length[good]), -_RATIO_LIMIT, _RATIO_LIMIT)
        bins = np.rint((ratio + _RATIO_LIMIT) / _RATIO_STEP).astype(np.int64)
        self.ratios += np.bincount(bins, minlength=len(self.ratios))
        hashes = Hashes.of(window.sources, window.targets)
        self.hashes.add(hashes[0][good], hashes[1][good])

    def ratio(self) -> tuple[float, float]:
        """Median log ratio, and its spread as a robust standard deviation."""
        values = np.arange(len(self.ratios)) * _RATIO_STEP - _RATIO_LIMIT
        median = _weighted_median(values, self.ratios)
        return median, max(0.05, 1.4826 * _weighted_median(np.abs(values - median), self.ratios))

    def home_scripts(self, side: int) -> Array:
        """Mark the scripts at home on a side: each dominates a fifth of its lines. Kana brings Han along."""
        home = self.dominated[side] >= max(1.0, 0.2 * float(self.dominated[side].sum()))
        home[HAN - FIRST_SCRIPT] |= home[KANA - FIRST_SCRIPT]
        return np.asarray(home)

    def side(self, side: int, language: str | None) -> Side:
        """Describe one side."""
        shares = self.dominated[side] / max(1, int(self.dominated[side].sum()))
        ranked = sorted(zip(shares.tolist(), SCRIPTS, strict=False), reverse=True)
        scripts = {name: share for share, name in ranked[:5] if share}
        return Side(language, self.words[side].summary(), self.characters[side].summary(), scripts)


def _weighted_median(values: Array, counts: Array) -> float:
    order = np.argsort(values, kind="stable")
    running = np.cumsum(counts[order])
    return float(values[order][np.searchsorted(running, max(1.0, running[-1] / 2))]) if running[-1] else 0.0


class Normal(NamedTuple):
    """What the first reading found normal for this corpus."""

    ratio: float
    spread: float
    home: tuple[Array, Array]  # scripts of source and target
    repeated: Array
    ambiguous: Array
    pairs: Array  # sorted hashes of all pairs

"""Write a fixed copy of a corpus: unusable pairs removed, shifted ranges realigned where that is safe."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softgaze.data.corpus import Corpus, line_writer
from softgaze.data.quality.check import EDGE, Details, PartAlignment, QualityReport, check_corpus, line_count_finding
from softgaze.data.quality.misalignment import SEARCH_ROWS
from softgaze.data.quality.rules import RULES, Array, RuleChecker, Window, contains, hash_pairs, measure, windows
from softgaze.errors import DataError

DROP = np.iinfo(np.int64).max  # pseudo-offset of rows to remove


@dataclass(frozen=True)
class FixResult:
    """Numbers of pairs kept, of these realigned, and dropped by reason."""

    kept: int
    realigned: int
    dropped: dict[str, int]


def fix_corpus(corpus: Corpus, out_source: Path, out_target: Path, report: QualityReport | None = None) -> FixResult:
    """Write the usable pairs to two plain files; `report` avoids a second check.

    Removed are unreadable lines, empty or one-sided pairs, repetitions, extreme length ratios and unusual scripts. A
    shifted range is realigned if its pairs then score as high as the others, without a few lines at its ends; otherwise
    it is removed. Raises a `DataError`, and writes nothing, if a file cannot be read, if it is unknown where files of
    different length diverge, or if no pair is left.
    """
    details = (report or check_corpus(corpus)).details
    if details is None or len(details.parts) < len(corpus.parts):
        corpus.count()  # raises the error of the file that cannot be read
        raise ValueError("the report is of another corpus")
    for part in details.parts:
        finding = line_count_finding(part)
        if finding and not part.end_is_aligned:
            raise DataError(f"{finding.message}; the corpus cannot be fixed without that position")
    with line_writer(out_source) as write_source, line_writer(out_target) as write_target:
        fixer = _Fixer(details, write_source, write_target)
        for part in details.parts:
            context = max((abs(shift.offset) for shift in part.shifts if shift.confident), default=0)
            for window in windows(iter(part.part.scan(lambda error: None)), 2048, context):
                fixer.write_window(window, plan_offsets(part, window.start, len(window.rows)))
        if not fixer.kept:
            raise DataError("no pair of this corpus is usable")
    return FixResult(fixer.kept, fixer.realigned, dict(fixer.dropped))


class _Fixer:
    def __init__(
        self, details: Details, write_source: Callable[[str], None], write_target: Callable[[str], None]
    ) -> None:
        self.baseline, self.rules = details.baseline, RuleChecker(details.baseline)
        self.write_source, self.write_target = write_source, write_target
        self.kept = self.realigned = 0
        self.dropped: Counter[str] = Counter()
        self.moved: set[int] = set()  # hashes of realigned pairs

    def write_window(self, window: Window, offsets: Array) -> None:
        """Write the usable pairs of a window at the planned offsets."""
        partners: list[str | None] = []
        for row, offset in enumerate(offsets.tolist()):
            index = window.left + row + offset
            inside = 0 <= index < len(window.targets_in_context)
            partners.append(window.targets_in_context[index] if inside else None)
        sources, targets = window.sources, [target or "" for target in partners]
        masks = self.rules.check(sources, targets, measure(sources), measure(targets))
        unreadable = [
            source is None or target is None for (source, _), target in zip(window.rows, partners, strict=True)
        ]
        reasons = {"shifted": offsets == DROP, "unreadable": np.array(unreadable)}
        reasons |= {code: mask for code, mask in masks.items() if RULES[code].drop}
        reasons["duplicate"] |= self._repeated(sources, targets, (offsets != 0) & (offsets != DROP))
        keep = np.ones(len(offsets), bool)
        for code, mask in reasons.items():
            self.dropped[code] += int((mask & keep).sum())
            keep &= ~mask
        for row in np.flatnonzero(keep).tolist():
            self.write_source(sources[row].lstrip("\ufeff"))
            self.write_target(targets[row].lstrip("\ufeff"))
        self.kept += int(keep.sum())
        self.realigned += int((keep & (offsets != 0)).sum())

    def _repeated(self, sources: list[str], targets: list[str], moved: Array) -> Array:
        """Return which realigned pairs occur elsewhere, which the statistics of the check do not include."""
        _, hashes = hash_pairs(sources, targets)
        repeated = contains(self.baseline.all_pairs, hashes) & moved
        for row in np.flatnonzero(moved & ~repeated).tolist():
            repeated[row] = int(hashes[row]) in self.moved
            self.moved.add(int(hashes[row]))
        return repeated


def plan_offsets(alignment: PartAlignment, start: int, count: int) -> Array:
    """Return the offset of the partner of each row of a window, or `DROP`."""
    plan, shorter = np.zeros(count, np.int64), min(alignment.counts)
    edges = []
    for shift in alignment.shifts:
        stop = shift.stop if shift.stop < shorter else max(alignment.counts)
        plan[max(0, shift.start - start) : max(0, stop - start)] = shift.offset if shift.confident else DROP
        margin = EDGE + (abs(shift.offset) if shift.confident else 0)
        edges += [(edge, margin) for edge in (shift.start, stop) if 0 < edge < shorter]
    if alignment.counts[0] != alignment.counts[1] and not any(shift.stop == shorter for shift in alignment.shifts):
        edges.append((shorter, SEARCH_ROWS))  # too close to the end to decide which line is the additional one
    for edge, margin in edges:
        plan[max(0, edge - margin - start) : max(0, edge + margin - start)] = DROP
    return plan

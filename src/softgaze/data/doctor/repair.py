"""Fixing a corpus: what is worth keeping is written to new files, shifted ranges put right where that is safe.

Knows an examination's diagnosis; finds nothing itself and never touches the corpus.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softgaze.data.corpus import Corpus, writing
from softgaze.data.doctor.characters import Array
from softgaze.data.doctor.diagnosis import EDGE, Diagnosis, PartDiagnosis, mismatch
from softgaze.data.doctor.examination import examine
from softgaze.data.doctor.judge import RULES, Judge
from softgaze.data.doctor.lines import Window, measure, windows
from softgaze.data.doctor.report import Report
from softgaze.data.doctor.shifts import NOTICE
from softgaze.data.doctor.survey import Hashes, contains
from softgaze.errors import DataError

LEFT_OUT = np.iinfo(np.int64).max  # stands for an offset: this row has no partner worth keeping


@dataclass(frozen=True)
class Fixed:
    """What `fix` wrote: pairs kept, how many of them moved to the line they fit, and pairs left out by reason."""

    kept: int
    realigned: int
    dropped: dict[str, int]


def fix(corpus: Corpus, out_source: Path, out_target: Path, report: Report | None = None) -> Fixed:
    """Write the pairs worth keeping to two plain files.

    Left out: lines that cannot be read, empty or one-sided pairs, repeats, extreme length ratios, foreign scripts. A
    shifted range is put right where its pairs then look as good as the rest, less a few lines at its edges; else left
    out. Files of different length are paired only if it is known where they slip. Files that cannot be read at all, or
    nothing to keep, is a `DataError`, and nothing is written. `report` saves examining again.
    """
    diagnosis = (report or examine(corpus)).diagnosis
    if diagnosis is None or len(diagnosis.parts) < len(corpus.parts):
        corpus.count()  # raises for the file that could not be read
        raise ValueError("this report is not about this corpus")
    for part in diagnosis.parts:
        if not part.settled:
            raise DataError(f"{next(mismatch(part)).message}; it cannot be fixed without knowing")
    with ExitStack() as files:
        write = files.enter_context(writing(out_source)), files.enter_context(writing(out_target))
        return _Repair(diagnosis, write).run()


class _Repair:
    """One run of `fix`."""

    def __init__(self, diagnosis: Diagnosis, write: tuple[Callable[[str], None], Callable[[str], None]]) -> None:
        self.diagnosis, self.write = diagnosis, write
        self.judge = Judge(diagnosis.normal)
        self.kept = self.realigned = 0
        self.dropped: Counter[str] = Counter()
        self.moved: set[int] = set()  # hashes of realigned pairs, to drop repeats among them

    def run(self) -> Fixed:
        """Read, choose and write."""
        for part in self.diagnosis.parts:
            reach = max((abs(shift.offset) for shift in part.shifts if shift.confident), default=0)
            for window in windows(iter(part.part.survey(lambda error: None)), 2048, reach):
                self._window(window, plan_for(part, window.start, len(window.rows)))
        if not self.kept:
            raise DataError("nothing in this corpus can be kept")
        return Fixed(self.kept, self.realigned, dict(self.dropped))

    def _window(self, window: Window, plan: Array) -> None:
        found = [self._partner(window, row, offset) for row, offset in enumerate(plan.tolist())]
        sources, targets = window.sources, [target or "" for target in found]
        masks = self.judge(sources, targets, measure(sources), measure(targets))
        unreadable = np.array([s is None or t is None for (s, _), t in zip(window.rows, found, strict=True)])
        reasons = {"shifted": plan == LEFT_OUT, "unreadable": unreadable}
        reasons |= {code: mask for code, mask in masks.items() if RULES[code].drops}
        reasons["duplicate"] |= self._repeats(sources, targets, (plan != 0) & (plan != LEFT_OUT))
        keep = np.ones(len(plan), bool)
        for code, mask in reasons.items():
            self.dropped[code] += int((mask & keep).sum())
            keep &= ~mask
        for row in np.flatnonzero(keep).tolist():
            self.write[0](sources[row].lstrip("\ufeff"))
            self.write[1](targets[row].lstrip("\ufeff"))
        self.kept += int(keep.sum())
        self.realigned += int((keep & (plan != 0)).sum())

    @staticmethod
    def _partner(window: Window, row: int, offset: int) -> str | None:
        place = window.left + row + offset
        return window.reached[place] if 0 <= place < len(window.reached) else None

    def _repeats(self, sources: list[str], targets: list[str], moved: Array) -> Array:
        """Mark realigned pairs that the corpus has elsewhere: the first reading could not know these."""
        hashes = Hashes.of(sources, targets)[1]
        again = contains(self.diagnosis.normal.pairs, hashes) & moved
        for row in np.flatnonzero(moved & ~again).tolist():
            again[row] = int(hashes[row]) in self.moved
            self.moved.add(int(hashes[row]))
        return again


def plan_for(diagnosis: PartDiagnosis, start: int, count: int) -> Array:
    """Say for each row of a window at which offset its partner stands, or that it is left out."""
    plan, shorter = np.zeros(count, np.int64), min(diagnosis.counts)
    edges = []
    for shift in diagnosis.shifts:
        stop = shift.stop if shift.stop < shorter else max(diagnosis.counts)
        plan[max(0, shift.start - start) : max(0, stop - start)] = shift.offset if shift.confident else LEFT_OUT
        margin = EDGE + (abs(shift.offset) if shift.confident else 0)
        edges += [(edge, margin) for edge in (shift.start, stop) if 0 < edge < shorter]
    if diagnosis.counts[0] != diagnosis.counts[1] and not any(shift.stop == shorter for shift in diagnosis.shifts):
        edges.append((shorter, NOTICE))  # too near the end to see which line is the extra one
    for edge, margin in edges:
        plan[max(0, edge - margin - start) : max(0, edge + margin - start)] = LEFT_OUT
    return plan

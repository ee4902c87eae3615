"""What is known of each part of a corpus once its evidence is in: where it slips, and whether it can be put right.

Knows line counts and shifted ranges; reads no text.
"""

from collections.abc import Iterator
from typing import NamedTuple

from softgaze.data.corpus import Part
from softgaze.data.doctor.characters import Array
from softgaze.data.doctor.evidence import SCALE
from softgaze.data.doctor.report import Finding
from softgaze.data.doctor.shifts import NOWHERE, Shift, find_shifts
from softgaze.data.doctor.survey import Normal

EDGE = 4  # rows by which a range may be off: left out on both sides of its edges, together with the offset


class PartDiagnosis(NamedTuple):
    """One part of the corpus: its line counts, shifted ranges, and whether its end is known to be aligned."""

    part: Part
    counts: tuple[int, int]
    shifts: list[Shift]
    settled: bool


class Diagnosis(NamedTuple):
    """Everything `fix` needs to know."""

    normal: Normal
    parts: list[PartDiagnosis]


def diagnose(part: Part, counts: tuple[int, int], evidence: Array, offsets: Array) -> PartDiagnosis:
    """Find the shifted ranges of a part, and whether its last lines are known to fit."""
    difference = counts[1] - counts[0]
    shifts = find_shifts(evidence, offsets, difference)
    last = shifts[-1] if shifts and shifts[-1].stop == len(evidence) else Shift(0, len(evidence), 0, True)
    end = evidence[max(last.start, len(evidence) - 200) :, offsets == last.offset]
    fits = len(evidence) > 0 and end.mean() > 0.5 * SCALE
    return PartDiagnosis(part, counts, shifts, difference == 0 or bool(fits and last.offset in (0, difference)))


def direction(offset: int) -> str:
    """Say where the lines of a range belong."""
    if offset == NOWHERE:
        return "look unrelated: no target line near fits its source line"
    return f"look shifted by {abs(offset):,} (source line n fits target line n{offset:+,})"


def mismatch(diagnosis: PartDiagnosis) -> Iterator[Finding]:
    """Name different line counts, and where the files probably slip."""
    source, target = diagnosis.counts
    if source == target:
        return
    paths = diagnosis.part.paths
    counts = f"{paths[0]} has {source:,} lines, {paths[1]} {target:,}"
    shifts = [shift for shift in diagnosis.shifts if abs(shift.offset) <= abs(target - source)]
    if diagnosis.settled and shifts and shifts[-1].stop == min(source, target):
        where = "the first line that no longer fits is near line " + _slip(diagnosis.shifts)
    elif diagnosis.settled:
        where = "all lines fit up to the end of the shorter file: the longer one has extra lines there"
    else:
        where = "where they slip could not be found: look for a line that was lost or split"
    yield Finding("line_counts", "fatal", abs(target - source), f"{counts}; {where}")


def _slip(shifts: list[Shift]) -> str:
    """Name the row where the last unbroken run of shifts starts, for it leads to the end of the file."""
    start = shifts[-1].start
    for shift in reversed(shifts):
        start = shift.start if abs(shift.stop - start) <= EDGE or shift is shifts[-1] else start
    return f"{start + 1:,}"

"""Ranges that look shifted: the best path through the evidence for all offsets, where each change of offset costs.

Knows numbers only; nothing about text or files.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from softgaze.data.doctor.characters import Array
from softgaze.data.doctor.evidence import SCALE

NOWHERE = 1 << 20  # stands for an offset: no target line near fits, and the evidence for that is always zero
_SWITCH = 12.0  # nats a change of offset must earn: chance gains that much once in 160,000 tries
_LEAST_GAIN, _EXPECTED_GAIN = 30.0, 10.0  # for a range to count; less at the end of files of different length
_LEAST_NOWHERE = 20  # rows
NOTICE, _AROUND = 8, 60  # rows over which another offset must look better to start a search, and how far it goes


class Shift(NamedTuple):
    """Rows `start` to before `stop` of a part whose source lines fit the target lines `offset` on, or nowhere."""

    start: int
    stop: int
    offset: int
    confident: bool  # whether the pairs at that offset look as right as the corpus usually does


def _suspicious(evidence: Array, home: int) -> list[tuple[int, int]]:
    """Find the stretches in which another offset looks better for a few rows: only there a path is worth searching."""
    rows, marked = len(evidence), np.zeros(len(evidence) + 1, np.int64)
    for start in range(0, rows, 1 << 16):
        piece = evidence[start : start + (1 << 16) + NOTICE].astype(np.int32)
        running = np.cumsum(np.concatenate([piece[:1] * 0, piece - piece[:, [home]]]), axis=0)
        better = np.flatnonzero((running[NOTICE:] - running[:-NOTICE]).max(axis=1, initial=0) > 0) + start
        marked += np.bincount(np.maximum(0, better - _AROUND), minlength=rows + 1)
        marked -= np.bincount(np.minimum(rows, better + NOTICE + _AROUND), minlength=rows + 1)
    inside = np.concatenate([[False], np.cumsum(marked)[:rows] > 0, [False]])
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    return [(int(low), int(high)) for low, high in edges.reshape(-1, 2)]


def _best_path(evidence: Array, opening: Array, closing: Array) -> Array:
    """Choose an offset for each row (Viterbi); `opening` and `closing` price the offsets at both ends."""
    states = np.arange(evidence.shape[1])
    came_from = np.empty(evidence.shape, np.int8)
    score, nats = -opening, evidence / SCALE
    for row in range(len(evidence)):
        best = int(score.argmax())
        switched = score[best] - _SWITCH
        came_from[row] = np.where(score >= switched, states, best)
        score = np.maximum(score, switched) + nats[row]
    path = np.empty(len(evidence), np.int64)
    state = int((score - closing).argmax())
    for row in range(len(evidence) - 1, -1, -1):
        path[row], state = state, came_from[row, state]
    return path


def find_shifts(evidence: Array, offsets: Array, difference: int) -> list[Shift]:
    """Find the ranges where another offset is clearly better; files of different length may end at `difference`."""
    home = int(np.flatnonzero(offsets == 0)[0])
    usual = float(evidence[:, home].mean()) / SCALE if len(evidence) else 0.0
    shifts: list[Shift] = []
    for low, high in _suspicious(evidence, home):
        away = np.where(offsets == 0, 0.0, _SWITCH)
        barred = np.where(offsets == 0, 0.0, np.inf)
        closing = np.where(offsets == difference, 0.0, away) if high == len(evidence) else barred
        path = _best_path(evidence[low:high], away if low == 0 else barred, closing)
        edges = np.flatnonzero(np.diff(path, prepend=-1, append=-1))
        for start, stop in pairwise((edges + low).tolist()):
            expected = stop == len(evidence) and difference != 0 and offsets[path[start - low]] == difference
            least = _EXPECTED_GAIN if expected else _LEAST_GAIN
            found = _weigh(evidence[start:stop], start, int(path[start - low]), offsets, usual, least)
            shifts += [found] if found else []
    return _joined(shifts)


def _weigh(evidence: Array, start: int, column: int, offsets: Array, usual: float, least: float) -> Shift | None:
    """Make a `Shift` of a stretch of the path, unless it is at home or gains too little."""
    offset, stop = int(offsets[column]), start + len(evidence)
    there, here = (evidence[:, which].astype(np.float64).ravel() / SCALE for which in (column, offsets == 0))
    gain, level = float((there - here).sum()), float(there.mean())
    if offset == NOWHERE:
        return Shift(start, stop, offset, False) if gain >= 2 * least and len(evidence) >= _LEAST_NOWHERE else None
    if offset == 0 or gain < least or level <= 0.25:
        return None
    return Shift(start, stop, offset, level > 0.5 * max(usual, 0.5))


def _joined(shifts: list[Shift]) -> list[Shift]:
    """Join ranges of one offset with but a few rows between them, which were too few to tell."""
    joined: list[Shift] = []
    for shift in shifts:
        last = joined[-1] if joined else None
        if last and last.offset == shift.offset and shift.start - last.stop <= _AROUND:
            shift = Shift(last.start, shift.stop, shift.offset, last.confident and shift.confident)
            joined.pop()
        joined.append(shift)
    return joined

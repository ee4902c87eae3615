"""Shifted ranges: planted ones are found where they are, and only what is clearly better counts."""

from pathlib import Path

import numpy as np
import pytest

from data.doctor.toys import found, save, toy_pairs, with_shift
from softgaze.data.doctor import examine
from softgaze.data.doctor.evidence import SCALE
from softgaze.data.doctor.shifts import NOWHERE, Shift, find_shifts


@pytest.mark.parametrize(("gain", "expected"), [(0.5, []), (2.2, []), (3.0, [Shift(100, 112, 2, True)])])
def test_a_range_must_earn_its_keep(gain: float, expected: list[Shift]) -> None:
    offsets = np.array([*range(-5, 6), NOWHERE])
    evidence = np.full((300, len(offsets)), -3.0) * SCALE
    evidence[:, offsets == 0] = 2 * SCALE
    evidence[:, offsets == NOWHERE] = 0
    evidence[100:112, offsets == 0] = 0
    evidence[100:112, offsets == 2] = gain * SCALE
    assert find_shifts(evidence.astype(np.int8), offsets, 0) == expected


@pytest.mark.parametrize("offset", [-3, -2, -1, 1, 2, 3])
@pytest.mark.parametrize("hangul", [False, True])
def test_a_planted_shift_is_found(tmp_path: Path, offset: int, hangul: bool) -> None:
    pairs = with_shift(toy_pairs(1200, seed=offset, hangul=hangul), 600, 40, offset)
    report = examine(save(tmp_path, pairs))
    finding = found(report, "shifted")
    start, stop = (int(number.replace(",", "")) for number in finding.message.split()[1].split("–"))
    assert abs(start - 601) <= 3
    assert abs(stop - 640) <= 3
    assert f"shifted by {abs(offset)} (source line n fits target line n{offset:+})" in finding.message
    assert (finding.level, report.exit_code) == ("warning", 0)

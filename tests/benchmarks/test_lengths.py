"""The table; one real measurement, whose speed nobody asserts."""

import math

import pytest

from benchmarks.lengths import CASES, measure, table


def test_what_could_not_be_measured_is_said_and_not_fitted():
    found = [{"seconds": 0.001 * length} for length in (32, 64, 128)]
    text = table("Milliseconds", {"rnn": [*found, "over 12 GiB"]}, "seconds", 1e3, [32, 64, 128, 256])
    assert "| rnn | 32 | 64 | 128 | over 12 GiB | 1.00 |" in text


@pytest.mark.parametrize("name", CASES)
def test_every_case_can_be_measured(name):
    found = measure(*CASES[name], 16, 1)
    assert found["seconds"] > 0
    assert math.isfinite(found["bytes"])

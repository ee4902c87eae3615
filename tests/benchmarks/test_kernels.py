"""The benchmark of oneDNN's kernel caches."""

from benchmarks.kernels import CAPACITIES, Cost, measure, table
from softgaze.runtime import BFLOAT16_KERNELS


def test_a_process_of_its_own_trains_with_a_capacity():
    cost = measure("float32", 16, 2)
    assert cost.rate > 0
    assert cost.memory > 100  # torch alone takes more


def test_every_capacity_is_a_row():
    costs = {"bfloat16": Cost(9.04, 1234.5), "float32": Cost(5.0, 700.0)}
    lines = table(dict.fromkeys(CAPACITIES, costs)).splitlines()
    assert lines[2] == "| 16 | 9.0 | 1,234 | 5.0 | 700 |"
    assert f"| {BFLOAT16_KERNELS} (softgaze's with bfloat16) |" in lines[3]
    assert len(lines) == 2 + len(CAPACITIES)

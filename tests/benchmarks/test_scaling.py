"""What many workers would give, on paper: the arithmetic, and that the page quotes it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scaling import (
    NUMBER,
    PAGE,
    RECORD,
    Cost,
    Network,
    Scenario,
    all_reduce_seconds,
    efficiency,
    imbalance,
    tables,
    update,
    with_tables,
)

COST = Cost(60_000_000, 0.3, 0.008)
NOWHERE = Network(0.0, 1e30)

costs = st.builds(Cost, st.integers(1, 10**9), st.floats(0, 10), st.floats(1e-6, 1))
networks = st.builds(Network, st.floats(0, 1e-2), st.floats(1e6, 1e12))
scenarios = st.builds(Scenario, st.just(""), st.floats(0.1, 1000), networks)


@given(costs, scenarios, st.integers(1000, 50_000))
def test_one_worker_sends_nothing(cost, scenario, tokens):
    assert all_reduce_seconds(1, cost.parameters, scenario.network) == 0
    assert update(1, tokens, cost, scenario) == pytest.approx((cost.fixed + cost.token * tokens) / scenario.speed)
    assert efficiency(1, tokens, cost, scenario) == 1


def test_a_perfect_network_loses_only_what_cannot_be_shared():
    scenario = Scenario("", 1, NOWHERE)
    shared = COST._replace(fixed=0.0)
    assert efficiency(8, 400_000, shared, scenario) == pytest.approx(1 / imbalance(8, 400_000), rel=1e-9)
    assert efficiency(8, 400_000, COST, scenario) < efficiency(8, 400_000, shared, scenario)


@given(networks)
def test_a_ring_passes_all_gradients_on_twice_however_many_there_are(network):
    """But for the latency, which grows with the ring."""
    quick = network._replace(latency=0.0)
    twice = 2 * NUMBER * COST.parameters / quick.rate
    assert all_reduce_seconds(2, COST.parameters, quick) == pytest.approx(twice / 2)
    assert all_reduce_seconds(10_000, COST.parameters, quick) == pytest.approx(twice, rel=1e-3)


def test_the_page_quotes_what_was_measured_and_what_follows():
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page, record) == page
    assert all(table in page for table in tables(record).values())

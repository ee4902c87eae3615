"""Batches of readings: every reading once, none too wide, however short the lines are."""

from hypothesis import given
from hypothesis import strategies as st

from softgaze.engines.base import SHORTEST, Reading, by_length


@given(lengths=st.lists(st.integers(1, 60), max_size=200), budget=st.integers(1, 500))
def test_batches_hold_every_reading_once_within_the_budget(lengths, budget):
    batches = list(by_length([Reading(range(length)) for length in lengths], budget))
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[number] for number in batch)
        assert len(batch) == 1 or len(batch) * max(longest, SHORTEST) <= budget

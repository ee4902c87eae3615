from hypothesis import given
from hypothesis import strategies as st

from softgaze.engines.base import MIN_LENGTH, EncodedSource, length_batches


@given(lengths=st.lists(st.integers(1, 60), max_size=200), budget=st.integers(1, 500))
def test_batches_hold_every_source_once_within_the_budget(lengths, budget):
    batches = length_batches([EncodedSource(range(length)) for length in lengths], budget)
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[number] for number in batch)
        assert len(batch) == 1 or len(batch) * max(longest, MIN_LENGTH) <= budget

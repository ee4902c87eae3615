from hypothesis import given
from hypothesis import strategies as st

from softgaze.evaluation.compare.sentences import LONGEST, choose_sentences

TEXTS = st.lists(st.integers(0, 30).map(lambda length: " ".join(["word"] * length)), max_size=60)


@given(TEXTS)
def test_sentences_are_distinct_readable_and_grow(texts):
    chosen = choose_sentences(texts)
    lengths = [len(texts[number].split()) for number in chosen]
    readable = [text for text in texts if 0 < len(text.split()) <= LONGEST]
    candidates = readable or [text for text in texts if text]
    assert len(set(chosen)) == len(chosen) == min(5, len(candidates))
    assert lengths == sorted(lengths)
    assert not readable or all(0 < length <= LONGEST for length in lengths)


def test_lengths_are_spread_over_the_whole_range():
    texts = [" ".join(["word"] * length) for length in range(1, 16)]
    assert [len(texts[number].split()) for number in choose_sentences(texts)] == [2, 5, 8, 11, 14]

"""The text that a neural aligner learns from: links of joined and recased pairs are those of their parts."""

import random

from hypothesis import given
from hypothesis import strategies as st

from softgaze.data.corpus import Pair
from softgaze.training.neural_aligner import MAX_WORDS, LinkedPair, join, joined, varied

words = st.lists(st.sampled_from(["a", "Bb", "c.", "É"]), min_size=1, max_size=6)


@st.composite
def rows(draw):
    source, target = draw(words), draw(words)
    cells = [(one, other) for one in range(len(source)) for other in range(len(target))]
    return LinkedPair(Pair(" ".join(source), " ".join(target)), frozenset(draw(st.sets(st.sampled_from(cells)))))


def linked_words(row):
    """Return the linked words in lower case, once for each link."""
    sides = [side.lower().split() for side in row.pair]
    return sorted((sides[0][one], sides[1][other]) for one, other in row.links)


@given(st.lists(rows(), min_size=1, max_size=5))
def test_links_of_a_joined_pair_are_those_of_its_parts(parts):
    row = join(parts)
    assert row.pair == tuple(" ".join(part.pair[side] for part in parts) for side in (0, 1))
    assert linked_words(row) == sorted(word for part in parts for word in linked_words(part))
    sizes = [len(side.split()) for side in parts[0].pair]
    assert all((one < sizes[0]) == (other < sizes[1]) for one, other in row.links), "the first part"


@given(st.lists(rows(), max_size=30))
def test_every_pair_is_kept_and_is_in_at_most_one_joined_pair(pairs):
    found = list(varied(pairs))
    assert [linked_words(row) for row in found[: len(pairs)]] == list(map(linked_words, pairs))
    longer = found[len(pairs) :]
    assert sum(len(row.links) for row in longer) <= sum(len(row.links) for row in pairs)
    assert [row.pair for row in found] == [row.pair for row in varied(pairs)], "the text repeats exactly"


def test_some_pairs_are_recased_and_long_ones_are_not_joined():
    short = LinkedPair(Pair("Ab", "Cd"), frozenset({(0, 0)}))
    cases = {row.pair.source for row in list(varied([short] * 300))[:300]}
    assert cases == {"Ab", "ab", "AB"}
    long = LinkedPair(Pair("a " * MAX_WORDS, "b"), frozenset())
    assert not list(joined([long] * 9, random.Random(1)))
    assert len(list(joined([short] * 9, random.Random(1)))) >= 2

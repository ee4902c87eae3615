import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search.scripted import (
    LETTERS,
    SEARCHES,
    VOCABULARY,
    A,
    B,
    C,
    Script,
    drawn,
    every_sentence,
    greedy,
    same_hypotheses,
    search,
    spelling,
)
from softgaze.models import Source
from softgaze.special_tokens import BOS, EOS, PAD, SPECIAL_TOKENS, UNK

ONE = Source.of([[9]])
SEEDS = st.integers(0, 2**32)
every_search = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
RAMBLING = spelling({(9,): (A,) * 200, (8, 8): (B,) * 200})


def repeats(tokens, size):
    """Whether some n-gram is written twice: compared one by one."""
    grams = [tokens[start : start + size] for start in range(len(tokens) - size + 1)]
    return any(gram in grams[:place] for place, gram in enumerate(grams))


# --- every rule against trying everything -----------------------------------------------------------------------

RULES = {
    "min_length": ({"min_length": 2}, lambda prefix, token: token != EOS or len(prefix) >= 2),
    "min_length = max_length": ({"min_length": 4}, lambda prefix, token: token != EOS),
    "no_repeat_ngram_size 1": ({"no_repeat_ngram_size": 1}, lambda prefix, token: not repeats((*prefix, token), 1)),
    "no_repeat_ngram_size 2": ({"no_repeat_ngram_size": 2}, lambda prefix, token: not repeats((*prefix, token), 2)),
    "no_repeat_ngram_size 3": ({"no_repeat_ngram_size": 3}, lambda prefix, token: not repeats((*prefix, token), 3)),
    "prefix": ({"prefixes": [(B, A)]}, lambda prefix, token: (*prefix, token)[:2] == (B, A)[: len(prefix) + 1]),
    "prefix that repeats": (
        {"prefixes": [(B, B, B)], "no_repeat_ngram_size": 2},
        lambda prefix, token: token == B if len(prefix) < 3 else not repeats((B, token), 2) and token != B,
    ),
    "all at once": (
        {"prefixes": [(C,)], "no_repeat_ngram_size": 2, "min_length": 3},
        lambda prefix, token: (
            token == C if not prefix else not repeats((*prefix, token), 2) and (token != EOS or len(prefix) >= 3)
        ),
    ),
}


@pytest.mark.parametrize(("chosen", "allowed"), RULES.values(), ids=RULES)
@settings(max_examples=10)
@given(seed=SEEDS)
def test_a_rule_leaves_exactly_what_it_allows(chosen, allowed, seed):
    follow = drawn(seed)
    (found,) = search(Script(follow), ONE, beam_size=125, num_hypotheses=125, max_length=4, **chosen)
    same_hypotheses(found, every_sentence(follow, (9,), 4, allowed=allowed))


# --- lengths ----------------------------------------------------------------------------------------------------


@every_search
@pytest.mark.parametrize("longest", [1, 2, 7])
def test_what_has_not_ended_at_the_maximum_length_is_cut(search, longest):
    found = search(Script(RAMBLING), ONE, max_length=longest)[0][0]
    assert (len(found.tokens), found.finished) == (longest, False)


def test_by_default_twice_the_source_and_twenty_more_tokens_fit():
    found = greedy(Script(RAMBLING), Source.of([(9,), (8, 8)]))
    assert [len(each.tokens) for each in found] == [22, 24]


@every_search
@given(seed=SEEDS, least=st.integers(0, 5))
def test_nothing_is_shorter_than_the_minimum_length(search, seed, least):
    found = search(Script(drawn(seed)), ONE, min_length=least, max_length=6)[0]
    assert found
    assert all(len(each.tokens) >= least for each in found)


def test_a_minimum_beyond_the_default_maximum_moves_it():
    (found,) = greedy(Script(spelling({(9,): (A,)})), ONE, min_length=40)
    assert (len(found.tokens), found.finished) == (40, True)


def test_a_sentence_that_nothing_may_follow_ends_before_its_minimum_length():
    (found,) = greedy(Script(drawn(0)), ONE, min_length=9, max_length=9, no_repeat_ngram_size=1)
    assert (sorted(found.tokens), found.finished) == ([*LETTERS], True)


# --- prefixes ---------------------------------------------------------------------------------------------------


@every_search
@settings(max_examples=30)
@given(seed=SEEDS, prefixes=st.lists(st.lists(st.sampled_from(LETTERS), max_size=4), min_size=3, max_size=3))
def test_each_sentence_begins_with_its_own_prefix(search, seed, prefixes):
    sentences, model = [(7,), (8,), (9,)], Script(drawn(seed))
    found = search(model, Source.of(sentences), max_length=6, prefixes=prefixes)
    for sentence, prefix, hypotheses in zip(sentences, prefixes, found, strict=True):
        assert all(each.tokens[: len(prefix)] == tuple(prefix) for each in hypotheses)
        alone = search(model, Source.of([sentence]), max_length=6, prefixes=[prefix] if prefix else None)
        assert hypotheses == alone[0]


@every_search
def test_one_token_fits_after_a_prefix_as_long_as_the_maximum(search):
    found = search(Script(drawn(1)), ONE, max_length=2, prefixes=[(A, B, C)])[0]
    assert found
    assert all(each.tokens[:3] == (A, B, C) for each in found)
    assert all(len(each.tokens) == 3 + (not each.finished) for each in found)


# --- what never happens -----------------------------------------------------------------------------------------


@every_search
@pytest.mark.parametrize("loud", [PAD, UNK, BOS])
def test_special_tokens_are_never_written_however_likely(search, loud):
    quiet = drawn(2)

    def follow(sentence, prefix):
        return [50.0 if token == loud else logit for token, logit in enumerate(quiet(sentence, prefix))]

    found = search(Script(follow), ONE, max_length=5)[0]
    assert found
    assert all(not set(each.tokens) & set(SPECIAL_TOKENS) for each in found)


@every_search
@pytest.mark.parametrize("prefixes", [None, [(A,)]], ids=["free", "forced"])
def test_there_is_a_hypothesis_even_where_the_model_allows_none(search, prefixes):
    only_padding = [0.0 if token == PAD else -math.inf for token in range(VOCABULARY)]
    (found,) = search(Script(lambda sentence, prefix: only_padding), ONE, max_length=3, prefixes=prefixes)
    assert found
    assert all(math.isfinite(each.score) for each in found)


# --- bad options ------------------------------------------------------------------------------------------------

MISTAKES = {
    "one prefix": ([A, B], "one sequence of token ids for each sentence"),
    "half an id": ([[4.5]], "ids of ordinary tokens"),
    "special": ([[A, EOS]], "ids of ordinary tokens"),
    "negative": ([[-1]], "ids of ordinary tokens"),
    "unknown": ([[A, 99]], f"99 is outside the vocabulary of {VOCABULARY}"),
    "too many": ([[A], [B]], "expected 1 prefixes, .* got 2"),
    "too few": ([], "expected 1 prefixes, .* got 0"),
}


@every_search
@pytest.mark.parametrize(("prefixes", "message"), MISTAKES.values(), ids=MISTAKES)
def test_invalid_prefixes_are_rejected(search, prefixes, message):
    with pytest.raises(ValueError, match=message):
        search(Script(drawn(0)), ONE, prefixes=prefixes)

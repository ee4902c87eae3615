import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.scripted import LETTERS, A, B, C, Script, drawn, greedy, log_softmax, same_hypotheses, search, telling
from softgaze.models import Source
from softgaze.search.sampling import draw
from softgaze.special_tokens import EOS

ONE = Source.of([[9]])
SEEDS = st.integers(0, 2**32)
CHANCES = {A: 0.5, B: 0.3, C: 0.15, EOS: 0.05}
FIRST = telling({(): CHANCES})
MANY = 2000


def sample(model, source, temperature=1.0, **fields):
    return search(model, source, temperature=temperature, **fields)


def first_tokens(*, seed=0, source=ONE, **options):
    """How often each token was drawn first, END among them."""
    found = sample(Script(FIRST), source, num_hypotheses=MANY, max_length=1, seed=seed, **options)
    return Counter(each.tokens[0] if each.tokens else EOS for each in found[0])


def chi_square(counts, chances):
    """Zero for tokens that cannot come; about the degrees of freedom for those that can."""
    assert set(counts) <= {token for token, chance in chances.items() if chance}
    total = sum(counts.values())
    return sum((counts[token] - total * chance) ** 2 / (total * chance) for token, chance in chances.items())


def kept(chances, tokens):
    """What remains of a distribution when all but `tokens` are cut."""
    total = sum(chances[token] for token in tokens)
    return {token: chances[token] / total for token in tokens}


def warmed(chances, temperature):
    """A distribution with every probability to the power of 1/temperature."""
    return kept({token: chance ** (1 / temperature) for token, chance in chances.items()}, chances)


# --- the distribution -------------------------------------------------------------------------------------------

CASES = {
    "plain": ({}, CHANCES),
    "hot": ({"temperature": 2.0}, warmed(CHANCES, 2.0)),
    "cold": ({"temperature": 0.5}, warmed(CHANCES, 0.5)),
    "top 1": ({"top_k": 1}, {A: 1.0}),
    "top 2": ({"top_k": 2}, kept(CHANCES, (A, B))),
    "top of all": ({"top_k": 100}, CHANCES),
    "nucleus within the first": ({"top_p": 0.4}, {A: 1.0}),
    "nucleus within the second": ({"top_p": 0.6}, kept(CHANCES, (A, B))),
    "nucleus within the third": ({"top_p": 0.9}, kept(CHANCES, (A, B, C))),
    "both": ({"top_k": 2, "top_p": 0.62}, {A: 1.0}),  # p counts within what k kept: 0.62 · 0.8 is less than 0.5
    "temperature first": ({"temperature": 2.0, "top_p": 0.6}, kept(warmed(CHANCES, 2.0), (A, B))),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("options", "chances"), CASES.values(), ids=CASES)
def test_tokens_come_as_often_as_they_should(options, chances, seed):
    """At three degrees of freedom 16.3 is passed once in a thousand."""
    assert chi_square(first_tokens(seed=seed, **options), chances) < 16.3


def test_later_tokens_depend_on_those_before_and_not_on_their_luck():
    follow = telling({(): {A: 0.5, B: 0.5}, (A,): {A: 0.5, B: 0.5}, (B,): {A: 0.25, B: 0.75}})
    found = sample(Script(follow), ONE, num_hypotheses=MANY, max_length=2)
    chances = {(A, A): 0.25, (A, B): 0.25, (B, A): 0.125, (B, B): 0.375}
    assert chi_square(Counter(each.tokens for each in found[0]), chances) < 16.3


def test_different_sentences_have_different_luck():
    source = Source.of([(number,) for number in range(4, 104)])
    found = sample(Script(FIRST), source, max_length=1)
    assert chi_square(Counter((*each.tokens, EOS)[0] for (each,) in found), CHANCES) < 16.3


@given(seed=SEEDS, luck=st.floats(0, 1, exclude_max=True, width=32), top_k=st.integers(0, 5))
def test_a_token_that_cannot_follow_is_never_drawn(seed, luck, top_k):
    scores = np.random.default_rng(seed).normal(size=(1, 6))
    scores[0, ::2] = -math.inf
    assert draw(scores, top_k, 1.0, np.array([luck]))[0] % 2 == 1


# --- temperature ------------------------------------------------------------------------------------------------


@given(seed=SEEDS)
def test_as_the_temperature_falls_samples_become_greedy(seed):
    model = Script(drawn(seed))
    (expected,) = greedy(model, ONE, max_length=5)
    for found in sample(model, ONE, num_hypotheses=5, temperature=1e-6, max_length=5)[0]:
        same_hypotheses([found], [expected])


def test_a_high_temperature_levels_everything():
    even = dict.fromkeys((EOS, *LETTERS), 0.25)
    assert chi_square(first_tokens(temperature=1e6), even) < 16.3


# --- seeds ------------------------------------------------------------------------------------------------------


@given(seed=st.integers(-(2**70), 2**70))
def test_the_same_seed_gives_the_same_samples(seed):
    model = Script(drawn(0))
    first, again = (sample(model, ONE, num_hypotheses=4, seed=seed, max_length=4) for _ in range(2))
    assert first == again


def test_another_seed_gives_other_samples():
    found = [sample(Script(drawn(0)), ONE, num_hypotheses=4, seed=seed, max_length=6) for seed in range(5)]
    assert all(found.count(each) == 1 for each in found)


def test_asking_for_more_samples_keeps_the_first_ones():
    model = Script(drawn(0))
    assert (
        sample(model, ONE, num_hypotheses=9, max_length=6)[0][:4]
        == sample(model, ONE, num_hypotheses=4, max_length=6)[0]
    )


# --- what comes back --------------------------------------------------------------------------------------------


@given(seed=SEEDS, temperature=st.floats(0.3, 3))
def test_a_sample_is_scored_by_the_model_whatever_the_temperature(seed, temperature):
    follow = drawn(seed)
    found = sample(Script(follow), ONE, temperature=temperature, length_penalty=0.5, max_length=4)[0][0]
    written = (*found.tokens, *([EOS] if found.finished else []))
    total = sum(log_softmax(follow((9,), written[:place]))[token] for place, token in enumerate(written))
    assert found.log_prob == pytest.approx(total, abs=1e-4)
    assert found.score == pytest.approx(total / len(written) ** 0.5, abs=1e-4)
    assert found.finished == (len(written) < 4 or written[-1] == EOS)


def test_samples_that_ended_leave_the_batch():
    script = Script(telling({(): {EOS: 0.5, A: 0.5}, (A,): {B: 1.0}}))
    found = sample(script, ONE, num_hypotheses=50)[0]
    longer = sum(bool(each.tokens) for each in found)
    assert 0 < longer < 50
    assert script.rows == [50, longer, longer]

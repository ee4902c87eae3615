import math

import pytest

from search.scripted import A, B
from softgaze.search.hypothesis import hypothesis
from softgaze.search.settings import check_penalty
from softgaze.symbols import END


def test_end_is_counted_in_the_score_but_not_among_the_tokens():
    found = hypothesis([A, B, END], -6.0, 1.0)
    assert (found.tokens, found.score, found.log_probability, found.finished) == ((A, B), -2.0, -6.0, True)


def test_a_cut_hypothesis_keeps_its_last_token_and_is_not_finished():
    found = hypothesis([A, B], -6.0, 1.0)
    assert (found.tokens, found.score, found.finished) == ((A, B), -3.0, False)


def test_an_immediate_end_is_a_finished_sentence_of_no_tokens():
    assert hypothesis([END], -1.5, 0.6) == ((), -1.5, -1.5, True)


@pytest.mark.parametrize("penalty", [0.0, 0.5, 1.0, 2.0])
def test_the_length_penalty_is_an_exponent(penalty):
    assert hypothesis([A] * 7 + [END], -3.0, penalty).score == pytest.approx(-3.0 / 8**penalty)


@pytest.mark.parametrize("penalty", [math.nan, math.inf, -math.inf, 1e6, -1000])
def test_a_penalty_that_ranks_nothing_is_refused(penalty):
    with pytest.raises(ValueError, match=r"^a length penalty of [^ ]+ is not from −10 to 10"):
        check_penalty(penalty)

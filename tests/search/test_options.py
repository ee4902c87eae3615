import math
from dataclasses import replace

import pytest

from softgaze.errors import UsageError
from softgaze.search import SearchOptions

MISTAKES = {
    "no beam": ({"beam_size": 0}, "beam_size must be an integer of at least 1, got 0"),
    "half a beam": ({"beam_size": 2.5}, "beam_size .* got 2.5"),
    "a truth for a number": ({"beam_size": True}, "beam_size .* got True"),
    "no hypothesis": ({"num_hypotheses": 0}, "num_hypotheses .* at least 1"),
    "narrow beam": ({"beam_size": 2, "num_hypotheses": 3}, "num_hypotheses 3 is above beam_size 2"),
    "no sample": ({"temperature": 1.0, "num_hypotheses": 0}, "num_hypotheses .* at least 1"),
    "no room": ({"max_length": 0}, "max_length .* at least 1, got 0"),
    "half a token": ({"max_length": 2.5}, "max_length .* got 2.5"),
    "negative minimum": ({"min_length": -1}, "min_length .* at least 0, got -1"),
    "no minimum": ({"min_length": None}, "min_length .* got None"),
    "not a minimum": ({"min_length": math.nan}, "min_length .* got nan"),
    "crossed lengths": ({"min_length": 5, "max_length": 4}, "min_length 5 is above max_length 4"),
    "negative n-gram": ({"no_repeat_ngram_size": -2}, "no_repeat_ngram_size .* got -2"),
    "empty batches": ({"batch_tokens": 0}, "batch_tokens .* at least 1, got 0"),
    "penalty": ({"length_penalty": math.nan}, "length_penalty .* got nan"),
    "infinite penalty": ({"length_penalty": -math.inf}, "length_penalty .* got -inf"),
    "huge penalty": ({"length_penalty": 1e6}, "length_penalty must be between -10 and 10"),
    "frozen": ({"temperature": 0.0}, "temperature must be .* at least 1e-06, got 0.0"),
    "below zero": ({"temperature": -1.0}, "temperature .* got -1.0"),
    "no temperature": ({"temperature": math.nan}, "temperature .* got nan"),
    "endless": ({"temperature": math.inf}, "temperature .* got inf"),
    "k": ({"temperature": 1.0, "top_k": -1}, "top_k .* got -1"),
    "p of nothing": ({"temperature": 1.0, "top_p": 0.0}, "top_p must be above 0 and at most 1, got 0.0"),
    "p above all": ({"temperature": 1.0, "top_p": 1.1}, "top_p .* got 1.1"),
    "p not a number": ({"temperature": 1.0, "top_p": math.nan}, "top_p .* got nan"),
    "k of a beam search": ({"top_k": 5}, "apply to sampling only"),
    "p of a beam search": ({"top_p": 0.5}, "apply to sampling only"),
    "seed of a beam search": ({"seed": 5}, "apply to sampling only"),
}


@pytest.mark.parametrize(("fields", "message"), MISTAKES.values(), ids=MISTAKES)
def test_invalid_options_are_usage_errors_of_one_line(fields, message):
    with pytest.raises(UsageError, match=message) as caught:
        SearchOptions(**fields)
    assert "\n" not in str(caught.value)


def test_samples_may_outnumber_the_beam():
    assert SearchOptions(temperature=1.0, num_hypotheses=9).is_sampling
    assert not SearchOptions().is_sampling


def test_keywords_replace_fields_of_given_options():
    given = SearchOptions(beam_size=3, min_length=2)
    assert SearchOptions.of(given, {"beam_size": 4}) == replace(given, beam_size=4)
    assert SearchOptions.of(None, {}) == SearchOptions()
    with pytest.raises(TypeError, match="beem"):
        SearchOptions.of(None, {"beem": 3})


@pytest.mark.parametrize(
    ("fields", "arguments", "limit"),
    [
        ({}, (5,), 30),
        ({"min_length": 40}, (5,), 41),
        ({"max_length": 7}, (5,), 7),
        ({"max_length": 2}, (5, 3), 4),
        ({}, (5, 0, 12), 11),
    ],
    ids=["default", "minimum", "maximum", "prefix", "positions"],
)
def test_length_limit(fields, arguments, limit):
    assert SearchOptions(**fields).length_limit(*arguments) == limit


def test_batches_hold_fewer_sentences_when_more_hypotheses_are_decoded():
    assert SearchOptions(beam_size=4).batch_budget(100) == 25
    assert SearchOptions(beam_size=4, batch_tokens=2).batch_budget(100) == 1
    assert SearchOptions(temperature=1.0, num_hypotheses=2).batch_budget(100) == 50

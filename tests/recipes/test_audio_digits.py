"""Scores of the spoken digits, without a speech synthesiser."""

from types import SimpleNamespace

import numpy as np
import pytest

from recipes.audio_digits import error_rate, forward_share


def attention(weights):
    view = SimpleNamespace(word_weights=lambda: np.array(weights, dtype=float))
    return SimpleNamespace(words=lambda: view)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], (1.0, 1.0)),
        ([[0, 0, 1], [0, 1, 0], [1, 0, 0]], (0.0, -1.0)),
        ([[1, 0, 0]], (None, None)),
        (np.zeros((0, 3)), (None, None)),
    ],
)
def test_attention_that_moves_forward_is_told_from_attention_that_does_not(weights, expected):
    assert tuple(forward_share([attention(weights)]).values()) == expected


def test_character_errors_are_edits_per_character_of_the_references():
    assert error_rate(["one two", "six"], ["one two", "six"]) == 0
    assert error_rate(["on two", ""], ["one two", "six"]) == pytest.approx(100 * 4 / 10)

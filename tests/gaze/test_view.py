"""A view says what it is, and a choice survives being stored."""

import json

import pytest

from softgaze.errors import DataError, UsageError
from softgaze.gaze.view import Choice, View


def test_a_view_says_every_thing_that_matters():
    said = View(layer=2, head=1, rows="reading", measure="norms").describe(4, 2)
    for words in (
        "cross-attention",
        "layer 2 of 0–3",
        "head 1 of 0–1",
        "lengths of the values",
        "words with their punctuation",
        "after reading",
    ):
        assert words in said


def test_means_and_single_ones_are_told_apart():
    assert "mean of 4 layers, mean of 2 heads" in View().describe(4, 2)
    assert "one layer, one head" in View(layer=0).describe(1, 1)
    assert "layer" not in View(measure="rollout").describe(4, 2).replace("through all layers", "")


def test_an_encoder_has_no_other_rows_than_what_it_reads():
    assert "after reading" in View(kind="encoder").describe(1, 1)
    assert not View(kind="encoder", rows="reading").is_shifted


@pytest.mark.parametrize("wrong", [{"kind": "cros"}, {"rows": "writing"}, {"measure": "weight"}, {"unit": "letters"}])
def test_unknown_names_are_refused(wrong):
    with pytest.raises(UsageError, match="unknown"):
        View(**wrong)


@pytest.mark.parametrize("wrong", [{"layer": -1}, {"head": 1.5}, {"layer": True}])
def test_numbers_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match="from 0 up"):
        View(**wrong)


def test_a_choice_survives_json_and_ignores_what_it_does_not_know():
    choice = Choice(View(layer=1, head=0, rows="reading"), 0.625, "influence", 24)
    stored = json.loads(json.dumps(choice.to_dict())) | {"of": "the future"}
    assert Choice.from_dict(stored) == choice
    assert "0.62 on 24 sentences" in choice.describe()


@pytest.mark.parametrize("wrong", [{}, {"layer": "x"}, {"score": None}])
def test_a_damaged_choice_is_refused_in_one_line(wrong):
    stored = Choice(View(), 0.5, "influence", 24).to_dict() | wrong if wrong else {}
    with pytest.raises(DataError, match="stored choice"):
        Choice.from_dict(stored)

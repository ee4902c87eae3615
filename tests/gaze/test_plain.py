"""One plain sentence: the surest looks in order, and what nobody looked at."""

import math

import numpy
import pytest

from maps import random_attention
from softgaze.gaze import Attention, Recording, View
from softgaze.gaze.plain import (
    SHOWN,
    coverage_in_words,
    entropy_in_words,
    honesty_in_words,
    plain,
    sink_in_words,
    unused_columns,
)
from softgaze.gaze.recording import Part, Stack
from softgaze.gaze.words import Side

SCHOOL = Attention.of(
    ["I", "very", "went", "school", "⏎"],
    ["학교에", "갔어요", "⏎"],
    [[0.1, 0.02, 0.05, 0.83, 0.0], [0.2, 0.03, 0.77, 0.0, 0.0], [0.0, 0.9, 0.0, 0.0, 0.1]],
)


def test_it_names_the_surest_looks_and_what_was_not_used():
    assert plain(SCHOOL) == "학교에 ← school 0.83, 갔어요 ← went 0.77; 1 source word unused: very"


def test_a_full_stop_that_looks_at_a_full_stop_says_nothing_of_its_words():
    source = Side.of("I rest, home.", [["▁I", "▁rest", ",", "▁home", "."]])
    target = Side.of("쉬어요.", [["▁쉬어요", "."]])
    weights = numpy.array([[0.2, 0.6, 0.1, 0.05, 0.05, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]], numpy.float32)
    stack = Stack(weights[None, None], numpy.ones((1, 1, 6), numpy.float32))
    attention = Attention(Recording(source, target, (Part(stack),)), View())
    assert attention["쉬어요."]["home."] > 0.5
    assert plain(attention) == "쉬어요. ← rest, 0.60; 1 source word unused: home."
    assert plain(attention.subwords()).startswith("▁쉬어요 ← ▁rest 0.60, . ← . 1.00; ")


def test_only_the_surest_are_named_in_the_order_of_the_output():
    words = [f"w{number}" for number in range(6)]
    weights = [[0.5 + 0.05 * (row in (1, 3, 5)) if row == column else 0.09 for column in range(6)] for row in range(6)]
    named = plain(Attention.of(words, words, weights)).split(";")[0]
    assert named == "w1 ← w1 0.55, w3 ← w3 0.55, w5 ← w5 0.55"
    assert len(named.split(",")) == SHOWN


def test_all_used_several_unused_and_many():
    even = Attention.of(["a", "b"], ["x"], [[0.5, 0.5]])
    assert plain(even).endswith("; every source word was used")
    many = Attention.of([f"w{number}" for number in range(10)], ["x"], [[1.0] + [0.0] * 9])
    assert plain(Attention.of(["sick,", "so", "c"], ["x"], [[0, 0, 1.0]])).endswith("2 source words unused: sick, · so")
    assert plain(many).endswith("; 9 source words unused: w1 · w2 · w3 · w4 · w5 · w6 · and 3 more")
    assert unused_columns(many) == list(range(1, 10))


def test_a_tenth_of_a_look_is_a_use():
    assert unused_columns(Attention.of(["a", "b", "c"], ["x"], [[0.81, 0.1, 0.09]])) == [2]


def test_an_output_that_looked_at_nothing():
    assert plain(Attention.of(["a"], ["⏎"], [[1.0]])).startswith("no word looked at anything; ")


@pytest.mark.parametrize("view", [{}, {"unit": "subwords"}, {"kind": "encoder"}, {"kind": "decoder"}])
def test_every_kind_of_map_has_its_words(view):
    attention = random_attention(**view)
    assert (" subword" in plain(attention).split(";")[1]) == ("unit" in view)
    assert ("source" in plain(attention).split(";")[1]) == (view.get("kind") != "decoder")
    for told in (entropy_in_words, coverage_in_words, sink_in_words):
        assert "nan" not in told(attention)


def test_honesty_is_explained_whatever_it_is():
    said = [honesty_in_words(value) for value in (1.0, 0.6, 0.3, 0.1, 0.0, -1.0, math.nan)]
    assert [each.split(":")[0] for each in said] == ["1.00", "0.60", "0.30", "0.10", "0.00", "-1.00", "unknown"]
    assert said[0].split(":")[1] == said[1].split(":")[1] != said[2].split(":")[1] != said[3].split(":")[1]
    assert said[4].split(":")[1] == said[5].split(":")[1] == " where it looked does not show what mattered"


def test_numbers_are_those_of_the_map():
    assert coverage_in_words(SCHOOL) == "from very 0.05 to school 0.83 (1 is as much as one output word has to give)"
    assert sink_in_words(SCHOOL).startswith("3 % ")
    assert entropy_in_words(SCHOOL).startswith(f"{SCHOOL.entropy().mean():.2f} nats")


@pytest.mark.parametrize(("kind", "giver"), [("cross", "output"), ("decoder", "output"), ("encoder", "source")])
def test_coverage_names_who_gives_it(kind, giver):
    assert f"one {giver} word has" in coverage_in_words(random_attention().seen(kind=kind))


def test_cells_of_a_picture_are_called_so():
    attention = Attention.of(None, ["a", "dog"], [[1.0, 0.0, 0.0, 0.0], [0.0, 0.6, 0.4, 0.0]], grid=(2, 2))
    assert plain(attention) == "a ← 1,1 1.00, dog ← 1,2 0.60; 1 cell unused: 2,2"

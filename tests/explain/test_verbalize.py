"""The summary names the strongest links and the unused words; numbers are those of the map."""

import math

import numpy as np
import pytest

from maps import random_attention
from softgaze.explain import Attention, Recording, View
from softgaze.explain.recording import AttentionStack, PartAttention
from softgaze.explain.verbalize import (
    FAITHFULNESS,
    MAX_LISTED,
    describe_coverage,
    describe_entropy,
    describe_faithfulness,
    describe_sink,
    list_words,
    summarize,
    unused_columns,
)
from softgaze.explain.word_spans import TokenizedText

SCHOOL = Attention.of(
    ["I", "very", "went", "school", "⏎"],
    ["학교에", "갔어요", "⏎"],
    [[0.1, 0.02, 0.05, 0.83, 0.0], [0.2, 0.03, 0.77, 0.0, 0.0], [0.0, 0.9, 0.0, 0.0, 0.1]],
)


def links_and_unused(attention):
    links, unused = summarize(attention).split("; ")
    return links.split(", "), unused


def test_the_summary_names_links_and_unused_words():
    links, unused = links_and_unused(SCHOOL)
    assert links == ["학교에 ← school 0.83", "갔어요 ← went 0.77"]
    assert unused.startswith("1 source word ")
    assert unused.endswith(": very")


def test_attached_punctuation_does_not_count_for_its_word():
    source = TokenizedText.of("I rest, home.", [["▁I", "▁rest", ",", "▁home", "."]])
    target = TokenizedText.of("쉬어요.", [["▁쉬어요", "."]])
    weights = np.array([[0.2, 0.6, 0.1, 0.05, 0.05, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]], np.float32)
    stack = AttentionStack(weights[None, None], np.ones((1, 1, 6), np.float32))
    attention = Attention(Recording(source, target, (PartAttention(stack),)), View())
    assert attention["쉬어요."]["home."] > 0.5
    assert summarize(attention).startswith("쉬어요. ← rest, 0.60; ")
    assert summarize(attention).endswith(": home.")
    assert links_and_unused(attention.subwords())[0] == ["▁쉬어요 ← ▁rest 0.60", ". ← . 1.00"]


def test_only_the_strongest_links_are_named_in_the_order_of_the_output():
    words = [f"w{index}" for index in range(6)]
    weights = [[0.5 + 0.05 * (row in (1, 3, 5)) if row == column else 0.09 for column in range(6)] for row in range(6)]
    links, _ = links_and_unused(Attention.of(words, words, weights))
    assert links == ["w1 ← w1 0.55", "w3 ← w3 0.55", "w5 ← w5 0.55"]
    assert len(links) == MAX_LISTED


def test_unused_words_are_counted_and_the_first_ones_listed():
    assert unused_columns(Attention.of(["a", "b"], ["x"], [[0.5, 0.5]])) == []
    assert unused_columns(Attention.of(["a", "b", "c"], ["x"], [[0.81, 0.1, 0.09]])) == [2]
    words = [f"w{index}" for index in range(10)]
    many = Attention.of(words, ["x"], [[1.0] + [0.0] * 9])
    assert unused_columns(many) == list(range(1, 10))
    _, unused = links_and_unused(many)
    assert unused.startswith("9 source words ")
    assert unused.endswith(list_words(words[1:]))
    assert list_words(words[1:]).split(" · ") == [*words[1 : 1 + 2 * MAX_LISTED], "and 3 more"]


def test_an_output_without_words_has_no_links():
    assert "←" not in summarize(Attention.of(["a"], ["⏎"], [[1.0]]))


@pytest.mark.parametrize("view", [{}, {"unit": "subwords"}, {"kind": "encoder"}, {"kind": "decoder"}])
def test_every_kind_of_map_is_described(view):
    attention = random_attention(**view)
    _, unused = links_and_unused(attention)
    assert (" subword" in unused) == ("unit" in view)
    assert ("source" in unused) == (view.get("kind") != "decoder")
    for describe in (describe_entropy, describe_coverage, describe_sink):
        assert "nan" not in describe(attention)


def test_cells_of_an_image_are_called_cells():
    attention = Attention.of(None, ["a", "dog"], [[1.0, 0.0, 0.0, 0.0], [0.0, 0.6, 0.4, 0.0]], grid=(2, 2))
    links, unused = links_and_unused(attention)
    assert links == ["a ← 1,1 1.00", "dog ← 1,2 0.60"]
    assert unused.startswith("1 cell ")
    assert unused.endswith(": 2,2")


def test_every_faithfulness_has_a_meaning():
    for value, level in ((1.0, 0), (0.6, 0), (0.3, 1), (0.1, 2), (0.0, 3), (-1.0, 3)):
        assert describe_faithfulness(value) == f"{value:.2f}: {FAITHFULNESS[level][1]}"
    assert "unknown" in describe_faithfulness(math.nan)


def test_numbers_are_those_of_the_map():
    assert describe_coverage(SCHOOL).startswith("from very 0.05 to school 0.83 ")
    assert describe_sink(SCHOOL).startswith("3 % ")
    assert describe_entropy(SCHOOL).startswith(f"{SCHOOL.entropy().mean():.2f} nats")


@pytest.mark.parametrize(("kind", "side"), [("cross", "output"), ("decoder", "output"), ("encoder", "source")])
def test_coverage_names_the_side_of_its_rows(kind, side):
    assert f"{side} word" in describe_coverage(random_attention().with_view(kind=kind))

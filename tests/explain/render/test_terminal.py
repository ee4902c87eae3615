"""The text map is aligned for any character width; the summary names the strongest links and the unused words."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from maps import random_attention
from softgaze.explain import Attention, Recording, View
from softgaze.explain.recording import AttentionStack, PartAttention
from softgaze.explain.render.terminal import (
    LEGEND,
    MARK_SPACING,
    MAX_LISTED,
    SHADES,
    SPACING,
    describe_coverage,
    describe_entropy,
    describe_sink,
    list_words,
    summarize,
    text_heatmap,
    unused_columns,
)
from softgaze.explain.render.text_layout import LEFT_TO_RIGHT_MARK, POP_ISOLATE, RIGHT_TO_LEFT_ISOLATE
from softgaze.explain.word_spans import EOS_MARK, TokenizedText

WORDS = ["a", "school", "학교에", "가요.", "日本", "e\u0301te\u0301", "مُدَرِّسَة.", "שלום", "👨‍👩‍👧", EOS_MARK]
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12)


def identity(source, target):
    weights = np.zeros((len(target), len(source)))
    weights[np.arange(len(target)), np.arange(len(target)) % len(source)] = 1
    return Attention.of(source, target, weights)


def lines_of(attention, width=10_000):
    """The lines without legend, blank lines and directional marks."""
    body, legend = text_heatmap(attention, width=width).rsplit("\n\n", 1)
    assert legend.startswith(f"{LEGEND}\n")
    return [plain(line) for line in body.split("\n") if line]


def plain(line):
    return line.translate(dict.fromkeys(map(ord, (LEFT_TO_RIGHT_MARK, RIGHT_TO_LEFT_ISOLATE, POP_ISOLATE))))


def starts_of(source, margin):
    starts, position = [], margin
    for before, word in zip([source[0], *source], source, strict=False):
        position += len(MARK_SPACING if (before == EOS_MARK) != (word == EOS_MARK) else SPACING)
        starts.append(position)
        position += cell_len(word)
    return starts


@given(source=words, target=words)
def test_cells_are_aligned_with_their_words(source, target):
    _, *rows = lines_of(identity(source, target))
    starts = starts_of(source, max(map(cell_len, target)))
    for row, (word, line) in enumerate(zip(target, rows, strict=True)):
        column = row % len(source)
        before, block = line.split(SHADES[-1], 1)[0], line.count(SHADES[-1])
        assert before.startswith(word)
        assert cell_len(before) == starts[column]
        assert block == cell_len(source[column])


@given(source=words, target=words, width=st.integers(1, 60))
def test_narrow_terminals_get_blocks_with_every_column(source, target, width):
    lines = lines_of(identity(source, target), width)
    heads = lines[:: len(target) + 1]
    assert [word for head in heads for word in head.split()] == source
    margin = max(map(cell_len, target))
    widest = margin + len(MARK_SPACING) + max(map(cell_len, source))
    assert all(cell_len(line) <= max(width, widest) for line in lines)


@pytest.mark.parametrize(("weight", "shade"), [(0.0, " "), (0.1, "░"), (0.3, "▒"), (0.5, "▓"), (0.9, "█")])
def test_larger_weights_are_darker(weight, shade):
    attention = Attention.of(["a", "b"], ["x"], [[weight, 1 - weight]])
    assert text_heatmap(attention, width=80).split("\n")[1][3] == shade


def test_marks_are_set_apart():
    attention = identity(["a", "b", EOS_MARK], ["x", "y", EOS_MARK])
    assert text_heatmap(attention, width=80).split("\n")[:5] == [
        f"   a  b    {EOS_MARK}",
        "x  █",
        "y     █",
        "",
        f"{EOS_MARK}          █",
    ]


def test_arabic_lines_run_left_to_right():
    head, row = text_heatmap(identity(["ذهب", "الولد."], ["إلى"]), width=80).split("\n")[:2]
    for line, words in ((head, 2), (row, 1)):
        assert line.startswith(LEFT_TO_RIGHT_MARK)
        assert line.count(RIGHT_TO_LEFT_ISOLATE) == line.count(POP_ISOLATE) == words


def test_control_characters_are_removed():
    shown = text_heatmap(identity(["\x1b[31m", "\x00", "\x9b2J", "a\rb"], ["\x1b]0;x\x07"]), width=80)
    assert not any(unicodedata.category(letter) == "Cc" for letter in shown.replace("\n", ""))


@pytest.mark.parametrize(("rows", "columns"), [(0, 2), (0, 0), (1, 0)])
def test_empty_maps(rows, columns):
    attention = Attention.of(["a"] * columns, ["x"] * rows, np.zeros((rows, columns)))
    assert text_heatmap(attention, width=80).split(LEGEND)[1].split() == attention.description.split()


# --- images -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [10, 40, 200])
def test_map_over_an_image_is_drawn_as_images(width):
    weights = np.zeros((3, 12))
    weights[0, 0], weights[1, 11], weights[2, 5] = 1, 1, 1
    attention = Attention.of(None, ["개", "runs", EOS_MARK], weights, grid=(3, 4))
    body, legend = text_heatmap(attention, width=width).rsplit("\n\n", 1)
    drawn = [line for line in body.split("\n") if line]
    assert body.count("█") == 4  # two cells of width 2; EOS is not drawn
    assert " ".join(legend.split()).startswith(f"{' '.join(LEGEND.split())} of the largest weight of each word")
    assert max(map(cell_len, drawn)) <= max(width, 10)
    assert [word in body for word in ("개", "runs", EOS_MARK)] == [True, True, False]


# --- in words

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


@pytest.mark.parametrize("view", [{}, {"unit": "subwords"}, {"kind": "encoder"}, {"kind": "decoder"}])
def test_every_kind_of_map_is_described(view):
    attention = random_attention(**view)
    _, unused = links_and_unused(attention)
    assert (" subword" in unused) == ("unit" in view)
    assert ("source" in unused) == (view.get("kind") != "decoder")
    for describe in (describe_entropy, describe_coverage, describe_sink):
        assert "nan" not in describe(attention)


def test_numbers_are_those_of_the_map():
    assert describe_coverage(SCHOOL).startswith("from very 0.05 to school 0.83 ")
    assert describe_sink(SCHOOL).startswith("3 % ")
    assert describe_entropy(SCHOOL).startswith(f"{SCHOOL.entropy().mean():.2f} nats")

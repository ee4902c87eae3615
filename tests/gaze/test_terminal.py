"""The heat map lines up, whatever the width of its characters, and shows every weight once."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from softgaze.gaze import Attention
from softgaze.gaze.terminal import GAP, SHADES, heat_map

words = st.lists(st.sampled_from(["a", "school", "학교에", "가요.", "日本", "⏎"]), min_size=1, max_size=12)


def identity(source, target):
    weights = numpy.zeros((len(target), len(source)))
    weights[numpy.arange(len(target)), numpy.arange(len(target)) % len(source)] = 1
    return Attention.of(source, target, weights)


@given(source=words, target=words)
def test_a_full_weight_is_as_wide_as_its_word_and_under_it(source, target):
    lines = heat_map(identity(source, target), width=10_000).split("\n")
    margin = max(map(cell_len, target))
    starts = [
        margin + sum(len(GAP) + cell_len(word) for word in source[:place]) + len(GAP) for place in range(len(source))
    ]
    for row, (word, line) in enumerate(zip(target, lines[1:], strict=True)):
        column = row % len(source)
        before, block = line.split(SHADES[-1], 1)[0], line.count(SHADES[-1])
        assert before.startswith(word)
        assert cell_len(before) == starts[column]
        assert block == cell_len(source[column])


@given(source=words, target=words, width=st.integers(1, 60))
def test_narrow_terminals_get_every_column_in_blocks(source, target, width):
    blocks = heat_map(identity(source, target), width=width).split("\n\n")
    shown = [word for block in blocks for word in block.split("\n")[0].split()]
    assert shown == source
    margin = max(map(cell_len, target))
    widest = margin + len(GAP) + max(map(cell_len, source))
    assert all(cell_len(line) <= max(width, widest) for block in blocks for line in block.split("\n"))


@pytest.mark.parametrize(("weight", "shade"), [(0.0, " "), (0.1, "░"), (0.3, "▒"), (0.5, "▓"), (0.9, "█")])
def test_more_is_darker(weight, shade):
    attention = Attention.of(["a", "b"], ["x"], [[weight, 1 - weight]])
    assert heat_map(attention, width=80).split("\n")[1][3] == shade

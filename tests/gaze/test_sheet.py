"""Nothing in a picture stands upon anything else, and everything is on it."""

from itertools import pairwise

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maps import random_attention
from softgaze.gaze import Attention
from softgaze.gaze.lettering import width_of
from softgaze.gaze.sheet import LONGEST, MARGIN, MARK_GAP, NOTE, Axis, Sheet
from softgaze.gaze.words import END_MARK, Side

words = st.lists(st.sampled_from(["a", "school", "학교에", "internationalisation", "日本", END_MARK]), max_size=14)


def even(source, target):
    return Attention.of(source, target, numpy.full((len(target), len(source)), 1 / max(len(source), 1)))


@given(source=words, target=words)
def test_labels_and_cells_are_on_the_sheet_and_apart(source, target):
    sheet = Sheet(even(source, target))
    letter = sheet.sizes.letter
    assert all(width_of(name, letter) <= sheet.columns.start - MARGIN for name in sheet.names[0])
    for axis, end in ((sheet.columns, sheet.width), (sheet.rows, sheet.height)):
        assert all(one + axis.size <= other for one, other in pairwise(axis.places))
        assert axis.end <= end - MARGIN
    if not sheet.is_turned:
        assert all(width_of(name, letter) <= sheet.columns.size for name in sheet.names[1])
    assert all(width_of(line, NOTE) <= sheet.width - 2 * MARGIN for line in sheet.footer)


@given(labels=words)
def test_marks_stand_apart_and_runs_are_what_stands_together(labels):
    axis = Axis(Side.plain(labels).subwords(), 5, 10)
    apart = [other - one - 10 for one, other in pairwise(axis.places)]
    assert apart == [MARK_GAP * ((one == END_MARK) != (other == END_MARK)) for one, other in pairwise(labels)]
    edges = [edge for run in axis.runs() for edge in run[:-1]]
    assert edges == axis.places


def test_it_grows_with_the_sentence():
    sizes = [(sheet.width, sheet.height) for sheet in (Sheet(even(["word"] * n, ["word"] * n)) for n in (12, 30, 60))]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == 3


def test_long_words_get_room_but_not_all_of_it():
    long, endless = (Sheet(even(["a"], ["b" * length])) for length in (20, 2000))
    assert long.names[0] == ["b" * 20]
    assert width_of(endless.names[0][0]) <= LONGEST


@pytest.mark.parametrize("view", [{}, {"unit": "subwords"}, {"kind": "encoder"}, {"kind": "decoder"}])
def test_the_footer_says_what_is_shown(view):
    attention = random_attention(**view)
    footer = " ".join(Sheet(attention).footer)
    assert attention.shows in footer
    assert ("output: 개가 자요 school" in footer) == (attention.view.kind != "encoder")
    assert ("source: the dog sleeps 학교에" in footer) == (attention.view.kind != "decoder")


@pytest.mark.parametrize(
    ("measure", "name"), [("weights", "weight"), ("norms", "weight × length"), ("rollout", "rollout")]
)
def test_the_legend_names_what_is_measured(measure, name):
    assert Sheet(random_attention(measure=measure)).legend[0][0] == ("scale", name)

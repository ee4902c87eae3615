"""The heat map lines up, whatever the width of its characters, and shows every weight once."""

import unicodedata
from dataclasses import replace

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from softgaze.gaze import Attention
from softgaze.gaze.lettering import END_OF_DIRECTION, LEFT_TO_RIGHT, RIGHT_TO_LEFT
from softgaze.gaze.terminal import GAP, LEGEND, MARK_GAP, SHADES, heat_map
from softgaze.gaze.words import END_MARK

WORDS = ["a", "school", "학교에", "가요.", "日本", "e\u0301te\u0301", "مُدَرِّسَة.", "שלום", "👨‍👩‍👧", END_MARK]
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12)


def identity(source, target):
    weights = numpy.zeros((len(target), len(source)))
    weights[numpy.arange(len(target)), numpy.arange(len(target)) % len(source)] = 1
    return Attention.of(source, target, weights)


def lines_of(attention, width=10_000):
    """Without the legend, without the lines that set marks apart, without what only directs letters."""
    body, legend = heat_map(attention, width=width).rsplit("\n\n", 1)
    assert legend.startswith(f"{LEGEND}\n")
    return [plain(line) for line in body.split("\n") if line]


def plain(line):
    return line.translate(dict.fromkeys(map(ord, (LEFT_TO_RIGHT, RIGHT_TO_LEFT, END_OF_DIRECTION))))


def starts_of(source, margin):
    """Where each column begins."""
    starts, place = [], margin
    for before, word in zip([source[0], *source], source, strict=False):
        place += len(MARK_GAP if (before == END_MARK) != (word == END_MARK) else GAP)
        starts.append(place)
        place += cell_len(word)
    return starts


@given(source=words, target=words)
def test_a_full_weight_is_as_wide_as_its_word_and_under_it(source, target):
    _, *rows = lines_of(identity(source, target))
    starts = starts_of(source, max(map(cell_len, target)))
    for row, (word, line) in enumerate(zip(target, rows, strict=True)):
        column = row % len(source)
        before, block = line.split(SHADES[-1], 1)[0], line.count(SHADES[-1])
        assert before.startswith(word)
        assert cell_len(before) == starts[column]
        assert block == cell_len(source[column])


@given(source=words, target=words, width=st.integers(1, 60))
def test_narrow_terminals_get_every_column_in_blocks(source, target, width):
    lines = lines_of(identity(source, target), width)
    heads = lines[:: len(target) + 1]
    assert [word for head in heads for word in head.split()] == source
    margin = max(map(cell_len, target))
    widest = margin + len(MARK_GAP) + max(map(cell_len, source))
    assert all(cell_len(line) <= max(width, widest) for line in lines)


@pytest.mark.parametrize(("weight", "shade"), [(0.0, " "), (0.1, "░"), (0.3, "▒"), (0.5, "▓"), (0.9, "█")])
def test_more_is_darker(weight, shade):
    attention = Attention.of(["a", "b"], ["x"], [[weight, 1 - weight]])
    assert heat_map(attention, width=80).split("\n")[1][3] == shade


def test_marks_stand_apart_from_words():
    attention = identity(["a", "b", END_MARK], ["x", "y", END_MARK])
    assert heat_map(attention, width=80).split("\n")[:5] == [
        f"   a  b    {END_MARK}",
        "x  █",
        "y     █",
        "",
        f"{END_MARK}          █",
    ]


def test_a_line_of_arabic_still_runs_from_left_to_right():
    head, row = heat_map(identity(["ذهب", "الولد."], ["إلى"]), width=80).split("\n")[:2]
    for line, words in ((head, 2), (row, 1)):
        assert line.startswith(LEFT_TO_RIGHT)
        assert line.count(RIGHT_TO_LEFT) == line.count(END_OF_DIRECTION) == words


def test_no_word_can_speak_to_the_terminal():
    shown = heat_map(identity(["\x1b[31m", "\x00", "\x9b2J", "a\rb"], ["\x1b]0;x\x07"]), width=80)
    assert not any(unicodedata.category(letter) == "Cc" for letter in shown.replace("\n", ""))


@given(note=st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), width=st.integers(1, 90))
def test_it_says_which_map_it_is_in_lines_that_fit(note, width):
    attention = identity(["a", "b"], ["x"])
    attention = replace(attention, recording=replace(attention.recording, note=note))
    said = heat_map(attention, width=width).rsplit(f"{LEGEND}\n", 1)[1].split("\n")
    assert " ".join(said).split() == attention.shows.split()
    assert all(cell_len(line) <= width or " " not in line for line in said)


@pytest.mark.parametrize(("rows", "columns"), [(0, 2), (0, 0), (1, 0)])
def test_nothing_can_be_shown(rows, columns):
    attention = Attention.of(["a"] * columns, ["x"] * rows, numpy.zeros((rows, columns)))
    assert heat_map(attention, width=80).split(LEGEND)[1].split() == attention.shows.split()


# --- looks at a picture -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [10, 40, 200])
def test_a_look_at_a_picture_is_drawn_as_pictures(width):
    weights = numpy.zeros((3, 12))
    weights[0, 0], weights[1, 11], weights[2, 5] = 1, 1, 1
    attention = Attention.of(None, ["개", "runs", END_MARK], weights, grid=(3, 4))
    body, legend = heat_map(attention, width=width).rsplit("\n\n", 1)
    drawn = [line for line in body.split("\n") if line]
    assert body.count("█") == 4  # two cells, each two wide; the end is no word
    assert " ".join(legend.split()).startswith(f"{' '.join(LEGEND.split())} of the most looked-at cell")
    assert max(map(cell_len, drawn)) <= max(width, 10)
    assert [word in body for word in ("개", "runs", END_MARK)] == [True, True, False]

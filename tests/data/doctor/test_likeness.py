"""Words that occur in the same pairs get like vectors; equal words always do."""

import numpy as np
import pytest

from data.doctor.toys import sides, toy_pairs
from softgaze.data.doctor.likeness import Lexicon, Piece, clues_of, overlap
from softgaze.data.doctor.lines import measure


@pytest.mark.parametrize(("rows", "others"), [(0, 3), (3, 0), (3, 7), (7, 3), (7, 7)])
def test_partners_stand_the_same_distance_apart(rows: int, others: int) -> None:
    for shift in range(-8, 9):
        here, there = overlap(rows, others, shift)
        partners = list(zip(range(rows)[here], range(others)[there], strict=True))
        assert partners == [(row, row + shift) for row in range(rows) if 0 <= row + shift < others]


def test_a_line_is_more_like_its_translation_than_like_its_neighbours() -> None:
    texts = sides(toy_pairs(600))
    lines = [[measure(side[start : start + 100]) for side in texts] for start in range(0, 600, 100)]
    lexicon = Lexicon([Piece(n % 2, *both, 0, np.zeros(1), 0) for n, both in enumerate(lines)])
    source, target = (clues_of(both, lexicon, side, 0).meaning for side, both in enumerate(lines[0]))
    assert (source @ target.T).argmax(axis=1).tolist() == list(range(100))


def test_names_and_numbers_are_alike_by_spelling_alone() -> None:
    lines = measure(["Anna 1234", "anna 1234", "Anna 77", ""])
    clues = clues_of(lines, Lexicon([Piece(fold, lines, lines, 0, np.zeros(1), 0) for fold in (0, 1)]), 0, 0)
    anchors, numbers = clues.anchors @ clues.anchors.T, clues.numbers @ clues.numbers.T
    assert anchors[0].tolist() == pytest.approx([1, 1, 1, 0])
    assert numbers[0].tolist() == pytest.approx([1, 1, 0, 0])

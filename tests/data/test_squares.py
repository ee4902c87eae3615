"""Combinations are dealt out evenly: nothing is rare, and nothing belongs to two."""

from collections import Counter

from softgaze.data.squares import SIDE, owner

CELLS = {(row, column): owner(row, column) for row in range(SIDE) for column in range(SIDE)}


def test_every_row_and_column_gives_one_to_dev_and_one_to_test():
    for number in range(SIDE):
        for line in ([CELLS[number, other] for other in range(SIDE)], [CELLS[other, number] for other in range(SIDE)]):
            assert Counter(line) == {"train": SIDE - 2, "dev": 1, "test": 1}

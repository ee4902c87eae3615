"""Combinations are dealt out evenly: nothing is rare, and nothing belongs to two."""

from collections import Counter

from softgaze.data.squares import SIDE, owner, sparing_owner


def lines(rule):
    """Of every row, and of every column, how many cells each split owns."""
    for number in range(SIDE):
        yield Counter(rule(number, other) for other in range(SIDE))
        yield Counter(rule(other, number) for other in range(SIDE))


def test_every_row_and_column_gives_one_to_dev_and_one_to_test():
    assert all(line == {"train": SIDE - 2, "dev": 1, "test": 1} for line in lines(owner))


def test_or_gives_one_only_as_often_to_dev_as_to_test():
    taken = list(lines(sparing_owner))
    assert all(line["train"] == SIDE - 1 for line in taken)
    assert sum(taken, Counter()) == {"train": 2 * SIDE * (SIDE - 1), "dev": SIDE, "test": SIDE}

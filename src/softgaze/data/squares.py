"""Which combinations of two things dev and test keep for themselves: a square of eight by eight, dealt out evenly.

Every row and every column gives one of its eight cells to dev and another to test, so train meets each thing with six
partners and nothing is rare. The rule knows no seed: every seed and size holds out the same combinations.
"""

SIDE = 8


def owner(row: int, column: int) -> str:
    """The split that owns a combination: "train", "dev" or "test"."""
    if (column - row) % SIDE == 3:
        return "dev"
    return "test" if (column + 3 * row) % SIDE == 4 else "train"  # 3 and 8 share no factor: one in each column

"""Which combinations of two things dev and test keep for themselves: a square of eight by eight, dealt out evenly.

Rows and columns give away as many cells each, so nothing is rare. The rules know no seed: every seed and size holds out
the same combinations.
"""

SIDE = 8


def owner(row: int, column: int) -> str:
    """The split that owns a combination; every row and every column gives one to dev and one to test."""
    if (column - row) % SIDE == 3:
        return "dev"
    return "test" if (column + 3 * row) % SIDE == 4 else "train"  # 3 and 8 share no factor: one in each column


def sparing_owner(row: int, column: int) -> str:
    """The same, but every row and every column gives one, to dev or to test: seven of eight partners are met."""
    if (column - row) % SIDE != 3:
        return "train"
    return "dev" if row % 2 else "test"

"""How fast something grows: the exponent of a power law, fitted."""

import math
from collections.abc import Sequence

FITTED = 3  # the largest points alone: what is small is mostly fixed cost


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of the least-squares line through the logarithms of the largest points: 1 grows in step, 2 squared."""
    across, up = ([math.log(max(each, 1e-9)) for each in numbers[-FITTED:]] for numbers in (sizes, values))
    middle, level = sum(across) / len(across), sum(up) / len(up)
    return sum((x - middle) * (y - level) for x, y in zip(across, up, strict=True)) / sum(
        (x - middle) ** 2 for x in across
    )


def crossing(sizes: Sequence[float], one: Sequence[float], other: Sequence[float]) -> float | None:
    """The size from which on `one` is above `other`, between two points on a straight line of logarithms.

    None if it is above everywhere, or nowhere, or comes down again: then there is no such size.
    """
    ahead = [math.log(mine / theirs) for mine, theirs in zip(one, other, strict=True)]
    above = [each > 0 for each in ahead]
    place = above.count(False)  # the first above, if all that follow are
    if not 0 < place < len(sizes) or above != sorted(above):
        return None
    before, after = ahead[place - 1], ahead[place]
    share = -before / (after - before)
    return math.exp(math.log(sizes[place - 1]) * (1 - share) + math.log(sizes[place]) * share)

"""Token batches for contenders that have no batching of their own.

Pairs are sorted by length within large pools and cut so that rows × the longest side stays within the budget.
"""

import random
from collections.abc import Iterator

Pair = tuple[list[int], list[int]]

PAD, BOS, EOS = 0, 2, 3
POOL = 64  # batches sorted together


def batches(pairs: list[Pair], budget: int, seed: int) -> Iterator[list[Pair]]:
    """Yield batches without end, in a new order each epoch."""
    mixer = random.Random(seed)
    mean = sum(max(map(len, pair)) for pair in pairs) / len(pairs)
    size = max(1, int(POOL * budget / mean))
    while True:
        order = mixer.sample(pairs, len(pairs))
        for start in range(0, len(order), size):
            cut = list(cut_by_budget(sorted(order[start : start + size], key=longest), budget))
            yield from mixer.sample(cut, len(cut))


def longest(pair: Pair) -> tuple[int, int]:
    """Return the sort key of a pair: its longer side, then its target."""
    return max(map(len, pair)), len(pair[1])


def cut_by_budget(pairs: list[Pair], budget: int) -> Iterator[list[Pair]]:
    """Split pairs of ascending length into batches; lengths include the EOS or BOS of each side."""
    batch: list[Pair] = []
    for pair in pairs:
        if batch and (len(batch) + 1) * (longest(pair)[0] + 1) > budget:
            yield batch
            batch = []
        batch.append(pair)
    if batch:
        yield batch


def padded(rows: list[list[int]]) -> list[list[int]]:
    size = max(map(len, rows))
    return [row + [PAD] * (size - len(row)) for row in rows]

"""Token batches for the contenders that bring no batching of their own: the loop somebody writes with care.

Pairs are sorted by length within large pools and cut so that rows × the longest side stays within the budget.
"""

import random
from collections.abc import Iterator

Pair = tuple[list[int], list[int]]

PAD, BOS, EOS = 0, 2, 3
POOL = 64  # batches sorted together


def batches(pairs: list[Pair], budget: int, seed: int) -> Iterator[list[Pair]]:
    """Endless; every epoch in an order of its own."""
    mixer = random.Random(seed)
    mean = sum(max(map(len, pair)) for pair in pairs) / len(pairs)
    size = max(1, int(POOL * budget / mean))
    while True:
        order = mixer.sample(pairs, len(pairs))
        for start in range(0, len(order), size):
            cut = list(cut_by_budget(sorted(order[start : start + size], key=longest), budget))
            yield from mixer.sample(cut, len(cut))


def longest(pair: Pair) -> tuple[int, int]:
    """What decides how much a row is padded."""
    return max(map(len, pair)), len(pair[1])


def cut_by_budget(pairs: list[Pair], budget: int) -> Iterator[list[Pair]]:
    """Ascending pairs as batches; lengths count the token that is added to each side."""
    batch: list[Pair] = []
    for pair in pairs:
        if batch and (len(batch) + 1) * (longest(pair)[0] + 1) > budget:
            yield batch
            batch = []
        batch.append(pair)
    if batch:
        yield batch


def padded(rows: list[list[int]]) -> list[list[int]]:
    """Rows of one length."""
    size = max(map(len, rows))
    return [row + [PAD] * (size - len(row)) for row in rows]

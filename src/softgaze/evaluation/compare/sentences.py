"""Which sentences are shown of every model: chosen by rule, the same for all, short enough that their maps are read."""

import random
from collections.abc import Sequence

from softgaze.evaluation.buckets import source_lengths

SHOWN = 5
LONGEST = 16  # words: wider maps are not read side by side
RULE = (
    f"chosen by rule: one in the middle of each fifth of the test sentences of at most {LONGEST} words, from the "
    "shortest to the longest; among those of the same length, by seed"
)
SEED = 0


def choose_sentences(sources: Sequence[str], count: int = SHOWN) -> list[int]:
    """Numbers of sentences, spread over lengths: the middle of each fifth, shortest first."""
    lengths = source_lengths(sources)
    readable = [number for number, length in enumerate(lengths) if 0 < length <= LONGEST]
    numbers = readable or [number for number, length in enumerate(lengths) if length]
    dice = random.Random(SEED)
    order = sorted(numbers, key=lambda number: (lengths[number], dice.random()))
    count = min(count, len(order))
    return [order[(2 * place + 1) * len(order) // (2 * count)] for place in range(count)]

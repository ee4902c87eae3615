"""Systems whose quality is known: references with more or fewer words replaced."""

import random

from bundles import WORDS


def sentences(count=120, seed=0):
    """Of 1 to 20 words."""
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS["en"] + WORDS["ko"], k=dice.randint(1, 20))) + "." for _ in range(count)]


def noisy(texts, share, seed=1):
    """The texts with a share of their words wrong."""
    dice = random.Random(seed)
    return [" ".join(dice.choice("xyz") if dice.random() < share else word for word in text.split()) for text in texts]

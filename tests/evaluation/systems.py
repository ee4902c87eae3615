"""Systems whose quality is known: references with more or fewer words replaced."""

import random

from bundles import WORDS


def sentences(count=120, seed=0):
    """Of 1 to 20 words."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS["en"] + WORDS["ko"], k=rng.randint(1, 20))) + "." for _ in range(count)]


def noisy(texts, share, seed=1):
    """The texts with a share of their words wrong."""
    rng = random.Random(seed)
    return [" ".join(rng.choice("xyz") if rng.random() < share else word for word in text.split()) for text in texts]

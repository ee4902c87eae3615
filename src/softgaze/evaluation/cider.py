"""CIDEr-D: how much a caption has of what people agree on, rare words counting for more (Vedantam et al. 2015).

As the evaluation server of COCO computes it: n-grams of one to four words, weighted by how few images somebody used
them of; a caption gets no more for an n-gram than its reference has of it, and less the more their lengths differ.
Knows no text: words are given.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 4  # words of an n-gram
SPREAD = 6.0  # words: how far lengths may differ before it costs much
SCALE = 10.0  # of a caption that is its only reference

Words = Sequence[str]
Vector = dict[tuple[str, ...], float]


@dataclass(frozen=True)
class Rarity:
    """In how many of all images somebody said an n-gram."""

    images: int
    said: Counter[tuple[str, ...]]

    @classmethod
    def of(cls, references: Sequence[Sequence[Words]]) -> "Rarity":
        """From the references of every image."""
        said = Counter[tuple[str, ...]]()
        for own in references:
            said.update({each for words in own for size in sizes() for each in ngrams(words, size)})
        return cls(len(references), said)

    def vector(self, words: Words, size: int) -> Vector:
        """Of each n-gram how often it is there × how rare it is; nobody's n-gram is as rare as that of one image."""
        counts = Counter(ngrams(words, size))
        return {each: count * math.log(self.images / max(self.said[each], 1)) for each, count in counts.items()}


def cider(captions: Sequence[Words], references: Sequence[Sequence[Words]]) -> list[float]:
    """The score of each caption against its references, 0 to 10. Of a single image all are 0, since nothing is rare."""
    rarity = Rarity.of(references)
    return [score(rarity, *pair) for pair in zip(captions, references, strict=True)]


def score(rarity: Rarity, caption: Words, references: Sequence[Words]) -> float:
    """The mean over references and over sizes of n-grams."""
    alike = [likeness(rarity, caption, words, size) for words in references for size in sizes()]
    return SCALE * sum(alike) / len(alike)


def likeness(rarity: Rarity, caption: Words, reference: Words, size: int) -> float:
    """Of two texts, 0 to 1: the cosine of their vectors, but clipped, and damped by the difference of their lengths."""
    own, wanted = rarity.vector(caption, size), rarity.vector(reference, size)
    lengths = math.hypot(*own.values()) * math.hypot(*wanted.values())
    if not lengths:
        return 0.0
    shared = sum(min(value, wanted[each]) * wanted[each] for each, value in own.items() if each in wanted)
    return shared / lengths * math.exp(-((len(caption) - len(reference)) ** 2) / (2 * SPREAD**2))


def ngrams(words: Words, size: int) -> list[tuple[str, ...]]:
    """All runs of so many words."""
    return [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]


def sizes() -> range:
    """Of n-grams."""
    return range(1, LONGEST + 1)

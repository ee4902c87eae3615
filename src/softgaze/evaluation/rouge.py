"""ROUGE-L: how much of a caption stands in its references in the same order, gaps allowed (Lin & Och 2004)."""

from collections.abc import Sequence

RECALL = 1.2  # how much more it counts to have all of the reference than to have nothing else, as COCO sets it

Words = Sequence[str]


def rouge_l(caption: Words, references: Sequence[Words]) -> float:
    """F of the best precision and the best recall over the references, 0 to 1."""
    common = [common_length(caption, words) for words in references]
    precision = max(common) / len(caption) if caption else 0.0
    recall = max(length / max(len(words), 1) for length, words in zip(common, references, strict=True))
    if not precision or not recall:
        return 0.0
    return (1 + RECALL**2) * precision * recall / (recall + RECALL**2 * precision)


def common_length(one: Words, other: Words) -> int:
    """Of the longest text that is left of both by striking out words."""
    lengths = [0] * (len(other) + 1)  # of what was read of `one` with each beginning of `other`
    for word in one:
        before = 0  # with one word less of both
        for place, each in enumerate(other, 1):
            longer = before + 1 if word == each else max(lengths[place], lengths[place - 1])
            before, lengths[place] = lengths[place], longer
    return lengths[-1]

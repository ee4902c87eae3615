"""Gold word alignments from the concepts that words share."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from tools.phrasebook.aligned_words import Word


class Link(NamedTuple):
    """A link between an English and a Korean word, by 0-based index."""

    source: int
    target: int
    sure: bool

    def __str__(self) -> str:
        return f"{self.source}{'-' if self.sure else 'p'}{self.target}"


@cache
def _link(source: int, target: int, sure: bool) -> Link:
    """Return a shared link object: sentences have many equal links."""
    return Link(source, target, sure)


def links(english: Sequence[Word], korean: Sequence[Word]) -> tuple[Link, ...]:
    """Link words that share a concept; the link is sure if the concept is sure on both sides."""
    where: dict[int, list[tuple[int, bool]]] = {}
    for target, concept, sure in _concepts(korean):
        where.setdefault(concept, []).append((target, sure))
    found: dict[tuple[int, int], bool] = {}
    for source, concept, sure in _concepts(english):
        for target, known in where.get(concept, ()):
            found[source, target] = found.get((source, target), False) or (sure and known)
    return tuple(_link(source, target, sure) for (source, target), sure in sorted(found.items()))


def _concepts(words: Sequence[Word]) -> Iterator[tuple[int, int, bool]]:
    """Yield every concept of every word: index of the word, concept, and whether it is sure."""
    for index, word in enumerate(words):
        yield from ((index, concept, True) for concept in word.sure)
        yield from ((index, concept, False) for concept in word.possible)

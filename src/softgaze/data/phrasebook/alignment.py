"""Gold word alignments: which English word means which Korean word. Knows words with ideas, no grammar."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from softgaze.data.phrasebook.meaning import Word


class Link(NamedTuple):
    """Word `source` of the English sentence means word `target` of the Korean one; counted from 0."""

    source: int
    target: int
    sure: bool

    def __str__(self) -> str:
        return f"{self.source}{'-' if self.sure else 'p'}{self.target}"


@cache
def _link(source: int, target: int, sure: bool) -> Link:
    """One link, made once: half a million sentences share them."""
    return Link(source, target, sure)


def links(english: Sequence[Word], korean: Sequence[Word]) -> tuple[Link, ...]:
    """Words that share an idea, sure where both are sure of it."""
    where: dict[int, list[tuple[int, bool]]] = {}
    for target, idea, sure in _ideas(korean):
        where.setdefault(idea, []).append((target, sure))
    found: dict[tuple[int, int], bool] = {}
    for source, idea, sure in _ideas(english):
        for target, known in where.get(idea, ()):
            found[source, target] = found.get((source, target), False) or (sure and known)
    return tuple(_link(source, target, sure) for (source, target), sure in sorted(found.items()))


def _ideas(words: Sequence[Word]) -> Iterator[tuple[int, int, bool]]:
    """Every idea of every word: the index of the word, the idea, and whether the word is sure of it."""
    for index, word in enumerate(words):
        yield from ((index, idea, True) for idea in word.sure)
        yield from ((index, idea, False) for idea in word.possible)

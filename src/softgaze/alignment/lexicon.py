"""How much more often than by chance two parts translate each other: words, then stems, then spelling.

A *lift* is p(target | source) / p(target): 1 says that the source part tells nothing about the target part. Expected
numbers of links between words give the lift of words. The lift of stems is its prior, worth `PRIOR_LINKS` links, so it
decides for rare words; the lift of equal or similar spelling is the prior of stems and decides for unknown ones.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softgaze.alignment.cooccurrence import SIMILARITY_BINS, Cooccurrences, Floats, Ids, Values, Vocabulary, sum_by_id
from softgaze.alignment.words import stem

PRIOR_LINKS = {"stems": 10.0, "words": 4.0}
STEM = 5  # letters
MIN_LINKS = 0.01  # pairs of parts with fewer expected links are not stored

Both = tuple[Floats, Floats]  # target given source, source given target


@dataclass(frozen=True)
class LinkCounts:
    """Expected numbers of links between the items of two vocabularies, sparse."""

    keys: Ids  # sorted, source id · target size + target id
    links: Floats
    source_share: Floats  # relative frequency of each item
    target_share: Floats

    @cached_property
    def totals(self) -> Both:
        """Links of each source and of each target item, and 0 at the end for the id -1 of an unknown one."""
        size = len(self.target_share)
        ids = self.keys // max(1, size), self.keys % max(1, size)
        sizes = len(self.source_share), size
        one, other = (
            np.append(sum_by_id(index, self.links, length), 0.0) for index, length in zip(ids, sizes, strict=True)
        )
        return one, other

    def find(self, source: Ids, target: Ids) -> Ids:
        """Return where pairs of ids are stored, -1 for those that are not."""
        wanted = source * len(self.target_share) + target
        if not len(self.keys):
            return np.full(len(wanted), -1)
        found = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where((self.keys[found] == wanted) & (source >= 0) & (target >= 0), found, -1)

    def lifts(self, source: Ids, target: Ids, where: Ids, prior: Both, prior_links: float) -> Both:
        """Return the lifts of pairs of ids in both directions; `where` is the result of `find`."""
        links = np.append(self.links, 0.0)[where]
        shares = (np.append(share, 1.0) for share in (self.target_share, self.source_share))
        results = [
            (links / share[item] + prior_links * base) / (total[given] + prior_links)
            for share, item, given, total, base in zip(
                shares, (target, source), (source, target), self.totals, prior, strict=True
            )
        ]
        return results[0], results[1]


class Found(NamedTuple):
    """Where a lexicon has the pairs of parts of some sentence pairs."""

    similarity: NDArray[np.int8]
    levels: tuple[tuple[Ids, Ids, Ids], ...]  # source ids, target ids, positions: of stems, then of words


@dataclass(frozen=True)
class Lexicon:
    """Lifts of any pair of parts, from the expected links of words."""

    source: Vocabulary
    target: Vocabulary
    words: LinkCounts
    spelling: Floats  # lift of each similarity bin

    @cached_property
    def stem_maps(self) -> tuple[tuple[Vocabulary, Ids], tuple[Vocabulary, Ids]]:
        """The stems of both vocabularies, and the stem of each word."""
        return stem_map(self.source), stem_map(self.target)

    @cached_property
    def stem_keys(self) -> tuple[Ids, Ids]:
        """The sorted keys of pairs of stems, and the position of each pair of words in them."""
        (_, source), (stems, target) = self.stem_maps
        size = max(1, len(self.target))
        keys, inverse = np.unique(
            source[self.words.keys // size] * len(stems) + target[self.words.keys % size], return_inverse=True
        )
        return keys, inverse

    @cached_property
    def stems(self) -> LinkCounts:
        (source_stems, source), (target_stems, target) = self.stem_maps
        keys, inverse = self.stem_keys
        return LinkCounts(
            keys,
            sum_by_id(inverse, self.words.links, len(keys)),
            sum_by_id(source, self.words.source_share, len(source_stems)),
            sum_by_id(target, self.words.target_share, len(target_stems)),
        )

    @classmethod
    def uninformed(cls, pairs: Cooccurrences) -> "Lexicon":
        """Return a lexicon of the pairs of parts of a corpus, without links yet."""
        frequencies = pairs.source_frequency, pairs.target_frequency
        shares = (frequency / max(1, frequency.sum()) for frequency in frequencies)
        words = LinkCounts(pairs.keys, np.zeros(len(pairs.keys)), *shares)
        return cls(pairs.source, pairs.target, words, np.ones(SIMILARITY_BINS))

    def with_links(self, links: Floats, pairs: Cooccurrences) -> "Lexicon":
        """Return the lexicon with new expected links of the same pairs of parts."""
        new = replace(self, words=replace(self.words, links=links), spelling=spelling_lifts(pairs, links))
        for name in ("stem_maps", "stem_keys"):  # depend only on the words
            new.__dict__[name] = getattr(self, name)
        return new

    def pruned(self) -> "Lexicon":
        """Return the lexicon without pairs of words that are hardly ever linked."""
        kept = self.words.links >= MIN_LINKS
        return replace(self, words=replace(self.words, keys=self.words.keys[kept], links=self.words.links[kept]))

    def find(self, pairs: Cooccurrences) -> Found:
        """Return where the pairs of parts are."""
        (source_stems, _), (target_stems, _) = self.stem_maps
        vocabularies = (
            (source_stems.find(stem(part, STEM) for part in pairs.source), self.source.find(pairs.source)),
            (target_stems.find(stem(part, STEM) for part in pairs.target), self.target.find(pairs.target)),
        )
        levels = []
        for level, counts in enumerate((self.stems, self.words)):
            source, target = vocabularies[0][level][pairs.source_ids], vocabularies[1][level][pairs.target_ids]
            levels.append((source, target, counts.find(source, target)))
        return Found(pairs.similarity, tuple(levels))

    def lifts(self, found: Found) -> tuple[Values, Values]:
        """Return the lifts of pairs of parts: of the target given the source, and the reverse."""
        spelling = self.spelling[found.similarity]
        lifts: Both = spelling, spelling
        for counts, ids, prior_links in zip((self.stems, self.words), found.levels, PRIOR_LINKS.values(), strict=True):
            lifts = counts.lifts(*ids, lifts, prior_links)
        return lifts[0].astype(np.float32), lifts[1].astype(np.float32)


def stem_map(words: Iterable[str]) -> tuple[Vocabulary, Ids]:
    """Return the stems of a vocabulary, and the stem of each word."""
    stems = Vocabulary()
    return stems, np.array([stems.add(stem(word, STEM)) for word in words], np.int64)


def spelling_lifts(pairs: Cooccurrences, links: Floats) -> Floats:
    """Return how much more often than by chance linked parts have each similarity of spelling."""
    linked, together = (
        sum_by_id(pairs.similarity, weights, SIMILARITY_BINS) + 1.0 for weights in (links, pairs.counts)
    )
    lifts: Floats = linked / linked.sum() / (together / together.sum())
    return lifts

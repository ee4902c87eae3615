"""Alignments for guided training, from files or learned from the corpus, converted from words to tokens.

Line n of a file aligns pair n: `0-0 1-2`, counted from 0 over the words between spaces, as `softgaze align` writes it.
An empty line is a pair without links. Possible links (`1p2`) are checked but not learned.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from softgaze.alignment import StatisticalAligner, train_aligner
from softgaze.alignment.words import whitespace_links
from softgaze.data.captions import CaptionCorpus
from softgaze.data.corpus import Corpus, Pair, count_lines, read_lines, sha256_of
from softgaze.errors import DataError, UsageError
from softgaze.explain.alignment import Alignment, Links, check_bounds

AUTO, FILES = "auto", "files"  # sources of alignments: learned from the text, or given
BLOCK_PAIRS, REPORTED_PAIRS = 20_000, 200_000  # aligned at once; between two messages


@dataclass(frozen=True)
class AlignmentFiles:
    """One Pharaoh file per part of a corpus, in the same order; iterating reads both again each time."""

    corpus: Corpus | CaptionCorpus
    paths: tuple[Path, ...]

    def __post_init__(self) -> None:
        parts = [" ".join(map(str, part.paths)) for part in self.corpus.parts]
        if len(self.paths) != len(parts):
            raise UsageError(
                f"got {len(self.paths)} --guided files for {len(parts)} texts ({', '.join(parts)}); "
                "give one for each --train, then one for each --pairs, in their order"
            )

    def check(self) -> None:
        """Raise a `DataError` unless every file has one line per pair; counts newlines only."""
        for part, path in zip(self.corpus.parts, self.paths, strict=True):
            pairs, lines = part.counts()[0], count_lines(path)
            if pairs != lines:
                raise DataError(
                    f"{path} has {lines:,} lines but {part.paths[0]} has {pairs:,}; line n must align pair n "
                    "(empty for a pair without links)"
                )

    def sha256(self) -> list[str]:
        return [sha256_of(path) for path in self.paths]

    def __iter__(self) -> Iterator[tuple[Pair, Links]]:
        for part, path in zip(self.corpus.parts, self.paths, strict=True):
            for line_number, (pair, line) in enumerate(zip(part, read_lines(path), strict=True), 1):
                yield pair, parse_links(line, pair, f"{path}, line {line_number:,}")


@dataclass(frozen=True)
class LearnedAlignments:
    """Links that a statistical aligner learns from the corpus itself; a function of the corpus alone."""

    corpus: Corpus
    on_message: Callable[[str], None] = lambda message: None

    @cached_property
    def aligner(self) -> StatisticalAligner:
        """The aligner, learned when the first link is read."""
        self.on_message("guided: learning word alignments from the training text")
        return train_aligner(self.corpus, lambda message, share: self.on_message(f"guided: {message}"))

    def sha256(self) -> list[str]:
        """Return the mark of learned links, which depend on nothing but the corpus."""
        return [AUTO]

    def __iter__(self) -> Iterator[tuple[Pair, Links]]:
        try:
            aligner = self.aligner
        except DataError as error:
            self.on_message(f"guided: {error}; no attention head learns alignments")
            yield from ((pair, frozenset()) for pair in self.corpus)
            return
        pairs, total, done = iter(self.corpus), self.corpus.count(), 0
        while block := list(islice(pairs, BLOCK_PAIRS)):
            for pair, alignment in zip(block, aligner.align(block), strict=True):
                yield pair, whitespace_links(alignment.links, pair.source, pair.target)
            done += len(block)
            if done % REPORTED_PAIRS == 0 or done == total:
                self.on_message(f"guided: aligned {done:,} of {total:,} pairs")


Alignments = AlignmentFiles | LearnedAlignments


def parse_links(line: str, pair: Pair, where: str) -> Links:
    """Return the sure links of one line, all inside the pair; `where` locates the line in errors."""
    try:
        alignment = Alignment.parse(line)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    if alignment:
        sizes = len(pair.source.split()), len(pair.target.split())
        check_bounds(alignment, sizes, where, "does this file align this text, counting words between spaces?")
    return alignment.links


def token_links(links: Links, source_words: Sequence[int], target_words: Sequence[int]) -> list[int]:
    """Convert links of words to links of tokens, three integers each: target token, source token, divisor.

    `source_words` and `target_words` give the word of each token. A target token gives weight 1/divisor to the source
    token: linked words share its weight equally, and so do the tokens of each word. In a pair with links, the tokens of
    a word without a link are linked to EOS, the position behind the source.
    """
    aligned = {target for _, target in links}
    tokens_of: dict[int, list[int]] = {}
    for token, word in enumerate(source_words):
        tokens_of.setdefault(word, []).append(token)
    linked: dict[int, list[int]] = {}
    for source, target in sorted(links):
        if source in tokens_of:  # a word inside another word's token has no token of its own
            linked.setdefault(target, []).append(source)
    triples: list[int] = []
    for target_token, target in enumerate(target_words):
        words = linked.get(target, ())
        for word in words:
            for source_token in tokens_of[word]:
                triples += [target_token, source_token, len(words) * len(tokens_of[word])]
        if links and target not in aligned:
            triples += [target_token, len(source_words), 1]
    return triples


def max_link_value(max_length: int) -> int:
    """Return the largest integer in `token_links`: a position, or the divisor if half the tokens are one word."""
    return max(max_length, (max_length + 1) ** 2 // 4)

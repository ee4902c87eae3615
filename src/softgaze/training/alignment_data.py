"""Gold alignments for guided training: Pharaoh files next to a corpus, converted from words to tokens.

Line n of a file aligns pair n: `0-0 1-2`, counted from 0 over the words between spaces, as `softgaze align` writes it.
An empty line is a pair without links. Possible links (`1p2`) are checked but not learned.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from softgaze.data.captions import CaptionCorpus
from softgaze.data.corpus import Corpus, Pair, count_lines, read_lines, sha256_of
from softgaze.errors import DataError, UsageError
from softgaze.explain.alignment import Alignment, Links, check_bounds


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
    token: linked words share its weight equally, and so do the tokens of each word.
    """
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
    return triples


def max_link_value(max_length: int) -> int:
    """Return the largest integer in `token_links`: a position, or the divisor if half the tokens are one word."""
    return max(max_length, (max_length + 1) ** 2 // 4)

"""Links between words that lie beside a corpus in Pharaoh files, and the pieces of those words.

Line n of a file links pair n: `0-0 1-2`, counted from 0 over what stands between spaces, as `softgaze align` writes it.
An empty line is a pair without links. Links that are only possible (`1p2`) are checked but not learnt from: whoever
wrote them was not sure. A link to a word that is not there is an error that names file and line.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from softgaze.data.album import Album
from softgaze.data.corpus import Corpus, Pair, count_lines, read_lines, sha256_of
from softgaze.errors import DataError, UsageError
from softgaze.gaze.alignment import Alignment, Links, check_inside

Linked = tuple[Pair, Links]


@dataclass(frozen=True)
class LinkFiles:
    """One file for each part of a corpus, in the same order; iterating reads both anew each time."""

    corpus: Corpus | Album
    paths: tuple[Path, ...]

    def __post_init__(self) -> None:
        parts = [" ".join(map(str, part.paths)) for part in self.corpus.parts]
        if len(self.paths) != len(parts):
            raise UsageError(
                f"--guided is given {len(self.paths)} times for {len(parts)} texts ({', '.join(parts)}); "
                "give one file of links for each --train and then for each --pairs, in their order"
            )

    def check(self) -> None:
        """Every file must have a line for each pair; known from newlines alone."""
        for part, path in zip(self.corpus.parts, self.paths, strict=True):
            pairs, lines = part.counts()[0], count_lines(path)
            if pairs != lines:
                raise DataError(
                    f"{path} has {lines:,} lines of links, {part.paths[0]} {pairs:,}; line n must link pair n "
                    "(a pair without links has an empty line)"
                )

    def sha256(self) -> list[str]:
        """Of each file as it lies on disk."""
        return [sha256_of(path) for path in self.paths]

    def __iter__(self) -> Iterator[Linked]:
        for part, path in zip(self.corpus.parts, self.paths, strict=True):
            for number, (pair, line) in enumerate(zip(part, read_lines(path), strict=True), 1):
                yield pair, read_links(line, pair, f"{path}, line {number:,}")


def read_links(line: str, pair: Pair, where: str) -> Links:
    """The sure links of one line, each between words that are there."""
    try:
        found = Alignment.parse(line)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    if found:
        sizes = len(pair.source.split()), len(pair.target.split())
        check_inside(found, sizes, where, "are these the links of this text, over what stands between spaces?")
    return found.links


def piece_links(links: Links, source_words: Sequence[int], target_words: Sequence[int]) -> list[int]:
    """Links of words as links of their pieces, three numbers each: target piece, source piece, and parts.

    A target piece gives 1/parts of its weight to the source piece: each linked word gets as much as the others, and
    each of its pieces as much as the others. The words of all pieces are given by number.
    """
    pieces: dict[int, list[int]] = {}
    for place, word in enumerate(source_words):
        pieces.setdefault(word, []).append(place)
    linked: dict[int, list[int]] = {}
    for source, target in sorted(links):
        if source in pieces:  # a word within another's piece has none of its own
            linked.setdefault(target, []).append(source)
    found: list[int] = []
    for place, target in enumerate(target_words):
        words = linked.get(target, ())
        for word in words:
            for piece in pieces[word]:
                found += [place, piece, len(words) * len(pieces[word])]
    return found


def largest_number(max_length: int) -> int:
    """That may stand in a link of pieces: a place, or the parts when half of the pieces are words and half one word."""
    return max(max_length, (max_length + 1) ** 2 // 4)

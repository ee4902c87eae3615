"""Alignment error rate of word aligners that learn from sentence pairs alone: softgaze and Eflomal (sil-thot).

    python -m benchmarks.aligners --train train.en train.fr --test test.en test.fr --gold gold.talp --gold-base 1

With `--hand FILE CORPUS …` instead of `--gold`, the test pairs are the lines of these corpora in `hand-alignments.tsv`
(corpus, line of the `--test` files, links counted from 0).

All aligners see the same text, lower-cased and with punctuation split off. "Seen": the test pairs are among the pairs
to learn from. "Unseen": they are not. Gold is only compared with. Prints a table as Markdown.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from softgaze.alignment import train_aligner
from softgaze.alignment.words import WordParts, split_words
from softgaze.data.corpus import read_lines, read_pairs
from softgaze.explain.alignment import METHODS, Alignment, count_corpus, parse_lines
from softgaze.runtime import need

TextPairs = Sequence[tuple[str, str]]
SEED = 1


class Result(NamedTuple):
    """The alignments of one aligner, by the name of the way links were extracted."""

    seconds: float  # of this process on the CPU
    alignments: dict[str, list[Alignment]]


def softgaze_links(train: TextPairs, test: TextPairs) -> Result:
    start = time.process_time()
    alignments = train_aligner(train).align(test)
    return Result(time.process_time() - start, {"softgaze": alignments})


def eflomal_links(train: TextPairs, test: TextPairs) -> Result:
    """Both directions of Eflomal with its own number of iterations, symmetrised."""
    need("thot", "sil-thot")
    from thot.alignment import EflomalAlignmentModel

    start = time.process_time()
    train_parts, test_parts = ([tuple(map(split_words, pair)) for pair in pairs] for pairs in (train, test))
    directions = []
    for source, target in ((0, 1), (1, 0)):
        model = EflomalAlignmentModel()
        model.seed, model.deterministic = SEED, True
        for pair in train_parts:
            if pair[0].parts and pair[1].parts:
                model.add_sentence_pair(pair[source].parts, pair[target].parts, 1)
        model.start_training()
        for _ in range(model.scheduled_iterations):
            model.train()
        model.end_training()
        found = [model.get_best_alignment(pair[source].parts, pair[target].parts)[1] for pair in test_parts]
        links = [
            frozenset((i, j) for i in range(matrix.row_length) for j in range(matrix.column_length) if matrix[i, j])
            for matrix in found
        ]
        directions.append(links if source == 0 else [frozenset((j, i) for i, j in each) for each in links])
    names = {
        f"Eflomal, {name}": [
            Alignment(word_links(method(*both), *pair)) for *both, pair in zip(*directions, test_parts, strict=True)
        ]
        for name, method in METHODS.items()
    }
    return Result(time.process_time() - start, names)


def word_links(links: frozenset[tuple[int, int]], source: WordParts, target: WordParts) -> frozenset[tuple[int, int]]:
    """Return links of words from links of parts, as softgaze counts them."""
    return frozenset(
        (source.word_of[one], target.word_of[other])
        for one, other in links
        if source.is_core[one] and target.is_core[other]
    )


ALIGNERS: dict[str, Callable[[TextPairs, TextPairs], Result]] = {"softgaze": softgaze_links, "eflomal": eflomal_links}


def rows(train: TextPairs, test: TextPairs, gold: Sequence[Alignment], names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| aligner | test pairs | AER % | precision % | recall % | CPU seconds |"
    yield "|---|---|---:|---:|---:|---:|"
    for name in names:
        for setting, pairs in (("seen", [*train, *test]), ("unseen", train)):
            result = ALIGNERS[name](pairs, test)
            for way, alignments in result.alignments.items():
                counts = count_corpus(alignments, gold)
                rates = [f"{100 * rate:.1f}" for rate in (counts.aer, counts.precision, counts.recall)]
                yield f"| {way} | {setting} | {' | '.join(rates)} | {result.seconds:.0f} |"


def hand_aligned(path: Path, corpora: Sequence[str], pairs: TextPairs) -> tuple[TextPairs, list[Alignment]]:
    """Return the pairs of some corpora that were aligned by hand, and their links."""
    rows = [row for row in (line.split("\t") for line in read_lines(path)) if row[0] in corpora]
    return [pairs[int(line) - 1] for _, line, _ in rows], parse_lines([links for *_, links in rows], 0, str(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--train", type=Path, nargs=2, required=True, metavar=("SRC", "TGT"))
    parser.add_argument("--test", type=Path, nargs=2, required=True, metavar=("SRC", "TGT"))
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--gold-base", type=int, choices=(0, 1))
    parser.add_argument("--hand", nargs="+", metavar="FILE CORPUS")
    parser.add_argument("--max-words", type=int, help="learn from source sentences of at most so many words")
    parser.add_argument("--aligners", nargs="+", choices=ALIGNERS, default=list(ALIGNERS))
    given = parser.parse_args()
    train = [pair for pair in read_pairs(*given.train) if len(pair.source.split()) <= (given.max_words or math.inf)]
    test: TextPairs = list(read_pairs(*given.test))
    if given.hand:
        test, gold = hand_aligned(Path(given.hand[0]), given.hand[1:], test)
    else:
        gold = parse_lines(list(read_lines(given.gold)), given.gold_base, "gold")
    print(f"{len(train):,} pairs to learn from, {len(test):,} test pairs with {sum(map(len, gold)):,} gold links.\n")
    for row in rows(train, test, gold, given.aligners):
        print(row, flush=True)


if __name__ == "__main__":
    main()

"""How far changed text harms alignment: longer, tokenised, without punctuation, in other cases, with unknown words.

    python -m benchmarks.robustness "Multi30k en–de" val.en.gz val.de.gz hand-alignments.tsv \
        multi30k-val-en-de multi30k-val-en-de-third --train train.en.gz train.de.gz --max-words 11 --model runs/m30k

The test pairs are the lines of these corpora in the file of hand alignments. Changes keep the words and their links:

- three times as long: three pairs joined
- punctuation split: punctuation attached to words becomes words of their own, without links
- punctuation removed: words lose attached punctuation
- lower case, upper case: both sides
- unknown words: one linked word of each pair becomes an invented word, another one on each side

Prints a table of the alignment error rate as Markdown: of the aligner learned from --train, and of models' attention.
"""

import argparse
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.aligners import TextPairs, hand_aligned
from softgaze.alignment import StatisticalAligner, train_aligner
from softgaze.data.corpus import read_pairs
from softgaze.explain.alignment import Alignment, count_corpus
from softgaze.translator import load

JOINED, SEED = 3, 1
EDGES = re.compile(r"^(\W*)(.*?)(\W*)$", re.DOTALL)
Links = frozenset[tuple[int, int]]
Test = tuple[TextPairs, list[Alignment]]


def mapped(alignment: Alignment, source: Sequence[int], target: Sequence[int]) -> Alignment:
    """Return an alignment whose words have new indices."""
    links, possible = (
        frozenset((source[one], target[other]) for one, other in own) for own in (alignment.links, alignment.possible)
    )
    return Alignment(links, possible)


def join(pairs: TextPairs, gold: Sequence[Alignment]) -> Test:
    """Join neighbouring pairs; those that are left over at the end are dropped."""
    texts, alignments = [], []
    for start in range(0, len(pairs) - JOINED + 1, JOINED):
        own = pairs[start : start + JOINED]
        links, possible, offsets = set[tuple[int, int]](), set[tuple[int, int]](), [0, 0]
        for pair, alignment in zip(own, gold[start : start + JOINED], strict=True):
            for new, old in ((links, alignment.links), (possible, alignment.possible)):
                new |= {(one + offsets[0], other + offsets[1]) for one, other in old}
            offsets = [offset + len(side.split()) for offset, side in zip(offsets, pair, strict=True)]
        texts.append((" ".join(source for source, _ in own), " ".join(target for _, target in own)))
        alignments.append(Alignment(frozenset(links), frozenset(possible)))
    return texts, alignments


def split_punctuation(text: str) -> tuple[str, list[int]]:
    """Return the text with punctuation as words of their own, and the new index of each word."""
    words: list[str] = []
    indices = []
    for word in text.split():
        match = EDGES.match(word)
        before, core, after = match.groups() if match else ("", word, "")
        if not core:
            indices.append(len(words))
            words.append(word)
            continue
        indices.append(len(words) + bool(before))
        words += filter(None, (before, core, after))
    return " ".join(words), indices


def split_all(pairs: TextPairs, gold: Sequence[Alignment]) -> Test:
    both = [(split_punctuation(source), split_punctuation(target)) for source, target in pairs]
    moved = [mapped(own, one[1], other[1]) for own, (one, other) in zip(gold, both, strict=True)]
    return [(one[0], other[0]) for one, other in both], moved


def each_word(change: Callable[[str], str]) -> Callable[[TextPairs, Sequence[Alignment]], Test]:
    """Return a change of every word, on both sides, that keeps the number of words."""

    def changed(pairs: TextPairs, gold: Sequence[Alignment]) -> Test:
        return [(change_words(source, change), change_words(target, change)) for source, target in pairs], list(gold)

    return changed


def change_words(text: str, change: Callable[[str], str]) -> str:
    return " ".join(change(word) or word for word in text.split())


def without_punctuation(word: str) -> str:
    match = EDGES.match(word)
    return match[2] if match else word


def replace_words(pairs: TextPairs, gold: Sequence[Alignment]) -> Test:
    """Replace one word that has one sure link, and its translation, by invented words."""
    dice, found = random.Random(SEED), []
    for (source, target), alignment in zip(pairs, gold, strict=True):
        both, links = (source.split(), target.split()), sorted(alignment.links | alignment.possible)
        single = [
            link
            for link in sorted(alignment.links)
            if sum(link[0] == one for one, _ in links) == sum(link[1] == other for _, other in links) == 1
            if all(words[index].isalpha() for words, index in zip(both, link, strict=True))
        ]
        if single:
            for words, index in zip(both, dice.choice(single), strict=True):
                words[index] = "".join(dice.choices("bcdfghjklmnpqrstvwxz", k=3) + dice.choices("aeiou", k=3))
        found.append((" ".join(both[0]), " ".join(both[1])))
    return found, list(gold)


CHANGES: dict[str, Callable[[TextPairs, Sequence[Alignment]], Test]] = {
    "unchanged": lambda pairs, gold: (pairs, list(gold)),
    "three times as long": join,
    "punctuation split": split_all,
    "punctuation removed": each_word(without_punctuation),
    "lower case": each_word(str.lower),
    "upper case": each_word(str.upper),
    "unknown words": replace_words,
}


def rows(
    name: str, aligners: dict[str, Callable[[TextPairs], list[Alignment]]], pairs: TextPairs, gold: Sequence[Alignment]
) -> Iterator[str]:
    """Yield the lines of the table: AER in per cent."""
    yield f"| {name} | {' | '.join(aligners)} |"
    yield "|---|" + "--:|" * len(aligners)
    for change, apply in CHANGES.items():
        changed, own = apply(pairs, gold)
        rates = [f"{100 * count_corpus(align(changed), own).aer:.1f}" for align in aligners.values()]
        yield f"| {change} | {' | '.join(rates)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("name")
    parser.add_argument("test", type=Path, nargs=2, metavar="SRC TGT")
    parser.add_argument("hand", type=Path)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--train", type=Path, nargs=2, required=True, metavar=("SRC", "TGT"))
    parser.add_argument("--max-words", type=int, help="learn from source sentences of at most so many words")
    parser.add_argument(
        "--model", type=Path, action="append", default=[], help="a model whose attention is measured, or an aligner"
    )
    given = parser.parse_args()
    pairs, gold = hand_aligned(given.hand, given.corpora, list(read_pairs(*given.test)))
    train = [pair for pair in read_pairs(*given.train) if len(pair.source.split()) <= (given.max_words or math.inf)]
    aligners: dict[str, Callable[[TextPairs], list[Alignment]]] = {"statistical": train_aligner(train).align}
    for model in given.model:
        if model.is_file():
            aligners[model.stem] = StatisticalAligner.load(model).align
        else:
            aligners[f"attention of {model.name}"] = load(model, "cpu", engine="torch").aligner().align
    for row in rows(given.name, aligners, pairs, gold):
        print(row, flush=True)


if __name__ == "__main__":
    main()

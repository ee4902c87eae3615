"""Are omitted and inserted words found? Precision and recall on words planted in text with references.

    python -m benchmarks.planted NAME MODEL SRC TGT TRAIN_SRC TRAIN_TGT [NAME …]

Writes `planted.md`. A word of another sentence is inserted into the reference (an insertion), or into the source (an
omission: the reference does not translate it). The model scores the pair. A natural pair has free translations of its
own, which count as wrong flags here. Omissions are also found with a word aligner, as bundles of Transformers
have it; it learns from a sample of the training text.
"""

import random
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.report import circumstances
from softgaze.alignment import train_aligner
from softgaze.data.corpus import read_pairs
from softgaze.evaluation.confidence_metrics import area_under_curve
from softgaze.evaluation.tables import Table
from softgaze.explain.confidence import word_features
from softgaze.explain.corpus_report import omitted_words, source_needs
from softgaze.explain.explanation import linked_words
from softgaze.explain.occlusion import unsupported_words, word_support
from softgaze.training.validation import ALIGNER_PAIRS
from softgaze.translation import Translation
from softgaze.translator import Translator, load

SENTENCES = 300
LENGTHS = range(5, 21)  # source words
MIN_LETTERS = 4  # of a planted word
KINDS = ("insertions", "omissions", "omissions, with a word aligner")
HEADER = ["", "planted", "words", "flagged", "precision", "recall", "AUC"]


class Flags(NamedTuple):
    """The words of one kind in all sentences."""

    scores: list[float]  # higher: more suspicious
    flagged: list[bool]
    planted: list[bool]

    def row(self, name: str) -> list[str]:
        flagged, planted = np.array(self.flagged), np.array(self.planted)
        hits = (flagged & planted).sum()
        rates = [f"{100 * hits / max(all_.sum(), 1):.0f} %" for all_ in (flagged, planted)]
        auc = area_under_curve(np.array(self.scores), planted)
        return [name, f"{planted.sum():,}", f"{len(planted):,}", f"{flagged.sum():,}", *rates, f"{auc:.3f}"]


def plant(text: str, others: list[str], dice: random.Random) -> tuple[str, int]:
    """Insert a word of another sentence after the first word; return the text and the index of the word."""
    words = text.split()
    while True:
        word = dice.choice(dice.choice(others).split()).strip(".,!?\"'")
        if len(word) >= MIN_LETTERS and word.isalpha() and word.lower() not in text.lower():
            index = dice.randrange(1, len(words)) if len(words) > 1 else 1
            return " ".join([*words[:index], word, *words[index:]]), index


def score(translator: Translator, pairs: list[tuple[str, str]]) -> list[Translation]:
    return [translator.score(source, target) for source, target in pairs]


def measure(model: Path, source: Path, target: Path, train: Sequence[Path]) -> dict[str, Flags]:
    """Return the flags of insertions and of omissions, without and with a word aligner."""
    translator, dice = load(model), random.Random(1)
    known = list(read_pairs(*train))
    aligner = train_aligner(known[:: max(1, len(known) // ALIGNER_PAIRS)])
    texts = list(read_pairs(source, target))
    chosen = list(islice((pair for pair in texts if len(pair[0].split()) in LENGTHS and pair[1].strip()), SENTENCES))
    inserted = [plant(reference, [other for _, other in texts], dice) for _, reference in chosen]
    omitted = [plant(text, [other for other, _ in texts], dice) for text, _ in chosen]
    found = {kind: Flags([], [], []) for kind in KINDS}
    translations = score(translator, [(pair[0], text) for pair, (text, _) in zip(chosen, inserted, strict=True)])
    for (words, features), occlusion, (_, index) in zip(
        word_features(translator, translations), translator.occlusions(translations), inserted, strict=True
    ):
        support = word_support(occlusion[:-1], features[:, 0])
        add(found["insertions"], (-support).tolist(), unsupported_words(words, support), index, words)
    translations = score(translator, [(text, pair[1]) for pair, (text, _) in zip(chosen, omitted, strict=True)])
    for kind, used in zip(KINDS[1:], (None, aligner), strict=True):
        linked = linked_words(translator, translations, used)
        for translation, occlusion, own, (_, index) in zip(
            translations, translator.occlusions(translations), linked, omitted, strict=True
        ):
            scores = [-need for need in source_needs(occlusion)]
            add(found[kind], scores, omitted_words(occlusion, own), index, translation.source.split())
    return found


def add(
    flags: Flags, scores: list[float], flagged: tuple[int, ...], planted: int, words: "tuple[str, ...] | list[str]"
) -> None:
    for index, (word, value) in enumerate(zip(words, scores, strict=True)):
        if any(map(str.isalnum, word)):
            flags.scores.append(value)
            flags.flagged.append(index in flagged)
            flags.planted.append(index == planted)


def main() -> None:
    arguments, rows = iter(sys.argv[1:]), []
    while row := list(islice(arguments, 6)):
        name, *files = row
        model, source, target, *train = map(Path, files)
        rows += [flags.row(f"{name}, {kind}") for kind, flags in measure(model, source, target, train).items()]
    note = (
        f"{SENTENCES} sentences of {LENGTHS.start} to {LENGTHS.stop - 1} source words each, one planted word in each. "
        "AUC: of occlusion alone. With a word aligner: words that it links are not flagged."
    )
    table = Table("", HEADER, rows, note).markdown()
    text = f"# Planted insertions and omissions\n\n{circumstances('planted')}\n\n{table}\n"
    print(text)
    (Path(__file__).parent / "planted.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

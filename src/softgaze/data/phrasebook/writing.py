"""The corpus as plain files: a line for each sentence, a line for its links, and a README that says so."""

from collections.abc import Sequence
from pathlib import Path

from softgaze.data.phrasebook.sentences import LONG, LONGEST, Sentence
from softgaze.data.phrasebook.splits import SPLITS, Phrasebook, generate


def write(directory: Path, pairs: int = 20_000, seed: int = 0) -> Phrasebook:
    """Write `train.en`, `train.ko`, `train.gold` and the same for dev, test and long, with a README.txt."""
    book = generate(pairs, seed)
    directory.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        sentences: tuple[Sentence, ...] = getattr(book, split)
        _write_lines(directory / f"{split}.en", [sentence.source for sentence in sentences])
        _write_lines(directory / f"{split}.ko", [sentence.target for sentence in sentences])
        _write_lines(directory / f"{split}.gold", [sentence.gold for sentence in sentences])
    _write_lines(directory / "README.txt", _readme(book, pairs, seed))
    return book


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    """UTF-8 with a newline after every line, on every system."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _readme(book: Phrasebook, pairs: int, seed: int) -> list[str]:
    """What the files are, for whoever finds them."""
    counts = [f"  {split:<6}{len(getattr(book, split)):>8,} pairs" for split in SPLITS]
    return [
        "English-Korean sentence pairs with gold word alignments, written by softgaze's own grammar.",
        "",
        f"pairs asked for: {pairs}   seed: {seed}   (the same numbers give the same files)",
        *counts,
        "",
        "SPLIT.en and SPLIT.ko hold one sentence a line; line n of one translates line n of the other.",
        "SPLIT.gold holds the word alignment of the same line: links separated by spaces, i-j where English word i",
        "surely means Korean word j, ipj where it may. Words are what stands between spaces, counted from 0,",
        "punctuation attached; the English index comes first.",
        "",
        "dev and test hold combinations of words (eat bread, big dog) that train never has, of words it has.",
        f"train, dev and test have sentences of up to {LONGEST} English words; long {LONG.start} to {LONG.stop - 1}.",
    ]

"""Write a generated corpus as plain files."""

from pathlib import Path

from softgaze.data.corpus import write_lines
from tools.phrasebook.splits import SPLITS, Phrasebook, generate


def write(directory: Path, pairs: int = 20_000, seed: int = 0) -> Phrasebook:
    """Write SPLIT.en, SPLIT.ko and SPLIT.gold for train, dev, test and long."""
    book = generate(pairs, seed)
    directory.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        for column, attribute in (("en", "source"), ("ko", "target"), ("gold", "gold")):
            lines = [getattr(sentence, attribute) for sentence in getattr(book, split)]
            write_lines(directory / f"{split}.{column}", lines)
    return book

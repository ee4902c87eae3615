"""Small text on disk to train on, and settings that make training take seconds."""

import random
from pathlib import Path
from typing import Any

from softgaze.config import Config, merge_settings, parse_config
from softgaze.data.corpus import Corpus

DICTIONARY = {
    "dog": "hund",
    "cat": "katze",
    "sees": "sieht",
    "eats": "isst",
    "big": "gross",
    "red": "rot",
    "and": "und",
}


def write_corpus(directory: Path, pairs: int = 60, name: str = "train", seed: int = 0) -> tuple[Path, Path]:
    """Word-for-word translations, in two files."""
    dice = random.Random(f"{seed} {name}")
    rows = [dice.choices(list(DICTIONARY), k=dice.randint(2, 6)) for _ in range(pairs)]
    source, target = directory / f"{name}.en", directory / f"{name}.de"
    source.write_text("".join(f"{' '.join(row)}.\n" for row in rows))
    target.write_text("".join(f"{' '.join(DICTIONARY[word] for word in row)}.\n" for row in rows))
    return source, target


def write_links(source: Path) -> Path:
    """Links for a source of `write_corpus`: each word means the one in its place."""
    path = source.with_suffix(".links")
    lines = source.read_text().splitlines()
    path.write_text("".join(" ".join(f"{word}-{word}" for word in range(len(line.split()))) + "\n" for line in lines))
    return path


def corpus(directory: Path, **options: Any) -> Corpus:
    return Corpus.of([write_corpus(directory, **options)])


SMALL = {
    "transformer": {"width": 16, "feed_forward_width": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
    "rnn-luong": {"width": 16},
}


def small(arch: str = "transformer", **sections: Any) -> Config:
    """Settings of a model that learns little, quickly."""
    plain = {
        "model": {"arch": arch, "options": SMALL[arch]},
        "training": {"batch_tokens": 64, "average": 2, "warmup": 2, "guided": "none"},
        "validation": {"every": 4, "sentences": 4, "samples": 1},
        "budget": {"steps": 8},
    }
    return parse_config(merge_settings(plain, sections))

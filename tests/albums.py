"""A few drawn pictures with captions on disk, and settings that make learning them take seconds."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

import tones
from softgaze.config import Config, merge_settings, parse_config
from softgaze.data.captions import CaptionCorpus
from softgaze.data.corpora import scenes
from softgaze.data.images import write_image
from softgaze.data.processors import ImageProcessor

SMALL = {"width": 16, "layers": 1, "encoder_layers": 1, "heads": 2}
SIDE, PATCH = 32, 4


def write_pictures(folder: Path, count: int = 12, captions: int = 2, name: str = "train.en.csv") -> Path:
    """So many pictures, each with so many captions; returns the file of captions."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = [("image", "caption")]
    for number in range(count):
        scene, file = scenes.load("train")[number], f"{number:03d}.png"
        write_image(folder / "images" / file, scenes.draw(scene, SIDE).pixels)
        rows += [(file, f"{scene.captions['en']}{'.' * extra}") for extra in range(captions)]
    with (folder / name).open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / name


def pictures(folder: Path, **options: Any) -> CaptionCorpus:
    """The same, to train on."""
    return CaptionCorpus.of(
        folder / "images", write_pictures(folder, **options), ImageProcessor(SIDE, PATCH), lambda error: None
    )


NAMES = ("do", "re", "mi", "fa", "sol", "la", "si", "dosi")  # letters only: SentencePiece sets digits apart
SUNG = dict(zip(tones.NOTES, NAMES, strict=True))


def sung(melody: tones.Melody) -> str:
    """The notes of a melody as words."""
    return " ".join(SUNG[tone.note] for tone in melody.tones)


def write_melodies(folder: Path, melodies: int, split: str = "train") -> Path:
    """Frames of melodies, and what they spell."""
    folder.mkdir(exist_ok=True)
    rows = []
    for number in range(melodies):
        melody = tones.melody(split, number)
        np.save(folder / f"{split}-{number}.npy", melody.frames())
        rows.append(f"{split}-{number}.npy\t{sung(melody)}\n")
    path = folder / f"{split}.tsv"
    path.write_text("".join(rows))
    return path


def small(**sections: Any) -> Config:
    """Settings of a captioner that learns little, quickly."""
    plain = {
        "model": {"arch": "captioner", "options": SMALL},
        "training": {"batch_tokens": 256, "average": 2, "warmup": 2},
        "validation": {"every": 2, "sentences": 2, "samples": 1},
        "budget": {"steps": 4},
    }
    return parse_config(merge_settings(plain, sections))

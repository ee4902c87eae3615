"""Synthetic melodies as sources of features: a few tones, to be transcribed as "C4 E4 G4".

Tones differ in length, loudness and timbre, with short pauses and some noise. The time of each tone is known, so
attention can be compared with it. Dev and test contain successions of two tones that train lacks.
"""

import math
import random
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing

from softgaze.data.features import Mel, log_mel

Array = np.typing.NDArray[Any]

NOTES = {"C4": 261.63, "D4": 293.66, "E4": 329.63, "F4": 349.23, "G4": 392.00, "A4": 440.00, "B4": 493.88, "C5": 523.25}
LENGTHS = range(3, 9)  # tones in a melody
RATE = 8_000
MEL = Mel(window=0.050, hop=0.025, filters=40, low=100, high=4_000)  # long enough to tell C from D

_NAMES = tuple(NOTES)
_OVERTONES = 4
_FADE = 0.010  # seconds: a tone that begins at once would click
_NOISE = 0.003


def owner(first: int, second: int) -> str:
    """Return the split of a pair of notes: each note has one successor in dev and one in test."""
    if (second - first) % len(NOTES) == 3:
        return "dev"
    return "test" if (second + 3 * first) % len(NOTES) == 4 else "train"


@dataclass(frozen=True, slots=True)
class Tone:
    """A note that sounds from `start` to `end`, in seconds; the strength of the fundamental and of each overtone."""

    note: str
    start: float
    end: float
    strengths: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Melody:
    """Tones one after the other, and the seed of the noise around them."""

    tones: tuple[Tone, ...]
    noise: int

    @property
    def text(self) -> str:
        """What is to be spelled."""
        return " ".join(tone.note for tone in self.tones)

    def samples(self) -> Array:
        """The sound at `RATE`, with a pause at its end."""
        seconds = np.arange(math.ceil((self.tones[-1].end + MEL.window) * RATE)) / RATE
        sound = np.random.Generator(np.random.PCG64(self.noise)).normal(0, _NOISE, len(seconds))
        for tone in self.tones:
            while_it_sounds = slice(round(tone.start * RATE), round(tone.end * RATE))
            sound[while_it_sounds] += _played(tone, seconds[while_it_sounds])
        return sound

    def frames(self) -> Array:
        """The sound as a source (frames, filters)."""
        return log_mel(self.samples(), RATE, MEL)

    def spans(self) -> tuple[tuple[int, int], ...]:
        """Of each tone the first frame whose middle lies in it, and the first after it: where to look for the tone."""
        return tuple((_frame_after(tone.start), _frame_after(tone.end)) for tone in self.tones)


def _frame_after(second: float) -> int:
    """The first frame whose middle is not before a second."""
    return max(0, math.ceil((second - MEL.window / 2) / MEL.hop))


def _played(tone: Tone, seconds: Array) -> Array:
    """One tone at these seconds, rising at its start and falling at its end."""
    loud = np.clip(np.minimum(seconds - tone.start, tone.end - seconds) / _FADE, 0, 1)
    turns = 2 * math.pi * NOTES[tone.note] * seconds
    return loud * sum(strength * np.sin(turns * (place + 1)) for place, strength in enumerate(tone.strengths))


def melody(split: str, number: int, seed: int = 0) -> Melody:
    """Melody `number` of a split: the same wherever and whenever it is asked for, however many there are."""
    dice = random.Random(f"softgaze tones {seed} {split} {number}")
    tones, now = list[Tone](), 0.0
    for note in _tune(dice, split):
        start = now + dice.uniform(0.025, 0.075)
        now = start + dice.uniform(0.100, 0.200)
        tones.append(Tone(_NAMES[note], start, now, _timbre(dice)))
    return Melody(tuple(tones), dice.getrandbits(32))


def _timbre(dice: random.Random) -> tuple[float, ...]:
    """Overtones that grow weaker, and together a loudness between a fifth and four fifths."""
    strengths = [dice.random() ** place for place in range(_OVERTONES)]
    return tuple(dice.uniform(0.2, 0.8) * strength / sum(strengths) for strength in strengths)


def _tune(dice: random.Random, split: str) -> list[int]:
    """Notes of which every one may follow the one before in this split; in dev and test one succession is their own."""
    while True:
        notes = [dice.randrange(len(_NAMES))]
        for _ in range(dice.choice(LENGTHS) - 1):
            notes.append(
                dice.choice([note for note in range(len(_NAMES)) if owner(notes[-1], note) in ("train", split)])
            )
        if any(owner(*pair) == split for pair in pairwise(notes)):
            return notes

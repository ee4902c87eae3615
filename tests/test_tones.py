"""Melodies: the same for the same seed, spelled by what is heard where it is said to sound, held out by succession."""

from itertools import pairwise

import numpy as np
import pytest

from softgaze.errors import DataError
from tones import LENGTHS, LIMIT, MEL, NOTES, RATE, SPLITS, Melody, generate, melody

MELODIES = generate(600)


def successions(some: tuple[Melody, ...]) -> set[tuple[str, str]]:
    return {pair for one in some for pair in pairwise(one.text.split())}


def test_the_same_seed_gives_the_same_melodies_and_another_seed_others():
    assert generate(30, seed=4) == generate(30, seed=4)
    assert generate(30, seed=4).train != generate(30, seed=5).train
    assert generate(30).train == MELODIES.train[:30]
    assert np.array_equal(melody("test", 2).frames(), MELODIES.test[2].frames())


def test_sizes():
    assert [len(getattr(MELODIES, split)) for split in SPLITS] == [600, 60, 60]
    assert {len(one.tones) for one in MELODIES.train} == set(LENGTHS)


def test_held_out_melodies_have_a_succession_that_train_never_has():
    trained = successions(MELODIES.train)
    assert len(trained) == 48
    assert {note for pair in trained for note in pair} == set(NOTES)
    own = {split: successions(getattr(MELODIES, split)) - trained for split in ("dev", "test")}
    assert not own["dev"] & own["test"]
    for split in ("dev", "test"):
        assert all(successions((one,)) & own[split] for one in getattr(MELODIES, split))


def test_each_note_is_heard_where_it_is_said_to_sound():
    """By the strongest frequency of the middle of each tone: its fundamental, or an overtone of it."""
    for one in MELODIES.train[:40]:
        samples = one.samples()
        assert abs(samples).max() < 1
        for tone in one.tones:
            heard = samples[round(tone.start * RATE) : round(tone.end * RATE)]
            spectrum = abs(np.fft.rfft(heard * np.hanning(len(heard)), RATE))
            strongest = int(spectrum.argmax())
            multiple = round(strongest / NOTES[tone.note])
            assert multiple >= 1
            assert strongest == pytest.approx(multiple * NOTES[tone.note], rel=0.02)


def test_spans_are_the_frames_of_each_tone_in_order():
    for one in MELODIES.train[:100]:
        frames = one.frames()
        assert frames.shape[1] == MEL.filters
        centres = np.arange(len(frames)) * MEL.hop + MEL.window / 2  # seconds
        for tone, (first, last) in zip(one.tones, one.spans(), strict=True):
            assert first < last <= len(frames)
            inside = (tone.start <= centres) & (centres < tone.end)
            assert list(inside.nonzero()[0]) == list(range(first, last))
        assert all(before[1] <= after[0] for before, after in pairwise(one.spans()))


def test_tones_are_louder_than_what_is_between_them():
    for one in MELODIES.train[:40]:
        samples = one.samples()
        pauses = [samples[round(a.end * RATE) + 1 : round(b.start * RATE)] for a, b in pairwise(one.tones)]
        assert max(abs(np.concatenate(pauses))) < 0.02
        assert all(abs(samples[round(t.start * RATE) : round(t.end * RATE)]).max() > 0.05 for t in one.tones)


@pytest.mark.parametrize("count", [0, -1, LIMIT + 1])
def test_too_few_or_too_many_is_one_clear_line(count):
    with pytest.raises(DataError, match=r"tones: .* melodies asked for"):
        generate(count)


def test_an_unknown_split_is_a_mistake():
    with pytest.raises(ValueError, match="no split 'long'"):
        melody("long", 0)

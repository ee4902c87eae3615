"""Misalignment: translations are similar, and planted shifts are found where they are."""

import random

import numpy as np
import pytest

from data.quality.toys import codes, finding_of, save, save_sides, sides, toy_pairs, with_shift
from softgaze.data.quality import check_corpus
from softgaze.data.quality.misalignment import (
    NO_MATCH,
    SCALE,
    LineVectors,
    SampleBlock,
    Shift,
    WordVectors,
    find_shifts,
)
from softgaze.data.quality.rules import measure


def test_a_line_is_more_like_its_translation_than_like_its_neighbours():
    texts = sides(toy_pairs(600))
    lines = [[measure(side[start : start + 100]) for side in texts] for start in range(0, 600, 100)]
    words = WordVectors([SampleBlock(n % 2, *both, 0, np.zeros(1), 0) for n, both in enumerate(lines)])
    source, target = (LineVectors.of(both, words, side, 0).meaning for side, both in enumerate(lines[0]))
    assert (source @ target.T).argmax(axis=1).tolist() == list(range(100))


def test_names_and_numbers_are_similar_by_spelling():
    lines = measure(["Anna 1234", "anna 1234", "Anna 77", ""])
    vectors = LineVectors.of(
        lines, WordVectors([SampleBlock(fold, lines, lines, 0, np.zeros(1), 0) for fold in (0, 1)]), 0, 0
    )
    anchors, numbers = vectors.names @ vectors.names.T, vectors.numbers @ vectors.numbers.T
    assert anchors[0].tolist() == pytest.approx([1, 1, 1, 0])
    assert numbers[0].tolist() == pytest.approx([1, 1, 0, 0])


def test_a_corpus_shifted_as_a_whole_is_noticed(tmp_path):
    sources, targets = sides(toy_pairs(1200))
    finding = finding_of(check_corpus(save_sides(tmp_path, sources[:-2], targets[2:])), "shifted")
    assert finding.count > 1180
    assert "n-2" in finding.message


def test_unrelated_sides_are_noticed(tmp_path):
    sources, targets = sides(toy_pairs(2100))
    random.Random(1).shuffle(targets)
    report = check_corpus(save_sides(tmp_path, sources, targets))
    assert "unrelated" in codes(report)
    assert "shifted" not in codes(report)


@pytest.mark.parametrize(("gain", "expected"), [(0.5, []), (2.2, []), (3.0, [Shift(100, 112, 2, True)])])
def test_a_range_needs_enough_evidence(gain, expected):
    offsets = np.array([*range(-5, 6), NO_MATCH])
    evidence = np.full((300, len(offsets)), -3.0) * SCALE
    evidence[:, offsets == 0] = 2 * SCALE
    evidence[:, offsets == NO_MATCH] = 0
    evidence[100:112, offsets == 0] = 0
    evidence[100:112, offsets == 2] = gain * SCALE
    assert find_shifts(evidence.astype(np.int8), offsets, 0) == expected


@pytest.mark.parametrize("offset", [-3, -2, -1, 1, 2, 3])
@pytest.mark.parametrize("hangul", [False, True])
def test_a_planted_shift_is_found(tmp_path, offset, hangul):
    pairs = with_shift(toy_pairs(1200, seed=offset, hangul=hangul), 600, 40, offset)
    report = check_corpus(save(tmp_path, pairs))
    finding = finding_of(report, "shifted")
    start, stop = (int(number.replace(",", "")) for number in finding.message.split()[1].split("–"))
    assert abs(start - 601) <= 3
    assert abs(stop - 640) <= 3
    assert f"n{offset:+}" in finding.message
    assert (finding.level, report.exit_code) == ("warning", 0)

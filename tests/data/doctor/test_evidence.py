"""Evidence: the corpus itself teaches which lines belong together, wherever they stand."""

import random
from pathlib import Path

from data.doctor.toys import codes, found, save, sides, toy_pairs
from softgaze.data.corpus import Pair
from softgaze.data.doctor import examine


def test_a_corpus_shifted_as_a_whole_is_noticed(tmp_path: Path) -> None:
    sources, targets = sides(toy_pairs(1200))
    pairs = [Pair(*texts) for texts in zip(sources[:-2], targets[2:], strict=True)]
    finding = found(examine(save(tmp_path, pairs)), "shifted")
    assert finding.count > 1180
    assert "n-2" in finding.message


def test_unrelated_sides_are_noticed(tmp_path: Path) -> None:
    sources, targets = sides(toy_pairs(2100))
    random.Random(1).shuffle(targets)
    report = examine(save(tmp_path, [Pair(*texts) for texts in zip(sources, targets, strict=True)]))
    assert "unrelated" in codes(report)
    assert "shifted" not in codes(report)

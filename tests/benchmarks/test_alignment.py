"""The table of error rates, on a map made by hand: one layer is right, the other says word 0."""

import numpy as np
import pytest

from benchmarks.alignment import short_pairs, table
from softgaze.errors import DataError
from softgaze.explain import Alignment, Attention, View

WORDS = ["a", "b", "⏎"]
LAYERS = np.stack([[np.eye(3)], [np.eye(3)[[0, 0, 2]]]])  # (L, H, T, S)
GOLD = [Alignment.parse("0-0 1-1")]


def test_every_map_has_its_rate_and_the_chosen_one_is_bold():
    recording = Attention.of(WORDS, WORDS, LAYERS).recording
    _, _, *rows = table([recording], GOLD, View(layer=0))
    assert len(rows) == 3
    assert rows[0].startswith("| 0 | mean | **0.0** | 0.0 |")
    assert rows[1].startswith("| 1 | mean | 50.0 | 50.0 |")
    assert rows[2].startswith("| mean | mean | 0.0 |")


def test_pairs_that_are_long_or_empty_are_left_out(tmp_path):
    for name, lines in {"en": "a b\na\n\n", "ko": "x\nx\n\n"}.items():
        (tmp_path / name).write_text(lines)
    gold = [Alignment.parse("0-0"), Alignment.parse("0-0 0p0"), Alignment()]
    assert short_pairs(tmp_path / "en", tmp_path / "ko", gold, 1) == ([("a", "x")], gold[1:2])
    with pytest.raises(DataError, match="lines"):
        short_pairs(tmp_path / "en", tmp_path / "ko", gold[:1], 9)

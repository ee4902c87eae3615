"""Fixed copies contain only correct pairs; anything uncertain is removed or rejected."""

import random

import numpy as np
import pytest

from data.quality.toys import finding_of, fix, save, save_sides, sides, toy_pairs, with_shift
from softgaze.data.corpus import Corpus, Pair
from softgaze.data.quality import check_corpus
from softgaze.data.quality.check import EDGE, PartAlignment
from softgaze.data.quality.fix import DROP, plan_offsets
from softgaze.data.quality.misalignment import Shift
from softgaze.errors import DataError


def test_what_was_fixed_passes_the_check(tmp_path):
    clean = toy_pairs(1200)
    pairs = with_shift(clean, 600, 60, 1)
    bad = [Pair("", "klm"), Pair("", ""), clean[7], Pair("abc.", "klmno " * 40), Pair("abcd efg abc.", "привет мир.")]
    corpus = save(tmp_path, [*pairs[:900], *bad, *pairs[900:]])
    fixed, kept = fix(tmp_path, corpus)
    assert set(kept) <= set(clean)
    assert len(kept) == fixed.kept == len(set(kept)) >= 1170
    assert fixed.realigned >= 45
    assert all(fixed.dropped[code] == 1 for code in ("empty", "one_sided", "duplicate", "ratio", "script"))
    assert fixed.kept + sum(fixed.dropped.values()) == 1205
    assert not check_corpus(Corpus.of([(tmp_path / "f.en", tmp_path / "f.xx")])).findings


def test_an_unrelated_range_is_noticed_and_left_out(tmp_path):
    pairs = toy_pairs(1200)
    sources, targets = sides(pairs)
    targets[500:600] = random.Random(1).sample(targets[700:], 100)
    corpus = save_sides(tmp_path, sources, targets)
    report = check_corpus(corpus)
    assert abs(finding_of(report, "no_match").count - 100) <= 6
    assert set(fix(tmp_path, corpus, report)[1]) <= set(pairs)


def test_the_edges_of_a_range_are_left_out_and_its_inside_moved(tmp_path):
    corpus = save(tmp_path, [Pair("a", "k")])
    sure, unsure = Shift(20, 40, -1, True), Shift(60, 70, 3, False)
    alignment = PartAlignment(corpus.parts[0], (100, 100), [sure, unsure], True)
    margin = EDGE + 1
    expected = [0] * 100
    expected[20:40] = [-1] * 20
    for edge in (20, 40):
        expected[edge - margin : edge + margin] = [DROP] * 2 * margin
    expected[60 - EDGE : 70 + EDGE] = [DROP] * (10 + 2 * EDGE)
    for size in (100, 7, 1):
        plans = [plan_offsets(alignment, start, size) for start in range(0, 100, size)]
        assert np.concatenate(plans)[:100].tolist() == expected


def test_a_range_to_the_end_reaches_the_end_of_the_longer_file(tmp_path):
    part = save(tmp_path, [Pair("a", "k")]).parts[0]
    alignment = PartAlignment(part, (102, 100), [Shift(0, 100, -2, True)], True)
    assert plan_offsets(alignment, 0, 102).tolist() == [-2] * 102


def test_a_byte_order_mark_is_fatal_and_fixed(tmp_path):
    pairs = toy_pairs(20)
    corpus = save(tmp_path, pairs)
    (tmp_path / "t.en").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "t.en").read_bytes())
    report = check_corpus(corpus)
    assert "byte-order mark" in finding_of(report, "unreadable").message
    assert report.exit_code == 3
    assert fix(tmp_path, corpus, report)[1] == pairs


def test_fix_never_starts_a_file_with_a_byte_order_mark(tmp_path):
    pairs = toy_pairs(20)
    corpus = save(tmp_path, [Pair("", "klm"), Pair("\ufeff" + pairs[0].source, pairs[0].target), *pairs[1:]])
    assert fix(tmp_path, corpus)[1] == pairs


def test_nothing_but_empty_lines(tmp_path):
    corpus = save(tmp_path, [Pair("", "")] * 3)
    assert check_corpus(corpus).exit_code == 3
    with pytest.raises(DataError, match="no pair"):
        fix(tmp_path, corpus)

from dataclasses import replace

import pytest

from evaluation.compare.comparisons import planned
from softgaze.data.corpus import Corpus, read_pairs
from softgaze.data.phrasebook import LONGEST
from softgaze.errors import UsageError
from softgaze.evaluation.compare import built_in
from softgaze.evaluation.compare.built_in import (
    BEYOND,
    INSIDE,
    built_in_files,
    check_whole,
    trained_lengths,
    write_built_in,
)
from softgaze.evaluation.compare.running import prepare_shared


def test_ranges_cover_the_trained_lengths_and_what_lies_beyond_without_a_gap():
    assert [length for lengths in INSIDE for length in lengths] == [*range(1, LONGEST + 1)]
    assert [length for lengths in BEYOND for length in lengths] == [*range(LONGEST + 1, 2 * LONGEST + 1)]


def test_tests_have_as_many_sentences_of_each_range(tmp_path, monkeypatch):
    monkeypatch.setattr(built_in, "EACH_INSIDE", 3)
    monkeypatch.setattr(built_in, "EACH_BEYOND", 2)
    write_built_in(tmp_path / "book", pairs=3000)
    files = built_in_files(tmp_path / "book")
    for name, ranges, each in (("test", INSIDE, 3), ("beyond", BEYOND, 2)):
        lengths = [len(pair.source.split()) for pair in read_pairs(*files[name])]
        assert [sum(length in one for length in lengths) for one in ranges] == [each] * len(ranges)
    train = {pair.source for pair in Corpus.of(files["train"])}
    assert not train & {pair.source for name in ("test", "beyond") for pair in read_pairs(*files[name])}
    assert max(len(source.split()) for source in train) <= LONGEST
    everything = replace(planned(tmp_path, "rnn"), train=files["train"])
    edges = [{"low": one.start, "high": one.stop - 1} for one in (*INSIDE, *BEYOND)]
    counts = [each["pairs"] for each in trained_lengths(everything, edges)]
    assert sum(counts[: len(INSIDE)]) == 3000
    assert counts[0] > 5 * counts[len(INSIDE) - 1] > 0
    assert counts[len(INSIDE) :] == [0] * len(BEYOND)
    before = files["test"][0].stat().st_mtime_ns
    write_built_in(tmp_path / "book", pairs=3000)
    assert files["test"][0].stat().st_mtime_ns == before


def test_settings_that_leave_lengths_out_are_refused(tmp_path):
    short, whole = (
        replace(planned(tmp_path, "rnn", data={"max_length": limit}), out=tmp_path / f"{limit}", built_in=True)
        for limit in (5, 256)
    )
    for plan in (short, whole):
        prepare_shared(plan)
    check_whole(whole)
    check_whole(replace(short, built_in=False))  # of one's own text, the command tells how many were left out
    with pytest.raises(UsageError, match=r"data.max_length=5 leaves out \d+ pairs of --built-in"):
        check_whole(short)

from softgaze.data.corpus import Corpus, read_pairs
from softgaze.data.phrasebook import LONGEST
from softgaze.evaluation.compare import built_in
from softgaze.evaluation.compare.built_in import BEYOND, INSIDE, built_in_files, write_built_in


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
    before = files["test"][0].stat().st_mtime_ns
    write_built_in(tmp_path / "book", pairs=3000)
    assert files["test"][0].stat().st_mtime_ns == before

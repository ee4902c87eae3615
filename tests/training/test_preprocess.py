"""Preprocessing: done once, completely or not at all, and no pair is on both sides of the split."""

from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albums import pictures
from corpora import DICTIONARY, corpus, small, write_corpus, write_links
from softgaze.atomic_io import TEMPORARY
from softgaze.config import DataSettings
from softgaze.data.corpus import Corpus
from softgaze.errors import DataError, SoftgazeError, UsageError
from softgaze.explain.word_spans import whitespace_word_of
from softgaze.training import preprocess as preprocess_module
from softgaze.training.alignment_data import AlignmentFiles
from softgaze.training.preprocess import (
    MAX_UNKNOWN,
    choose_held_out,
    choose_min_count,
    preprocess,
    train_caption_tokenizer,
)
from softgaze.training.train import train


@pytest.fixture
def text(tmp_path):
    return corpus(tmp_path)


def encode(directory, text, dev=None, seed=1, tokenizers=None, **settings):
    return preprocess(directory, text, dev, DataSettings(**settings), seed, tokenizers)


def different(directory, pairs=60, name="unique"):
    """Return a corpus whose pairs all differ."""
    words = [" ".join(row) for row in islice(product(DICTIONARY, repeat=3), pairs)]
    source, target = directory / f"{name}.en", directory / f"{name}.de"
    source.write_text("".join(f"{row}.\n" for row in words))
    target.write_text("".join(f"{row}!\n" for row in words))
    return Corpus.of([(source, target)])


def decoded(data, shards):
    tokenizers = data.tokenizers.source, data.tokenizers.target
    rows = (shards[index] for index in range(len(shards)))
    return [tuple(each.decode(ids.tolist()) for each, ids in zip(tokenizers, row, strict=True)) for row in rows]


def files(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


# --- the split --------------------------------------------------------------------------------------------------


def test_held_out_pairs_are_never_in_training(tmp_path):
    pairs = different(tmp_path)
    data = encode(tmp_path / "encoded", pairs, held_out=5)
    trained, held = decoded(data, data.train), decoded(data, data.dev)
    assert len(held) == 5
    assert sorted(trained + held) == sorted(map(tuple, pairs))
    assert not {*trained} & {*held}
    assert [*map(tuple, data.dev_text)] == held


def test_with_dev_files_all_pairs_are_trained_on(tmp_path):
    pairs, dev = different(tmp_path), different(tmp_path, 7, "dev")
    data = encode(tmp_path / "encoded", pairs, dev)
    assert decoded(data, data.train) == [*map(tuple, pairs)]
    assert decoded(data, data.dev) == [*map(tuple, data.dev_text)] == [*map(tuple, dev)]
    assert (data.facts["pairs"], data.facts["dev_pairs"]) == (60, 7)


@given(count=st.integers(2, 5000), wanted=st.integers(1, 2000), seed=st.integers(0, 9))
def test_at_most_a_tenth_is_held_out_and_at_least_one(count, wanted, seed):
    held = choose_held_out(count, wanted, seed)
    assert len(held) == max(1, min(wanted, count // 10))
    assert all(0 <= index < count for index in held)


def test_empty_and_too_long_pairs_are_left_out_and_counted(tmp_path):
    (tmp_path / "a.en").write_text("dog\n" * 20 + "\n" + "dog " * 50 + "\ndog\n")
    (tmp_path / "a.de").write_text("hund\n" * 20 + "hund\nhund\n" + "hund " * 50 + "\n")
    dev = different(tmp_path, 3, "dev")
    data = encode(tmp_path / "encoded", Corpus.of([(tmp_path / "a.en", tmp_path / "a.de")]), dev, max_length=30)
    assert (data.facts["pairs"], data.facts["left_out"], data.facts["dev_pairs"]) == (20, 3, 3)
    assert {*decoded(data, data.train)} == {("dog", "hund")}


# --- once -------------------------------------------------------------------------------------------------------


def test_text_is_encoded_once(tmp_path, text, monkeypatch):
    encode(tmp_path / "encoded", text)
    before = files(tmp_path / "encoded")
    for name in ("write_shards", "train_tokenizer"):
        monkeypatch.delattr(preprocess_module, name)
    data = encode(tmp_path / "encoded", text)
    assert files(tmp_path / "encoded") == before
    assert data.facts["pairs"] + data.facts["dev_pairs"] == 60


def test_file_names_do_not_matter(tmp_path, text):
    encode(tmp_path / "encoded", text)
    moved = [path.rename(path.with_stem("moved")) for path in text.paths]
    encode(tmp_path / "encoded", Corpus.of([tuple(moved)]))


def test_settings_with_earlier_names_are_read(tmp_path, text):
    encode(tmp_path / "encoded", text)
    facts = tmp_path / "encoded" / "facts.json"
    facts.write_text(facts.read_text().replace('"image_size"', '"side"').replace('"segmentations": 1,', ""))
    encode(tmp_path / "encoded", text)


@pytest.mark.parametrize("side", ["train", "dev"])
def test_changed_text_is_an_error(tmp_path, side):
    pairs, dev = corpus(tmp_path), corpus(tmp_path, name="dev", pairs=5)
    encode(tmp_path / "encoded", pairs, dev)
    path = tmp_path / f"{side}.de"
    path.write_text(path.read_text().replace("hund", "wolf"))
    with pytest.raises(DataError, match=f"--{side} files"):
        encode(tmp_path / "encoded", pairs, dev)


def test_a_run_does_not_resume_with_other_text(tmp_path, text):
    train(small(budget={"steps": 1}), text, None, tmp_path / "run")
    write_corpus(tmp_path, seed=1)
    with pytest.raises(DataError, match="--train files"):
        train(small(budget={"steps": 2}), text, None, tmp_path / "run")


@pytest.mark.parametrize(("changed", "shown"), [({"max_length": 99}, "max_length: 256 → 99"), ({"seed": 2}, "seed")])
def test_changed_settings_are_an_error(tmp_path, text, changed, shown):
    encode(tmp_path / "encoded", text)
    with pytest.raises(SoftgazeError, match=shown):
        encode(tmp_path / "encoded", text, **changed)


def test_the_seed_only_selects_the_held_out_pairs(tmp_path, text):
    dev = corpus(tmp_path, name="dev", pairs=5)
    encode(tmp_path / "encoded", text, dev, seed=1)
    encode(tmp_path / "encoded", text, dev, seed=2)


# --- segmentations ----------------------------------------------------------------------------------------------


def test_all_segmentations_of_a_pair_spell_it_and_the_first_is_the_best(tmp_path, text):
    once, data = encode(tmp_path / "once", text), encode(tmp_path / "encoded", text, segmentations=4)
    assert (data.segmentations, len(data.train), len(data.dev)) == (4, 4 * len(once.train), len(once.dev))
    assert data.facts["pairs"] == once.facts["pairs"]
    best = [[ids.tolist() for ids in once.train[pair]] for pair in range(len(once.train))]
    rows = [[ids.tolist() for ids in data.train[row]] for row in range(len(data.train))]
    assert rows[::4] == best
    assert decoded(data, data.train) == [pair for pair in decoded(once, once.train) for _ in range(4)]
    assert sum(row not in rows[::4] for row in rows) > len(rows) / 4


def test_the_seed_determines_the_segmentations(tmp_path, text):
    dev = corpus(tmp_path, name="dev", pairs=5)
    one, same, other = (encode(tmp_path / f"{n}", text, dev, seed, segmentations=2) for n, seed in enumerate((1, 1, 2)))
    rows = [[each.train[row][1].tolist() for row in range(len(each.train))] for each in (one, same, other)]
    assert rows[0] == rows[1] != rows[2]
    with pytest.raises(UsageError, match="seed"):
        encode(tmp_path / "0", text, dev, 2, segmentations=2)


def test_a_sampled_segmentation_that_is_too_long_gives_way_to_the_best(tmp_path):
    pairs, dev = different(tmp_path), different(tmp_path, 3, "dev")
    longest = encode(tmp_path / "once", pairs, dev).train.lengths(np.arange(60)).max()
    data = encode(tmp_path / "encoded", pairs, dev, segmentations=3, max_length=int(longest))
    assert data.train.lengths(np.arange(180)).max() == longest
    assert data.facts["pairs"] == 60


def test_links_follow_every_segmentation(tmp_path):
    source, target = write_corpus(tmp_path)
    text = Corpus.of([(source, target)])
    links = AlignmentFiles(text, (write_links(source),))
    settings = DataSettings(segmentations=3)
    data = preprocess(tmp_path / "encoded", text, corpus(tmp_path, name="dev", pairs=5), settings, 1, guided=links)
    for row in range(len(data.train)):
        sides = [
            whitespace_word_of(tokenizer.decode(ids.tolist()), tokenizer.pieces(ids.tolist()))
            for tokenizer, ids in zip((data.tokenizers.source, data.tokenizers.target), data.train[row], strict=True)
        ]
        linked = [(sides[0][own], sides[1][other]) for other, own, _ in data.train.links(row).tolist()]
        assert all(own == other for own, other in linked)
        assert {own for own, _ in linked} == {*sides[0]}


def test_sources_without_subwords_have_one_segmentation(tmp_path):
    with pytest.raises(UsageError, match="samples subwords"):
        encode(tmp_path / "encoded", pictures(tmp_path), segmentations=2)


# --- completely or not at all ---------------------------------------------------------------------------------------


def die(*arguments):
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["train_tokenizer", "write_shards", "check_not_empty", "train_detector"])
def test_an_interruption_leaves_nothing_incomplete(tmp_path, text, monkeypatch, where):
    encode(tmp_path / "straight", text)
    with monkeypatch.context() as patch:
        patch.setattr(preprocess_module, where, die)
        with pytest.raises(KeyboardInterrupt):
            encode(tmp_path / "encoded", text)
    assert not (tmp_path / "encoded").exists()
    encode(tmp_path / "encoded", text)
    assert files(tmp_path / "encoded") == files(tmp_path / "straight")
    assert not [*tmp_path.glob(f"{TEMPORARY}*")]


# --- vocabularies and languages ---------------------------------------------------------------------------------


def test_one_vocabulary_or_two(tmp_path, text):
    one, two = encode(tmp_path / "one", text), encode(tmp_path / "two", text, joint=False)
    assert one.tokenizers.joint
    assert not two.tokenizers.joint
    assert one.facts["vocabulary"][0] == one.facts["vocabulary"][1]


def test_given_tokenizers_are_used(tmp_path, text):
    first = encode(tmp_path / "first", text)
    second = encode(tmp_path / "second", different(tmp_path), tokenizers=first.tokenizers)
    assert second.tokenizers.files() == first.tokenizers.files()


def test_languages_come_from_the_settings_or_the_endings(tmp_path, text):
    data = encode(tmp_path / "encoded", text, target_language="gsw")
    assert data.facts["languages"] == ["en", "gsw"]
    with pytest.raises(UsageError, match="both sides have the language 'en'"):
        encode(tmp_path / "other", text, target_language="en")


@pytest.mark.parametrize("lines", [("\n\n\n", "x\ny\nz\n"), ("x\n", "y\n")])
def test_text_without_pairs_is_an_error(tmp_path, lines):
    paths: list[Path] = [tmp_path / "a.en", tmp_path / "a.de"]
    for path, content in zip(paths, lines, strict=True):
        path.write_text(content)
    with pytest.raises(DataError, match="there are no pairs") as caught:
        encode(tmp_path / "encoded", Corpus.of([tuple(paths)]))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "encoded").exists()


# --- the vocabulary of captions ---------------------------------------------------------------------------------


@given(st.lists(st.lists(st.sampled_from("abcdefghijkl"), min_size=1).map(" ".join), min_size=1, max_size=60))
def test_the_threshold_of_words_leaves_few_unknown_and_a_higher_one_would_not(captions):
    words = " ".join(captions).split()

    def unknown(limit):
        return sum(words.count(word) < limit for word in words) / len(words)

    chosen = choose_min_count(captions)
    assert 1 <= chosen <= 5
    assert unknown(chosen) <= MAX_UNKNOWN
    assert chosen == 5 or unknown(chosen + 1) > MAX_UNKNOWN


def test_only_photos_with_plain_captions_get_words_by_default():
    plain = ["a dog runs on grass", "a cat sits on a mat"] * 10
    punctuated = [f"{text.capitalize()}." for text in plain]
    for captions, has_photos, settings, has_words in (
        (plain, True, {}, True),
        (plain, False, {}, False),
        (punctuated, True, {}, False),
        (punctuated, True, {"min_count": 1}, True),
        (plain, True, {"min_count": 0}, False),
        (plain, True, {"vocabulary": 400}, False),
    ):
        tokenizer = train_caption_tokenizer(captions, DataSettings(**settings), has_photos=has_photos)
        assert tokenizer.has_whole_words == has_words

"""The four parts: the same for the same seed, distinct, of the lengths and words promised."""

import pytest

from data.phrasebook.lines import types
from softgaze.data.phrasebook import LIMIT, LONG, LONGEST, SPLITS, dialled, generate, side
from softgaze.data.phrasebook.held_out import belongs
from softgaze.errors import DataError


def test_the_same_seed_gives_the_same_book_and_another_seed_another():
    book = generate(100, seed=7)
    assert generate(100, seed=7) == book
    assert generate(100, seed=8).train != book.train


def test_sizes(book):
    assert len(book.train) == 20_000
    assert len(book.dev) == len(book.test) == len(book.long) == 500


def test_sentences_are_distinct_and_in_one_split_only(book, everything):
    assert len({sentence.source for sentence in everything}) == len(everything)
    train = {sentence.source for sentence in book.train}
    assert not train & {sentence.source for sentence in (*book.dev, *book.test)}


def test_every_word_and_construction_of_dev_and_test_is_in_train(book):
    known = {word for sentence in book.train for word in types(sentence.source.lower() + " " + sentence.target)}
    kinds = {sentence.kind for sentence in book.train}
    for sentence in (*book.dev, *book.test):
        assert known.issuperset(types(sentence.source.lower() + " " + sentence.target))
        assert sentence.kind in kinds


def test_lengths(book):
    lengths = {split: [len(sentence.source.split()) for sentence in getattr(book, split)] for split in SPLITS}
    assert set(range(3, LONGEST + 1)) <= set(lengths["train"])
    assert set(lengths["long"]) <= set(LONG)
    assert len(set(lengths["long"])) >= 15
    shares = {}
    for split in ("train", "dev", "test"):
        assert max(lengths[split]) <= LONGEST
        shares[split] = sum(length <= 12 for length in lengths[split]) / len(lengths[split])
        assert 0.72 < shares[split] < 0.92
        assert 0.06 < sum(length > 16 for length in lengths[split]) / len(lengths[split]) < 0.16
    assert max(shares.values()) - min(shares.values()) < 0.08


@pytest.mark.parametrize("lengths", [range(1, 9), range(9, 17), range(33, LONGEST + 1), range(61, 71)])
def test_length_can_be_dialled(book, lengths):
    found = dialled(book.train, lengths, 20, seed=1)
    assert len({sentence.source for sentence in found}) == 20
    assert {len(sentence.source.split()) for sentence in found} <= set(lengths)
    assert found == dialled(book.train, lengths, 20, seed=1)
    assert found != dialled(book.train, lengths, 20, seed=2)
    known = {word for sentence in book.train for word in types(sentence.source.lower())}
    owners = {side(pair) for sentence in found for pair in sentence.combinations}
    assert all(known.issuperset(types(sentence.source.lower())) for sentence in found)
    assert owners == {"train", "test"}
    assert all(belongs(sentence.combinations, "test") for sentence in found)  # longer ones are no easier otherwise


def test_lengths_no_sentence_has_are_refused(book):
    with pytest.raises(DataError, match="ran dry at 0 of 1 sentences of 1 to 1 words"):
        dialled(book.train, range(1, 2), 1)


def test_small_books():
    small = generate(60, seed=3)
    assert len(small.train) == 60
    assert len(small.dev) <= 3
    assert len(generate(1).train) == 1


@pytest.mark.parametrize("pairs", [0, -5, LIMIT + 1])
def test_too_few_or_too_many_is_one_clear_line(pairs):
    with pytest.raises(DataError, match=r"phrasebook: .* pairs asked for") as caught:
        generate(pairs)
    assert "\n" not in str(caught.value)

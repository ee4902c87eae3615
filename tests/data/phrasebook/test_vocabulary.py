"""The vocabulary that is read from the tables is the one that is drawn."""

from data.phrasebook.lines import types
from softgaze.data.phrasebook import words


def test_words_are_many_and_all_of_them(everything, book):
    vocabulary = set(words())
    assert len(vocabulary) >= 300
    assert {word for sentence in everything for word in types(sentence.source.lower())} <= vocabulary
    trained = {word for sentence in book.train for word in types(sentence.source.lower())}
    assert len(vocabulary - trained) <= 10

"""Dev and test hold out combinations, not words: by the book, and by the text itself."""

from collections import Counter
from itertools import pairwise

from data.phrasebook.lines import types
from softgaze.data.phrasebook.english import third_person
from softgaze.data.phrasebook.held_out import SPARSE, side
from softgaze.data.phrasebook.lexicon.adjectives import QUALITIES
from softgaze.data.phrasebook.lexicon.nouns import NOUNS
from softgaze.data.phrasebook.lexicon.verbs import TRANSITIVE


def test_dev_and_test_hold_combinations_train_never_has(book):
    trained = {pair for sentence in (*book.train, *book.long) for pair in sentence.combinations}
    assert {side(pair) for pair in trained} == {"train"}
    for split in ("dev", "test"):
        for sentence in getattr(book, split):
            sides = {side(pair) for pair in sentence.combinations}
            assert split in sides
            assert sides <= {split, "train"}
            assert set(sentence.combinations) - trained


def test_held_out_pairs_are_not_in_the_text_of_train(book):
    """Read from the words themselves, whatever the sentences say about their combinations."""
    verbs = {form: verb for verb in TRANSITIVE for form in (verb.english, third_person(verb.english), verb.past)}
    nouns = {noun.english for noun in NOUNS}
    determiners = {"a", "an", "the", "my", "our", "this", "that"}
    adjectives = {adjective.english for adjective in QUALITIES}
    found = Counter()
    for split in ("train", "dev", "test"):
        for sentence in getattr(book, split):
            tokens = [word for word in types(sentence.source.lower()) if word not in determiners]
            for first, following in pairwise(tokens):
                base = verbs[first].english if first in verbs else first
                if following in nouns and base not in SPARSE and (first in verbs or first in adjectives):
                    found[split, side(f"{base} {following}")] += 1
    assert found["train", "train"] > 5_000
    assert found["train", "dev"] == found["train", "test"] == found["dev", "test"] == found["test", "dev"] == 0
    assert min(found["dev", "dev"], found["test", "test"]) > 100

"""English forms against forms written by hand, and in every sentence drawn."""

from itertools import pairwise

import pytest

from data.phrasebook.lines import types
from softgaze.data.phrasebook.english import article, plural, third_person


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (third_person("go"), "goes"),
        (third_person("carry"), "carries"),
        (third_person("play"), "plays"),
        (third_person("watch"), "watches"),
        (third_person("listen to"), "listens to"),
        (third_person("have"), "has"),
        (plural("dog"), "dogs"),
        (plural("puppy"), "puppies"),
        (plural("leaf"), "leaves"),
        (plural("tomato"), "tomatoes"),
        (plural("child"), "children"),
        (plural("comic book"), "comic books"),
        (article("apple"), "an"),
        (article("useful"), "a"),
        (article("umbrella"), "an"),
        (article("house"), "a"),
    ],
)
def test_english_forms(form, expected):
    assert form == expected


def test_a_and_an(everything):
    for sentence in everything:
        tokens = types(sentence.source.lower())
        for first, following in pairwise(tokens):
            if first in ("a", "an"):
                assert first == ("an" if following[0] in "aeiou" and following != "useful" else "a"), sentence.source

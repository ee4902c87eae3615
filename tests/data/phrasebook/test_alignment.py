"""Links: sure where both words are sure of an idea, in range, and leaving no word out."""

from data.phrasebook.lines import types
from softgaze.data.phrasebook.alignment import Link, links
from softgaze.data.phrasebook.meaning import Word

FUNCTION_WORDS = {
    *("a", "an", "the", "it", "you", "of", "to", "at", "in", "on", "by", "with", "there"),
    *("and", "but", "because", "if", "that", "do", "does", "did"),
    *("am", "is", "are", "was", "were", "will", "can", "must"),
}


def test_words_that_share_an_idea_are_linked():
    english = [Word("the", (), (1,)), Word("dog", (1,)), Word("runs", (2,))]
    korean = [Word("개는", (1,)), Word("달려요", (2,), (1,))]
    assert links(english, korean) == (
        Link(0, 0, False),
        Link(0, 1, False),
        Link(1, 0, True),
        Link(1, 1, False),
        Link(2, 1, True),
    )


def test_links_are_in_range_and_cover(everything):
    for sentence in everything:
        english, korean = sentence.source.split(), sentence.target.split()
        assert all(link.source < len(english) and link.target < len(korean) for link in sentence.links)
        assert {link.target for link in sentence.links} == set(range(len(korean))), sentence
        linked = {link.source for link in sentence.links}
        assert linked == set(range(len(english))), sentence
        sure = {link.source for link in sentence.links if link.sure}
        meaning = {index for index, word in enumerate(types(sentence.source.lower())) if word not in FUNCTION_WORDS}
        loose = {types(sentence.source.lower())[index] for index in meaning - sure}
        # the second half of "listen to", "wake up", "next to", "in front of" is no word of its own
        assert loose <= {"up", "for", "off"}, (sentence, loose)


def test_a_known_sentence_is_aligned_as_by_hand(book):
    """Whatever the grammar draws, "not", numbers and verbs of these sentences must be linked so."""
    for sentence in book.train:
        english, korean = types(sentence.source), types(sentence.target)
        links = {(english[link.source], korean[link.target]): link.sure for link in sentence.links}
        if "안" in korean:
            assert links.get(("not", "안")), sentence
        if "때" in korean:
            assert links.get(("when", "때")) or links.get(("When", "때")), sentence
        for source, target in (("yesterday", "어제"), ("tomorrow", "내일"), ("my", "제")):
            if target in korean:
                assert links.get((source, target)) or links.get((source.title(), target)), sentence

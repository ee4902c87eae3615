"""Terms in files and in texts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.errors import DataError
from softgaze.glossary import Glossary, Term, find_forms, fold

WORDS = st.text("abcẞÄ한국東京'-", min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("terms", "text", "found"),
    [
        ("house", "Houses: the greenhouse, a HOUSE, house's.", ["HOUSE", "house"]),
        ("new york\nnew york times\nyork", "New York Times in New York", ["New York Times", "New York"]),
        ("new york\nyork times", "New York Times", ["New York"]),
        ("Polish\tpolnisch\tcase ADJ", "polish Polish POLISH", ["Polish"]),
        ("물", "동물 물건 물 물에서는, 물이", ["물", "물", "물"]),
        ("東京\n東京都", "東京都と東京へ", ["東京都", "東京"]),
        ("GPU", "GPU를 GPUs 그GPU", ["GPU"]),
        ("İ", "i İ", ["İ"]),
    ],
)
def test_terms_are_whole_words_and_the_longest_wins(terms, text, found):
    matches = Glossary.parse(terms).find(text)
    assert [match.source for match in matches] == found
    assert all(text[match.start : match.end] == match.source for match in matches)


@given(st.lists(WORDS, min_size=1, max_size=4), st.lists(WORDS, max_size=12))
def test_matches_are_terms_in_order_without_overlap(terms, words):
    text = " ".join(words)
    matches = Glossary([Term(term) for term in terms]).find(text)
    assert all(fold(match.source) in {fold(term) for term in terms} for match in matches)
    assert all(before.end <= after.start for before, after in pairwise(matches))
    if set(words) & set(terms):
        assert matches


def test_a_file_round_trips():
    text = "house\tHaus|Hauses\na|b\ta\\|b\tcase NOUN\nSeoul\n\nkept\t\tcase\n"
    terms = Glossary.parse(text).terms
    assert [term.forms for term in terms] == [("Haus", "Hauses"), ("a|b",), (), ()]
    assert [(term.is_case_sensitive, term.note) for term in terms[1::2]] == [(True, "NOUN"), (True, "")]
    assert Glossary.parse("\n".join(map(str, terms))).terms == terms


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a\tb\n\tb", 2),
        (b"a\tb\n\nA\tc", 3),
        (b"a\tb\tc\td", 1),
        (b"a\t", 1),
        (b"a\tb||c", 1),
        (b"a\tb\n\xff", 2),
        (b"a\tb\nx" + b"x" * 1024, 2),
        (b"a\tb\x07", 1),
    ],
)
def test_a_bad_line_is_named(content, line, tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"^.*terms\.tsv, line {line}: [^\n]+$"):
        Glossary.read(path)


def test_each_form_in_a_translation_serves_one_term():
    matches = Glossary.parse("dog\tHund|Hunde\ncat\tkatze\tcase").find("dog dog cat")
    assert {*find_forms("Hund und Hundehütte, Hunde", matches[:2])} == {(21, 26), (0, 4)}
    assert find_forms("Katze", matches[2:]) == [None]
    assert find_forms("hund", matches[:1]) == [None]

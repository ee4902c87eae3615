"""Rows: read as they are written, and every irregular class that can be seen in a stem is marked."""

import pytest

from softgaze.data.phrasebook.korean import Predicate, Syllable
from softgaze.data.phrasebook.lexicon.adjectives import QUALITIES, SITUATIONS, STATES, TRAITS
from softgaze.data.phrasebook.lexicon.rows import Adjective, Noun, Verb, adjective, nouns, predicate_of, verb
from softgaze.data.phrasebook.lexicon.verbs import DATIVE, GENERIC, INTRANSITIVE, MOTION, SIT, STATIC, TRANSITIVE

VERBS = (*TRANSITIVE, *GENERIC, *DATIVE, *INTRANSITIVE, *STATIC, *MOTION, *SIT)
ADJECTIVES = (*TRAITS, *STATES, *QUALITIES, *SITUATIONS)


def test_rows_are_read_as_they_are_written():
    assert nouns("food fruit", "count", "apple, 사과, 개, red", "pizza, 피자") == (
        Noun("apple", "사과", ("food", "fruit", "red"), "count", "개"),
        Noun("pizza", "피자", ("food", "fruit"), "count", ""),
    )
    assert verb("hear", "heard", "듣다 ㄷ", "tune news") == Verb(
        "hear", "heard", "듣다", "ㄷ", ("tune", "news"), (), ()
    )
    assert verb("dance", "danced", "춤을 추다", "", "home") == Verb(
        "dance", "danced", "춤을 추다", "", (), ("home",), ()
    )
    assert adjective("tall", "키가 크다 으", "person") == Adjective("tall", "키가 크다", "으", ("person",))


def test_only_an_adjective_has_the_predicate_of_one():
    assert predicate_of(adjective("small", "작다", "")) == Predicate("작", adjective=True)
    assert predicate_of(verb("study", "studied", "공부|하다")) == Predicate("하", prefix="공부")


@pytest.mark.parametrize("row", [*VERBS, *ADJECTIVES], ids=lambda row: f"{row.english}-{row.korean}")
def test_the_lexicon_marks_the_class_its_stem_shows(row):
    """ㄹ, 르 and ㅡ can be seen; of ㅂ ㄷ ㅅ ㅎ only that a marked stem ends so."""
    stem = Predicate.of(row.korean, row.irregular).stem
    last = Syllable.of(stem[-1])
    visible = "ㄹ" if last.tail == "ㄹ" else "르" if stem[-1] == "르" else "으" if (last[1:] == ("ㅡ", "")) else None
    if visible:
        assert row.irregular == visible
    else:
        assert row.irregular in ("", last.tail)
        assert row.irregular in ("", "ㅂ", "ㄷ", "ㅅ", "ㅎ")

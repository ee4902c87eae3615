"""Words with ideas: a phrase covers its articles, and its particle fits the last sound."""

from collections import Counter

from data.phrasebook.lines import types
from softgaze.data.phrasebook.korean import final
from softgaze.data.phrasebook.lexicon.nouns import FAMILY, NAMES, NOUNS, OTHERS, PLACES, ROLES
from softgaze.data.phrasebook.meaning import Phrase, Word, bare, comma, explained

HOUSE = Phrase([Word("house", (7,))], [Word("집", (7,))])


def test_an_article_may_mean_the_last_korean_word():
    assert explained(bare("the"), HOUSE) == Phrase([Word("the", (), (7,)), *HOUSE.english], HOUSE.korean)


def test_a_preposition_may_mean_the_word_with_the_particle():
    placed = HOUSE.with_particle("in").after("next to")
    assert placed.korean == [Word("집에서", (7,))]
    assert placed.english == [Word("next", (), (7,)), Word("to", (), (7,)), *HOUSE.english]


def test_a_comma_goes_to_the_last_word():
    assert [word.text for word in comma([Word("it"), Word("rains")])] == ["it", "rains,"]


def test_particles_fit_the_last_sound(everything):
    """Judged from the words of the lexicon alone: noun + particle, wherever it is written."""
    nouns = {row.korean for row in (*NOUNS, *PLACES, *NAMES, *ROLES, *OTHERS)}
    nouns |= {row.korean for row in FAMILY} | {noun.counter for noun in NOUNS if noun.counter}
    closed, opened = {"은", "이", "을", "과", "으로", "이에요", "이었어요"}, {"는", "가", "를", "와", "예요", "였어요"}
    seen = Counter()
    for token in (token for sentence in everything for token in types(sentence.target)):
        for size in range(1, 5):
            noun, particle = token[:-size], token[-size:]
            if noun in nouns and particle in closed | opened | {"로"}:
                tail = final(noun)
                seen[particle] += 1
                assert (particle == "로" and tail in ("", "ㄹ")) or (particle in (closed if tail else opened)), token
                assert not (particle == "으로" and tail == "ㄹ"), token
    assert min(seen[particle] for particle in closed | opened | {"로"}) > 10

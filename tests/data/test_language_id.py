import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bundles import lines
from softgaze.data.language_id import NGRAMS, LanguageDetector, is_unspaced

ENGLISH = ["the cat sat on the mat", "where is the house", "we are going home now", "this is what they said"]
GERMAN = ["die Katze sitzt auf der Matte", "wo ist das Haus", "wir gehen jetzt nach Hause", "das haben sie gesagt"]


@pytest.fixture(scope="module")
def detector() -> LanguageDetector:
    return LanguageDetector.train({"en": ENGLISH, "de": GERMAN, "ko": lines("ko")})


@pytest.mark.parametrize(
    ("text", "language"),
    [("the house is on the hill", "en"), ("das Haus ist gut", "de"), ("작은 개", "ko"), ("THE HOUSE", "en")],
)
def test_unseen_sentences_are_identified(detector, text, language):
    found = detector.detect(text)
    assert next(iter(found)) == language
    assert found[language] > 0.5


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
@example("")
@example("x" * 5000)
def test_probabilities_sum_to_one_likeliest_first(text):
    found = LanguageDetector.train({"en": ENGLISH, "de": GERMAN}).detect(text)
    assert sum(found.values()) == pytest.approx(1)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert set(found) == {"en", "de"}


@pytest.mark.parametrize("text", ["", " \n"])
def test_empty_text_gives_a_uniform_distribution(detector, text):
    assert list(detector.detect(text).values()) == pytest.approx([1 / 3] * 3)


def test_more_text_is_more_certain(detector):
    assert detector.detect("wo ist das haus jetzt")["de"] > detector.detect("haus")["de"]


def test_json_keeps_it(detector):
    kept = LanguageDetector.from_json(json.dumps(json.loads(detector.to_json())))
    assert kept.detect("wo ist the Haus") == detector.detect("wo ist the Haus")


def test_it_stays_small():
    detector = LanguageDetector.train({"en": (f"{number:x} word{number}" for number in range(5000)), "de": GERMAN})
    assert all(len(table) <= NGRAMS for table in detector.languages.values())


def test_a_language_without_text_does_not_break_it():
    found = LanguageDetector.train({"en": ENGLISH, "de": []}).detect("the house")
    assert sum(found.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("language", "expected"), [("zh", True), ("ja-JP", True), ("ko", False), ("", False), ("jam", False)]
)
def test_unspaced_languages(language, expected):
    assert is_unspaced(language) == expected

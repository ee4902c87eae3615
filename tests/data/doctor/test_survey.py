"""The first reading: what is normal for a corpus."""

from pathlib import Path

from data.doctor.toys import save
from softgaze.data.corpus import Pair
from softgaze.data.doctor import examine
from softgaze.data.doctor.characters import FIRST_SCRIPT, HAN, KANA
from softgaze.data.doctor.survey import Survey


def test_numbers_describe_each_side(tmp_path: Path) -> None:
    pairs = [Pair("a " * words, "가나 " * words) for words in range(1, 101)]
    report = examine(save(tmp_path, [Pair(*map(str.strip, pair)) for pair in pairs]))
    assert report.source is not None
    assert report.target is not None
    words = report.source.words
    assert (words.minimum, words.median, words.mean, words.p95, words.p99, words.maximum) == (1, 50, 50.5, 95, 99, 100)
    assert sum(count for _, _, count in words.histogram) == 100
    assert report.target.characters.maximum == 299
    assert report.source.scripts == {"Latin": 1.0}
    assert report.target.scripts == {"Hangul": 1.0}
    assert report.source.language == "en"


def test_kanji_are_at_home_with_kana() -> None:
    survey = Survey()
    survey.dominated[1][KANA - FIRST_SCRIPT] = 100
    assert survey.home_scripts(1)[HAN - FIRST_SCRIPT]

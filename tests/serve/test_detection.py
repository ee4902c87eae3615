import pytest

from bundles import lines, make_bundle, tiny_bundle
from softgaze.bundle import DETECTOR, Bundle
from softgaze.data.detector import Detector
from softgaze.serve.detection import Detection, script_of


def without_detector(bundle):
    """As older bundles are."""
    bundle.__dict__["detector"] = None
    return bundle


BUNDLES = {
    "with a detector": lambda: Bundle.open(tiny_bundle()),
    "without": lambda: without_detector(Bundle.open(tiny_bundle())),
}


@pytest.fixture(params=BUNDLES.values(), ids=BUNDLES)
def detection(request):
    return Detection.of([request.param()])


@pytest.mark.parametrize("language", ["en", "ko"])
def test_each_line_is_told(detection, language):
    assert {detection.detect(line)[0].language for line in lines(language, 50)} == {language}


def test_what_has_no_letters_tells_nothing(detection):
    for text in ("", "123 -- ?!", "\x00"):
        assert {each.confidence for each in detection.detect(text)} == {0.0}


def test_letters_that_no_language_has_are_no_reason_to_be_sure(detection):
    assert detection.detect("ฉันรักภาษาไทย")[0].confidence == 0.0
    assert detection.detect("the dog ฉันรักภาษาไทย")[0].confidence < 60


def test_languages_of_all_bundles_are_told_apart(tmp_path):
    german = Detector.train({"de": ["der kleine Hund sieht einen alten Baum und schläft"], "ko": lines("ko")})
    other = make_bundle(tmp_path / "de", source_language="de", target_language="ko")
    bundle = Bundle.open(other)
    bundle.__dict__["detector"] = german
    both = Detection.of([Bundle.open(tiny_bundle()), bundle])
    assert {each.language for each in both.detect("x")} == {"en", "ko", "de"}
    assert both.detect("der alte Hund schläft")[0].language == "de"
    assert both.detect("the old dog sleeps")[0].language == "en"


def test_texts_of_one_request_are_told_together():
    both = Detection.of([Bundle.open(tiny_bundle())])
    assert both.detect_together(["the dog", "개", "a small cat runs"]).language == "en"


def test_scripts():
    assert [script_of(each) for each in "aйあ漢한ا3 "] == [
        "LATIN",
        "CYRILLIC",
        "HIRAGANA",
        "CJK",
        "HANGUL",
        "ARABIC",
        "",
        "",
    ]


def test_a_bundle_keeps_its_detector():
    assert (tiny_bundle() / DETECTOR).is_file()

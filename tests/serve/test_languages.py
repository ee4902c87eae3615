import pytest

from bundles import lines, make_bundle, tiny_bundle
from softgaze.bundle import DETECTOR, Bundle
from softgaze.data.language_id import LanguageDetector
from softgaze.serve.languages import CombinedDetector, language_name, script_of


def without_detector(bundle):
    """Return the bundle as older versions wrote it."""
    bundle.__dict__["detector"] = None
    return bundle


BUNDLES = {
    "with detector": lambda: Bundle.open(tiny_bundle()),
    "without detector": lambda: without_detector(Bundle.open(tiny_bundle())),
}


@pytest.fixture(params=BUNDLES.values(), ids=BUNDLES)
def detector(request):
    return CombinedDetector.of([request.param()])


@pytest.mark.parametrize("language", ["en", "ko"])
def test_lines_of_the_corpus(detector, language):
    assert {detector.detect(line)[0].language for line in lines(language, 50)} == {language}


def test_text_without_letters_has_no_confidence(detector):
    for text in ("", "123 -- ?!", "\x00"):
        assert {each.confidence for each in detector.detect(text)} == {0.0}


def test_letters_of_an_unknown_script_reduce_the_confidence(detector):
    assert detector.detect("ฉันรักภาษาไทย")[0].confidence == 0.0
    assert detector.detect("the dog ฉันรักภาษาไทย")[0].confidence < 60


def test_languages_of_all_bundles(tmp_path):
    bundle = Bundle.open(make_bundle(tmp_path / "de", source_language="de", target_language="ko"))
    german = ["der kleine Hund sieht einen alten Baum und schläft"]
    bundle.__dict__["detector"] = LanguageDetector.train({"de": german, "ko": lines("ko")})
    combined = CombinedDetector.of([Bundle.open(tiny_bundle()), bundle])
    assert {each.language for each in combined.detect("x")} == {"en", "ko", "de"}
    assert combined.detect("der alte Hund schläft")[0].language == "de"
    assert combined.detect("the old dog sleeps")[0].language == "en"


def test_one_language_for_all_texts_of_a_request():
    combined = CombinedDetector.of([Bundle.open(tiny_bundle())])
    assert combined.detect_joint(["the dog", "개", "a small cat runs"]).language == "en"


def test_scripts():
    scripts = {"a": "LATIN", "й": "CYRILLIC", "あ": "HIRAGANA", "漢": "CJK", "한": "HANGUL", "ا": "ARABIC", "3": ""}
    assert {character: script_of(character) for character in scripts} == scripts


def test_names():
    names = {"ko": "Korean", "en-US": "English (en-US)", "nb": "Norwegian Bokmål", "zz": "zz", "image": "image"}
    assert {code: language_name(code) for code in names} == names


def test_a_bundle_contains_its_detector():
    assert (tiny_bundle() / DETECTOR).is_file()

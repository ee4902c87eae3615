import shutil
from dataclasses import dataclass

import pytest

from bundles import make_bundle, tiny_bundle
from softgaze.bundle import Bundle
from softgaze.errors import UsageError
from softgaze.serve.errors import Refused
from softgaze.serve.shelf import Model, Shelf, check_engines, names, shortened


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(tiny_bundle(), folder / "en ko!")
    make_bundle(folder / "ko-de", source_language="ko", target_language="de")
    shutil.copytree(tiny_bundle(), folder / "more" / "ko-de")
    return Shelf.open([str(folder / "en ko!"), str(folder / "ko-de"), str(folder / "more" / "ko-de")])


def test_names_are_those_of_directories_and_each_is_there_once(shelf):
    assert [model.id for model in shelf.models] == ["en-ko-", "ko-de", "ko-de-2"]


def test_names_never_clash():
    @dataclass
    class Named:
        path: object

    class Path:
        def __init__(self, name):
            self.name = name

        def absolute(self):
            return self

    assert names([Named(Path(name)) for name in ("a", "a-2", "a", "a", "")]) == ["a", "a-2", "a-3", "a-4", "model"]


def test_languages_and_what_they_can_become(shelf):
    assert {each.code: each.targets for each in shelf.languages} == {"en": ("ko",), "ko": ("de",), "de": ()}


def test_the_first_model_of_a_pair(shelf):
    assert shelf.pair("en", "ko").id == "en-ko-"
    assert shelf.pair("de", "de") is None
    with pytest.raises(Refused, match=r"German \(de\) is not available as a target language from English \(en\)"):
        shelf.pair("en", "de")


@pytest.mark.parametrize(("asked", "found"), [("EN", "en"), ("en-GB", "en"), ("ko_KR", "ko"), ("de", "de")])
def test_codes_as_people_write_them(shelf, asked, found):
    assert shelf.language(asked) == found


def test_a_text_never_reaches_a_model_that_reads_files(shelf):
    class Pictures(Model):
        kind = "image"

    image = Pictures("pictures", shelf.models[0].translator)
    mixed = Shelf([image, *shelf.models])
    assert mixed.texts == shelf.models
    assert mixed.images == (image,)
    assert mixed.first() is shelf.models[0]
    with pytest.raises(Refused, match="model pictures is not there"):
        mixed.named("pictures")


def test_two_libraries_never_meet():
    bundles = [Bundle(None, None, {}, {}, {"name": name}) for name in ("onnx", "torch", "ctranslate2")]
    with pytest.raises(UsageError, match="start two servers"):
        check_engines(bundles)
    check_engines(bundles[:2])


def test_what_strangers_write_is_shortened():
    assert shortened("a\n\x00b") == "a b"
    assert len(shortened("x" * 99)) == 40

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from bundles import make_bundle, tiny_bundle
from softgaze.bundle import Bundle
from softgaze.errors import UsageError
from softgaze.serve.errors import HTTPError
from softgaze.serve.model_registry import ModelRegistry, ServedModel, check_engines, shorten, unique_ids


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(tiny_bundle(), folder / "en ko!")
    make_bundle(folder / "ko-de", source_language="ko", target_language="de")
    shutil.copytree(tiny_bundle(), folder / "more" / "ko-de")
    return ModelRegistry.open([str(folder / "en ko!"), str(folder / "ko-de"), str(folder / "more" / "ko-de")])


def test_ids_are_unique_directory_names(registry):
    assert [model.id for model in registry.models] == ["en-ko-", "ko-de", "ko-de-2"]
    bundles = [SimpleNamespace(path=Path("/x", name)) for name in ("a", "a-2", "a", "a")]
    bundles.append(SimpleNamespace(path=Path("/")))
    assert unique_ids(bundles) == ["a", "a-2", "a-3", "a-4", "model"]


def test_languages_and_their_targets(registry):
    assert registry.languages == {"en": ("ko",), "ko": ("de",), "de": ()}


def test_first_model_of_a_language_pair(registry):
    assert registry.for_pair("en", "ko").id == "en-ko-"
    assert registry.for_pair("de", "de") is None
    with pytest.raises(HTTPError, match=r"German \(de\) is not available as a target language from English \(en\)"):
        registry.for_pair("en", "de")


@pytest.mark.parametrize(("code", "expected"), [("EN", "en"), ("en-GB", "en"), ("ko_KR", "ko"), ("de", "de")])
def test_spellings_of_language_codes(registry, code, expected):
    assert registry.match_language(code) == expected


def test_texts_never_reach_a_model_that_reads_files(registry):
    class ImageModel(ServedModel):
        kind = "image"

    image = ImageModel("captioner", registry.models[0].translator)
    mixed = ModelRegistry([image, *registry.models])
    assert mixed.text_models == registry.models
    assert mixed.image_models == (image,)
    assert mixed.get(None) is registry.models[0]
    with pytest.raises(HTTPError, match="unknown model captioner"):
        mixed.get("captioner")


def test_engines_that_cannot_share_a_process():
    bundles = [Bundle(None, None, {}, {}, {"name": name}) for name in ("onnx", "torch", "ctranslate2")]
    with pytest.raises(UsageError, match="start two servers"):
        check_engines(bundles)
    check_engines(bundles[:2])


def test_request_text_in_errors_is_short_and_printable():
    assert shorten("a\n\x00b") == "a b"
    assert len(shorten("x" * 99)) == 40

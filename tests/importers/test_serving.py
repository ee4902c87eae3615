"""A server with multilingual models: all pairs are listed, and every pair shares one model."""

import pytest

from importers import foreign
from softgaze import load
from softgaze.importers import import_model
from softgaze.serve.errors import HTTPError
from softgaze.serve.model_registry import ModelRegistry


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    path = tmp_path_factory.mktemp("served")
    foreign.nllb(path / "nllb-original")
    foreign.marian(path / "opus-original")
    for name in ("nllb", "opus"):
        import_model(path / f"{name}-original", path / name, verify=False)
    return ModelRegistry.open([str(path / "opus"), str(path / "nllb")], "cpu")


def test_all_pairs_are_listed(registry):
    listed = {entry["code"]: set(entry["targets"]) for entry in registry.languages_json()}
    codes = set(foreign.NLLB_CODES)
    assert listed == {"en": {"xx"}, "xx": set(), **{code: codes - {code} for code in codes}}


def test_a_pair_has_its_languages_and_shares_the_model(registry):
    one, other = registry.for_pair("eng_Latn", "fra_Latn"), registry.for_pair("fra_Latn", "eng_Latn")
    assert (one.source, one.target) == ("eng_Latn", "fra_Latn")
    assert registry.for_pair("eng_Latn", "fra_Latn") is one
    assert one.translator.torch_engine.model is not None
    alone = load(registry.get("nllb").bundle.path, source_lang="eng_Latn", target_lang="fra_Latn")
    assert one.translator.translate("bad cafe").text == alone.translate("bad cafe").text
    assert other.translator.translate("bad cafe").text is not None
    assert registry.for_pair("en", "xx").id == "opus"
    assert registry.match_language("fr") == "fra_Latn"


def test_an_unknown_pair_is_an_error(registry):
    with pytest.raises(HTTPError):
        registry.for_pair("xx", "fra_Latn")

"""A server of several imported models: languages over HTTP and on the page, search options of each model."""

import json

import pytest
from playwright.sync_api import expect

from importers import foreign
from serving import serving
from softgaze import load
from softgaze.importers import import_model
from softgaze.serve.languages import common_code

TEXT = "a deaf dad"
OWN_SEARCH = {"num_beams": 2, "length_penalty": 0.5}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """One language pair, and two multilingual models with French in common."""
    path = tmp_path_factory.mktemp("served")
    makers = {"opus": foreign.marian, "nllb": foreign.nllb, "mbart": foreign.mbart}
    for name, make in makers.items():
        make(path / f"{name}-original")
        (path / f"{name}-original" / "generation_config.json").write_text(json.dumps(OWN_SEARCH))
        import_model(path / f"{name}-original", path / name, verify=False)
    return {name: path / name for name in makers}


@pytest.fixture(scope="module")
def server(models):
    with serving(*models.values()) as running:
        yield running


def translated(models, name, *languages, **search):
    chosen = dict(zip(("source_lang", "target_lang"), languages, strict=False))
    return load(models[name], **chosen).translate(TEXT, **search)


def test_all_pairs_are_listed_once_with_common_codes(server):
    listed = {entry["code"]: set(entry["targets"]) for entry in server.get("/languages").json}
    assert {"xx", "fr", "ko", "zu", "zh"} <= listed["en"]
    assert listed["xx"] == set()
    assert "ko" not in listed["zu"]  # the two models share no pair
    assert not any("_" in code for code in listed if code != "xx")
    names = {entry["language"]: entry["name"] for entry in server.get("/v2/languages?type=target").json}
    assert (names["FR"], names["KO"]) == ("French", "Korean")


PAIRS = [
    ("en", "xx", "opus", ()),
    ("en", "fr", "nllb", ("eng_Latn", "fra_Latn")),
    ("eng_Latn", "zul_Latn", "nllb", ("eng_Latn", "zul_Latn")),
    ("en-US", "ko", "mbart", ("en_XX", "ko_KR")),
    ("zh_CN", "fr_XX", "mbart", ("zh_CN", "fr_XX")),
]


@pytest.mark.parametrize(("source", "target", "name", "languages"), PAIRS)
def test_a_pair_is_translated_by_the_first_model_that_has_it(server, models, source, target, name, languages):
    expected = translated(models, name, *languages)
    sent = {"q": TEXT, "source": source, "target": target}
    assert server.post("/translate", sent).json["translatedText"] == expected.text
    deepl = server.post("/v2/translate", {"text": [TEXT], "source_lang": source.upper(), "target_lang": target.upper()})
    assert deepl.json["translations"][0]["text"] == expected.text
    response = server.post("/v1/translate", {**sent, "model": name}).json
    assert response["translations"][0]["text"] == expected.text
    assert response["translations"][0]["score"] == pytest.approx(expected.score, abs=1e-5)  # of its own length penalty
    assert (response["source"], response["target"]) == tuple(
        common_code(code, keep_region=False) for code in (source, target)
    )


def test_a_missing_pair_or_language_is_an_error(server):
    for sent in ({"source": "xx", "target": "fr"}, {"source": "en", "target": "tlh"}):
        assert server.post("/translate", {"q": TEXT, **sent}).status == 400
    for sent in ({}, {"source": "en"}, {"source": "en", "target": "zu"}):
        assert server.post("/v1/translate", {"q": TEXT, "model": "mbart", **sent}).status == 400


def test_the_pickers_of_the_page_list_all_pairs(server, models, visit):
    page = visit(f"{server.url}/", locale="en-US", viewport={"width": 1200, "height": 900})
    page.wait_for_selector("html[data-ready]")
    page.select_option("#source", "en")
    with_alternatives = {"beam_size": 4, "num_hypotheses": 4}  # that the page requests
    for target, model, languages in (("ko", "mbart", ("en", "ko")), ("zu", "nllb", ("eng", "zul")), ("xx", "opus", ())):
        page.select_option("#target", target)
        page.fill("#text", TEXT)
        expect(page.locator("#output")).to_have_text(translated(models, model, *languages, **with_alternatives).text)
        expect(page.locator("#model-field")).to_be_hidden()
    page.select_option("#target", "fr")
    page.select_option("#model", "mbart")
    expect(page.locator("#output")).to_have_text(translated(models, "mbart", "en", "fr", **with_alternatives).text)
    page.click("#swap")
    expect(page.locator("#source")).to_have_value("fr")
    expect(page.locator("#target")).to_have_value("en")

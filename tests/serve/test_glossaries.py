"""Glossaries through the official `deepl` client and through /v1, over a socket."""

import json

import deepl
import pytest
from deepl.api_data import MultilingualGlossaryDictionaryEntries

from serving import serving
from softgaze.glossary import Glossary
from softgaze.serve.errors import HTTPError
from softgaze.serve.glossaries import Dictionary, parse_entries

TEXT = "The small dog sees a tree."
TERMS = {"dog": "강아지", "small dog": "작은 개"}


@pytest.fixture(scope="module")
def client(server):
    return deepl.DeepLClient("any key", server_url=server.url)


def test_a_glossary_of_one_language_pair(client):
    created = client.create_glossary("animals", "EN", "KO", TERMS)
    assert (created.name, created.source_lang, created.target_lang, created.entry_count) == ("animals", "EN", "KO", 2)
    assert created.ready
    assert created.glossary_id in {one.glossary_id for one in client.list_glossaries()}
    assert client.get_glossary(created.glossary_id).entry_count == 2
    assert client.get_glossary_entries(created) == TERMS
    text = client.translate_text(TEXT, source_lang="EN", target_lang="KO", glossary=created).text
    assert "작은 개" in text
    assert "강아지" not in text  # the longest term wins
    texts = client.translate_text(["old dog", "dog <b>cat</b>"], source_lang="EN", target_lang="KO", glossary=created)
    assert all("강아지" in one.text for one in texts)
    client.delete_glossary(created)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(created.glossary_id)
    with pytest.raises(deepl.DeepLException, match="not found"):
        client.translate_text(TEXT, source_lang="EN", target_lang="KO", glossary=created)


def test_csv_and_language_pairs(client):
    created = client.create_glossary_from_csv("csv", "EN", "KO", 'dog,"강아지"\ncat,고양이\n')
    assert client.get_glossary_entries(created) == {"dog": "강아지", "cat": "고양이"}
    pairs = {(pair.source_lang, pair.target_lang) for pair in client.get_glossary_languages()}
    assert ("en", "ko") in pairs
    client.delete_glossary(created)


def test_a_multilingual_glossary(client):
    first = MultilingualGlossaryDictionaryEntries("EN", "KO", TERMS)
    created = client.create_multilingual_glossary("all", [first])
    second = MultilingualGlossaryDictionaryEntries("KO", "EN", {"개": "hound"})
    client.update_multilingual_glossary_dictionary(created, second)
    client.update_multilingual_glossary_name(created, "renamed")
    client.update_multilingual_glossary_dictionary(
        created, MultilingualGlossaryDictionaryEntries("EN", "KO", {"dog": "개", "cat": "고양이"})
    )
    found = client.get_multilingual_glossary(created.glossary_id)
    assert (found.name, {(one.source_lang, one.target_lang): one.entry_count for one in found.dictionaries}) == (
        "renamed",
        {("EN", "KO"): 3, ("KO", "EN"): 1},
    )
    [entries] = client.get_multilingual_glossary_entries(created, "EN", "KO").dictionaries
    assert entries.entries == "dog\t개\nsmall dog\t작은 개\ncat\t고양이"
    replaced = MultilingualGlossaryDictionaryEntries("EN", "KO", {"tree": "나무"})
    assert client.replace_multilingual_glossary_dictionary(created, replaced).entry_count == 1
    assert "나무" in client.translate_text(TEXT, source_lang="EN", target_lang="KO", glossary=created.glossary_id).text
    client.delete_multilingual_glossary_dictionary(created, replaced)
    with pytest.raises(deepl.DeepLException, match="no dictionary"):
        client.translate_text(TEXT, source_lang="EN", target_lang="KO", glossary=created.glossary_id)
    assert created.glossary_id in {one.glossary_id for one in client.list_multilingual_glossaries()}
    client.delete_multilingual_glossary(created)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_multilingual_glossary(created.glossary_id)


def test_merged_terms_replace_those_that_match_the_same_text():
    """A merged dictionary can be downloaded and stored again: no source has two targets."""
    old = Dictionary("en", "ko", parse_entries("Dog\t개\nUS\t미국\tcase\nus\t우리", "tsv"))
    new = Dictionary("en", "ko", parse_entries("dog\t강아지", "tsv"))
    merged = old.merged(new)
    assert merged.entries.split("\n") == ["dog\t강아지", "US\t미국\tcase", "us\t우리"]
    assert parse_entries(merged.entries, "tsv") == merged.entries


@pytest.mark.parametrize("entries", ["a,b\0", 'a,"' + "b" * 200_000, "dog"])
def test_csv_that_cannot_be_read_is_a_bad_request(entries):
    with pytest.raises(HTTPError, match="entries"):
        parse_entries(entries, "csv")


def test_csv_keeps_line_breaks_of_other_systems_in_a_term():
    assert parse_entries("red\u2028dog,개\r\ncat,고양이", "csv") == "red dog\t개\ncat\t고양이"


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/v2/glossaries", {"entries": "a\tb\nc\t"}, "entries, line 2"),
        ("/v2/glossaries", {"entries": "a,b", "entries_format": "xml"}, "entries_format"),
        ("/v2/glossaries", {"entries": ""}, "no terms"),
        ("/v2/glossaries", {"entries": "a\tb", "target_lang": "ZZ"}, "ZZ is not supported"),
        ("/v2/glossaries", {"entries": "a\tb", "name": ""}, "name"),
        ("/v2/translate", {"text": "dog", "source_lang": None, "glossary_id": "x"}, "source_lang"),
        ("/v2/translate", {"text": "dog", "glossary_id": "../../etc/passwd"}, "not found"),
        ("/v1/translate", {"q": "dog", "glossary": "a\t"}, "line 1"),
        ("/v1/translate", {"q": "dog", "glossary": "a\tb", "glossary_id": "x"}, "not both"),
    ],
)
def test_bad_requests_get_one_line(server, path, body, message):
    languages = {} if path.startswith("/v1") else {"source_lang": "EN", "target_lang": "KO", "name": "n"}
    response = server.request("POST", path, json.dumps({**languages, **body}), content_type="application/json")
    assert response.status in (400, 404)
    assert message in response.error


def test_v1_reports_terms_and_the_engine(server, tiny):
    body = {"q": f"{TEXT}\nred cat", "glossary": "dog\t강아지|개\nSeoul"}
    response = server.request("POST", "/v1/translate", json.dumps(body), content_type="application/json")
    [found] = response.json["translations"]
    wanted = tiny.translate(TEXT, glossary=Glossary.parse(body["glossary"]))
    assert found["text"].split("\n") == [wanted.text, tiny.translate("red cat").text]
    assert [term["source"] for term in found["terms"]] == ["dog"]
    assert "torch" in found["engine"]


def test_glossaries_survive_a_restart(folder, tmp_path):
    options = ("--glossary-dir", str(tmp_path / "kept"))
    with serving(folder / "tiny", *options) as server:
        client = deepl.DeepLClient("any key", server_url=server.url)
        created = client.create_glossary("kept", "EN", "KO", TERMS)
    terms = tmp_path / "terms.tsv"
    terms.write_text("cat\t야옹이\n", encoding="utf-8")
    with serving(folder / "tiny", *options, "--glossary", str(terms)) as server:
        client = deepl.DeepLClient("any key", server_url=server.url)
        assert client.get_glossary_entries(created.glossary_id) == TERMS
        assert "야옹이" in client.translate_text("a cat", target_lang="KO").text

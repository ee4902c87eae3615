"""The official `deepl` client against our server."""

import deepl
import pytest

from documents.html_checks import check_same_tags

TEXT = "The small dog sees a tree."


@pytest.fixture(scope="module")
def client(server):
    return deepl.Translator("any key", server_url=server.url)


def test_translate_text(client, tiny):
    result = client.translate_text(TEXT, target_lang="KO")
    assert (result.text, result.detected_source_lang) == (tiny.translate(TEXT).text, "EN")
    assert result.billed_characters == len(TEXT)


def test_list_with_source_language(client, tiny):
    results = client.translate_text([TEXT, "", "old man"], source_lang="EN", target_lang="KO")
    assert [each.text for each in results] == [tiny.translate(TEXT).text, "", tiny.translate("old man").text]


def test_tag_handling_keeps_tags(client):
    page = "<p>The <b>dog</b> &amp; a cat</p>"
    check_same_tags(page, client.translate_text(page, target_lang="KO", tag_handling="html").text)


def test_xml_tags_are_inline_and_ignored_elements_stay(client):
    text = 'the <any id="1">dog</any> <keep>runs &amp; runs</keep> home'
    result = client.translate_text(text, target_lang="KO", tag_handling="xml", ignore_tags=["keep"]).text
    assert result.count("<keep>runs &amp; runs</keep>") == 1
    assert result.count('<any id="1">') == result.count("</any>") == 1


def test_languages(client):
    assert [each.code for each in client.get_source_languages()] == ["EN", "KO"]
    assert {each.name for each in client.get_target_languages()} == {"Korean", "English"}


def test_client_reads_the_error_message(client):
    with pytest.raises(deepl.DeepLException, match="ZZ is not supported"):
        client.translate_text(TEXT, target_lang="ZZ")


def test_form_of_older_clients(server, tiny):
    result = server.form("/v2/translate", {"text": ["the", "old"], "target_lang": "KO", "source_lang": "EN"}).json
    assert [each["text"] for each in result["translations"]] == [tiny.translate(text).text for text in ("the", "old")]

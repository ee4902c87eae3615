"""The `deepl` package, pointed at our server."""

import deepl
import pytest

from serve.tags import check_tags

TEXT = "The small dog sees a tree."


@pytest.fixture(scope="module")
def client(server):
    return deepl.Translator("any key", server_url=server.url)


def test_the_client_translates(client, tiny):
    found = client.translate_text(TEXT, target_lang="KO")
    assert (found.text, found.detected_source_lang) == (tiny.translate(TEXT).text, "EN")
    assert found.billed_characters == len(TEXT)


def test_a_list_and_a_given_language(client, tiny):
    found = client.translate_text([TEXT, "", "old man"], source_lang="EN", target_lang="KO")
    assert [each.text for each in found] == [tiny.translate(TEXT).text, "", tiny.translate("old man").text]


def test_tags_are_kept(client):
    page = "<p>The <b>dog</b> &amp; a cat</p>"
    check_tags(page, client.translate_text(page, target_lang="KO", tag_handling="html").text)


def test_languages(client):
    assert [each.code for each in client.get_source_languages()] == ["EN", "KO"]
    assert {each.name for each in client.get_target_languages()} == {"Korean", "English"}


def test_errors_say_why(client):
    with pytest.raises(deepl.DeepLException, match="ZZ is not supported"):
        client.translate_text(TEXT, target_lang="ZZ")


def test_older_clients_send_forms(server, tiny):
    found = server.form("/v2/translate", {"text": ["the", "old"], "target_lang": "KO", "source_lang": "EN"}).json
    assert [each["text"] for each in found["translations"]] == [tiny.translate(text).text for text in ("the", "old")]

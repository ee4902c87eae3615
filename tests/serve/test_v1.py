import json

import numpy
import pytest

from softgaze.gaze.stored import find_json, from_record

TEXT = "The small dog sees a tree."


def ask(server, path="/v1/translate", **fields):
    found = server.post(path, {"q": TEXT, **fields})
    assert found.status == 200, found.body
    return found.json


def refused(server, path="/v1/translate", **fields):
    found = server.post(path, {"q": TEXT, **fields})
    assert found.status == 400
    return found.error


def test_models(server):
    found = server.get("/v1/models").json
    assert [model["id"] for model in found["models"]] == ["tiny", "back"]
    assert found["models"][0] == {
        "id": "tiny",
        "kind": "text",
        "source": {"code": "en", "name": "English"},
        "target": {"code": "ko", "name": "Korean"},
        "arch": "transformer",
        "engine": "torch",
        "precision": "float32",
        "attention": True,
        "full": True,
        "what_if": True,
    }
    assert found["limits"] == {"characters": 10_000, "texts": 128, "beam": 10, "alternatives": 10, "body": 1 << 20}


def test_everything_a_translation_knows(server, tiny):
    found = ask(server, model="tiny", beam=3, alternatives=2)
    wanted = tiny.translate(TEXT, beam=3, nbest=3)
    [own] = found["translations"]
    assert (found["model"], found["source"], found["target"], found["detected"]) == ("tiny", "en", "ko", None)
    assert own["text"] == wanted.text
    assert own["score"] == pytest.approx(wanted.score, abs=1e-4)
    assert own["log_probability"] == pytest.approx(wanted.log_probability, abs=1e-3)
    assert own["tokens"] == [*wanted.tokens]
    assert own["source_tokens"] == [*wanted.source_tokens]
    assert [each["text"] for each in own["alternatives"]] == [each.text for each in wanted.alternatives]
    assert own["attention"] is None


def test_where_it_looked(server, tiny):
    found = ask(server, model="tiny", attention=True, alternatives=1)["translations"][0]
    wanted = tiny.translate(TEXT, nbest=2)
    check_attention(found["attention"], wanted.attention)
    check_attention(found["alternatives"][0]["attention"], wanted.alternatives[0].attention)


def check_attention(told, attention):
    weights = attention.words().word_weights()
    numpy.testing.assert_allclose(told["weights"], weights, atol=1e-3)
    numpy.testing.assert_allclose(told["coverage"], weights.sum(axis=0), atol=1e-3)
    assert tuple(told["source_words"]) == attention.recording.source.words
    assert tuple(told["target_words"]) == attention.recording.target.words
    assert {(read, written) for read, written, _ in told["links"]} == attention.alignment().links
    assert told["shows"] == attention.shows


def test_a_text_too_long_to_be_drawn_has_no_attention(server):
    found = server.post(
        "/v1/translate", {"q": "the dog runs. " * 200, "model": "tiny", "attention": True, "beam": 1}
    ).json
    assert found["translations"][0]["attention"] is None
    assert found["translations"][0]["text"]


def test_the_model_follows_from_the_languages(server):
    assert ask(server, target="ko")["detected"]["language"] == "en"
    assert ask(server, source="ko")["model"] == "back"
    assert ask(server)["model"] == "tiny"


REFUSED = {
    "no such model": ({"model": "none"}, "model none is not there; there is tiny, back"),
    "beam": ({"beam": 11}, "Invalid request: beam is from 1 to 10"),
    "no beam": ({"beam": 0}, "Invalid request: beam is from 1 to 10"),
    "already there": ({"target": "en"}, "the text is already in en"),
    "a word for a number": ({"beam": "5"}, "Invalid request: beam: Input should be a valid integer"),
    "a stream of two": (
        {"q": ["a", "b"], "stream": True},
        "Invalid request: a stream is of one text, with beam 1 and no alternatives",
    ),
}


@pytest.mark.parametrize(("fields", "error"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(server, fields, error):
    assert refused(server, **fields) == error


# --- what if ----------------------------------------------------------------------------------------------------


def test_what_if_a_word_is_not_looked_at(server, tiny):
    found = ask(server, "/v1/what_if", model="tiny", mask=["dog", 0])
    wanted = tiny.translate(TEXT).what_if(mask=["dog", 0])
    assert found["before"]["text"] == tiny.translate(TEXT).text
    assert found["after"]["text"] == wanted.text
    assert found["note"] == "with “dog” and “The” masked"
    check_attention(found["after"]["attention"], wanted.attention)
    columns = numpy.array(found["after"]["attention"]["weights"])[:, [0, 2]]
    assert not columns.any()
    assert found["diff"] == [[*piece] for piece in wanted.diff().pieces]


def test_what_if_words_look_elsewhere_and_heads_look_nowhere(server, tiny):
    found = ask(server, "/v1/what_if", model="tiny", attend={"0": 5, "1": "dog"}, ablate=[["encoder", 0, 1]], sharpen=2)
    wanted = tiny.translate(TEXT).what_if(attend={0: 5, 1: "dog"}, ablate=[("encoder", 0, 1)], sharpen=2)
    assert found["after"]["text"] == wanted.text
    assert found["note"] == wanted.changes[0].note


NONSENSE = {
    "no such word": ({"mask": ["trees"]}, "'trees' is not in the source; did you mean tree. or sees?"),
    "no such number": ({"mask": [9]}, "the source has words 0 to 5, and no word 9"),
    "no number": ({"attend": {"x": 1}}, "Invalid request: attend: output words are given by number"),
    "no head": ({"ablate": [[0, 7]]}, "there is no head 7 in the cross-attention: they are 0 to 3"),
    "no heads": ({"ablate": [[]]}, "ablate is a list of (layer, head) or (kind, layer, head), not [()]"),
    "a negative power": (
        {"sharpen": -1},
        "sharpen is a number above 0 (1 changes nothing, 2 is sharper, 0.5 flatter), not -1.0",
    ),
    "nothing to change": ({"q": " ", "mask": [0]}, "there is no attention to change"),
}


@pytest.mark.parametrize(("fields", "error"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused_in_a_line(server, fields, error):
    assert refused(server, "/v1/what_if", model="tiny", **fields).startswith(error)


# --- the page of everything -------------------------------------------------------------------------------------


def test_the_full_view_as_json_and_as_a_page(server, tiny):
    found = ask(server, "/v1/gaze", model="tiny")["html"]
    stored = from_record(json.loads(find_json(found)))
    assert stored.recording.source.words == tuple(TEXT.split())
    assert stored.recording.size("cross") == tiny.translate(TEXT).attention.recording.size("cross")
    page = server.form("/v1/gaze", {"q": TEXT, "model": "tiny"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"] == "frame-ancestors 'none'"
    assert "default-src 'none'; style-src 'sha256-" in page.body.decode()


def test_no_full_view_of_nothing(server):
    assert ask(server, "/v1/gaze", q=" ", model="tiny")["html"] is None
    assert server.form("/v1/gaze", {"q": " ", "model": "tiny"}).status == 404


def test_no_caption_without_a_captioner(server):
    found = server.upload("/v1/caption", ("image", "a.png", b"no picture"))
    assert (found.status, found.error) == (400, "no model for pictures is loaded")

import base64
import json
from types import SimpleNamespace

import numpy as np
import pytest

from pictures import image_bundle, write_scenes
from softgaze.errors import DataError
from softgaze.explain.serialization import find_json, from_record
from softgaze.search.options import SearchOptions
from softgaze.serve.errors import HTTPError
from softgaze.serve.explain_jobs import CaptionJob
from softgaze.translation import Translation
from softgaze.translator import load

TEXT = "The small dog sees a tree."


def post(server, path="/v1/translate", **fields):
    response = server.post(path, {"q": TEXT, **fields})
    assert response.status == 200, response.body
    return response.json


def error_of(server, path="/v1/translate", **fields):
    response = server.post(path, {"q": TEXT, **fields})
    assert response.status == 400
    return response.error


def test_models(server):
    result = server.get("/v1/models").json
    assert [model["id"] for model in result["models"]] == ["tiny", "back"]
    assert result["models"][0] == {
        "id": "tiny",
        "kind": "text",
        "source": {"code": "en", "name": "English"},
        "target": {"code": "ko", "name": "Korean"},
        "sources": [{"code": "en", "name": "English"}],
        "targets": [{"code": "ko", "name": "Korean"}],
        "arch": "transformer",
        "engine": "ctranslate2",
        "precision": "float32",
        "attention": True,
        "explain": True,
        "what_if": True,
    }
    limits = {"characters": 10_000, "texts": 128, "beam_size": 10, "num_hypotheses": 11}
    assert result["limits"] == {**limits, "body": 1 << 20, "file": 16 << 20}


def test_translation_equals_the_translator(server, tiny):
    result = post(server, model="tiny", beam_size=3, num_hypotheses=3)
    expected = tiny.translate(TEXT, beam_size=3, num_hypotheses=3)
    [best] = result["translations"]
    assert (result["model"], result["source"], result["target"], result["detected"]) == ("tiny", "en", "ko", None)
    assert best["text"] == expected.text
    assert best["score"] == pytest.approx(expected.score, abs=1e-4)
    assert best["log_prob"] == pytest.approx(expected.log_prob, abs=1e-3)
    assert best["tokens"] == [*expected.tokens]
    assert best["source_tokens"] == [*expected.source_tokens]
    assert [each["text"] for each in best["alternatives"]] == [each.text for each in expected.alternatives]
    assert best["attention"] is None


def test_attention_equals_the_translator(server, tiny):
    best = post(server, model="tiny", attention=True, num_hypotheses=2)["translations"][0]
    expected = tiny.translate(TEXT, num_hypotheses=2)
    check_attention(best["attention"], expected.attention)
    check_attention(best["alternatives"][0]["attention"], expected.alternatives[0].attention)


def check_attention(result, attention):
    weights = attention.words().word_weights()
    np.testing.assert_allclose(result["weights"], weights, atol=1e-3)
    np.testing.assert_allclose(result["coverage"], weights.sum(axis=0), atol=1e-3)
    assert tuple(result["source_words"]) == attention.recording.source.words
    assert tuple(result["target_words"]) == attention.recording.target.words
    assert {(source, target) for source, target, _ in result["alignment"]} == attention.alignment().links
    assert result["map"] == attention.description


def test_long_text_has_no_attention(server):
    fields = {"q": "the dog runs. " * 200, "model": "tiny", "attention": True, "beam_size": 1}
    [best] = server.post("/v1/translate", fields).json["translations"]
    assert best["attention"] is None
    assert best["text"]


def test_model_is_selected_by_languages(server):
    assert post(server, target="ko")["detected"]["language"] == "en"
    assert post(server, source="ko")["model"] == "back"
    assert post(server)["model"] == "tiny"


BAD_FIELDS = {
    "unknown model": ({"model": "none"}, "unknown model none; loaded: tiny, back"),
    "large beam": ({"beam_size": 11}, "beam_size must be from 1 to 10"),
    "zero beam": ({"beam_size": 0}, "beam_size must be from 1 to 10"),
    "many hypotheses": ({"num_hypotheses": 12}, "num_hypotheses must be from 1 to 11"),
    "same language": ({"target": "en"}, "source and target language are both en"),
    "string as number": ({"beam_size": "5"}, "beam_size: "),
    "stream of two texts": ({"q": ["a", "b"], "stream": True}, "stream needs one text"),
}


@pytest.mark.parametrize(("fields", "error"), BAD_FIELDS.values(), ids=BAD_FIELDS)
def test_bad_fields(server, fields, error):
    assert error in error_of(server, **fields)


# --- streaming --------------------------------------------------------------------------------------------------

STREAMED = {
    "sentence": TEXT,
    "lines": "The dog runs.\n\n  a small cat\n",
    "long": "the dog runs. a small cat sees the old man. " * 5,
    "blank": " ",
}


def events(server, **fields):
    response = server.post("/v1/translate", {"model": "tiny", "stream": True, **fields})
    assert response.headers["content-type"].startswith("text/event-stream")
    blocks = [block.split("\n", 1) for block in response.body.decode().split("\n\n") if block]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


@pytest.mark.parametrize("text", STREAMED.values(), ids=STREAMED)
def test_stream_gives_the_words_and_then_the_greedy_translation(server, text):
    *words, (last, response) = events(server, q=text)
    [greedy] = server.post("/v1/translate", {"q": text, "model": "tiny", "beam_size": 1}).json["translations"]
    assert {name for name, _ in words} <= {"word"}
    assert last == "done"
    assert response["translations"][0]["tokens"] == greedy["tokens"]
    assert "".join(each["text"] for _, each in words).split() == greedy["text"].split()


def test_each_event_is_a_word(server):
    *words, (_, response) = events(server, q=TEXT)
    assert [each["text"].strip() for _, each in words] == response["translations"][0]["text"].split()


def test_attention_is_in_the_last_event(server):
    name, response = events(server, q=TEXT, attention=True)[-1]
    assert name == "done"
    assert response["translations"][0]["attention"]["source_words"] == TEXT.split()


# --- what-if ----------------------------------------------------------------------------------------------------


def test_masked_words_get_no_attention(server, tiny):
    result = post(server, "/v1/what_if", model="tiny", mask=["dog", 0])
    expected = tiny.translate(TEXT).what_if(mask=["dog", 0])
    assert result["before"]["text"] == tiny.translate(TEXT).text
    assert result["after"]["text"] == expected.text
    assert result["note"] == expected.changes[0].note
    check_attention(result["after"]["attention"], expected.attention)
    assert not np.array(result["after"]["attention"]["weights"])[:, [0, 2]].any()
    assert result["diff"] == [[*run] for run in expected.diff().runs]


def test_attend_ablate_and_sharpen(server, tiny):
    change = {"attend": {"0": 5, "1": "dog"}, "ablate": [["encoder", 0, 1]], "sharpen": 2}
    result = post(server, "/v1/what_if", model="tiny", **change)
    expected = tiny.translate(TEXT).what_if(attend={0: 5, 1: "dog"}, ablate=[("encoder", 0, 1)], sharpen=2)
    assert result["after"]["text"] == expected.text
    assert result["note"] == expected.changes[0].note


BAD_CHANGES = {
    "unknown word": ({"mask": ["trees"]}, "'trees'"),
    "unknown index": ({"mask": [9]}, "9"),
    "no index": ({"attend": {"x": 1}}, "Invalid request: attend: "),
    "unknown head": ({"ablate": [[0, 7]]}, "head 7"),
    "empty head": ({"ablate": [[]]}, "ablate"),
    "negative exponent": ({"sharpen": -1}, "sharpen"),
    "empty text": ({"q": " ", "mask": [0]}, "no attention"),
}


@pytest.mark.parametrize(("fields", "error"), BAD_CHANGES.values(), ids=BAD_CHANGES)
def test_bad_changes(server, fields, error):
    assert error in error_of(server, "/v1/what_if", model="tiny", **fields)


# --- explain page -----------------------------------------------------------------------------------------------


def test_explain_page_as_json_and_as_html(server, tiny):
    page = post(server, "/v1/explain", model="tiny")["html"]
    stored = from_record(json.loads(find_json(page)))
    assert stored.recording.source.words == tuple(TEXT.split())
    expected = tiny.translate(TEXT)
    assert stored.recording.size("cross") == expected.attention.recording.size("cross")
    flags = {"row": [*expected.explanation.unsupported], "column": [*expected.explanation.omitted]}
    assert f'"flags":{json.dumps(flags, separators=(",", ":"))}' in page
    response = server.form("/v1/explain", {"q": TEXT, "model": "tiny"})
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-security-policy"] == "frame-ancestors 'none'"
    assert "default-src 'none'; style-src 'sha256-" in response.body.decode()


def test_no_explain_page_of_an_empty_text(server):
    assert post(server, "/v1/explain", q=" ", model="tiny")["html"] is None
    assert server.form("/v1/explain", {"q": " ", "model": "tiny"}).status == 404


# --- captions ---------------------------------------------------------------------------------------------------


class EchoCaptioner:
    """Returns the content of the image file as its caption."""

    def __init__(self):
        self.paths = []

    def translate_lines(self, paths, options):
        self.paths += paths
        for path in paths:
            with open(path, "rb") as file:
                content = file.read()
            if content == b"bad":
                raise DataError(f"{path}: not an image")
            yield Translation(path, content.decode(), -0.5, ())


@pytest.fixture
def job(tmp_path):
    captioner = EchoCaptioner()
    model = SimpleNamespace(prepare_attention=lambda: captioner, has_attention=True, translator=captioner)
    return CaptionJob(model, SearchOptions(), False, tmp_path)


def test_captions_of_a_batch_leave_no_files(job):
    captions = job.run([b"one", b"two", b"one"])
    assert [each["text"] for each in captions] == ["one", "two", "one"]
    assert len({*job.model.translator.paths}) == 3
    assert [*job.directory.iterdir()] == []


def test_a_masked_region_gets_no_attention(tmp_path):
    captioner = load(image_bundle(), engine="torch")
    model = SimpleNamespace(
        prepare_attention=lambda: captioner, has_attention=True, translator=captioner, bundle=captioner.bundle
    )
    [path] = write_scenes(tmp_path / "scenes", 1)
    directory = tmp_path / "temporary"
    directory.mkdir()
    [caption] = CaptionJob(model, SearchOptions(), True, directory, (0, 5)).run([path.read_bytes()])
    weights = np.array(caption["attention"]["weights"])
    assert weights[:, [0, 5]].max() == 0
    assert weights.sum(axis=1) == pytest.approx(1, abs=1e-2)


def test_a_bad_image_is_reported_without_the_temporary_file_name(job):
    with pytest.raises(HTTPError, match=r"^the image: not an image$"):
        job.run([b"bad"])
    assert [*job.directory.iterdir()] == []


BAD_IMAGES = {"missing": {}, "empty": {"image": ""}, "number": {"image": 3}, "not base64": {"image": "!"}}


@pytest.mark.parametrize("fields", BAD_IMAGES.values(), ids=BAD_IMAGES)
def test_bad_image_fields(server, fields):
    response = server.post("/v1/caption", fields)
    assert response.status == 400
    assert "image" in response.error


def test_no_captioner(server):
    for response in (
        server.upload("/v1/caption", ("image", "a.png", b"no image")),
        server.post("/v1/caption", {"image": base64.b64encode(b"x").decode()}),
    ):
        assert (response.status, response.error) == (400, "no image model is loaded")


# --- confidence


def test_confidence_equals_the_translator(server, tiny):
    [best] = post(server, model="tiny", confidence=True, num_hypotheses=2)["translations"]
    expected = tiny.translate(TEXT, num_hypotheses=2)
    for found, translation in zip([best, *best["alternatives"]], [expected, *expected.alternatives], strict=True):
        assert found["confidence"] == translation.confidence.to_dict()
        assert found["attention"] is None
    assert post(server, model="tiny")["translations"][0]["confidence"] is None
    [both] = post(server, model="tiny", confidence=True, attention=True)["translations"]
    assert both["attention"]["target_words"] == [word["text"] for word in both["confidence"]["words"]]


def test_explained_translations_keep_placeholders_too(server):
    texts = ["The {color} dog sees %s.", "The dog sees a tree."]
    first, second = post(server, q=texts, model="tiny", attention=True, confidence=True)["translations"]
    assert (first["protected_text"].count("{color}"), first["protected_text"].count("%s")) == (1, 1)
    assert first["protected_text"] == post(server, q=texts[0], model="tiny")["translations"][0]["text"]
    assert second["protected_text"] is None


def test_support_names_the_words_of_the_explanation(server, tiny):
    expected = tiny.translate(TEXT)
    [best] = post(server, model="tiny", support=True)["translations"]
    np.testing.assert_allclose(best["support"]["values"], expected.explanation.support, atol=1e-2)
    explanation = expected.explanation
    np.testing.assert_allclose(best["support"]["source_share"], explanation.source_share, atol=1e-2)
    words = {"omitted": (expected.source, explanation.omitted), "unsupported": (expected.text, explanation.unsupported)}
    for name, (text, indices) in words.items():
        assert best["support"][name] == [{"index": index, "text": text.split()[index]} for index in indices]
    assert post(server, model="tiny")["translations"][0]["support"] is None


def test_a_translation_continues_from_another_word(server, tiny):
    best = tiny.translate(TEXT)
    result = post(server, "/v1/alternatives", model="tiny", translation=best.text, word=1, count=3, attention=True)
    expected = best.alternatives_at(1, 3)
    assert [each["word"] for each in result["alternatives"]] == [each.word for each in expected]
    for found, alternative in zip(result["alternatives"], expected, strict=True):
        assert found["probability"] == pytest.approx(alternative.probability, abs=1e-3)
        assert found["translation"]["text"] == alternative.translation.text
        assert found["translation"]["confidence"] == alternative.translation.confidence.to_dict()
        assert found["translation"]["attention"]["weights"]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"word": 999}, "no word 999"),
        ({"word": 0, "count": 11}, "count"),
        ({"word": 0, "translation": ""}, "missing translation"),
        ({"word": 0, "q": "The dog runs. " * 40}, "one sentence"),
    ],
)
def test_other_words_are_checked(server, fields, error):
    assert error in error_of(server, "/v1/alternatives", **{"model": "tiny", "translation": "개", **fields})

import json

import pytest

TEXTS = {
    "a sentence": "The small dog sees a tree.",
    "lines": "The dog runs.\n\n  a small cat\n",
    "long": "the dog runs. a small cat sees the old man. " * 5,
    "nothing": " ",
}


def events(server, **fields):
    found = server.post("/v1/translate", {"model": "tiny", "stream": True, **fields})
    assert found.headers["content-type"].startswith("text/event-stream")
    blocks = [block.split("\n", 1) for block in found.body.decode().split("\n\n") if block]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_words_come_one_by_one_and_then_the_answer(server, text):
    *words, (last, answer) = events(server, q=text)
    plain = server.post("/v1/translate", {"q": text, "model": "tiny", "beam": 1}).json
    assert {name for name, _ in words} <= {"word"}
    assert last == "done"
    assert answer["translations"][0]["tokens"] == plain["translations"][0]["tokens"]
    assert "".join(each["text"] for _, each in words).split() == plain["translations"][0]["text"].split()


def test_each_event_is_a_word(server):
    *words, (_, answer) = events(server, q=TEXTS["a sentence"])
    told = [each["text"].strip() for _, each in words]
    assert told == answer["translations"][0]["text"].split()


def test_where_it_looked_comes_at_the_end(server):
    name, answer = events(server, q=TEXTS["a sentence"], attention=True)[-1]
    assert name == "done"
    assert answer["translations"][0]["attention"]["source_words"] == TEXTS["a sentence"].split()

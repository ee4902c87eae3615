"""What is counted as an error, and one real run of a second, whose speed nobody asserts."""

import json
from collections import Counter

from benchmarks.load import BAD, Seen, at, load, mixed, serving, table
from bundles import tiny_bundle
from serving import run_async


def test_errors_are_what_nobody_should_get():
    seen = Seen(Counter({"good 200": 5, "bad 400": 2, "good 429": 1, "bad 500": 1, "good ConnectionResetError": 1}))
    assert seen.errors == 3


def test_shares():
    assert at([1, 2, 3, 4], 0.99) == 4
    assert at([1, 2, 3, 4], 0.5) == 3


def test_texts_are_short_and_long():
    lengths = [len(text.split()) for text in mixed()]
    assert min(lengths) < 5
    assert max(lengths) > 30


def test_a_server_is_loaded_and_every_bad_request_is_refused():
    with serving(tiny_bundle()) as server:
        seen = run_async(load(server.url, ["the dog", "a cat"], ("en", "ko"), 8, 2.0))
        assert server.memory > 10
    assert seen.errors == 0
    assert seen.seconds
    assert seen.health
    text = table({"together": [seen], "one at a time": [seen]})
    assert "Together is 1.00 (1.00–1.00) times" in text
    json.dumps(seen.statuses)
    assert len(BAD) > 3

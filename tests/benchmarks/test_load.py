"""What is counted as an error, and one real run of a second, whose speed nobody asserts."""

import json
from collections import Counter

from benchmarks.load import BAD, LoadResult, load, mixed, percentile, serving, table
from benchmarks.training import ROOT
from bundles import tiny_bundle
from serving import run_async


def test_errors_are_what_nobody_should_get():
    result = LoadResult(
        Counter({"good 200": 5, "bad 400": 2, "good 429": 1, "bad 500": 1, "good ConnectionResetError": 1})
    )
    assert result.errors == 3


def test_shares():
    assert percentile([1, 2, 3, 4], 0.99) == 4
    assert percentile([1, 2, 3, 4], 0.5) == 3


def test_texts_are_short_and_long():
    lengths = [len(text.split()) for text in mixed()]
    assert min(lengths) < 5
    assert max(lengths) > 30


def test_a_server_is_loaded_and_every_bad_request_is_refused():
    with serving(tiny_bundle(), package=ROOT / "src") as server:
        result = run_async(load(server.url, ["the dog", "a cat"], ("en", "ko"), 8, 2.0))
        assert server.memory > 10
    assert result.errors == result.statuses["good 429"]  # a slow machine may fill the queue; nothing else fails
    assert result.seconds
    assert result.health
    text = table({"together": [result], "one at a time": [result]})
    assert "is 1.00 (1.00–1.00) times as fast" in text
    json.dumps(result.statuses)
    assert len(BAD) > 3

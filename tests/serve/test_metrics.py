import re

from softgaze.serve.metrics import HELP, Metrics

LINE = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[0-9.]+(e[+-]?\d+)?')


def values(text):
    """By name and labels, of a text that Prometheus could read."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            assert LINE.fullmatch(line), line
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


def test_every_metric_says_what_it_is():
    text = Metrics().text(0)
    for name, (kind, _) in HELP.items():
        assert f"# TYPE {name} {kind}\n" in text
        assert text.count(f"# HELP {name} ") == 1
    values(text)


def test_counts():
    metrics = Metrics()
    metrics.answered("/translate", "POST", 200, 0.003)
    metrics.answered("/translate", "POST", 200, 0.3)
    metrics.answered("other", "GET", 404, 99.0)
    metrics.taken(["ab", "c"])
    metrics.batched(3, 0.001, 0.02)
    found = values(metrics.text(7))
    assert found['softgaze_requests_total{route="/translate",method="POST",status="200"}'] == 2
    assert found["softgaze_texts_total"] == 2
    assert found["softgaze_characters_total"] == 3
    assert found["softgaze_queue_texts"] == 7
    assert found['softgaze_batch_texts_bucket{le="4.0"}'] == 1
    assert found['softgaze_request_seconds_bucket{le="0.005"}'] == 1
    assert found['softgaze_request_seconds_bucket{le="30.0"}'] == 2
    assert found['softgaze_request_seconds_bucket{le="+Inf"}'] == found["softgaze_request_seconds_count"] == 3
    assert found["softgaze_memory_bytes"] > 1e6


def test_workers_add_up(tmp_path):
    one, other = Metrics(tmp_path), Metrics(tmp_path)
    other.path = tmp_path / "metrics-other.json"
    for each, texts in ((one, ["a"]), (other, ["b", "c"])):
        each.taken(texts)
        each.noted = float("-inf")
        each.note(queue=2)
    one.taken(["d"])  # not noted yet: a process knows its own counts
    assert values(one.text(3))["softgaze_texts_total"] == 4
    assert values(one.text(3))["softgaze_queue_texts"] == 5
    assert values(other.text(0))["softgaze_texts_total"] == 3

import re

from softgaze.serve.metrics import METRICS, Metrics

LINE = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[0-9.]+(e[+-]?\d+)?')


def parse(text):
    """Return the values by name and labels, and check the Prometheus text format."""
    values = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            assert LINE.fullmatch(line), line
            name, _, value = line.rpartition(" ")
            values[name] = float(value)
    return values


def test_every_metric_has_type_and_help():
    text = Metrics().render(0)
    for name, (kind, _) in METRICS.items():
        assert f"# TYPE {name} {kind}\n" in text
        assert text.count(f"# HELP {name} ") == 1
    parse(text)


def test_counts_and_histograms():
    metrics = Metrics()
    metrics.count_request("/translate", "POST", 200, 0.003)
    metrics.count_request("/translate", "POST", 200, 0.3)
    metrics.count_request("other", "GET", 404, 99.0)
    metrics.count_texts(["ab", "c"])
    metrics.count_batch(3, 0.001, 0.02)
    values = parse(metrics.render(7))
    assert values['softgaze_requests_total{route="/translate",method="POST",status="200"}'] == 2
    assert values["softgaze_texts_total"] == 2
    assert values["softgaze_characters_total"] == 3
    assert values["softgaze_queue_texts"] == 7
    assert values['softgaze_batch_texts_bucket{le="4.0"}'] == 1
    assert values['softgaze_request_seconds_bucket{le="0.005"}'] == 1
    assert values['softgaze_request_seconds_bucket{le="30.0"}'] == 2
    assert values['softgaze_request_seconds_bucket{le="+Inf"}'] == values["softgaze_request_seconds_count"] == 3
    assert values["softgaze_memory_bytes"] > 1e6


def test_values_of_all_workers_are_summed(tmp_path):
    one, other = Metrics(tmp_path), Metrics(tmp_path)
    other.path = tmp_path / "metrics-other.json"
    for metrics, texts in ((one, ["a"]), (other, ["b", "c"])):
        metrics.count_texts(texts)
        metrics.publish(queue=2)
    one.count_texts(["d"])  # not yet published, but known to its own process
    assert parse(one.render(3))["softgaze_texts_total"] == 4
    assert parse(one.render(3))["softgaze_queue_texts"] == 5
    assert parse(other.render(0))["softgaze_texts_total"] == 3

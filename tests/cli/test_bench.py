"""`softgaze bench`: every setting measured, and advice that follows from the figures."""

import json

import pytest

from bundles import lines, make_bundle
from commands import check_error, run
from softgaze.cli.bench import recommendations, table_row
from softgaze.evaluation.benchmark import BenchmarkResult, BenchmarkSetting, benchmark_settings, fastest, thread_counts


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("bench")
    make_bundle(directory / "model")
    (directory / "text.en").write_text("\n".join(lines("en", 6)) + "\n")
    return directory


def test_a_trained_model_is_measured_on_every_engine_that_can_run_it(directory, monkeypatch):
    monkeypatch.setattr("softgaze.evaluation.benchmark.thread_counts", lambda: [1])
    result = run(directory, "bench", "model", "--text", "text.en", "--sentences", "2", "--json")
    assert result.returncode == 0, result.stderr
    results = json.loads(result.stdout)["settings"]
    kinds = {(each["engine"], each["precision"]) for each in results}
    assert kinds == {("torch", "float32"), *(("ctranslate2", kind) for kind in ("float32", "int8", "int8_float32"))}
    assert len(results) == len(kinds) * 4
    assert all(each["tokens_per_second"] > each["sentences_per_second"] > 0 for each in results)


@pytest.mark.parametrize(
    ("arguments", "code", "fact"),
    [
        (("model",), 2, "--text FILE"),
        (("model", "--text", "nowhere.en"), 3, "nowhere.en"),
        (("model", "--text", "empty.en"), 3, "no sentence"),
        (("modle", "--text", "text.en"), 3, "no such model directory"),
    ],
)
def test_mistakes_are_one_line(directory, arguments, code, fact):
    (directory / "empty.en").write_text("\n\n")
    check_error(run(directory, "bench", *arguments), code, fact)


def test_one_thread_and_all_cores_are_tried():
    assert thread_counts()[-1] >= 1
    assert len(list(benchmark_settings("torch", "float32", [1, 2]))) == 8


def paces():
    every = [*benchmark_settings("torch", "float32", [1, 2]), *benchmark_settings("ctranslate2", "int8", [1, 2])]
    return [BenchmarkResult(each, number + 1.0, 100.0 * (number + 1)) for number, each in enumerate(every)]


def test_the_advice_names_the_fastest_and_how_to_have_it(tmp_path):
    results = paces()
    assert fastest(results, beam_size=5, one_at_a_time=False) == max(
        (each for each in results if each.setting.beam_size == 5 and not each.setting.one_at_a_time),
        key=lambda each: each.tokens_per_second,
    )
    fact = "\n".join(recommendations(tmp_path, "torch", results))
    assert "ctranslate2 int8, 2 threads, 1,500 tokens/s" in fact
    assert fact.count(f"softgaze export {tmp_path} --to ctranslate2 --quantize int8") == 1
    assert "softgaze export" not in "\n".join(recommendations(tmp_path, "ctranslate2", results))


def test_a_row_shows_the_setting_and_its_speed():
    assert paces()[0].setting == BenchmarkSetting("torch", "float32", 1, 1, False)
    assert table_row(paces()[0]) == ("torch", "float32", "1", "1", "many", "1.0", "100")

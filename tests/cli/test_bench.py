"""`softgaze bench`: every setting measured, and advice that follows from the figures."""

import json

import pytest

from bundles import lines, make_bundle
from commands import run
from softgaze.cli.bench import advice, table
from softgaze.evaluation.pace import Pace, Setting, fastest, settings_of, thread_counts


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("bench")
    make_bundle(place / "model")
    (place / "text.en").write_text("\n".join(lines("en", 6)) + "\n")
    return place


def test_a_trained_model_is_measured_on_every_engine_that_can_run_it(place, monkeypatch):
    monkeypatch.setattr("softgaze.evaluation.pace.thread_counts", lambda: [1])
    done = run(place, "bench", "model", "--text", "text.en", "--sentences", "2", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["settings"]
    kinds = {(each["engine"], each["precision"]) for each in found}
    assert kinds == {("torch", "float32"), *(("ctranslate2", kind) for kind in ("float32", "int8", "int8_float32"))}
    assert len(found) == len(kinds) * 4
    assert all(each["tokens_per_second"] > each["sentences_per_second"] > 0 for each in found)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("model",), 2, "holds no held-out text to translate; give some with --text FILE"),
        (("model", "--text", "nowhere.en"), 3, "nowhere.en"),
        (("model", "--text", "empty.en"), 3, "holds no sentence to translate"),
        (("modle", "--text", "text.en"), 3, "there is no such model directory"),
    ],
)
def test_mistakes_are_one_line(place, arguments, code, said):
    (place / "empty.en").write_text("\n\n")
    done = run(place, "bench", *arguments)
    assert done.returncode == code
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_one_thread_and_all_cores_are_tried():
    assert thread_counts()[-1] >= 1
    assert len(list(settings_of("torch", "float32", [1, 2]))) == 8


def paces():
    every = [*settings_of("torch", "float32", [1, 2]), *settings_of("ctranslate2", "int8", [1, 2])]
    return [Pace(each, number + 1.0, 100.0 * (number + 1)) for number, each in enumerate(every)]


def test_the_advice_names_the_fastest_and_how_to_have_it(tmp_path):
    found = paces()
    assert fastest(found, beam=5, alone=False) == max(
        (each for each in found if each.setting.beam == 5 and not each.setting.alone),
        key=lambda each: each.tokens_per_second,
    )
    said = "\n".join(advice(tmp_path, "torch", found))
    assert "fastest for many lines: ctranslate2 int8, 2 threads, 1,500 tokens/s" in said
    assert said.count(f"softgaze export {tmp_path} --to ctranslate2 --quantize int8") == 1
    assert "softgaze export" not in "\n".join(advice(tmp_path, "ctranslate2", found))


def test_the_table_has_a_line_for_each_setting():
    found = paces()
    assert len(table(found)) == len(found) + 1
    assert Setting("torch", "float32", 1, 1, False) == found[0].setting

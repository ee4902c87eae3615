"""`softgaze why`: layers without a model, words with one; one-line errors."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from bundles import lines, make_bundle, tiny_bundle
from commands import check_error, run
from softgaze.cli.why import measure_layers
from softgaze.evaluation import benchmark

SIZES = ("--lengths", "16,32", "--widths", "8,16")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("why")
    for language in ("en", "ko"):
        (directory / f"test.{language}").write_text("\n".join(lines(language, 20)) + "\n", encoding="utf-8")
        (directory / f"empty.{language}").write_text("", encoding="utf-8")
    (directory / "blank.ko").write_text("\n" * 20, encoding="utf-8")
    make_bundle(directory / "rnn", arch="rnn", options={"width": 16})
    make_bundle(directory / "reverse", source_language="ko", target_language="en")
    return directory


def test_layers_on_the_screen_and_in_every_kind_of_file(directory):
    result = run(directory, "why", *SIZES, "-o", "layers.json", "-o", "layers.svg", "-o", "layers.txt")
    assert result.returncode == 0, result.stderr
    assert (directory / "layers.txt").read_text(encoding="utf-8") == result.stdout
    record = json.loads((directory / "layers.json").read_text(encoding="utf-8"))
    assert record["lengths"] == [16, 32]
    assert ElementTree.parse(directory / "layers.svg").getroot().tag.endswith("svg")
    assert result.stderr.count("wrote ") == 3


@pytest.mark.parametrize("seconds_by_others", [0.0, 1e6])
def test_times_of_a_busy_machine_come_with_a_warning(monkeypatch, capsys, seconds_by_others):
    counts = iter([0.0, seconds_by_others])
    monkeypatch.setattr(benchmark, "other_seconds", lambda: next(counts))
    measure_layers([16, 32], [8, 16], [], as_json=True)
    assert ("other processes" in capsys.readouterr().err) == bool(seconds_by_others)


def test_models_are_compared(directory):
    result = run(directory, "why", "rnn", tiny_bundle(), "--test", "test.en", "test.ko", "--json", "-o", "words.svg")
    assert result.returncode == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["sentences"] == 20
    found = [(each["model"], each["arch"], each["measure"]) for each in record["dependence"]]
    assert found == [
        (name, arch, measure)
        for name, arch in (("rnn", "rnn"), ("tiny", "transformer"))
        for measure in ("gradient", "occlusion")
    ]
    assert record["left_out"] == 0
    for measure in ("gradient", "occlusion"):
        assert len({each["words"] for each in record["dependence"] if each["measure"] == measure}) == 1
    assert [each["first"] for each in record["dependence"]] == [None, None, "rnn", "rnn"]
    assert "rnn" in (directory / "words.svg").read_text(encoding="utf-8")


def test_two_models_of_one_name_are_named_by_path(directory):
    for parent in ("one", "two"):
        (directory / parent).mkdir()
        make_bundle(directory / parent / "model")
    result = run(directory, "why", "one/model", "two/model", "--test", "test.en", "test.ko", "--json")
    assert {each["model"] for each in json.loads(result.stdout)["dependence"]} == {"one/model", "two/model"}


def test_pairs_that_the_models_split_differently_are_counted_or_rejected(directory, monkeypatch):
    models = ("rnn", tiny_bundle(), "--test", "test.en", "test.ko", "--json")
    monkeypatch.setattr(
        "softgaze.evaluation.complexity.dependence.comparable_pairs", lambda translators, pairs: pairs[:15]
    )
    record = json.loads(run(directory, "why", *models).stdout)
    assert (record["sentences"], record["left_out"]) == (15, 5)
    monkeypatch.setattr("softgaze.evaluation.complexity.dependence.comparable_pairs", lambda translators, pairs: [])
    check_error(run(directory, "why", *models), 2, "every pair into different words")


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["rnn"], 2, "--test SRC TGT"),
        (["--test", "test.en", "test.ko"], 2, "at least one MODEL"),
        (["rnn", "--test", "test.en", "test.ko", "--lengths", "8,16"], 2, "--lengths has no effect"),
        (["--lengths", "8,many"], 2, "--lengths takes comma-separated integers"),
        (["--lengths", "64"], 2, "at least two different lengths"),
        (["--device", "cpu"], 2, "--device has no effect"),
        (["--device", "nonsense", *SIZES], 2, "--device has no effect"),
        (["rnn", "--test", "test.en", "test.ko", "--device", "nonsense"], 2, "unknown device 'nonsense'"),
        (["--widths", "64,66"], 2, "66 is not divisible"),
        (["-o", "layers.doc"], 2, ".svg, .json, .txt, .png, .pdf"),
        (["-o", "nowhere/layers.svg"], 4, "there is no directory nowhere"),
        (["rnn", "reverse", "--test", "test.en", "test.ko"], 2, "models of one direction"),
        (["rnn", "--test", "test.en", "blank.ko"], 3, "no line with words on both sides"),
        (["rnn", "--test", "empty.en", "empty.ko"], 3, "empty"),
        (["rnn", "--test", "test.en", "missing.ko"], 3, "missing.ko"),
        (["nomodel", "--test", "test.en", "test.ko"], 3, "nomodel"),
    ],
)
def test_mistakes_are_one_line(directory, arguments, code, expected):
    check_error(run(directory, "why", *arguments), code, expected)

"""`softgaze why`: layers without a model, words with one; one line for whatever cannot work."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from bundles import lines, make_bundle, tiny_bundle
from commands import run

SIZES = ("--lengths", "16,32", "--widths", "8,16")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("why")
    for language in ("en", "ko"):
        (directory / f"test.{language}").write_text("\n".join(lines(language, 20)) + "\n", encoding="utf-8")
        (directory / f"empty.{language}").write_text("", encoding="utf-8")
    (directory / "blank.ko").write_text("\n" * 20, encoding="utf-8")
    make_bundle(directory / "rnn", arch="rnn", options={"width": 16})
    make_bundle(directory / "reverse", source_language="ko", target_language="en")
    return directory


def test_layers_on_the_screen_and_in_every_kind_of_file(place):
    ran = run(place, "why", *SIZES, "-o", "layers.json", "-o", "layers.svg", "-o", "layers.txt")
    assert ran.returncode == 0, ran.stderr
    assert (place / "layers.txt").read_text(encoding="utf-8") == ran.stdout
    record = json.loads((place / "layers.json").read_text(encoding="utf-8"))
    assert record["lengths"] == [16, 32]
    assert all(line.split(" — ")[0] in " ".join(ran.stdout.split()) for line in record["differences"])
    assert ElementTree.parse(place / "layers.svg").getroot().tag.endswith("svg")
    assert ran.stderr.count("wrote ") == 3


def test_models_side_by_side(place):
    ran = run(place, "why", "rnn", tiny_bundle(), "--test", "test.en", "test.ko", "--json", "-o", "words.svg")
    assert ran.returncode == 0, ran.stderr
    record = json.loads(ran.stdout)
    assert record["sentences"] == 20
    found = [(each["model"], each["arch"], each["measure"]) for each in record["dependence"]]
    assert found == [
        (name, arch, measure)
        for name, arch in (("rnn", "rnn"), ("tiny", "transformer"))
        for measure in ("gradient", "influence")
    ]
    assert record["left_out"] == 0
    for measure in ("gradient", "influence"):
        assert len({each["words"] for each in record["dependence"] if each["measure"] == measure}) == 1
    assert [each["first"] for each in record["dependence"]] == [None, None, "rnn", "rnn"]
    assert "rnn" in (place / "words.svg").read_text(encoding="utf-8")


def test_two_models_of_one_name_go_by_their_paths(place):
    for parent in ("one", "two"):
        (place / parent).mkdir()
        make_bundle(place / parent / "model")
    ran = run(place, "why", "one/model", "two/model", "--test", "test.en", "test.ko", "--json")
    assert {each["model"] for each in json.loads(ran.stdout)["dependence"]} == {"one/model", "two/model"}


def test_pairs_that_the_models_have_in_different_words_are_told_or_refused(place, monkeypatch):
    models = ("rnn", tiny_bundle(), "--test", "test.en", "test.ko", "--json")
    monkeypatch.setattr("softgaze.evaluation.why.dependence.shared", lambda translators, pairs: pairs[:15])
    record = json.loads(run(place, "why", *models).stdout)
    assert (record["sentences"], record["left_out"]) == (15, 5)
    monkeypatch.setattr("softgaze.evaluation.why.dependence.shared", lambda translators, pairs: [])
    ran = run(place, "why", *models)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "the models have every pair in different words" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["rnn"], 2, "give them with --test SRC TGT"),
        (["--test", "test.en", "test.ko"], 2, "name at least one MODEL"),
        (["rnn", "--test", "test.en", "test.ko", "--lengths", "8,16"], 2, "--lengths is for the layers"),
        (["--lengths", "8,many"], 2, "--lengths takes whole numbers with commas between them"),
        (["--lengths", "64"], 2, "at least two different lengths, not 1"),
        (["--device", "cpu"], 2, "--device is for trained models"),
        (["--device", "nonsense", *SIZES], 2, "--device is for trained models"),
        (["rnn", "--test", "test.en", "test.ko", "--device", "nonsense"], 2, "unknown device 'nonsense'"),
        (["--widths", "64,66"], 2, "a width of 66 cannot be divided"),
        (["-o", "layers.doc"], 2, "its name must end in .svg, .json, .txt, .png, .pdf"),
        (["-o", "nowhere/layers.svg"], 4, "there is no directory nowhere"),
        (["rnn", "reverse", "--test", "test.en", "test.ko"], 2, "only models of one direction compare"),
        (["rnn", "--test", "test.en", "blank.ko"], 3, "no line with words on both sides"),
        (["rnn", "--test", "empty.en", "empty.ko"], 3, "empty"),
        (["rnn", "--test", "test.en", "missing.ko"], 3, "missing.ko"),
        (["nomodel", "--test", "test.en", "test.ko"], 3, "nomodel"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(place, arguments, code, expected):
    ran = run(place, "why", *arguments)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert expected in ran.stderr

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from bundles import copier, lines, make_bundle
from softgaze.cli import app
from softgaze.cli.evaluate import distinct
from softgaze.errors import DataError, SoftgazeError, UsageError


@pytest.fixture
def test_set(monkeypatch, tmp_path):
    """A model that copies, and 20 pairs of which 15 are copies."""
    translator = copier(tmp_path, target_language="de")
    monkeypatch.setattr("softgaze.translator.load", lambda path, device: translator)
    texts = lines("en", 20)
    (tmp_path / "test.en").write_text("\n".join(texts) + "\n")
    (tmp_path / "test.de").write_text("\n".join([*texts[:15], *("etwas ganz anderes",) * 5]) + "\n")
    return [str(tmp_path / "test.en"), str(tmp_path / "test.de")]


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["evaluate", *arguments])
    if done.exception:
        raise done.exception
    return done.stdout


def evaluate(*arguments: str) -> str:
    return run("model", *arguments)


def test_scores_signatures_and_speed_are_printed(test_set):
    written = evaluate("--test", *test_set)
    assert [line.split()[0] for line in written.splitlines()] == ["BLEU", "chrF", "TER", "exact", "speed"]
    assert written.count("version:") == 3
    assert "15 of 20 sentences" in written
    assert "sentences/s" in written
    assert "tokens/s (cpu, beam 5)" in written


def test_json(test_set):
    record = json.loads(evaluate("--test", *test_set, "--json", "--beam", "2"))
    assert (record["exact"], record["sentences"], record["beam"], record["test"]) == (75, 20, 2, test_set)
    assert 0 < record["bleu"] < 100
    assert 0 < record["ter"] < 100
    assert set(record["signatures"]) == {"bleu", "chrf", "ter"}
    speed = record["speed"]
    assert speed["tokens_per_second"] > speed["sentences_per_second"] > 0


def test_a_perfect_translation_scores_full_marks(test_set):
    record = json.loads(evaluate("--test", test_set[0], test_set[0], "--json"))
    assert (round(record["bleu"], 3), round(record["chrf"], 3), record["ter"], record["exact"]) == (100, 100, 0, 100)


def test_the_translations_are_written(test_set, tmp_path):
    evaluate("--test", *test_set, "--output", str(tmp_path / "out"))
    assert (tmp_path / "out").read_text().splitlines() == lines("en", 20)


def test_the_target_language_chooses_the_tokenizer(test_set, monkeypatch, tmp_path):
    translator = copier(tmp_path, target_language="zh-Hans")
    monkeypatch.setattr("softgaze.translator.load", lambda path, device: translator)
    assert "tok:zh" in evaluate("--test", *test_set)


def test_files_that_differ_in_length_are_refused(test_set, tmp_path):
    (tmp_path / "short").write_text("one\n")
    with pytest.raises(DataError, match="20 lines"):
        evaluate("--test", test_set[0], str(tmp_path / "short"))


# --- by length, against others, and where it looks


@pytest.fixture
def other(test_set, tmp_path):
    """A file of translations by somebody else, most of them wrong."""
    texts = [text.replace("the", "a").replace("dog", "cat") for text in lines("en", 20)]
    (tmp_path / "other.de").write_text("\n".join(texts) + "\n")
    return str(tmp_path / "other.de")


def test_by_length_every_sentence_is_in_a_bucket(test_set):
    record = json.loads(evaluate("--test", *test_set, "--by-length", "--json"))
    assert sum(bucket["sentences"] for bucket in record["by_length"]) == 20
    assert record["bands"]["scores"]["model"]["bleu"]["score"] == pytest.approx(record["bleu"], abs=1e-4)
    assert "seed:12345" in record["bands"]["signatures"]["bleu"]


def test_given_edges_are_the_buckets(test_set):
    record = json.loads(evaluate("--test", *test_set, "--edges", "3,5", "--json"))
    assert [bucket["high"] for bucket in record["by_length"]] == [3, 5, 7]


def test_against_a_file_of_translations(test_set, other):
    written = evaluate("--test", *test_set, "--against", other, "--by-length")
    assert "BLEU, model minus other.de" in written
    assert "BLEU by source length" in written
    assert "randomisation p" in written
    assert written.count("version:") == 3 + 2
    record = json.loads(evaluate("--test", *test_set, "--against", other, "--json"))
    (against,) = record["against"]
    assert against["difference"]["bleu"]["score"] > 0
    assert record["systems"] == {"model": "model", "other.de": other}


def test_against_itself_nothing_differs(test_set, tmp_path):
    evaluate("--test", *test_set, "--output", str(tmp_path / "own"))
    record = json.loads(evaluate("--test", *test_set, "--against", str(tmp_path / "own"), "--json"))
    found = record["against"][0]["difference"]["chrf"]
    assert (found["score"], found["bootstrap_p"], found["randomisation_p"]) == (0, 1, 1)


def test_against_another_model(test_set, tmp_path):
    make_bundle(tmp_path / "other", target_language="de")
    record = json.loads(evaluate("--test", *test_set, "--against", str(tmp_path / "other"), "--json"))
    assert record["against"][0]["difference"]["chrf"]["score"] == 0  # `load` gives the copier for every path


def test_reports_are_written(test_set, other, tmp_path):
    files = [tmp_path / f"report{ending}" for ending in (".html", ".svg", ".json")]
    asked = [part for file in files for part in ("--report", str(file))]
    printed = json.loads(evaluate("--test", *test_set, "--against", other, "--by-length", "--json", *asked))
    page, chart, record = (file.read_text() for file in files)
    assert "Evaluation of model" in page
    assert "other.de" in page
    assert ElementTree.fromstring(chart).tag.endswith("svg")
    assert json.loads(record) == printed
    for signature in printed["bands"]["signatures"].values():
        assert all(signature in text for text in (page, chart))


@pytest.fixture
def real(monkeypatch, tmp_path):
    """A model that looks, untrained; and a test set with gold."""
    make_bundle(tmp_path / "real")
    for language in ("en", "ko"):
        (tmp_path / f"real.{language}").write_text("\n".join(lines(language, 6)) + "\n")
    (tmp_path / "gold").write_text("0-0 1-1\n" * 6)
    return [str(tmp_path / "real"), "--test", str(tmp_path / "real.en"), str(tmp_path / "real.ko"), "--beam", "1"]


def test_where_it_looks_is_told_with_gold_and_without(real, tmp_path):
    record = json.loads(run(*real, "--attention", "--json"))
    assert set(record["attention"]["real"]) == {"map", "sentences", "entropy", "coverage"}
    written = run(*real, "--gold", str(tmp_path / "gold"), "--gold-base", "0", "--by-length")
    assert "Attention of real" in written
    assert "AER" in written


def test_a_model_that_never_looks_has_nothing_to_tell(test_set):
    with pytest.raises(UsageError, match="has no attention"):
        evaluate("--test", *test_set, "--attention")


def test_beside_a_model_that_may_look_it_is_compared_all_the_same(test_set, tmp_path):
    make_bundle(tmp_path / "other", target_language="de")
    record = json.loads(evaluate("--test", *test_set, "--attention", "--against", str(tmp_path / "other"), "--json"))
    assert "against" in record
    assert "attention" not in record  # `load` gives the copier for every path


def test_that_nobody_looks_is_said_in_one_line(test_set, real, tmp_path, monkeypatch):
    def noted(*arguments):
        return CliRunner().invoke(app, ["evaluate", *arguments]).stderr

    make_bundle(tmp_path / "other", target_language="de")
    command = ["model", "--test", *test_set, "--against", str(tmp_path / "other")]
    said = "no system looks (model, other): there is no attention to tell about"
    assert said in noted(*command, "--attention").splitlines()
    assert said not in noted(*command)
    monkeypatch.undo()
    assert "no system looks" not in noted(*real, "--attention", "--against", real[0])


WRONG = {
    "no such other": (["--against", "nowhere"], "nowhere"),
    "edges that are no numbers": (["--edges", "a,b"], "10,20,30"),
    "edges that fall": (["--edges", "9,3"], "10,20,30"),
    "a chart of nothing": (["--report", "x.svg"], "--by-length"),
    "a report of no kind": (["--report", "x.pdf"], ".html"),
    "gold without its base": (["--gold", "x"], "--gold-base"),
}


@pytest.mark.parametrize(("flags", "told"), WRONG.values(), ids=WRONG)
def test_what_cannot_work_is_said_before_a_model_is_loaded(test_set, monkeypatch, flags, told):
    monkeypatch.setattr("softgaze.translator.load", None)
    with pytest.raises(SoftgazeError, match=told):
        evaluate("--test", *test_set, *flags)


def test_translations_of_another_length_are_refused(test_set, tmp_path):
    (tmp_path / "short").write_text("one\n")
    with pytest.raises(DataError, match="20 lines"):
        evaluate("--test", *test_set, "--against", str(tmp_path / "short"))


def test_a_model_of_another_direction_is_refused(test_set, tmp_path):
    make_bundle(tmp_path / "back", source_language="de", target_language="en")
    with pytest.raises(UsageError, match="de → en"):
        evaluate("--test", *test_set, "--against", str(tmp_path / "back"))


def test_every_system_has_a_name_of_its_own():
    paths = [Path("runs/a/best"), Path("runs/b/best"), Path("runs/new"), Path("runs/new"), Path(".")]
    names = distinct(paths)
    assert names[:2] == ["runs/a/best", "runs/b/best"]
    assert names[-1] == Path.cwd().name
    assert len(set(names)) == len(names)

import json

import pytest
from typer.testing import CliRunner

from bundles import copier, lines
from softgaze.cli import app
from softgaze.errors import DataError


@pytest.fixture
def test_set(monkeypatch, tmp_path):
    """A model that copies, and 20 pairs of which 15 are copies."""
    translator = copier(tmp_path, target_language="de")
    monkeypatch.setattr("softgaze.translator.load", lambda path, device: translator)
    texts = lines("en", 20)
    (tmp_path / "test.en").write_text("\n".join(texts) + "\n")
    (tmp_path / "test.de").write_text("\n".join([*texts[:15], *("etwas ganz anderes",) * 5]) + "\n")
    return [str(tmp_path / "test.en"), str(tmp_path / "test.de")]


def evaluate(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["evaluate", "model", *arguments])
    if done.exception:
        raise done.exception
    return done.stdout


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

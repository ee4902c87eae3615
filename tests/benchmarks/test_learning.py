"""Tables of how models learn."""

import json

import pytest

from benchmarks.learning import (
    BUDGETS,
    STARTS,
    Rate,
    Validation,
    best_of,
    budget_table,
    first_at,
    level_table,
    long_table,
    parse,
    rate_table,
    read_course,
    scored,
    start_table,
)
from bundles import tokenizer
from softgaze.bundle import Tokenizers


def course(*scores):
    return [Validation(250 * number, 2.0 * number, 5.0 - number, score) for number, score in enumerate(scores, 1)]


def test_a_level_is_reached_at_the_first_validation_above_it():
    found = course(12, 31, 29, 36)
    assert first_at(found, 30) == "4.0"
    assert first_at(found, 35) == "8.0"
    assert first_at(found, 36.1) == "not reached"
    assert "| ours | 4.0 | 8.0 | 36.0 |" in level_table({"ours": found})


def test_every_learning_rate_of_a_peer_has_a_row():
    tried = [Rate("eole", 1e-3, 20.04), Rate("eole", 4e-3, 31.0), Rate("joeynmt", 1e-3, 9.0)]
    rows = rate_table(tried, 4).splitlines()
    assert rows[2:] == ["| eole | 0.001 | 20.0 |", "| eole | 0.004 | 31.0 |", "| JoeyNMT | 0.001 | 9.0 |"]
    assert best_of([]) == 0
    assert best_of(course(12, 31, 29)) == 31


@pytest.mark.parametrize(("record", "table"), [(STARTS, start_table), (BUDGETS, budget_table)])
def test_the_page_of_a_record_has_all_its_runs(record, table):
    rows = json.loads(record.read_text(encoding="utf-8"))
    assert rows
    assert table(rows) in record.with_suffix(".md").read_text(encoding="utf-8")


def test_the_course_of_a_run_is_read_from_its_directory(tmp_path):
    settings = {"model": {"arch": "rnn", "options": {"dropout": 0.1}}, "data": {}}
    settings["training"] = {"warm_start": "none", "batch_tokens": 64}
    (tmp_path / "training.yaml").write_text(json.dumps(settings))
    (tmp_path / "result.json").write_text(json.dumps({"step": 8, "minutes": 2.4, "precision": "float32"}))
    rows = [{"kind": "update", "step": 3}]
    rows += [{"kind": "validation", "step": 4 * n, "epoch": n, "loss": 4.0 - n, "bleu": 10.0 * n} for n in (1, 2)]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    table = long_table({"both": {**read_course(tmp_path), "dev": 20.04}})
    courses = "3.00, 10.0 | 3.00, 10.0 | 3.00, 10.0 | 3.00, 10.0 | 2.00, 20.0"
    assert table.splitlines()[2] == f"| both | none | 0.1 | float32 | 8 | 2 | 2 | {courses} | 20.0 | not measured |"


def test_only_the_quickstart_brings_its_own_text(capsys):
    assert parse(["quickstart"]).train is None
    with pytest.raises(SystemExit):
        parse(["starts"])
    assert "--train" in capsys.readouterr().err


def test_what_a_peer_said_in_pieces_is_scored_as_text(tmp_path):
    lines = ["ein Haus steht dort.", "der Hund schläft."]
    (tmp_path / "dev.de").write_text("\n".join(lines) + "\n")
    both = Tokenizers(tokenizer(), tokenizer())
    said = [" ".join(both.target.pieces(ids)) for ids in both.target.encode(lines)]
    row = {"seconds": 90, "step": 7, "sentences": said}
    (tmp_path / "validations.jsonl").write_text(json.dumps(row) + "\n")

    [seen] = scored(tmp_path / "validations.jsonl", both.target, tmp_path / "dev.de")
    assert (seen.step, seen.minutes, round(seen.bleu)) == (7, 1.5, 100)
